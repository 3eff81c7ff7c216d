//go:build !linux

package transport

import (
	"errors"
	"io"
	"net"
)

type quickWriter struct{}

func newQuickWriter(net.Conn) *quickWriter { return nil }

func (w *quickWriter) write([]byte) int { return 0 }

func closeDescriptor(int) {}

func sendDescriptor(net.Conn, []byte, int) (int, error) { return 0, errors.ErrUnsupported }

type descriptorReader struct{}

func newReader(conn net.Conn) (io.Reader, *descriptorReader) { return conn, nil }

func (r *descriptorReader) take() (int, error) { return -1, errors.ErrUnsupported }
func (r *descriptorReader) close()             {}
