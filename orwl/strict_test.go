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
	w, r := Handle{Name: "writer"}, Handle{Name: "reader"}
	must(t, w.WriteRequest(l))
	data, err := WriteAs[uint64](&w)
	must(t, err)
	data[5] = 7
	must(t, w.Release())
	must(t, r.ReadRequest(l))
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
	for range MaxRetired + 10 {
		must(t, r.ReadRequest(l))
		_, err := r.ReadMap()
		must(t, err)
		must(t, r.Release())
	}
}
