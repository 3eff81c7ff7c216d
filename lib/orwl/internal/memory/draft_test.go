//go:build linux

package memory

import (
	"bytes"
	"os"
	"slices"
	"testing"

	"fairway/lib/seed"
)

// sharedMemory is memory in a file, without an owner.
func sharedMemory(t *testing.T, size int) *Region {
	m, err := NewInFile("test", size)
	must(t, err)
	t.Cleanup(m.Close)
	return &m
}

// What a draft says to have changed is what a writer changed, whoever wrote the
// version before, and nothing of it is in the memory before.
func TestDraftFindsWhatChanged(t *testing.T) {
	rng := seed.Source(t)
	for _, size := range []int{0, 1, 8, scanFrom, 300*BlockSize + 17} {
		m, d := sharedMemory(t, size), new(Draft)
		version := uint64(0)
		for range 200 {
			if size > 0 && rng.IntN(3) == 0 {
				m.Bytes[rng.IntN(size)]++
				version++
			}
			must(t, d.Begin(m, version))
			if !bytes.Equal(d.Bytes, m.Bytes) {
				t.Fatalf("%d bytes: version %d begins with other data", size, version)
			}
			before := bytes.Clone(m.Bytes)
			var written []Extent
			for range min(size, rng.IntN(6)) {
				at := rng.IntN(size)
				d.Bytes[at]++
				written = append(written, Extent{at, 1})
			}
			if !bytes.Equal(m.Bytes, before) {
				t.Fatal("a draft is visible")
			}
			version++
			for _, e := range d.Changes(m.Bytes, version) {
				copy(m.Bytes[e.Offset:e.Offset+e.Length], d.Bytes[e.Offset:])
				written = slices.DeleteFunc(written, func(w Extent) bool {
					return w.Offset >= e.Offset && w.Offset < e.Offset+e.Length
				})
			}
			if len(written) > 0 || !bytes.Equal(d.Bytes, m.Bytes) {
				t.Fatalf("%d bytes: changes at %v are missing", size, written)
			}
		}
		d.Close()
	}
}

// Both ways to ask the system find the same pages.
func TestScannersAgree(t *testing.T) {
	rng := seed.Source(t)
	page := os.Getpagesize()
	m := sharedMemory(t, 2000*page+1)
	b, err := m.File.mmapPrivate(m.Size())
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
			_ = b[rng.IntN(len(b))] + m.Bytes[rng.IntN(len(b))]
		}
		must(t, byReading.read(f, b))
		err := byScan.scan(f, b)
		if err == nil && !slices.Equal(byScan.pieces, byReading.pieces) {
			t.Fatalf("found %v and %v", byScan.pieces, byReading.pieces)
		}
		found := 0
		for _, e := range byReading.pieces {
			for at := e.Offset; at < e.Offset+e.Length; at += page {
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
	m, d := sharedMemory(t, 4*wornPages*BlockSize), new(Draft)
	defer d.Close()
	for version, pages := range []int{4 * wornPages, 1, 1} {
		must(t, d.Begin(m, uint64(version)))
		for i := range pages {
			d.Bytes[i*BlockSize]++
		}
		for _, e := range d.Changes(m.Bytes, uint64(version+1)) {
			copy(m.Bytes[e.Offset:e.Offset+e.Length], d.Bytes[e.Offset:])
		}
		if d.worn != (version == 1) {
			t.Fatalf("version %d: worn out is %v", version, d.worn)
		}
	}
}
