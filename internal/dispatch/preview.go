package dispatch

import "fmt"

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
	known := make(map[string]identity) // of what the jobs would write; zero: would be written anew
	list := make([]Preview, len(jobs))
	for i := range jobs {
		list[i] = c.previewJob(&jobs[i], known)
	}
	return list, nil
}

func (c *Core) previewJob(s *Job, known map[string]identity) Preview {
	p := Preview{Job: s.Name}
	j := job{name: s.Name, digest: s.Digest, outputs: s.Writes}
	for _, lfn := range s.Reads {
		id, planned := known[lfn]
		if !planned {
			id = c.files[lfn].last().identity
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
		p.Why = c.whyNot(s, p.Reused)
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

func (c *Core) whyNot(s *Job, reused bool) string {
	switch {
	case reused:
		return "as in the earlier run"
	case s.Digest == "":
		return "it has no digest"
	}
	return "new, or changed since"
}

// Fresh returns the records that delete what belongs to one submission of a
// workflow and not to the next: everything but the incarnation, the results
// and what is to be removed. The caller makes them durable and Loads again.
func Fresh(records []Record) []Record {
	var gone []Record
	for _, r := range records {
		switch r.Table {
		case TableFile, TableJob, TableCommit, TableFate, TablePublished, TablePilot:
			gone = append(gone, Record{Table: r.Table, Key: r.Key})
		}
	}
	return gone
}
