package flow

import (
	"math"
	"slices"
)

// A temporary output is removed while the run goes on, as soon as all jobs that ever
// read it are submitted, and done. Flow says when they are submitted: when of each step
// that may read the file no further job will. That is so when
//
//   - the step takes each file for one job alone, and that job is submitted;
//   - it splits the file, and as many jobs are submitted as the file gives;
//   - it is final, whatever it does with its files.
//
// Of files that are rewritten nothing is said: a version goes when the next is there.

// awaitedReader is a step of which jobs that are still to be submitted may read or write a temporary
// file. It stands in Flow.awaited from when the name of the file is known until jobs is 0 or the
// step is final. Of each file a step is listed once at most.
type awaitedReader struct {
	state *stepState
	jobs  int // that are still to be submitted, above 0; or one of these:
}

// Numbers of jobs that are not known yet.
const (
	untilSplit = math.MaxInt - iota // before the records of the file are counted
	untilFinal                      // before the step is final
)

// awaitReaders notes which steps may read a temporary file, before any of their jobs can be
// submitted. Nothing is told before its writer is, whose step is awaited until then.
func (f *Flow) awaitReaders(m *maker, made *file, awaited ...awaitedReader) {
	add := func(s *step, jobs int) {
		st := f.steps[s.order-1]
		if i := slices.IndexFunc(awaited, func(r awaitedReader) bool { return r.state == st }); i >= 0 {
			awaited[i].jobs = untilFinal // it reads the file in two ways
			return
		}
		awaited = append(awaited, awaitedReader{st, jobs})
		st.mayRead = append(st.mayRead, made.lfn)
	}
	for _, c := range m.consumers {
		if values, _ := c.taking.read(made.lfn, made.values); values != nil {
			add(c.step, c.step.jobsOf(c.taking.taker))
		}
	}
	for _, c := range m.named {
		switch {
		case !c.taking.taker.fits(made.lfn):
		case len(c.step.data.each) > 0 && c.step.data.split == nil && c.taking.same && c.step.tellsApart(c.taking.taker):
			add(c.step, 1)
		default:
			add(c.step, untilFinal)
		}
	}
	if len(awaited) == 0 {
		f.readersKnown(made.lfn)
		return
	}
	f.awaited[made.lfn] = awaited
}

// jobsOf is how many jobs read a file that the step takes by this pattern.
func (s *step) jobsOf(source *pattern) int {
	switch {
	case s.data.split != nil:
		return untilSplit
	case len(s.data.merge) > 0, len(s.data.each) == 1, s.tellsApart(source):
		return 1
	}
	return untilFinal
}

// tellsApart reports whether the values of p tell each job of the step from all others.
func (s *step) tellsApart(p *pattern) bool {
	return !slices.ContainsFunc(s.data.each, func(source *pattern) bool {
		return source.anyWildcard() || slices.ContainsFunc(source.names, func(name string) bool { return !p.has(name) })
	})
}

// willRead says how many jobs a split makes of a file.
func (f *Flow) willRead(st *stepState, lfn string, jobs int64) {
	awaited := f.awaited[lfn]
	i := slices.IndexFunc(awaited, func(r awaitedReader) bool { return r.state == st && r.jobs == untilSplit })
	switch {
	case i < 0:
	case jobs == 0:
		f.dropAwaited(lfn, i)
	default:
		awaited[i].jobs = int(jobs)
	}
}

// usedBy counts a job that is submitted for the files that it reads and writes.
func (f *Flow) usedBy(j *job) {
	if len(f.awaited) == 0 || j.count {
		return
	}
	use := func(lfn string) {
		awaited := f.awaited[lfn]
		i := slices.IndexFunc(awaited, func(r awaitedReader) bool { return r.state == j.state && r.jobs < untilFinal })
		if i < 0 {
			return
		}
		if awaited[i].jobs--; awaited[i].jobs == 0 {
			f.dropAwaited(lfn, i)
		}
	}
	for _, lfn := range j.new.Job.Reads {
		use(lfn)
	}
	for i := range j.new.Job.Writes {
		use(j.new.Job.Writes[i].LFN)
	}
}

// readsNoMore is for a step that has become final: no file waits for it any more.
func (f *Flow) readsNoMore(st *stepState) {
	for _, lfn := range st.mayRead {
		if i := slices.IndexFunc(f.awaited[lfn], func(r awaitedReader) bool { return r.state == st }); i >= 0 {
			f.dropAwaited(lfn, i)
		}
	}
	st.mayRead = nil
}

func (f *Flow) dropAwaited(lfn string, i int) {
	awaited := slices.Delete(f.awaited[lfn], i, i+1)
	if len(awaited) > 0 {
		f.awaited[lfn] = awaited
		return
	}
	delete(f.awaited, lfn)
	f.readersKnown(lfn)
}

func (f *Flow) readersKnown(lfn string) {
	if f.replaying {
		f.knownBefore = append(f.knownBefore, lfn)
		return
	}
	f.effects.ReadersKnown = append(f.effects.ReadersKnown, lfn)
}

// ReadersKnown are the files that Effects told as such before Load. Dispatch does not keep
// that: the caller steps it once more.
func (f *Flow) ReadersKnown() []string { return f.knownBefore }
