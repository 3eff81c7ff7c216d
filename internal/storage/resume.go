package storage

import (
	"context"
	"errors"
	"io"
)

// Resumed is the body of a file of so many bytes that goes on where it was cut: open
// gives the file from a place on. It is asked again when a transfer ends early for a
// reason that is over soon, if that transfer has brought something. Where nothing is
// brought, or open fails, reading ends with the error.
func Resumed(
	ctx context.Context, size int64, body io.ReadCloser, open func(from int64) (io.ReadCloser, error),
) io.ReadCloser {
	return &resumed{ctx: ctx, size: size, body: body, open: open}
}

type resumed struct {
	ctx   context.Context // of the whole transfer
	size  int64
	body  io.ReadCloser
	open  func(from int64) (io.ReadCloser, error)
	at    int64 // in the file
	began int64 // where body began
}

func (r *resumed) Read(p []byte) (int, error) {
	for {
		n, err := r.body.Read(p)
		r.at += int64(n)
		switch {
		case r.at > r.size:
			return n, io.ErrUnexpectedEOF
		case errors.Is(err, io.EOF) && r.at < r.size:
			err = io.ErrUnexpectedEOF
		}
		if err == nil || errors.Is(err, io.EOF) || !Temporary(err) || r.at == r.began || r.ctx.Err() != nil {
			return n, err
		}
		again, failed := r.open(r.at)
		if failed != nil {
			return n, err
		}
		_ = r.body.Close()
		r.body, r.began = again, r.at
		if n > 0 {
			return n, nil
		}
	}
}

// Close is part of io.ReadCloser.
func (r *resumed) Close() error { return r.body.Close() }
