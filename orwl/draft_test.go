//go:build linux

package orwl

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"slices"
	"testing"

	"fairway/test/seed"
)

// sharedMemory is memory in a file, without an owner.
func sharedMemory(t *testing.T, size int) *memory {
	m, err := newMemory("test", size)
	must(t, err)
	t.Cleanup(m.close)
	return &m
}

// What a draft says to have changed is what a writer changed, whoever wrote the
// version before, and nothing of it is in the memory before.
func TestDraftFindsWhatChanged(t *testing.T) {
	rng := seed.Source(t)
	for _, size := range []int{0, 1, 8, inlineLimit, 300*blockSize + 17} {
		m, d := sharedMemory(t, size), new(draft)
		version := uint64(0)
		for range rounds(200) {
			if size > 0 && rng.IntN(3) == 0 {
				m.bytes[rng.IntN(size)]++
				version++
			}
			must(t, d.begin(m, version))
			if !bytes.Equal(d.bytes, m.bytes) {
				t.Fatalf("%d bytes: version %d begins with other data", size, version)
			}
			before := bytes.Clone(m.bytes)
			var written []extent
			for range min(size, rng.IntN(6)) {
				at := rng.IntN(size)
				d.bytes[at]++
				written = append(written, extent{at, 1})
			}
			if !bytes.Equal(m.bytes, before) {
				t.Fatal("a draft is visible")
			}
			version++
			for _, e := range d.changes(m.bytes, version) {
				copy(m.bytes[e.offset:e.offset+e.length], d.bytes[e.offset:])
				written = slices.DeleteFunc(written, func(w extent) bool { return w.offset >= e.offset && w.offset < e.offset+e.length })
			}
			if len(written) > 0 || !bytes.Equal(d.bytes, m.bytes) {
				t.Fatalf("%d bytes: changes at %v are missing", size, written)
			}
		}
		d.close()
	}
}

// Both ways to ask the system find the same pages.
func TestScannersAgree(t *testing.T) {
	rng := seed.Source(t)
	page := os.Getpagesize()
	m := sharedMemory(t, 2000*page+1)
	b, err := m.file.mmapPrivate(m.size())
	must(t, err)
	defer unmapMemory(b)
	f, err := pagemap()
	must(t, err)
	var byScan, byReading pageScanner
	want := map[int]bool{}
	for range 20 {
		for range rng.IntN(100) {
			at := rng.IntN(len(b))
			b[at] = 1
			want[at/page] = true
			_ = b[rng.IntN(len(b))] + m.bytes[rng.IntN(len(b))]
		}
		must(t, byReading.read(f, b))
		err := byScan.scan(f, b)
		if err == nil && !slices.Equal(byScan.pieces, byReading.pieces) {
			t.Fatalf("found %v and %v", byScan.pieces, byReading.pieces)
		}
		found := 0
		for _, e := range byReading.pieces {
			for at := e.offset; at < e.offset+e.length; at += page {
				found++
				if !want[at/page] {
					t.Fatalf("page %d was not written", at/page)
				}
			}
		}
		if found != len(want) {
			t.Fatalf("found %d pages of %d", found, len(want))
		}
		byScan.pieces, byReading.pieces = nil, nil
	}
}

// A draft that has copied much more than is changed now begins anew.
func TestDraftWearsOut(t *testing.T) {
	m, d := sharedMemory(t, 4*wornPages*blockSize), new(draft)
	defer d.close()
	for version, pages := range []int{4 * wornPages, 1, 1} {
		must(t, d.begin(m, uint64(version)))
		for i := range pages {
			d.bytes[i*blockSize]++
		}
		for _, e := range d.changes(m.bytes, uint64(version+1)) {
			copy(m.bytes[e.offset:e.offset+e.length], d.bytes[e.offset:])
		}
		if d.worn != (version == 1) {
			t.Fatalf("version %d: worn out is %v", version, d.worn)
		}
	}
}

// Who maps the memory for reading cannot change what the owner has.
func TestStrayWriteToSharedMemory(t *testing.T) {
	_, p := served(t, "unix", newLocation(t, "l", 8, Shared()))
	var h Handle
	must(t, errors.Join(h.ReadRequest(mirror(t, p, "l")), h.Acquire(background)))
	b, err := h.ReadMap()
	must(t, err)
	defer func() {
		if recover() == nil {
			t.Fatal("the memory of the owner was written")
		}
	}()
	PanicOnFault()
	b[0] = 1
}

// A task may resize what it has written, write on, and map it again.
func TestDraftIsResized(t *testing.T) {
	l := newLocation(t, "l", 3*blockSize, Shared())
	_, p := served(t, "unix", l)
	m := mirror(t, p, "l")
	for i, size := range []int{5*blockSize + 1, 10, 0, 2 * blockSize} {
		t.Run(fmt.Sprint(size), func(t *testing.T) {
			before := read(t, l)
			var h Handle
			must(t, errors.Join(h.WriteRequest(m), h.Acquire(background)))
			b, err := h.WriteMap()
			must(t, err)
			if len(b) > 0 {
				b[0] = byte(i + 1)
				before[0] = b[0]
			}
			must(t, h.Resize(size))
			want := append(before, make([]byte, size)...)[:size]
			got, err := h.ReadMap()
			must(t, err)
			if !bytes.Equal(got, want) {
				t.Fatal("resizing changed what was there")
			}
			must(t, h.Release())
			if got := read(t, m); !bytes.Equal(got, want) || !bytes.Equal(read(t, l), want) {
				t.Fatal("others see something else")
			}
			write(t, m, func([]byte) {})
		})
	}
}
