// Package history tells from the recorded attempts of a run what set its time, and writes them for
// others: as a page that stands alone, and for Perfetto. It asks nobody: a [Run] is all it knows.
package history

import (
	"cmp"
	"slices"
	"strings"
	"time"
)

// Run is what is recorded of a run.
type Run struct {
	Workflow string
	Number   uint32
	State    string
	Jobs     []Job
}

// Job is a job that was executed at least once.
type Job struct {
	ID        uint32
	Name      string
	Step      string
	State     string
	Reason    string
	Submitted time.Time
	After     []uint32  // jobs whose files it reads
	Attempts  []Attempt // in their order; none of an earlier run
	Priority  int
	MilliCPUs int64 // that it asks for; 0: it does not say
	Reads     []File
	Writes    []File
}

// File is a version of a file that a job reads or writes.
type File struct {
	LFN       string
	Version   uint32
	Size      int64
	Writer    uint32 // job; 0: it existed before
	Streamed  bool   // read by the command itself
	CacheOnly bool   // not stored
}

// Attempt is one that has ended.
type Attempt struct {
	Pilot, Host string
	Outcome     string
	Failed      bool
	StageIn     time.Time // began
	Start       time.Time // of the command; zero: it did not
	End         time.Time // of the command
	StageOut    time.Time // ended
	BytesRead   int64
	BytesCached int64 // of BytesRead
	BytesOut    int64
	MaxRSS      int64
	StagedAhead time.Duration // of its stage-in, before StageIn
	CPU         time.Duration
	CacheHits   int
	RemoteHits  int // of CacheHits: from other hosts
}

// Site is where the attempt ran, as far as the name of its pilot tells it: SITE-SERVER.NUMBER.
func (a *Attempt) Site() string {
	name := a.Pilot
	if dot := strings.LastIndexByte(name, '.'); dot >= 0 {
		name = name[:dot]
	}
	if dash := strings.LastIndexByte(name, '-'); dash > 0 {
		name = name[:dash]
	}
	return name
}

// Begin is when an attempt began, as far as is known.
func (a *Attempt) Begin() time.Time {
	if a.StageIn.IsZero() {
		return a.Start
	}
	return a.StageIn
}

// Ended is when an attempt ended.
func (a *Attempt) Ended() time.Time {
	if a.StageOut.IsZero() {
		return a.End
	}
	return a.StageOut
}

// Last is the attempt that counts: the last one; nil if there is none with times.
func (j *Job) Last() *Attempt {
	for i := range slices.Backward(j.Attempts) {
		if a := &j.Attempts[i]; !a.Begin().IsZero() && !a.Ended().Before(a.Begin()) {
			return a
		}
	}
	return nil
}

// Bounds are the begin of the first attempt, or the submission of the first job, and the end of the
// last one.
func (r *Run) Bounds() (begin, end time.Time) {
	for i := range r.Jobs {
		j := &r.Jobs[i]
		if !j.Submitted.IsZero() && len(j.Attempts) > 0 && (begin.IsZero() || j.Submitted.Before(begin)) {
			begin = j.Submitted
		}
		for k := range j.Attempts {
			a := &j.Attempts[k]
			if b := a.Begin(); !b.IsZero() && (begin.IsZero() || b.Before(begin)) {
				begin = b
			}
			if a.Ended().After(end) {
				end = a.Ended()
			}
		}
	}
	return begin, end
}

// attemptsByPilot are all attempts with times, by their pilots, in the order of their begins.
func (r *Run) attemptsByPilot() map[string][]placed {
	all := map[string][]placed{}
	for i := range r.Jobs {
		j := &r.Jobs[i]
		for k := range j.Attempts {
			if a := &j.Attempts[k]; !a.Begin().IsZero() && !a.Ended().Before(a.Begin()) {
				all[a.Pilot] = append(all[a.Pilot], placed{j, a})
			}
		}
	}
	for _, list := range all {
		slices.SortFunc(list, func(a, b placed) int {
			return cmp.Or(a.attempt.Begin().Compare(b.attempt.Begin()), cmp.Compare(a.job.ID, b.job.ID))
		})
	}
	return all
}

// placed is an attempt with its job.
type placed struct {
	job     *Job
	attempt *Attempt
}
