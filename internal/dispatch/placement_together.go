package dispatch

import "slices"

// Files that one job reads together are made at one place where that costs nothing, so that
// the job finds all of them there. The FIFOs tell who will read what a job writes.

// maxTogether bounds the outputs of a job that are looked at, the readers of each, the inputs of
// each of these, and the holders of each input.
const maxTogether = 16

// maxAside bounds the jobs, in the order of their ranks, that a pilot leaves to another
// place when it asks. It never leaves the last that it could have: then it gets the first.
const maxAside = 8

// together returns a pilot of the place that has, or is about to make, most of the files
// that will be read together with what the job writes; nil if there is none.
func (pl *placement) together(j *job) *pilot {
	var places []*pilot // one of each place
	var files []int
	count := func(q *pilot) {
		if q.info.CacheSize == 0 {
			return
		}
		i := slices.IndexFunc(places, q.sharesCacheWith)
		if i < 0 {
			if len(places) == maxTogether {
				return
			}
			i, places, files = len(places), append(places, q), append(files, 0)
		}
		files[i]++
	}
	outputs := 0
	for i := range j.requests {
		w := &j.requests[i]
		if w.write == nil {
			continue
		}
		if outputs++; outputs > maxTogether {
			break
		}
		looked := 0
		for n := w.Next(); n != nil && n.Owner.read == w.write && looked < maxTogether; n = n.Next() {
			looked++
			pl.countBeside(n.Owner, count)
		}
	}
	if len(places) == 0 {
		return nil
	}
	return places[slices.Index(files, slices.Max(files))]
}

// countBeside counts a pilot of each place that has an input of the reader other than this
// one, or runs the job that writes it. Where that is only queued it may not stay.
func (pl *placement) countBeside(this *request, count func(*pilot)) {
	reads := this.job.requests
	for i := range reads[:min(len(reads), maxTogether)] {
		v := reads[i].read
		if v == nil || &reads[i] == this || reads[i].streams() {
			continue
		}
		holders := v.holders[:min(len(v.holders), maxTogether)]
		for i, q := range holders {
			if !slices.ContainsFunc(holders[:i], q.sharesCacheWith) {
				count(q)
			}
		}
		if w := v.writer; len(v.holders) == 0 && w != nil && w.attempt != nil && (!w.attempt.ahead || w.attempt.started) {
			count(w.attempt.pilot)
		}
	}
}

// sharesCacheWith reports whether what one of the two pilots caches is in the cache of the other.
func (p *pilot) sharesCacheWith(q *pilot) bool {
	return p == q || p.host == q.host && p.info.CacheDir != "" && q.info.CacheDir != ""
}

// belongsTo reports whether what the job makes will be read with files that are at the
// pilot's place.
func (pl *placement) belongsTo(j *job, p *pilot) bool {
	at := pl.together(j)
	return at != nil && p.sharesCacheWith(at)
}
