package transport

import (
	"bufio"
	"context"
	"net"
	"testing"
	"time"
)

// Who handles a frame for longer than a lease, say a large insertion on a busy node, does not
// take the other end for silent, which it does not listen to.
func TestWhoHandlesForLongKeepsTheConnection(t *testing.T) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	must(t, err)
	defer listener.Close()
	other, err := net.Dial("tcp", listener.Addr().String())
	must(t, err)
	defer other.Close()
	conn, err := listener.Accept()
	must(t, err)
	greeting := Frame{Kind: Greeting, Version: Version, Text: "other", Size: int64(MinLease)}
	_, err = other.Write(AppendFrame(AppendFrame(nil, &greeting), &Frame{Kind: Open, ID: 1, Text: "l"}))
	must(t, err)
	l, err := Connect(context.Background(), conn, Hello{Process: "own", Serves: true, Lease: time.Minute})
	must(t, err)
	seen := make(chan struct{})
	l.Use(Handlers{
		Answered: func(*Frame) error { return nil },
		Idle:     func() bool { return true },
		Asked:    func(*Frame) error { <-seen; return nil },
	})
	over := make(chan error, 1)
	go func() { over <- l.Run() }()
	in := Reader{Limit: MaxHeader, In: bufio.NewReader(other)}
	for i := range 1 + 3*ticksPerLease { // its greeting, and what it sends in three leases
		var f Frame
		if err := in.Next(&f); err != nil {
			t.Errorf("it cut the connection after %d pings: %v", i-1, err)
			break
		}
	}
	close(seen)
	if err := <-over; err == nil { // now it listens, and nothing comes
		t.Error("silence did not end the connection")
	}
}
