package dispatch

import (
	"encoding/json"
	"fmt"
)

// JobKey is the key of a job's records in the tables that have one for each job.
// Keys sort as the numbers do.
func JobKey(id JobID) string { return jobKey(id) }

// RecordedJob is a job of which only its own records were read: quicker than
// Load where few of many jobs are looked at, and no server runs. A missing
// record is nil.
type RecordedJob struct {
	ID                JobID
	Job, Commit, Fate []byte // bodies of TableJob, TableCommit, TableFate
}

// State is that of a job which was committed or has ended otherwise; false means
// that it depends on others.
func (r *RecordedJob) State() (State, bool, error) {
	f, err := r.fate()
	switch {
	case err != nil:
		return Waiting, false, err
	case f.End != Waiting:
		return f.End, true, nil
	}
	return Done, r.Commit != nil, nil
}

// View is what [Core.Job] would return for a job whose state is known, but for
// its inherited priority.
func (r *RecordedJob) View() (JobView, error) {
	state, _, err := r.State()
	if err != nil {
		return JobView{}, err
	}
	var b jobBody
	var c commitBody
	if err := r.decode(TableJob, r.Job, &b); err != nil {
		return JobView{}, err
	}
	if err := r.decode(TableCommit, r.Commit, &c); err != nil {
		return JobView{}, err
	}
	f, _ := r.fate()
	v := JobView{
		ID: r.ID, Name: b.Name, Step: b.Step, State: state, Priority: b.Priority, Effective: b.Priority,
		Tries: f.Tries + f.Losses, Reused: c.Reused, Submitted: b.Submitted.time(), Committed: c.Attempt,
	}
	if state != Done {
		v.Reason = f.Reason
	}
	return v, nil
}

func (r *RecordedJob) fate() (fate, error) {
	var b fateBody
	err := r.decode(TableFate, r.Fate, &b)
	return b.fate, err
}

func (r *RecordedJob) decode(table string, body []byte, into any) error {
	if body == nil {
		return nil
	}
	if err := json.Unmarshal(body, into); err != nil {
		return fmt.Errorf("dispatch: reading record %s of table %s: %w", jobKey(r.ID), table, err)
	}
	return nil
}
