package workflow

import (
	"fmt"
	"time"

	"github.com/zeebo/blake3"

	"fairway/internal/flow/pattern"
)

// Recorded is a run of which all jobs are known before it begins: one that took place elsewhere,
// as package wfformat reads it.
type Recorded struct {
	File    string // its name, for messages
	Name    string
	About   string
	Text    []byte // what it was read from
	Scales  Scales
	Outside []SizedFile // files that no job makes
	Jobs    []NewJob    // each after the writers of what it reads; digests are filled in
}

// Scales are the factors by which a recorded run is replayed. Zero is legal: jobs that take no
// time, empty files.
type Scales struct {
	TimeScale float64
	SizeScale float64
}

// RecordedInput is the name of the one input of a recorded run: the files that no job of it
// makes. See [DeclaredInput.Sizes].
const RecordedInput = "trace"

// MaxReplay bounds the time of one job of a recorded run.
const MaxReplay = 100 * 365 * 24 * time.Hour

// NewRecorded gives the workflow that replays a run. It has no parameters. It takes the jobs over.
func NewRecorded(r Recorded) *Workflow {
	in := &DeclaredInput{Name: RecordedInput, Line: 1, Sizes: r.Outside, MayBeEmpty: true}
	made := &Maker{Input: in, Pattern: &pattern.Pattern{}}
	w := &Workflow{
		File: r.File, Name: r.Name, About: r.About, data: r.Text, scales: &r.Scales,
		Inputs: []*DeclaredInput{in}, values: map[string]string{}, RecordedJobs: r.Jobs,
	}
	known := map[string]bool{}
	for i := range r.Jobs {
		j := &r.Jobs[i]
		j.Job.Digest = Digest(*j)
		if name := j.Job.Step; !known[name] {
			known[name] = true
			w.Steps = append(w.Steps, &Step{
				Name: name, listed: len(w.Steps), Order: len(w.Steps) + 1, Replayed: true,
				Found: stepFound{Feeds: [][]*Maker{{made}}},
			})
		}
	}
	h := blake3.New()
	_, _ = h.Write(r.Text)
	_, _ = fmt.Fprintf(h, "\x00%g\x00%g", r.Scales.TimeScale, r.Scales.SizeScale)
	w.digest = fmt.Sprintf("%x", h.Sum(nil)[:16])
	return w
}
