package dispatch

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"fairway/internal/dispatch/records"
	"fairway/internal/taskqueue"
)

func (s *simulation) keep(records []taskqueue.Record) {
	for _, r := range records {
		if r.Body == nil {
			delete(s.durable, durableName(r))
		} else {
			s.durable[durableName(r)] = r
		}
	}
}

func (s *simulation) records() []taskqueue.Record {
	var list []taskqueue.Record
	for _, k := range sortedKeys(s.durable) {
		list = append(list, s.durable[k])
	}
	return list
}

func (s *simulation) step(in taskqueue.Input) error {
	e, err := s.core.Step(s.now, in)
	if errors.Is(err, taskqueue.ErrRefused) {
		s.note("%s refused: %v", inputName(in), err)
		return nil
	}
	if err != nil {
		return err
	}
	if s.chance(1) {
		return s.crash() // before anything was durable
	}
	s.keep(e.Persist)
	if retired, ok := in.(taskqueue.RetireRun); ok && retired.Swept {
		maps.DeleteFunc(s.durable, func(_ string, r taskqueue.Record) bool { return r.Run == retired.Run })
	}
	if s.whole {
		err = s.noteAll(e)
	} else {
		err = s.check()
	}
	if err != nil {
		return fmt.Errorf("after %T: %w", in, err)
	}
	if s.chance(1) {
		return s.crash() // before anything was let out
	}
	return s.letOut(in, e)
}

// check looks at the whole state, now and then, because that takes long.
func (s *simulation) check() error {
	if err := s.core.CheckLiveness(); err != nil {
		return err
	}
	if s.steps++; s.steps%7 == 0 {
		if err := s.core.verify(); err != nil {
			return err
		}
		if err := s.checkKept(); err != nil {
			return err
		}
	}
	if s.steps%101 != 0 {
		return nil
	}
	loaded, _, err := Load(s.config, s.records())
	if err != nil {
		return err
	}
	if was, is := s.core.snapshot(), loaded.snapshot(); was != is {
		return fmt.Errorf("a Load makes something else: %s", firstDifference(was, is))
	}
	return nil
}

func firstDifference(a, b string) string {
	x, y := strings.Split(a, "\n"), strings.Split(b, "\n")
	for i := range min(len(x), len(y)) {
		if x[i] != y[i] {
			return fmt.Sprintf("%q, was %q", y[i], x[i])
		}
	}
	return "of another length"
}

func (s *simulation) letOut(in taskqueue.Input, e taskqueue.Effects) error {
	s.wake = e.WakeAt
	for _, r := range e.Persist {
		s.note("  %s %d %s %s", r.Table, r.Run, r.Key, r.Body)
	}
	for _, x := range e.Events {
		s.note("  %v %s %s %s", x.Kind, x.Name, x.Pilot, x.Reason)
		if err := s.happened(x); err != nil {
			return err
		}
	}
	for _, r := range e.Replies {
		s.reply(r)
	}
	for _, x := range e.Start {
		s.submitPilots(x)
	}
	for _, p := range e.Publish {
		if err := s.publish(p); err != nil {
			return err
		}
	}
	for _, pfn := range e.Remove {
		s.note("  remove %s", pfn)
		if err := s.mayRemove(pfn); err != nil {
			return err
		}
		core := s.core
		s.after(s.ms(2000), func() error {
			if core != s.core {
				return nil // the server that was to do it is gone
			}
			delete(s.storage, pfn)
			return s.step(taskqueue.Removed{PFN: pfn})
		})
	}
	return nil
}

// mayRemove looks whether a stored output may go that counts: it is lost, or all that read
// it have been committed. One of them may turn out in the same transition to run again.
func (s *simulation) mayRemove(pfn string) error {
	ref, counts := s.made[pfn]
	m := s.models[ref.Run]
	named := func(r *storedResult) bool { return len(r.Runs) > 0 && r.Names(pfn) }
	if keys := s.core.journal.results.Keys(named); len(keys) > 0 {
		return fmt.Errorf("%s is removed, which is of result %s, which runs name", pfn, keys[0].Hex())
	}
	if !counts || s.damaged[pfn] != "" || !slices.Contains(s.live, m) {
		return nil
	}
	for _, j := range m.inOrder {
		if v, ok := s.core.Job(j.id); ok && slices.Contains(j.reads, ref) && v.Committed == 0 {
			return fmt.Errorf("%s@%d is removed, and job %s, which reads it, is %v", ref.LFN, ref.Version, j.Name, v.State)
		}
	}
	return nil
}

func (s *simulation) publish(p taskqueue.StoredFile) error {
	s.note("  publish %s@%d", p.File.LFN, p.File.Version)
	if why := s.damaged[p.PFN]; why != "" {
		s.after(s.ms(2000), func() error {
			return s.step(taskqueue.LoseFiles{Files: []taskqueue.LostFile{{File: p.File, PFN: p.PFN, Why: why}}})
		})
		return nil
	}
	got, ok := s.storage[p.PFN]
	m := s.models[p.File.Run]
	if !ok || got != m.content[p.File] {
		return fmt.Errorf("%s@%d is published from %s, which holds %q instead of %q", p.File.LFN, p.File.Version, p.PFN, got,
			m.content[p.File])
	}
	if p.File.Version < m.asked[p.File.LFN] {
		return fmt.Errorf("%s@%d is published after version %d", p.File.LFN, p.File.Version, m.asked[p.File.LFN])
	}
	m.asked[p.File.LFN] = p.File.Version
	core := s.core
	s.after(s.ms(2000), func() error {
		if core != s.core {
			return nil
		}
		return s.step(taskqueue.Published{File: p.File})
	})
	return nil
}

// crash loses everything that is not durable.
func (s *simulation) crash() error {
	s.crashes++
	s.note("crash %d", s.crashes)
	core, e, err := Load(s.config, s.records())
	if err != nil {
		return err
	}
	s.core = core
	s.keep(e.Persist)
	if err := s.learn(); err != nil {
		return err
	}
	return s.begun(e)
}

// learn takes up commits whose events were lost in a crash.
func (s *simulation) learn() error {
	for j := range s.core.jobs.all {
		m := s.models[j.id.Run()]
		if j.state != taskqueue.Done || m.committed[j.name] != 0 {
			continue
		}
		if err := m.commit(j.name, j.committed); err != nil {
			return err
		}
		for _, w := range s.core.files.matched[j.id] {
			m.matchedFile(m.jobs[j.name], w.ref())
		}
	}
	return nil
}

// resubmit ends all runs at once and begins that of a changed workflow, with the
// store of before or, now and then, with a new one. The pilots live on.
func (s *simulation) resubmit() error {
	for f := range s.core.files.all {
		for _, v := range f.versions {
			s.stored[v.pfn] = true
		}
	}
	for pfn := range s.core.ResultFiles {
		s.stored[pfn] = true
	}
	earlier := s.anyRun()
	core, e, err := s.another()
	if err != nil {
		return err
	}
	s.core, s.live = core, nil
	s.keep(e.Persist)
	if err := s.begun(e); err != nil {
		return err
	}
	for len(s.live) == 0 {
		if err := s.beginRun(earlier); err != nil {
			return err
		}
	}
	return nil
}

// beginRun begins a run of the workflow of an earlier one, or of a new one. A crash may
// prevent it.
func (s *simulation) beginRun(earlier *submission) error {
	m := newSubmission(len(s.models), s.core.NextRun(), s.core.journal.incarnation, earlier)
	s.note("run %d from incarnation %d on", m.run, m.since)
	s.models[m.run] = m
	err := s.step(s.theRun(m.run, s.rng.IntN(4) > 0))
	if _, there := s.core.Run(m.run); err != nil || !there {
		return err
	}
	s.live = append(s.live, m)
	if earlier == nil {
		return nil
	}
	return s.filesAgain(m)
}

// retire retires a run if it has ended.
func (s *simulation) retire(m *submission) error {
	before := make(map[string]bool)
	for f := range s.core.runs.byID[m.run].files.All {
		for _, v := range f.versions {
			before[v.pfn] = v.existing
		}
	}
	var keys []string
	for j := range s.core.jobs.of(s.core.runs.byID[m.run]) {
		if j.committed != 0 && j.key != (identity{}) {
			keys = append(keys, j.key.Hex())
		}
	}
	keep, parts, core := s.rng.IntN(3) > 0, s.rng.IntN(4), s.core
	for from := uint32(1); keep && parts > 0 && from <= uint32(len(m.inOrder)); from += uint32(parts) {
		if err := s.step(taskqueue.KeepResults{Run: m.run, From: from, Jobs: parts}); err != nil || core != s.core {
			return err // a crash came before the others
		}
	}
	err := s.step(taskqueue.RetireRun{Run: m.run, Keep: keep, Swept: s.rng.IntN(2) == 0})
	if _, there := s.core.Run(m.run); !there {
		if keep {
			s.kept[m.run] = keys
		}
		s.live = slices.DeleteFunc(s.live, func(x *submission) bool { return x == m })
		for pfn, existing := range before {
			if existing {
				s.stored[pfn] = true
			}
		}
	}
	return err
}

// another returns the Core of a new submission.
func (s *simulation) another() (*Core, taskqueue.Effects, error) {
	if s.rng.IntN(4) == 0 {
		clear(s.durable)
		clear(s.acked) // what was to be removed is forgotten
		clear(s.made)
		clear(s.kept)
		s.models = make(map[taskqueue.RunID]*submission)
		s.config.FirstIncarnation = s.core.journal.incarnation + 1 + s.rng.Uint64N(100)
		core, e := New(s.config)
		return core, e, nil
	}
	fresh, _, _, err := records.Fresh(s.records())
	if err != nil {
		return nil, taskqueue.Effects{}, err
	}
	s.keep(fresh)
	return Load(s.config, s.records())
}

// begun goes on with a Core that has just been made.
func (s *simulation) begun(e taskqueue.Effects) error {
	s.wake = s.now
	if err := s.core.verify(); err != nil {
		return fmt.Errorf("after Load: %w", err)
	}
	if err := s.letOut(nil, e); err != nil {
		return err
	}
	if err := s.looked(); err != nil {
		return err
	}
	for _, m := range slices.Clone(s.live) {
		if err := s.step(taskqueue.ReadersKnown{Run: m.run, LFNs: sortedKeys(m.known)}); err != nil {
			return err
		}
	}
	return s.describeSites()
}

// happened checks each commit, once for each job.
func (s *simulation) happened(x taskqueue.Event) error {
	m := s.models[x.Job.Run()]
	if x.Kind == taskqueue.JobCommitted || x.Kind == taskqueue.JobRegenerated {
		for _, f := range s.core.StoredBy(x.Job) {
			s.made[f.PFN] = f.File
		}
		for _, f := range x.Files {
			s.made[f.PFN] = f.File
		}
	}
	if x.Result != nil && x.Kind == taskqueue.JobRegenerated {
		return m.own(x.Name, x.Result.Attempt)
	}
	if x.Kind != taskqueue.JobCommitted {
		return nil
	}
	attempt := records.ReusedAttempt
	if !x.Reused {
		attempt = x.Result.Attempt
	}
	if err := m.commit(x.Name, attempt); err != nil {
		return err
	}
	return s.checkOutputs(m, m.jobs[x.Name], x.Files)
}

func (s *simulation) checkOutputs(m *submission, j *simJob, files []taskqueue.CommittedFile) error {
	for _, f := range files {
		want := j.contentOf(f.File.LFN)
		if f.Pattern != "" {
			m.matchedFile(j, f.File)
		}
		if f.PFN != "" && s.storage[f.PFN] != want && s.damaged[f.PFN] == "" {
			return fmt.Errorf("%s@%d from %s holds %q instead of %q", f.File.LFN, f.File.Version, f.PFN, s.storage[f.PFN], want)
		}
		if m.content[f.File] != want {
			return fmt.Errorf("%s@%d has another place than expected", f.File.LFN, f.File.Version)
		}
	}
	return nil
}
