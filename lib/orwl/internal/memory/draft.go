package memory

import "bytes"

// Draft is where a task writes to memory that its process shares with the owner of the
// location: a private mapping, of which the kernel copies a page when it is first
// written. What changed goes to the owner with the release, as from another host. So
// a grant copies nothing, whatever the size, and a writer that is lost leaves nothing
// behind.
//
// The copied pages stay for the next grant as long as nobody else has written in
// between: a task that writes to the same places again then makes no page fault.
//
// Where a location is written in place the draft is the memory itself.
//
// Who holds the write lock calls its methods: Begin before the first look at Bytes under a
// grant, and Changes once at its end. It lives as long as the replica that it belongs to.
type Draft struct {
	InPlace bool   // for life: writers write to the memory itself
	Bytes   []byte // valid from Begin until the next one, and until Resize or Close

	// Bytes are one of three: the memory itself (InPlace), a private mapping of file, or
	// memory of the heap (own). Only the second has to be unmapped.
	file    *File
	own     bool
	version uint64 // the pages that were not written since agree with this version of the memory
	worn    bool   // few of the pages that are copied were changed, so Begin drops them
	scanner pageScanner
}

// wornAfter is how many times as many pages a draft may have as a writer changes
// before it begins anew, beyond wornPages.
const (
	wornAfter = 4
	wornPages = 64
)

// Begin makes the draft that of a version of the memory.
func (d *Draft) Begin(m *Region, version uint64) (err error) {
	switch {
	case d.InPlace:
		d.Bytes, d.own = m.Bytes, false
	case d.file != m.File:
		d.Close()
		d.own = false
		if d.Bytes, err = m.File.mmapPrivate(m.Size()); err == nil {
			d.file = m.File
		}
	case d.version != version || d.worn:
		err = dropPrivate(d.Bytes)
	}
	d.version, d.worn = version, false
	return err
}

// Resize goes on in memory of its own, which is sent as a whole.
func (d *Draft) Resize(size int) error {
	b, err := aligned(size)
	if err != nil {
		return err
	}
	copy(b, d.Bytes)
	d.Close()
	d.Bytes, d.own = b, true
	return nil
}

// Changes returns what differs from the memory, as the owner still has it, and makes it
// a version.
func (d *Draft) Changes(memory []byte, version uint64) []Extent {
	d.version = version
	switch {
	case d.own && len(d.Bytes) > 0:
		return []Extent{{0, len(d.Bytes)}}
	case d.own || d.InPlace:
		return nil
	}
	places := []Extent{{0, len(d.Bytes)}}
	if len(d.Bytes) > scanFrom {
		places = d.scanner.copied(d.Bytes)
	}
	var pieces []Extent
	blocks, changed := 0, 0
	for _, e := range places {
		for at := e.Offset; at < e.Offset+e.Length; at += BlockSize {
			end := min(at+BlockSize, e.Offset+e.Length)
			if blocks++; !bytes.Equal(d.Bytes[at:end], memory[at:end]) {
				pieces = appendDiffering(pieces, d.Bytes, memory, at, end)
				changed++
			}
		}
	}
	d.worn = blocks > wornAfter*changed+wornPages
	return bounded(pieces, len(d.Bytes))
}

// scanFrom is the size in bytes from which the system is asked for the pages that were
// written. Smaller data is compared as a whole.
const scanFrom = 16 << 10

// line is the unit in which a draft looks for changes in a block, in bytes.
const line = 256

// appendDiffering appends the lines from start to end in which a and b differ.
func appendDiffering(pieces []Extent, a, b []byte, start, end int) []Extent {
	for ; start < end; start += line {
		n := min(line, end-start)
		if !bytes.Equal(a[start:start+n], b[start:start+n]) {
			pieces = appendPiece(pieces, start, n)
		}
	}
	return pieces
}

// Close gives up the mapping.
func (d *Draft) Close() {
	if d.file != nil {
		unmapMemory(d.Bytes)
	}
	d.Bytes, d.file = nil, nil
}
