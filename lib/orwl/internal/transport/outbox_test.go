package transport

import (
	"bufio"
	"net"
	"testing"
)

// However long the other end reads nothing, one ping at most waits for it.
func TestPingsDoNotGather(t *testing.T) {
	own, other := net.Pipe()
	defer own.Close()
	o := newOutbox(own)
	over := make(chan error, 1)
	go func() { over <- o.write() }()
	for range 100 {
		o.ping()
	}
	o.sendCopy(&Frame{Kind: Sync}, nil)
	in := Reader{Limit: MaxHeader, In: bufio.NewReader(other)}
	pings := 0
	for f := (Frame{}); f.Kind != Sync; {
		must(t, in.Next(&f))
		if f.Kind == Ping {
			pings++
		}
	}
	if pings != 1 {
		t.Errorf("%d pings waited", pings)
	}
	o.close()
	must(t, <-over)
}
