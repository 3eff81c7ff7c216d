package dispatch

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"fairway/internal/dispatch/records"
	"fairway/internal/quantity"
	"fairway/internal/taskqueue"
)

// disturb is one thing that a person or the world does.
func (s *simulation) disturb() error {
	m := s.anyRun()
	switch n := s.rng.IntN(20); {
	case len(m.lfns) == 0 || n >= 8 && n < 10:
		return s.addFiles(m)
	case n < 8:
		return s.submit(m)
	case n < 13:
		s.startAnyPilot()
	case n < 14 && len(s.pilots) > 0:
		p := s.pilots[s.rng.IntN(len(s.pilots))]
		p.die("killed")
		if s.rng.IntN(2) == 0 {
			return s.step(taskqueue.PilotEnded{Launch: p.info.Launch})
		}
	case n < 15 && s.jobsOf(m) > 0:
		return s.step(taskqueue.Cancel{Jobs: []taskqueue.JobID{s.anyJob(m)}})
	case n < 17 && s.jobsOf(m) > 0:
		return s.step(taskqueue.RetryJobs{Jobs: []taskqueue.JobID{s.anyJob(m)}})
	case n < 18:
		return s.disturbRun(m)
	case n < 19 && s.rng.IntN(2) == 0:
		return s.crash()
	case n < 19:
		lfn := m.lfns[s.rng.IntN(len(m.lfns))]
		m.known[lfn] = true
		return s.step(taskqueue.ReadersKnown{Run: m.run, LFNs: []string{lfn}})
	case s.rng.IntN(2) == 0:
		return s.resubmit()
	default:
		s.damage()
	}
	return nil
}

// disturbRun begins a run beside the others, or does something to one as a whole.
func (s *simulation) disturbRun(m *submission) error {
	switch s.rng.IntN(8) {
	case 7:
		return s.prioritize(m)
	case 6:
		return s.forget()
	case 0:
		return s.step(taskqueue.StopRun{Run: m.run, Drain: s.rng.IntN(2) == 0})
	case 1:
		return s.step(s.theRun(m.run, s.rng.IntN(2) == 0))
	case 2:
		return s.step(taskqueue.CompleteRun{Run: m.run})
	case 3:
		if len(s.live) > 1 {
			return s.retire(m)
		}
	}
	if len(s.live) > 2 {
		return nil
	}
	return s.beginRun(m)
}

// prioritize changes the priority of a few jobs, or of all.
func (s *simulation) prioritize(m *submission) error {
	in := taskqueue.Prioritize{Run: m.run, Priority: s.rng.IntN(5) - 2}
	for range min(s.rng.IntN(4), s.jobsOf(m)) {
		in.Jobs = append(in.Jobs, s.anyJob(m))
	}
	return s.step(in)
}

// forget releases a run that is kept, or has results forgotten that nobody names.
func (s *simulation) forget() error {
	if len(s.kept) > 0 && s.rng.IntN(2) == 0 {
		run := slices.Min(slices.Collect(maps.Keys(s.kept)))
		keys := s.kept[run]
		delete(s.kept, run)
		err := s.step(taskqueue.ReleaseRun{Run: run})
		for _, text := range keys { // unless a crash came before
			key, _ := records.ParseIdentity(text)
			if r := s.core.journal.results.Of(key); r != nil && slices.Contains(r.Runs, run) {
				s.kept[run] = keys
			}
		}
		return err
	}
	var keys []string
	for _, r := range s.core.Forgettable(s.now, s.rng.IntN(3), 0) {
		keys = append(keys, r.Record.Key)
	}
	return s.step(taskqueue.ForgetResults{Keys: keys})
}

// anyRun is one of those that were not retired.
func (s *simulation) anyRun() *submission { return s.live[s.rng.IntN(len(s.live))] }

func (s *simulation) jobsOf(m *submission) int { return int(s.core.runs.byID[m.run].jobs) }

func (s *simulation) anyJob(m *submission) taskqueue.JobID {
	return taskqueue.NewJobID(m.run, uint32(1+s.rng.IntN(s.jobsOf(m))))
}

// addFiles tells of a few files that are new or have changed.
func (s *simulation) addFiles(m *submission) error {
	in := taskqueue.AddFiles{Run: m.run}
	for range 1 + s.rng.IntN(3) {
		lfn := fmt.Sprintf("raw%d", s.rng.IntN(6))
		if slices.ContainsFunc(in.Files, func(f taskqueue.ExistingFile) bool { return f.LFN == lfn }) {
			continue
		}
		in.Files = append(in.Files, s.newFile(lfn))
	}
	return s.tellFiles(m, in)
}

func (s *simulation) newFile(lfn string) taskqueue.ExistingFile {
	s.born++
	identity := fmt.Sprint(s.born)
	return taskqueue.ExistingFile{
		LFN: lfn, PFN: "data:" + lfn + "." + identity, Size: int64(1 + s.rng.IntN(100)),
		Identity: identity, Tag: 1<<63 | taskqueue.Tag(s.born),
	}
}

func (s *simulation) tellFiles(m *submission, in taskqueue.AddFiles) error {
	before := s.core
	if err := s.step(in); err != nil {
		return err
	}
	for _, f := range in.Files {
		v := m.nextExisting(f.LFN)
		_, ok := s.durable[durableName(taskqueue.Record{Table: records.TableFile, Run: m.run,
			Key: records.FileKey(m.file(f.LFN, v))})]
		switch {
		case ok:
			m.exists(f, v)
			s.storage[f.PFN] = f.Identity
		case before == s.core:
			return fmt.Errorf("file %s was not added", f.LFN)
		} // else lost in a crash
	}
	return nil
}

// filesAgain tells a run of the files of the one before, some of which have changed.
func (s *simulation) filesAgain(m *submission) error {
	in := taskqueue.AddFiles{Run: m.run}
	for _, lfn := range sortedKeys(m.earlier.files) {
		f := m.earlier.files[lfn]
		if s.rng.IntN(3) == 0 {
			f = s.newFile(lfn)
		}
		in.Files = append(in.Files, f)
	}
	if len(in.Files) == 0 {
		return nil
	}
	return s.tellFiles(m, in)
}

// submit makes a few jobs of all kinds.
func (s *simulation) submit(m *submission) error {
	saved := len(m.jobs)
	sub := taskqueue.Submit{Run: m.run}
	last, lfns := maps.Clone(m.last), slices.Clone(m.lfns)
	var made []*simJob
	for i := range 1 + s.rng.IntN(6) {
		j := s.jobAgain(m, saved+i, last, &lfns)
		if j == nil {
			j = s.makeJob(m, saved+i, last, &lfns)
		}
		made = append(made, j)
		sub.Jobs = append(sub.Jobs, j.Job)
	}
	last, m.last = m.last, last
	lfns, m.lfns = m.lfns, lfns
	for _, j := range made { // now, because results of before may be taken at once
		m.enter(j)
	}
	err := s.step(sub)
	if _, ok := s.durable[durableName(taskqueue.Record{Table: records.TableJob, Run: m.run,
		Key: records.JobKey(made[0].id)})]; !ok {
		m.last, m.lfns = last, lfns
		m.forget(made)
	}
	return err
}

// jobAgain makes a job of the run before once more, now and then with
// another command; nil if there is none that may be.
func (s *simulation) jobAgain(m *submission, n int, last map[string]taskqueue.Version, lfns *[]string) *simJob {
	if m.earlier == nil || n >= len(m.earlier.inOrder) || s.rng.IntN(4) == 0 {
		return nil
	}
	old := m.earlier.inOrder[n]
	for _, lfn := range old.Reads {
		if _, ok := last[lfn]; !ok || m.known[lfn] {
			return nil
		}
	}
	j := &simJob{Job: old.Job, id: taskqueue.NewJobID(m.run, old.id.Number())}
	if s.rng.IntN(3) == 0 {
		j.Digest = ""
	}
	s.setCommand(m, j)
	for _, lfn := range j.Reads {
		j.reads = append(j.reads, m.file(lfn, last[lfn]))
	}
	for _, o := range j.Writes {
		j.writes = append(j.writes, m.place(o, n, last, lfns))
	}
	return j
}

// setCommand gives a job what decides, with its inputs, what it writes. That of
// a job with a digest is the same in each run.
func (s *simulation) setCommand(m *submission, j *simJob) {
	command := j.Digest
	if command == "" {
		command = fmt.Sprint("command ", m.number)
	}
	j.Payload = []byte(command)
}

func (s *simulation) makeJob(m *submission, n int, last map[string]taskqueue.Version, lfns *[]string) *simJob {
	j := &simJob{
		Job: taskqueue.Job{Name: fmt.Sprintf("job%d", n), Step: fmt.Sprintf("step%d", s.rng.IntN(3))},
		id:  taskqueue.NewJobID(m.run, uint32(n+1)),
	}
	if s.rng.IntN(2) == 0 {
		j.Digest = "d"
	}
	s.setCommand(m, j)
	j.Priority = s.rng.IntN(3) * s.rng.IntN(2)
	j.Needs = taskqueue.Resources{MilliCPUs: int64(500 * s.rng.IntN(4)), Memory: int64(100 * s.rng.IntN(5))}
	switch s.rng.IntN(12) {
	case 0:
		j.Needs.Countable = map[string]int64{quantity.GPU: 1}
	case 1, 2:
		j.Needs.GPUShare = 1 + s.rng.Int64N(quantity.WholeGPU-1)
	}
	j.Retry = taskqueue.Retry{Attempts: 1 + s.rng.IntN(4)}
	if s.rng.IntN(4) == 0 {
		j.Site, j.WaitForData = "b", time.Duration(s.rng.IntN(20)-1)*time.Second
	}
	gangs := s.rng.IntN(4) == 0
	if gangs {
		j.Tasks, j.Once = 2+s.rng.IntN(2), s.rng.IntN(3) == 0
		j.Needs.GPUShare = 0
		if j.Apart = j.Tasks == 2 && s.rng.IntN(2) == 0; j.Needs.Memory > 300 {
			j.Needs.Memory = 300 // which may double
		}
	}
	for range s.rng.IntN(4) {
		lfn := (*lfns)[s.rng.IntN(len(*lfns))]
		if gangs && strings.HasPrefix(lfn, "tmp") {
			continue
		}
		if !slices.Contains(j.Reads, lfn) && !m.known[lfn] {
			j.Reads = append(j.Reads, lfn)
			j.reads = append(j.reads, m.file(lfn, last[lfn]))
		}
	}
	for range 1 + s.rng.IntN(2) {
		o := taskqueue.Output{LFN: fmt.Sprintf("out%d", s.rng.IntN(30)), Publish: s.rng.IntN(2) == 0}
		switch s.rng.IntN(8) {
		case 0:
			o.LFN, o.Pattern = fmt.Sprintf("part%d.*", s.rng.IntN(3)), true
		case 1, 2:
			if gangs {
				continue
			}
			o.LFN, o.Storage, o.Publish = fmt.Sprintf("tmp%d", s.rng.IntN(30)), taskqueue.StorageCache, false
		case 3:
			o.Temporary, o.Publish = true, false
		case 4:
			if len(j.Reads) > 0 {
				o.LFN = j.Reads[s.rng.IntN(len(j.Reads))] // rewritten
			}
		}
		if slices.ContainsFunc(j.Writes, func(x taskqueue.Output) bool { return x.LFN == o.LFN }) {
			continue
		}
		j.Writes, j.writes = append(j.Writes, o), append(j.writes, m.place(o, n, last, lfns))
	}
	return j
}
