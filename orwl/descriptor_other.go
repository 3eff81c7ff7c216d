//go:build !linux

package orwl

import (
	"errors"
	"io"
	"net"
)

func quickWriter(net.Conn) func([]byte) (int, error) { return nil }

func sendDescriptor(net.Conn, []byte, int) (int, error) { return 0, errors.ErrUnsupported }

type descriptorReader struct{}

func newReader(conn net.Conn) (io.Reader, *descriptorReader) { return conn, nil }

func (r *descriptorReader) take() (*memoryFile, error) { return nil, errors.ErrUnsupported }
func (r *descriptorReader) close()                     {}
