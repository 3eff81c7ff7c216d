//go:build linux

package orwl

import (
	"strings"
	"testing"
)

// faultOf runs f, which must touch what it may not, as a goroutine would.
func faultOf(t *testing.T, f func()) (fault *Fault) {
	t.Helper()
	defer func() {
		var ok bool
		if fault, ok = recover().(*Fault); !ok {
			t.Fatal("the access went unnoticed")
		}
	}()
	func() {
		defer ExplainFault()
		f()
	}()
	return nil
}

func TestStrict(t *testing.T) {
	l := newLocation(t, "grid", 4096, Strict())
	forbidsAccess(t, l)
	var r Handle
	for range MaxRetired + 10 {
		must(t, r.ReadRequest(l))
		_, err := r.ReadMap()
		must(t, err)
		must(t, r.Release())
	}
}

// A mapping that was handed to another goroutine is watched there too.
func TestStrictInAnotherGoroutine(t *testing.T) {
	l := newLocation(t, "grid", 4096, Strict())
	h := Handle{Name: "writer"}
	must(t, h.WriteRequest(l))
	data, err := h.WriteMap()
	must(t, err)
	must(t, h.Release())
	found := make(chan any, 1)
	go func() {
		defer func() { found <- recover() }()
		PanicOnFault()
		defer ExplainFault()
		data[0] = 1
	}()
	if f, ok := (<-found).(*Fault); !ok || f.Handle != "writer" || f.Released == "" {
		t.Fatalf("found %v", f)
	}
}

// A mirror finds the same, whether its memory is a copy or the owner's, and its
// owner need not be strict.
func TestStrictMirror(t *testing.T) {
	overEach(t, func(t *testing.T, network string, options []Option) {
		s := new(Server)
		s.Add(newLocation(t, "grid", 4096, options...))
		p := dialled(t, s, listen(t, network), &Dialer{Strict: true})
		forbidsAccess(t, mirror(t, p, "grid"))
	})
}

// forbidsAccess uses a resource called grid in all ways that its locks do not
// allow.
func forbidsAccess(t *testing.T, grid Resource) {
	t.Helper()
	w, r := Handle{Name: "writer"}, Handle{Name: "reader"}
	must(t, w.WriteRequest(grid))
	must(t, w.Acquire(background))
	data, err := WriteAs[uint64](&w)
	must(t, err)
	data[5] = 7
	must(t, w.Release())
	must(t, r.ReadRequest(grid))
	must(t, r.Acquire(background))
	read, err := ReadAs[uint64](&r)
	must(t, err)
	if read[5] != 7 {
		t.Fatalf("the reader sees %d", read[5])
	}
	f := faultOf(t, func() { read[5] = 8 })
	if f.Handle != "reader" || f.Released != "" || !strings.Contains(f.Error(), "holds it for reading") {
		t.Fatalf("writing a read mapping: %v", f)
	}
	f = faultOf(t, func() { data[5]++ })
	if f.Handle != "writer" || f.Location != "grid" || !strings.Contains(f.Released, "strict_test.go:") {
		t.Fatalf("touching after release: %v", f)
	}
	must(t, r.Release())
	f = faultOf(t, func() { data[0] = read[5] })
	if f.Handle != "reader" || f.Mode != Read || !strings.Contains(f.Released, "strict_test.go:") {
		t.Fatalf("reading after release: %v", f)
	}
}
