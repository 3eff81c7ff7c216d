package dispatch

import (
	"cmp"
	"maps"
	"slices"
)

// What a pilot says of its cache is believed of those copies alone that bear
// the tag of their version. The others are remembered: an attempt that is
// committed later may have made them, and they are the first that may go.

// copyOf is what a pilot holds of a version.
type copyOf struct {
	pilot   *pilot
	version *version
}

func (fs *files) version(r FileRef) *version {
	if f := fs.find(r.LFN); f != nil {
		return f.version(r.Version)
	}
	return nil
}

// copyAt names the copy that a pilot holds, or may read.
func (fs *files) copyAt(p *pilot, v *version) FileRef {
	r := v.ref()
	r.Tag = v.tag
	if older, ok := fs.older[copyOf{p, v}]; ok {
		r.Tag = older.tag
	}
	return r
}

// inputFor is the version as a job of the pilot is to read it. One that is in
// caches only is read where the pilot can.
func (fs *files) inputFor(p *pilot, v *version) InputFile {
	in := InputFile{File: fs.copyAt(p, v), Size: v.size, PFN: v.pfn, Adler32: v.adler}
	if len(fs.older) == 0 || p.holds(v) || v.pfn != "" {
		return in
	}
	for _, o := range v.holders {
		if o.place() == p.place() {
			in.File = fs.copyAt(o, v)
			break
		}
	}
	return in
}

func (c *Core) cacheChanges(p *pilot, s *Sync) {
	for _, g := range s.CacheGone {
		delete(p.other, g.File)
		if v := c.files.version(g.File); v != nil && c.files.copyAt(p, v) == g.File {
			c.dropCopy(p, v)
		}
	}
	for _, a := range s.CacheAdded {
		c.announced(p, &a)
	}
}

// announced is for a copy that a pilot says it has.
func (c *Core) announced(p *pilot, a *CachedFile) {
	v := c.files.version(a.File)
	switch {
	case v != nil && v.identity != (identity{}) && v.tag == a.File.Tag:
		c.files.hold(p, v, a.Size)
	case v != nil && c.files.copyAt(p, v) == a.File:
		// An older copy, and the pilot says so again.
	case p.other[a.File] == 0:
		p.other[a.File] = a.Size
		p.advice.incoming += a.Size
	}
}

// claim finds the copies of a version that was just committed among those that
// pilots have told of before: the one that made it and the others of its host,
// or for a result of an earlier run that is in caches only, whoever has it.
func (c *Core) claim(v *version, by *pilot) {
	var among []*pilot
	switch {
	case by != nil && !by.left:
		among = by.host.pilots
	case v.pfn == "":
		among = c.fleet.inOrder()
	}
	r := v.ref()
	r.Tag = v.tag
	for _, p := range among {
		if size, ok := p.other[r]; ok {
			delete(p.other, r)
			c.files.hold(p, v, size)
		}
	}
}

// olderCopy is one that was committed before its version was made again.
type olderCopy struct {
	tag  Tag
	size int64
}

// remade is for a version that was made again. Its older copies were committed
// too: they stay readable where they are as long as there is no stored one.
func (c *Core) remade(v *version, w *WrittenFile, tag Tag) {
	for _, p := range slices.Clone(v.holders) {
		at := copyOf{p, v}
		if _, oldest := c.files.older[at]; !oldest {
			c.files.older[at] = olderCopy{v.tag, v.size}
		}
		if w.PFN != "" {
			c.files.setAside(at)
			c.dropCopy(p, v)
		}
	}
	v.pfn, v.size, v.records, v.adler, v.tag = w.PFN, w.Size, w.Records, w.Adler32, tag
}

// outdate is for a pilot that has a copy with the version's tag: what it holds
// besides nobody will read.
func (fs *files) outdate(p *pilot, v *version, size int64) {
	if at := (copyOf{p, v}); fs.setAside(at) {
		p.advice.incoming += size
	}
}

// setAside moves an older copy to those that count no more, and reports whether
// there is one.
func (fs *files) setAside(at copyOf) bool {
	older, ok := fs.older[at]
	if ok {
		r := at.version.ref()
		r.Tag = older.tag
		at.pilot.other[r] = older.size
		delete(fs.older, at)
	}
	return ok
}

func (c *Core) replaceCache(p *pilot, s *Sync) {
	clear(p.other)
	said := make(map[FileRef]bool, len(s.CacheAdded))
	for _, a := range s.CacheAdded {
		said[a.File] = true
	}
	for _, v := range slices.Clone(p.versions) {
		if !said[c.files.copyAt(p, v)] {
			c.dropCopy(p, v)
		}
	}
	c.cacheChanges(p, s)
}

// stale are the copies of a pilot that nobody may read, the largest first. Those
// of an attempt that runs may still become ones of its version.
func (pl *placement) stale(p *pilot) []FileRef {
	list := slices.DeleteFunc(slices.Collect(maps.Keys(p.other)), func(r FileRef) bool {
		return pl.fleet.attempts[AttemptID(r.Tag)] != nil
	})
	slices.SortFunc(list, func(a, b FileRef) int {
		return cmp.Or(cmp.Compare(p.other[b], p.other[a]), a.compare(b))
	})
	return list
}

func (r FileRef) compare(o FileRef) int {
	return cmp.Or(cmp.Compare(r.LFN, o.LFN), cmp.Compare(r.Version, o.Version), cmp.Compare(r.Tag, o.Tag))
}
