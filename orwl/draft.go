package orwl

import "bytes"

// draft is where a task writes to memory that its process shares with the owner of the
// location: a private mapping, of which the kernel copies a page when it is first
// written. What changed goes to the owner with the release, as from another host. So
// a grant copies nothing, whatever the size, and a writer that is lost leaves nothing
// behind.
//
// The copied pages stay for the next grant as long as nobody else has written in
// between: a task that writes to the same places again then makes no page fault.
//
// Where a location is written in place the draft is the memory itself.
type draft struct {
	inPlace bool
	bytes   []byte
	file    *memoryFile // that bytes maps privately, or nil
	own     bool        // bytes is memory of the process alone, after Resize
	version uint64      // that the pages agree with
	worn    bool        // few of the pages that are copied were changed
	scanner pageScanner
}

// wornAfter is how many times as many pages a draft may have as a writer changes
// before it begins anew, beyond wornPages.
const (
	wornAfter = 4
	wornPages = 64
)

// begin makes the draft that of a version of the memory.
func (d *draft) begin(m *memory, version uint64) (err error) {
	switch {
	case d.inPlace:
		d.bytes, d.own = m.bytes, false
	case d.file != m.file:
		d.close()
		d.own = false
		if d.bytes, err = m.file.mmapPrivate(m.size()); err == nil {
			d.file = m.file
		}
	case d.version != version || d.worn:
		err = dropPrivate(d.bytes)
	}
	d.version, d.worn = version, false
	return err
}

// resize goes on in memory of its own, which is sent as a whole.
func (d *draft) resize(size int) error {
	b, err := aligned(size)
	if err != nil {
		return err
	}
	copy(b, d.bytes)
	d.close()
	d.bytes, d.own = b, true
	return nil
}

// changes returns what differs from the memory, as the owner still has it, and makes it
// a version.
func (d *draft) changes(memory []byte, version uint64) []extent {
	d.version = version
	switch {
	case d.own && len(d.bytes) > 0:
		return []extent{{0, len(d.bytes)}}
	case d.own || d.inPlace:
		return nil
	}
	places := []extent{{0, len(d.bytes)}}
	if len(d.bytes) > inlineLimit {
		places = d.scanner.copied(d.bytes)
	}
	var pieces []extent
	blocks, changed := 0, 0
	for _, e := range places {
		for at := e.offset; at < e.offset+e.length; at += blockSize {
			end := min(at+blockSize, e.offset+e.length)
			if blocks++; !bytes.Equal(d.bytes[at:end], memory[at:end]) {
				pieces = appendDiffering(pieces, d.bytes, memory, at, end)
				changed++
			}
		}
	}
	d.worn = blocks > wornAfter*changed+wornPages
	return bounded(pieces, len(d.bytes))
}

// line is the unit in which a draft looks for changes in a block, in bytes.
const line = 256

// appendDiffering appends the lines from start to end in which a and b differ.
func appendDiffering(pieces []extent, a, b []byte, start, end int) []extent {
	for ; start < end; start += line {
		n := min(line, end-start)
		if !bytes.Equal(a[start:start+n], b[start:start+n]) {
			pieces = appendPiece(pieces, start, n)
		}
	}
	return pieces
}

// close gives up the mapping.
func (d *draft) close() {
	if d.file != nil {
		unmapMemory(d.bytes)
	}
	d.bytes, d.file = nil, nil
}
