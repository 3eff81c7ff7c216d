package dispatch

import (
	"slices"

	"fairway/internal/logical"
	"fairway/internal/taskqueue"
)

// What a pilot says of its cache is believed of those copies alone that bear
// the tag of their version. The others are remembered: an attempt that is
// committed later may have made them, and they are the first that may go.

// A copy that is not of its version's tag is in one of two places:
//
//   - files.older: it was committed, and its version was made again elsewhere
//     since. It stays readable where it is, under its own tag, and its pilot
//     counts among the holders.
//   - pilot.other: nobody may read it. The attempt that made it may yet be
//     committed (then makeVisible takes it), or it is stale, and goes first.
//
// A copy goes from the first to the second (setAside) when its pilot gets one of
// the version's tag, or a stored one makes it needless (remade).

// copyOf is what a pilot holds of a version.
type copyOf struct {
	pilot   *pilot
	version *version
}

// olderCopy is one that was committed before its version was made again.
type olderCopy struct {
	tag  taskqueue.Tag
	size int64
}

// copyAt names the copy that a pilot holds, or may read.
func (fs *files) copyAt(p *pilot, v *version) taskqueue.FileRef {
	if older, ok := fs.older[copyOf{p, v}]; ok {
		return v.copyNamed(older.tag)
	}
	return v.copyNamed(v.tag)
}

// copiesOf is the digest of all copies that are known of a pilot's cache.
func (fs *files) copiesOf(p *pilot) (all logical.Copies) {
	add := func(r taskqueue.FileRef) { all.Add(r.LFN, uint32(r.Version), uint64(r.Tag)) }
	for _, v := range p.copies.versions {
		add(fs.copyAt(p, v))
	}
	for r := range p.copies.other.All() {
		add(r)
	}
	return all
}

// copied returns the version that a copy in a pilot's cache is of, or nil: that which
// the pilot holds under this name, else the first that bears the tag. Files of two runs
// that hold the same have copies of one name: such a copy counts for one of them at a
// time, and is found in the cache by jobs of both.
func (fs *files) copied(p *pilot, r taskqueue.FileRef) *version {
	var first *version
	for _, run := range fs.runs.inOrder {
		v := run.files.version(r.LFN, r.Version)
		switch {
		case v == nil:
		case p.holds(v) && fs.copyAt(p, v) == r:
			return v
		case first == nil && v.identity != (identity{}) && v.tag == r.Tag:
			first = v
		}
	}
	return first
}

// inputFor is the version as a job of the pilot is to read it. One that is in
// caches only is read where the pilot can.
func (fs *files) inputFor(p *pilot, v *version) taskqueue.InputFile {
	hash := fs.hash(v)
	in := taskqueue.InputFile{
		File: fs.copyAt(p, v), Size: v.size, PFN: v.pfn, Adler32: v.adler32(), Written: v.written(), Hash: hash.text(),
		Committed: v.writer != nil && hash.committed() != "",
	}
	if r := fs.runs.byID[v.run]; v.compared && r != nil && r.Scope != "" {
		in.Known = v.identity
	}
	if len(fs.older) == 0 || p.holds(v) || v.pfn != "" {
		return in
	}
	for _, o := range v.holders {
		if o.cache() == p.cache() {
			in.File = fs.copyAt(o, v)
			break
		}
	}
	return in
}

// hold is for a copy with the version's tag that came into a pilot's cache, with
// the size that is known of it.
func (fs *files) hold(p *pilot, v *version, size int64) {
	if p.holds(v) {
		if fs.setAside(copyOf{p, v}) { // nobody reads the older one any more
			p.copies.hints.incoming += size
		}
		return
	}
	p.copies.hints.incoming += size
	p.copies.cached[v] = holding{at: int32(len(p.copies.versions)), holder: int32(len(v.holders))}
	p.copies.versions = append(p.copies.versions, v)
	v.holders = append(v.holders, p)
	if v.announced {
		p.heat(v)
	}
	if v.state == gone || v.state == missing && v.identity != (identity{}) {
		fs.reappeared(v)
	}
}

// reappeared is for a committed version of which a copy turned up in a cache.
func (fs *files) reappeared(v *version) {
	if v.state == missing {
		fs.work.unblock = append(fs.work.unblock, fs.waiters[v]...)
		v.state = present
		return
	}
	v.state = present
	fs.arrived(v)
	if v.writer != nil {
		fs.work.cancel = append(fs.work.cancel, v.writer)
	}
}

// setAside moves an older copy to those that count no more, and reports whether
// there is one.
func (fs *files) setAside(at copyOf) bool {
	older, ok := fs.older[at]
	if ok {
		at.pilot.copies.other.Set(at.version.copyNamed(older.tag), older.size)
		delete(fs.older, at)
	}
	return ok
}

// drop takes a version out of a pilot's cache, and reports whether that was the
// last copy of one that could be had.
func (fs *files) drop(p *pilot, v *version) bool {
	if !p.holds(v) {
		return false
	}
	p.cool(v)
	h := p.copies.cached[v]
	delete(p.copies.cached, v)
	delete(fs.older, copyOf{p, v})
	if moved := removeAt(&p.copies.versions, h.at); moved != v {
		m := p.copies.cached[moved]
		m.at = h.at
		p.copies.cached[moved] = m
	}
	if moved := removeAt(&v.holders, h.holder); moved != p {
		m := moved.copies.cached[v]
		m.holder = h.holder
		moved.copies.cached[v] = m
	}
	return v.state == present && !v.hasCopy()
}

// holds reports whether the version is in the pilot's cache.
func (p *pilot) holds(v *version) bool {
	if len(p.copies.versions) <= few {
		return slices.Contains(p.copies.versions, v)
	}
	_, ok := p.copies.cached[v]
	return ok
}

// heat lists a held version as one that has ready readers.
func (p *pilot) heat(v *version) {
	if h := p.copies.cached[v]; h.hot == 0 {
		p.copies.hot = append(p.copies.hot, v)
		h.hot = int32(len(p.copies.hot))
		p.copies.cached[v] = h
	}
}

// cool takes a held version off that list.
func (p *pilot) cool(v *version) {
	h := p.copies.cached[v]
	if h.hot == 0 {
		return
	}
	if moved := removeAt(&p.copies.hot, h.hot-1); moved != v {
		m := p.copies.cached[moved]
		m.hot = h.hot
		p.copies.cached[moved] = m
	}
	h.hot = 0
	p.copies.cached[v] = h
}

// removeAt puts the last element in the place of another, and returns it.
func removeAt[T any](list *[]T, i int32) T {
	moved := pop(list)
	if int(i) < len(*list) {
		(*list)[i] = moved
	}
	return moved
}

// lacking is how many bytes of the job's input the pilot would have to read
// from storage before the job begins.
func (p *pilot) lacking(j *job) int64 {
	var sum int64
	for i := range j.requests {
		if r := &j.requests[i]; r.staged() && !p.reaches(r.read) {
			sum += r.read.size
		}
	}
	return sum
}

// lacksSome reports whether there is anything that the pilot would have to read so.
func (p *pilot) lacksSome(j *job) bool {
	for i := range j.requests {
		if r := &j.requests[i]; r.staged() && !p.reaches(r.read) {
			return true
		}
	}
	return false
}

// reaches reports whether the pilot can read the version from its own cache, or
// from that of another on its host. Of many holders it looks at the first
// maxPlaces.
func (p *pilot) reaches(v *version) bool {
	if held := p.holds(v); held || p.info.CacheDir == "" {
		return held
	}
	return slices.ContainsFunc(v.holders[:min(len(v.holders), maxPlaces)], func(q *pilot) bool {
		return q.host == p.host && q.info.CacheDir != ""
	})
}
