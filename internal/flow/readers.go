package flow

import (
	"math"
	"slices"

	"fairway/internal/flow/pattern"
	"fairway/internal/flow/workflow"
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
func (f *Flow) awaitReaders(m *workflow.Maker, made *file, awaited ...awaitedReader) {
	add := func(s *workflow.Step, jobs int) {
		st := f.steps[s.Order-1]
		if i := slices.IndexFunc(awaited, func(r awaitedReader) bool { return r.state == st }); i >= 0 {
			awaited[i].jobs = untilFinal // it reads the file in two ways
			return
		}
		awaited = append(awaited, awaitedReader{st, jobs})
		st.mayRead = append(st.mayRead, made.lfn)
	}
	for _, c := range m.Consumers {
		if values, _ := c.Taking.Read(made.lfn, made.values); values != nil {
			add(c.Step, jobsOf(c.Step, c.Taking.Taker))
		}
	}
	for _, c := range m.Named {
		switch {
		case !c.Taking.Taker.Fits(made.lfn):
		case len(c.Step.Data.Each) > 0 && c.Step.Data.Split == nil && c.Taking.Same && tellsApart(c.Step, c.Taking.Taker):
			add(c.Step, 1)
		default:
			add(c.Step, untilFinal)
		}
	}
	if len(awaited) == 0 {
		f.readersKnown(made.lfn)
		return
	}
	f.awaited[made.lfn] = awaited
}

// jobsOf is how many jobs read a file that the step takes by this pattern.
func jobsOf(s *workflow.Step, source *pattern.Pattern) int {
	switch {
	case s.Data.Split != nil:
		return untilSplit
	case len(s.Data.Merge) > 0, len(s.Data.Each) == 1, tellsApart(s, source):
		return 1
	}
	return untilFinal
}

// tellsApart reports whether the values of p tell each job of the step from all others.
func tellsApart(s *workflow.Step, p *pattern.Pattern) bool {
	return !slices.ContainsFunc(s.Data.Each, func(source *pattern.Pattern) bool {
		return source.AnyWildcard() || slices.ContainsFunc(source.Names, func(name string) bool { return !p.Has(name) })
	})
}

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
