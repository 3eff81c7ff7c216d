package main

import (
	"errors"
	"io"
	"net"
	"testing"
	"testing/synctest"
	"time"
)

// What is sent in either direction arrives as it was, and by the delay later.
func TestDelayedConnection(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const by = 5 * time.Millisecond
		near, far := net.Pipe()
		c := newDelayedConn(near, by)
		start := time.Now()
		go func() { _, _ = far.Write([]byte("to the server")) }()
		b := make([]byte, 13)
		if _, err := io.ReadFull(c, b); err != nil || string(b) != "to the server" || time.Since(start) != by {
			t.Errorf("%q after %v, %v", b, time.Since(start), err)
		}
		for _, word := range []string{"and ", "back"} {
			if _, err := c.Write([]byte(word)); err != nil {
				t.Error(err)
			}
		}
		b = make([]byte, 8)
		if _, err := io.ReadFull(far, b); err != nil || string(b) != "and back" || time.Since(start) != 2*by {
			t.Errorf("%q after %v, %v", b, time.Since(start), err)
		}
		far.Close()
		if _, err := c.Read(b); !errors.Is(err, io.EOF) {
			t.Errorf("got %v", err)
		}
		c.Close()
	})
}
