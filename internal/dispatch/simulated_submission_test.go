package dispatch

import (
	"encoding/hex"
	"fmt"
	"slices"
	"strings"

	"fairway/internal/dispatch/records"
	"fairway/internal/taskqueue"
)

// submission is what must come of one run of a workflow.
type submission struct {
	number    int
	run       taskqueue.RunID
	earlier   *submission                  // whose jobs it may submit again
	since     uint64                       // the incarnation with which it began
	last      map[string]taskqueue.Version // of each LFN
	content   map[taskqueue.FileRef]string // what each version must be
	files     map[string]taskqueue.ExistingFile
	jobs      map[string]*simJob
	inOrder   []*simJob
	lfns      []string
	committed map[string]taskqueue.AttemptID
	asked     map[string]taskqueue.Version // published last
	matched   map[string]bool
	known     map[string]bool // LFNs that no further job reads
}

func newSubmission(number int, run taskqueue.RunID, since uint64, earlier *submission) *submission {
	return &submission{
		number: number, run: run, earlier: earlier, since: since,
		last: make(map[string]taskqueue.Version), content: make(map[taskqueue.FileRef]string),
		files: make(map[string]taskqueue.ExistingFile), jobs: make(map[string]*simJob),
		committed: make(map[string]taskqueue.AttemptID),
		asked:     make(map[string]taskqueue.Version), matched: make(map[string]bool), known: make(map[string]bool),
	}
}

// simJob is a job with what it must read and write.
type simJob struct {
	taskqueue.Job
	id     taskqueue.JobID
	reads  []taskqueue.FileRef
	writes []taskqueue.Version
	base   string // content is derived from it
}

func (m *submission) file(lfn string, v taskqueue.Version) taskqueue.FileRef {
	return taskqueue.FileRef{Run: m.run, LFN: lfn, Version: v}
}

// commit notes that a job was committed from an attempt.
func (m *submission) commit(name string, a taskqueue.AttemptID) error {
	if first, ok := m.committed[name]; ok {
		return fmt.Errorf("job %s was committed from %s and again", name, attemptName(first))
	}
	m.committed[name] = a
	return m.own(name, a)
}

// own makes sure that an attempt that counts is none of an earlier submission.
func (m *submission) own(name string, a taskqueue.AttemptID) error {
	if a != records.ReusedAttempt && uint64(a>>32) < m.since {
		return fmt.Errorf("job %s was committed from attempt %s of an earlier submission", name, attemptName(a))
	}
	return nil
}

// exists notes a file from outside.
func (m *submission) exists(f taskqueue.ExistingFile, v taskqueue.Version) {
	m.last[f.LFN] = v
	m.content[m.file(f.LFN, v)] = f.Identity
	m.files[f.LFN] = f
	m.lfns = append(m.lfns, f.LFN)
}

func (m *submission) nextExisting(lfn string) taskqueue.Version {
	if v, ok := m.last[lfn]; ok {
		return v + 1
	}
	return 0
}

// about is the version that an output of the n-th job gets.
func (m *submission) place(o taskqueue.Output, n int, last map[string]taskqueue.Version,
	lfns *[]string) taskqueue.Version {
	v := taskqueue.Version(n + 1)
	if o.Pattern {
		return v
	}
	if !m.matched[o.LFN] {
		v = 1
	}
	if was, ok := last[o.LFN]; ok {
		v = max(v, was+1)
	}
	last[o.LFN] = v
	*lfns = append(*lfns, o.LFN)
	return v
}

// enter notes a job that was submitted.
func (m *submission) enter(j *simJob) {
	m.jobs[j.Name] = j
	m.inOrder = append(m.inOrder, j)
	parts := decides(j.Name, string(j.Payload))
	for _, r := range j.reads {
		parts = append(parts, m.content[r])
	}
	j.base = digestOf(parts...)
	for i, w := range j.Writes {
		if !w.Pattern {
			m.content[m.file(w.LFN, j.writes[i])] = j.contentOf(w.LFN)
		}
	}
}

// forget undoes enter, for the jobs that were entered last.
func (m *submission) forget(jobs []*simJob) {
	m.inOrder = m.inOrder[:len(m.inOrder)-len(jobs)]
	for _, j := range jobs {
		delete(m.jobs, j.Name)
		for i, w := range j.Writes {
			delete(m.content, m.file(w.LFN, j.writes[i]))
		}
	}
}

// matchedFile notes a file that was written through a pattern.
func (m *submission) matchedFile(j *simJob, f taskqueue.FileRef) {
	m.content[f] = j.contentOf(f.LFN)
	m.matched[f.LFN] = true
	if last, ok := m.last[f.LFN]; !ok || last < f.Version {
		m.last[f.LFN] = f.Version
	}
	if !slices.Contains(m.lfns, f.LFN) {
		m.lfns = append(m.lfns, f.LFN)
	}
}

// decides is what decides with its inputs what a job writes: its command, and of one without a
// digest its name.
func decides(name, command string) []string {
	if strings.HasPrefix(command, "command ") {
		return []string{command, name}
	}
	return []string{command}
}

func (j *simJob) contentOf(lfn string) string { return digestOf(j.base, lfn) }

func digestOf(parts ...string) string {
	id := identityOf(parts...)
	return hex.EncodeToString(id[:4])
}
