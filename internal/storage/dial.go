package storage

import (
	"context"
	"io"
	"net"
)

// Dial has connections send what is read from a file in the pieces of this package. Those
// of package net take a new buffer of 32 KiB for each file.
func Dial(d *net.Dialer) func(ctx context.Context, network, address string) (net.Conn, error) {
	return func(ctx context.Context, network, address string) (net.Conn, error) {
		c, err := d.DialContext(ctx, network, address)
		if err != nil {
			return nil, err
		}
		return sending{c}, nil
	}
}

type sending struct{ net.Conn }

// ReadFrom is part of io.ReaderFrom.
func (s sending) ReadFrom(body io.Reader) (int64, error) {
	p := pieces.Get().(*piece)
	defer pieces.Put(p)
	return io.CopyBuffer(struct{ io.Writer }{s.Conn}, body, p[:])
}
