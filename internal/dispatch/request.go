package dispatch

import (
	"time"

	"fairway/internal/fifo"
)

// job is a submitted Job, kept small: a million of them are queued at times. It
// stands with its requests in one page of memory, and in eight lines of the
// processor's cache; what a match looks at stands in the first.
type job struct {
	group     *group // where it stands among the ready, nil if it is not
	class     *class // what it needs now
	requests  []request
	attempt   *attempt // the live ones, mostly none or one
	effective int32    // priority, inherited from jobs that wait for it
	ungranted int32    // requests that stand behind others
	absent    int32    // versions that it waits for although granted
	state     State
	reused    bool
	again     bool // was Done, and runs again because its outputs are gone
	freshly   bool // on the list of jobs that became ready in this step

	id         JobID
	step       *StepTotals
	readySince instant
	fate       *fate // what went wrong so far
	committed  AttemptID
	asked      *class // what was submitted
	priority   int32  // as submitted

	name    string
	key     identity // under which its result is kept; zero while unknown
	outputs []Output // as in Writes
	policy  *policy

	payload   []byte
	digest    string
	submitted instant
	one       [1]Output  // what outputs holds if it is the only one
	few       [4]request // and requests if there are no more, as mostly
}

// request is a job's place in the FIFO of one location. A job that reads and
// writes one file has one request, a write.
type request struct {
	fifo.Request[*request]
	job    *job
	read   *version // nil if the job only writes
	write  *version // nil if it only reads
	output int32    // index into outputs
}

func (r *request) file() *file {
	if r.read != nil {
		return r.read.file
	}
	return r.write.file
}

// fate is what a job went through besides its success.
type fate struct {
	Tries     int         `json:"t,omitempty"` // failed attempts that count
	Losses    int         `json:"l,omitempty"`
	Attempts  []AttemptID `json:"a,omitempty"` // whose results are not taken again, the last maxRemembered
	Memory    int64       `json:"m,omitempty"` // grown
	Avoid     string      `json:"h,omitempty"` // host where it failed for want of something
	NotBefore instant     `json:"n,omitempty"`
	Withdrawn bool        `json:"w,omitempty"` // its requests have left the FIFOs
	End       State       `json:"s,omitempty"` // Failed or Cancelled
	Reason    string      `json:"r,omitempty"`
	Private   bool        `json:"p,omitempty"` // somebody wrote to what it read; it gets copies of its own

	place         place // where its outputs are needed
	regenerations int
	backingOff    bool
}

// maxRemembered bounds fate.Attempts: those that failed, that were discarded, and
// whose commit another one has replaced. What is older can only come back from a
// pilot that was silent through that many.
const maxRemembered = 32

func (j *job) itsFate() *fate {
	if j.fate == nil {
		j.fate = &fate{}
	}
	return j.fate
}

func (j *job) withdrawn() bool { return j.fate != nil && j.fate.Withdrawn }

// live says whether an attempt of the job may still be committed.
func (j *job) live() bool {
	return j.state < Done
}

// policy is the part of jobs that mostly is the same for all of a step.
type policy struct {
	retry Retry
	wait  time.Duration
}

type policyKey struct {
	attempts  int
	backoff   time.Duration
	factor    float64
	exitCodes string
	wait      time.Duration
}

func (q *queue) policyOf(j *Job) *policy {
	k := policyKey{j.Retry.Attempts, j.Retry.Backoff, j.Retry.MemoryFactor, joinInts(j.Retry.ExitCodes), j.WaitForData}
	p := q.policies[k]
	if p == nil {
		p = &policy{retry: j.Retry, wait: j.WaitForData}
		q.policies[k] = p
	}
	return p
}
