package dispatch

import (
	"fmt"
	"slices"
)

// Preview says of a job of a submission what would become of it.
type Preview struct {
	Job    string
	Reused bool   // its result of an earlier run would be taken
	Why    string // it would run: new, digest changed, input X changed
}

// Preview says which of these jobs would be reused from earlier runs if they
// were submitted now, to this Core or to a fresh one with its results. It
// changes nothing. Files that neither exist nor are written by a job before
// the reader are an error, as in a Submit.
func (c *Core) Preview(jobs []Job) ([]Preview, error) {
	if err := c.checkJobs(jobs); err != nil {
		return nil, err
	}
	c.forgetNames(jobs)
	known := make(map[string]identity) // of what the jobs would write; zero: would be written anew
	earlier := make(map[string]*storedResult, len(c.results))
	for _, r := range c.results {
		if known := earlier[r.job]; known == nil || r.less(known) {
			earlier[r.job] = &r
		}
	}
	list := make([]Preview, len(jobs))
	for i := range jobs {
		list[i] = c.previewJob(&jobs[i], known, earlier)
	}
	return list, nil
}

func (c *Core) previewJob(s *Job, known map[string]identity, earlier map[string]*storedResult) Preview {
	p := Preview{Job: s.Name}
	j := job{name: s.Name, digest: s.Digest, outputs: s.Writes}
	for _, lfn := range s.Reads {
		id, planned := known[lfn]
		if !planned {
			id = c.fileCalled(lfn).last().identity
		}
		if id == (identity{}) {
			p.Why = fmt.Sprintf("input %s is written anew", lfn)
		}
		j.requests = append(j.requests, request{read: &version{file: &file{lfn: lfn}, identity: id}})
	}
	key := identity{}
	if p.Why == "" {
		key = j.keyOf()
		r, ok := c.results[key]
		p.Reused = ok && j.reusable(r.outputs) != nil
		p.Why = "as in the earlier run"
		if !p.Reused {
			p.Why = c.whyNot(s, &j, earlier)
		}
	}
	j.key = key
	for _, o := range s.Writes {
		if !o.Pattern {
			known[o.LFN] = identity{}
			if p.Reused {
				known[o.LFN] = j.identityOf(o.LFN)
			}
		}
	}
	return p
}

// less orders the earlier results of one job: the newest first, and those of one
// incarnation in a definite order.
func (r *storedResult) less(o *storedResult) bool {
	if r.made != o.made {
		return r.made > o.made
	}
	if r.digest != o.digest {
		return r.digest < o.digest
	}
	return slices.Compare(r.inputs, o.inputs) < 0
}

// whyNot compares the job with what an earlier run did under its name.
func (c *Core) whyNot(s *Job, j *job, earlier map[string]*storedResult) string {
	r := earlier[s.Name]
	switch {
	case s.Digest == "":
		return "it has no digest"
	case r == nil:
		return "new"
	case r.digest != s.Digest:
		return "digest changed"
	}
	marks := j.inputMarks()
	if len(marks) != len(r.inputs) {
		return "inputs changed"
	}
	for i, m := range marks {
		if m != r.inputs[i] {
			return fmt.Sprintf("input %s changed", s.Reads[i])
		}
	}
	return "outputs changed"
}
