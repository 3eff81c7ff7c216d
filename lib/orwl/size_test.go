package orwl

import (
	"errors"
	"strings"
	"testing"

	"fairway/lib/orwl/internal/transport"
)

func TestSizeFromElsewhereIsBounded(t *testing.T) {
	overEach(t, func(t *testing.T, network string, options []Option) {
		l := newLocation(t, "l", 8, options...)
		s := &Server{MaxSize: 100}
		s.Add(l)
		p := dialled(t, s, listen(t, network), &Dialer{Once: true})
		m := mirror(t, p, "l")
		var h Handle
		must(t, h.WriteRequest(m))
		must(t, h.Acquire(background))
		if err := h.Resize(101); !errors.Is(err, ErrTooLarge) {
			t.Fatal(err)
		}
		must(t, h.Resize(100))
		must(t, h.Release())
		if n := len(read(t, l)); n != 100 {
			t.Fatalf("%d bytes", n)
		}
		// One that does not keep to the limit loses its connection.
		m.replica.Limit = 1000
		must(t, h.WriteRequest(m))
		must(t, h.Acquire(background))
		must(t, h.Resize(101))
		must(t, h.Release())
		<-p.Done()
		if n := len(read(t, l)); n != 100 {
			t.Fatalf("%d bytes after a release that was refused", n)
		}
	})
}

func TestSizeThatComesIsBounded(t *testing.T) {
	l := newLocation(t, "l", 8)
	s := new(Server)
	s.Add(l)
	listener := listen(t, "tcp")
	go s.Serve(listener)
	t.Cleanup(s.Close)
	for range 100 { // whoever reads the connection, the task or not, must tell
		p, err := (&Dialer{MaxSize: 100, Once: true}).Dial(background, "tcp", listener.Addr().String())
		must(t, err)
		resize(t, l, 8)
		m := mirror(t, p, "l")
		for range 3 {
			read(t, m)
		}
		resize(t, l, 101)
		var h Handle
		must(t, h.ReadRequest(m))
		if err := h.Acquire(background); !errors.Is(err, ErrTooLarge) {
			t.Fatal(err)
		}
		must(t, p.Close())
	}
}

// A name that no peer takes is refused where it is given, and the connection goes on.
func TestLongNamesAreRefused(t *testing.T) {
	long := strings.Repeat("n", MaxName+1)
	local := newLocation(t, long[:MaxName], 8)
	_, p := served(t, "tcp", local)
	if _, err := p.Mirror(background, long); !errors.Is(err, ErrTooLarge) {
		t.Fatal(err)
	}
	m := mirror(t, p, long[:MaxName])
	h := Handle{Name: long}
	if err := h.ReadRequest(m); !errors.Is(err, ErrTooLarge) {
		t.Fatal(err)
	}
	if err := Insert(background, h.Reading(m)); !errors.Is(err, ErrTooLarge) {
		t.Fatal(err)
	}
	before := Handle{Name: strings.Repeat("n", 2*transport.MaxText)} // that of the task before goes along with a grant
	must(t, errors.Join(before.WriteRequest(local), before.Acquire(background)))
	h.Name = long[:MaxName]
	must(t, h.ReadRequest(m))
	must(t, before.Release())
	must(t, errors.Join(h.Acquire(background), h.Release()))
}
