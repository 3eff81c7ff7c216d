package dispatch

import (
	"errors"
	"fmt"
	"strings"
)

func (s *simulation) keep(records []Record) {
	for _, r := range records {
		if r.Body == nil {
			delete(s.durable, r.Table+"\x00"+r.Key)
		} else {
			s.durable[r.Table+"\x00"+r.Key] = r
		}
	}
}

func (s *simulation) records() []Record {
	var list []Record
	for _, k := range sortedKeys(s.durable) {
		list = append(list, s.durable[k])
	}
	return list
}

func (s *simulation) step(in Input) error {
	e, err := s.core.Step(s.now, in)
	if errors.Is(err, ErrRefused) {
		s.note("%T refused: %v", in, err)
		return nil
	}
	if err != nil {
		return err
	}
	if s.chance(1) {
		return s.crash() // before anything was durable
	}
	s.keep(e.Persist)
	if err := s.check(); err != nil {
		return fmt.Errorf("after %T: %w", in, err)
	}
	if s.chance(1) {
		return s.crash() // before anything was let out
	}
	return s.letOut(in, e)
}

// check looks at the whole state, now and then, because that takes long.
func (s *simulation) check() error {
	if err := s.core.Attended(); err != nil {
		return err
	}
	if s.steps++; s.steps%7 == 0 {
		if err := s.core.verify(); err != nil {
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

func (s *simulation) letOut(in Input, e Effects) error {
	s.wake = e.WakeAt
	for _, r := range e.Persist {
		s.note("  %s %s %s", r.Table, r.Key, r.Body)
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
		core := s.core
		s.after(s.ms(2000), func() error {
			if core != s.core {
				return nil // the server that was to do it is gone
			}
			delete(s.storage, pfn)
			return s.step(Removed{pfn})
		})
	}
	return nil
}

func (s *simulation) publish(p Publish) error {
	s.note("  publish %s@%d", p.File.LFN, p.File.Version)
	if why := s.damaged[p.PFN]; why != "" {
		s.after(s.ms(2000), func() error { return s.step(LoseFiles{[]LostFile{{p.File, p.PFN, why}}}) })
		return nil
	}
	got, there := s.storage[p.PFN]
	if !there || got != s.model.content[p.File] {
		return fmt.Errorf("%s@%d is published from %s, which holds %q instead of %q", p.File.LFN, p.File.Version, p.PFN, got, s.model.content[p.File])
	}
	if p.File.Version < s.model.asked[p.File.LFN] {
		return fmt.Errorf("%s@%d is published after version %d", p.File.LFN, p.File.Version, s.model.asked[p.File.LFN])
	}
	s.model.asked[p.File.LFN] = p.File.Version
	core := s.core
	s.after(s.ms(2000), func() error {
		if core != s.core {
			return nil
		}
		return s.step(Published{p.File})
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
	for v := range s.core.Jobs(0) {
		if v.State != Done || s.model.committed[v.Name] != 0 {
			continue
		}
		if err := s.model.commit(v.Name, v.Committed); err != nil {
			return err
		}
		for _, w := range s.core.files.matched[v.ID] {
			s.model.matchedFile(s.model.jobs[v.Name], w.ref())
		}
	}
	return nil
}

// resubmit ends the submission and begins that of a changed workflow, with the
// store of before or, now and then, with a new one. The pilots live on.
func (s *simulation) resubmit() error {
	for f := range s.core.files.table.All {
		for _, v := range f.versions {
			s.stored[v.pfn] = true
		}
	}
	for _, r := range s.core.journal.results {
		for i := range r.outputs {
			s.stored[r.outputs[i].PFN] = true
		}
	}
	core, e, err := s.another()
	if err != nil {
		return err
	}
	s.core = core
	s.earlier, s.model = s.model, newSubmission(s.model.number+1, core.journal.incarnation)
	s.note("submission %d from incarnation %d on", s.model.number, core.journal.incarnation)
	s.keep(e.Persist)
	if err := s.begun(e); err != nil {
		return err
	}
	return s.filesAgain()
}

// another returns the Core of a new submission.
func (s *simulation) another() (*Core, Effects, error) {
	if s.rng.IntN(4) == 0 {
		clear(s.durable)
		clear(s.acked) // what was to be removed is forgotten
		s.config.FirstIncarnation = s.core.journal.incarnation + 1 + s.rng.Uint64N(100)
		core, e := New(s.config)
		return core, e, nil
	}
	fresh, _, _, err := Fresh(s.records())
	if err != nil {
		return nil, Effects{}, err
	}
	s.keep(fresh)
	return Load(s.config, s.records())
}

// begun goes on with a Core that has just been made.
func (s *simulation) begun(e Effects) error {
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
	return s.describeSites()
}

// happened checks each commit, once for each job.
func (s *simulation) happened(x Event) error {
	if x.Result != nil && x.Kind == JobRegenerated {
		return s.model.own(x.Name, x.Result.Attempt)
	}
	if x.Kind != JobCommitted {
		return nil
	}
	attempt := reusedAttempt
	if !x.Reused {
		attempt = x.Result.Attempt
	}
	if err := s.model.commit(x.Name, attempt); err != nil {
		return err
	}
	return s.checkOutputs(s.model.jobs[x.Name], x.Files)
}

func (s *simulation) checkOutputs(j *simJob, files []CommittedFile) error {
	for _, f := range files {
		want := j.contentOf(f.File.LFN)
		if f.Pattern != "" {
			s.model.matchedFile(j, f.File)
		}
		if f.PFN != "" && s.storage[f.PFN] != want && s.damaged[f.PFN] == "" {
			return fmt.Errorf("%s@%d from %s holds %q instead of %q", f.File.LFN, f.File.Version, f.PFN, s.storage[f.PFN], want)
		}
		if s.model.content[f.File] != want {
			return fmt.Errorf("%s@%d has another place than expected", f.File.LFN, f.File.Version)
		}
	}
	return nil
}
