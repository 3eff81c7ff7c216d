package dispatch

import "slices"

// holds reports whether the version is in the pilot's cache.
func (p *pilot) holds(v *version) bool {
	if len(p.versions) <= few {
		return slices.Contains(p.versions, v)
	}
	_, ok := p.cached[v]
	return ok
}

// heat lists a held version as one that has ready readers.
func (p *pilot) heat(v *version) {
	if h := p.cached[v]; h.hot == 0 {
		p.hot = append(p.hot, v)
		h.hot = int32(len(p.hot))
		p.cached[v] = h
	}
}

// cool takes a held version off that list.
func (p *pilot) cool(v *version) {
	h := p.cached[v]
	if h.hot == 0 {
		return
	}
	if moved := removeAt(&p.hot, h.hot-1); moved != v {
		m := p.cached[moved]
		m.hot = h.hot
		p.cached[moved] = m
	}
	h.hot = 0
	p.cached[v] = h
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
		if v := j.requests[i].read; v != nil {
			if !j.requests[i].streams() && !p.reaches(v) {
				sum += v.size
			}
		}
	}
	return sum
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

// cacheLimit is what the files of the pilot and of those that share with it
// may take together (section IV-D); 0 if it has no cache.
func (p *pilot) cacheLimit() int64 {
	if p.info.CacheDir == "" {
		return p.info.CacheSize
	}
	var sum int64
	for _, o := range p.host.pilots {
		if o.info.CacheDir != "" {
			sum += o.info.CacheSize
		}
	}
	return sum
}

// queuedReads are the versions that jobs will read which the pilot, or one that
// shares its cache, has not started yet, each with the turn of the first; and a
// turn that is later than all. What started jobs read is in use, and stays
// while it is.
func (p *pilot) queuedReads() (reads map[*version]uint64, turns uint64) {
	reads = make(map[*version]uint64)
	for _, o := range p.host.pilots {
		if o != p && (o.info.CacheDir == "" || p.info.CacheDir == "") {
			continue
		}
		for turn, a := range o.attempts {
			if a.started || a.ended {
				continue
			}
			for i := range a.job.requests {
				v := a.job.requests[i].read
				if first, ok := reads[v]; v != nil && (!ok || uint64(turn) < first) {
					reads[v] = uint64(turn)
				}
			}
		}
		turns = max(turns, uint64(len(o.attempts)))
	}
	return reads, turns
}
