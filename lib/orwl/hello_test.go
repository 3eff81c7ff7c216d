//go:build linux

package orwl

import (
	"encoding/binary"
	"errors"
	"net"
	"os"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"fairway/lib/orwl/internal/transport"
)

// A connection that brings descriptors and then says nothing that is a hello leaves none of
// them behind.
func TestMalformedHelloLeavesNoDescriptors(t *testing.T) {
	s := new(Server)
	listener := listen(t, "unix")
	go s.Serve(listener)
	defer s.Close()
	before := descriptors(t)
	for range 20 {
		conn, err := net.Dial("unix", listener.Addr().String())
		must(t, err)
		hello := transport.AppendFrame(nil, &transport.Frame{Kind: transport.Ping})
		_, _, err = conn.(*net.UnixConn).WriteMsgUnix(hello, unix.UnixRights(0, 1, 2), nil)
		must(t, err)
		must(t, conn.SetReadDeadline(time.Now().Add(time.Minute)))
		for err == nil {
			_, err = conn.Read(make([]byte, 64))
		}
		must(t, conn.Close())
	}
	waitFor(t, func() bool { return descriptors(t) <= before })
}

// A connection that brings more descriptors than anybody asked for ends, and they with it.
func TestDescriptorsNobodyAskedForAreBounded(t *testing.T) {
	s := new(Server)
	h := hostilePeer(t, s, "unix")
	before := descriptors(t)
	for range MaxDescriptors/16 + 1 {
		fds := make([]int, 16)
		b := transport.AppendFrame(nil, &transport.Frame{Kind: transport.Ping})
		if _, _, err := h.conn.(*net.UnixConn).WriteMsgUnix(b, unix.UnixRights(fds...), nil); err != nil {
			break
		}
	}
	h.ends(t)
	waitFor(t, func() bool { return descriptors(t) <= before })
}

// A hello is short. One that says to be long ends the connection before it has come.
func TestLongHelloIsRefused(t *testing.T) {
	s := &Server{Lease: time.Hour}
	listener := listen(t, "tcp")
	go s.Serve(listener)
	defer s.Close()
	conn, err := net.Dial("tcp", listener.Addr().String())
	must(t, err)
	defer conn.Close()
	hello := transport.AppendFrame(nil, &transport.Frame{
		Kind: transport.Greeting, Version: transport.Version, Text: "somebody", Size: 1,
	})
	binary.LittleEndian.PutUint32(hello, 4<<10+1)
	_, err = conn.Write(hello[:16])
	must(t, err)
	must(t, conn.SetReadDeadline(time.Now().Add(time.Minute)))
	for err == nil {
		_, err = conn.Read(make([]byte, 64))
	}
	if errors.Is(err, os.ErrDeadlineExceeded) {
		t.Fatal("it waits for the rest")
	}
}
