package orwl

import (
	"errors"
	"testing"
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
		m.replica.limit = 1000
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
	l := newLocation(t, "l", 101)
	s := new(Server)
	s.Add(l)
	p := dialled(t, s, listen(t, "tcp"), &Dialer{MaxSize: 100, Once: true})
	var h Handle
	must(t, h.ReadRequest(mirror(t, p, "l")))
	if err := h.Acquire(background); !errors.Is(err, ErrTooLarge) {
		t.Fatal(err)
	}
}
