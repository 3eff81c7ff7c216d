package records

import (
	"errors"
	"fmt"
	"slices"

	"fairway/internal/taskqueue"
)

// What is known from records alone, without a Core.

// Fresh returns the records that retire all runs, whether or not they have ended, as
// RetireRun does with one, and forget the pilots. Made tells how each result was made
// that a commit becomes. Handed are the outputs that were handed out for publication,
// whether or not anybody confirmed that. The caller makes all durable and Loads again.
// An error means that a record cannot be read.
func Fresh(records []taskqueue.Record) (fresh []taskqueue.Record, made []taskqueue.Made,
	handed []taskqueue.StoredFile, err error) {
	type name struct {
		run taskqueue.RunID
		key string
	}
	jobs, results := make(map[name]taskqueue.Record), make(map[string]taskqueue.Record)
	for _, r := range records {
		switch r.Table {
		case TableJob:
			jobs[name{r.Run, r.Key}] = r
		case TableResult:
			results[r.Key] = r
		}
	}
	for _, r := range records {
		switch r.Table {
		case TableCommit:
			result, m, outputs, err := resultOf(r, jobs[name{r.Run, r.Key}], results)
			if err != nil {
				return nil, nil, nil, err
			}
			if m != nil {
				fresh, made = append(fresh, result), append(made, *m)
			}
			handed = append(handed, outputs...)
		case TableFate:
			removals, err := removalsOf(r)
			if err != nil {
				return nil, nil, nil, err
			}
			fresh = append(fresh, removals...)
		case TableRun, TableFile, TableJob, TablePublished, TablePilot:
		default:
			continue
		}
		fresh = append(fresh, taskqueue.Record{Table: r.Table, Run: r.Run, Key: r.Key})
	}
	return fresh, made, handed, nil
}

// removalsOf are the records that have removed what the first member of a gang has stored, of which
// others were under way.
func removalsOf(k taskqueue.Record) (list []taskqueue.Record, err error) {
	var b Fate
	if err := Decode(k, &b); err != nil || b.Gang == nil || b.Gang.Result == nil {
		return nil, err
	}
	for _, o := range b.Gang.Result.Outputs {
		if o.PFN != "" {
			list = append(list, taskqueue.Record{
				Table: TableRemove, Key: o.PFN, Body: Append(nil, &Removal{}),
			})
		}
	}
	return list, nil
}

// resultOf makes the result that a commit holds a record of its own. made is nil
// if it holds none that a later run could take, or has taken it itself out of results.
func resultOf(
	commit, job taskqueue.Record, results map[string]taskqueue.Record,
) (result taskqueue.Record, made *taskqueue.Made, handed []taskqueue.StoredFile, err error) {
	var c Commit
	if err := Decode(commit, &c); err != nil || c.Key == (Identity{}) {
		return taskqueue.Record{}, nil, nil, err
	}
	if job.Body == nil {
		return taskqueue.Record{}, nil, nil, fmt.Errorf("dispatch: job %s has a commit, and no record of what it is",
			commit.Key)
	}
	var j Job
	if err := Decode(job, &j); err != nil {
		return taskqueue.Record{}, nil, nil, err
	}
	if !c.Whole {
		var b Result
		r, ok := results[c.Key.Hex()]
		if ok {
			err = Decode(r, &b)
		}
		if c.Reused || !ok || err != nil {
			return taskqueue.Record{}, nil, j.handed(b.Outputs), err
		}
		return r, &taskqueue.Made{
			Key: c.Key.Hex(), Name: j.Name, Attempt: c.Attempt, Payload: j.Payload, Reads: j.Reads, Marks: hexOf(b.Inputs),
		}, j.handed(b.Outputs), nil // it made what others have taken too
	}
	if _, err := ParseJobKey(commit.Run, commit.Key); err != nil {
		return taskqueue.Record{}, nil, nil, fmt.Errorf("dispatch: the key %q of a commit: %w", commit.Key, err)
	}
	for i := range c.Outputs {
		c.Outputs[i].Tag = c.Outputs[i].TagOf(c.Attempt)
	}
	b := Result{Job: j.Name, Digest: j.Digest, Inputs: c.Inputs, Made: uint64(c.Attempt >> 32), Outputs: c.Outputs}
	return taskqueue.Record{Table: TableResult, Key: c.Key.Hex(), Body: Append(nil, &b)}, &taskqueue.Made{
		Key: c.Key.Hex(), Name: j.Name, Attempt: c.Attempt, Payload: j.Payload, Reads: j.Reads, Marks: hexOf(c.Inputs),
	}, j.handed(c.Outputs), nil
}

// handed are those outputs of a job that is done which are to be published.
func (j *Job) handed(outputs []Output) (list []taskqueue.StoredFile) {
	publish := make(map[string]bool, len(j.Written))
	for _, w := range j.Written {
		publish[w.LFN] = w.Publish
	}
	for i := range outputs {
		if o := &outputs[i]; o.PFN != "" && (publish[o.LFN] || o.Pattern != "" && publish[o.Pattern]) {
			list = append(list, taskqueue.StoredFile{File: taskqueue.FileRef{LFN: o.LFN}, PFN: o.PFN, Size: o.Size})
		}
	}
	return list
}

// Rerun names the results that may not be taken again if some jobs are to run
// once more: those of these jobs and of all that depend on them, by their keys.
// Of results that were left by earlier submissions it is not known what depends
// on what, so all of jobs that are not recorded any more are among them. jobs
// counts those of runs that are recorded that were chosen. The records of a table
// come in the order of their runs and keys. An error means that one cannot be read.
func Rerun(records []taskqueue.Record, chosen func(step, job string) bool) (keys map[string]bool, jobs int, err error) {
	commits, results := make(map[taskqueue.JobID]Commit), make(map[string]Result)
	var submitted []Job
	var ids []taskqueue.JobID
	for _, r := range records {
		var err error
		switch r.Table {
		case TableCommit:
			var c Commit
			err = Decode(r, &c)
			id, wrong := ParseJobKey(r.Run, r.Key)
			err = errors.Join(err, wrong)
			commits[id] = c
		case TableResult:
			var b Result
			err = Decode(r, &b)
			results[r.Key] = b
		case TableJob:
			var j Job
			err = Decode(r, &j)
			id, wrong := ParseJobKey(r.Run, r.Key)
			err = errors.Join(err, wrong)
			submitted, ids = append(submitted, j), append(ids, id)
		}
		if err != nil {
			return nil, 0, err
		}
	}
	keys = make(map[string]bool)
	stay, written := make(map[string]bool), make(map[string]bool) // jobs that do not run; files of those that do
	for i := range submitted {                                    // writers before readers
		j, c := &submitted[i], commits[ids[i]]
		runs := slices.ContainsFunc(j.Reads, func(lfn string) bool { return written[lfn] })
		if chosen(j.Step, j.Name) {
			runs = true
			jobs++
		}
		if !runs {
			stay[j.Name] = true
			continue
		}
		keys[c.Key.Hex()] = true
		for _, w := range j.Written {
			written[w.LFN] = true
		}
		for _, o := range slices.Concat(c.Outputs, results[c.Key.Hex()].Outputs) { // also names chosen by content
			written[o.LFN] = true
		}
	}
	for key, b := range results {
		if !stay[b.Job] {
			keys[key] = true
		}
	}
	delete(keys, Identity{}.Hex())
	return keys, jobs, nil
}

// RecordedJob is a job of which only its own records were read: quicker than
// Load where few of many jobs are looked at, and no server runs. A missing
// record is nil.
type RecordedJob struct {
	ID                taskqueue.JobID
	Job, Commit, Fate []byte // bodies of TableJob, TableCommit, TableFate
}

// State is that of a job which was committed or has ended otherwise; false means
// that it depends on others.
func (r *RecordedJob) State() (taskqueue.State, bool, error) {
	f, err := r.fate()
	switch {
	case err != nil:
		return taskqueue.Waiting, false, err
	case f.End != taskqueue.Waiting:
		return f.End, true, nil
	}
	return taskqueue.Done, r.Commit != nil, nil
}

// View is what dispatch.Core.Job would return for a job whose state is known, but for
// its inherited priority, and what was added to that of its run's jobs.
func (r *RecordedJob) View() (taskqueue.JobView, error) {
	state, _, err := r.State()
	if err != nil {
		return taskqueue.JobView{}, err
	}
	var b Job
	var c Commit
	if err := decodeOf(r, TableJob, r.Job, &b); err != nil {
		return taskqueue.JobView{}, err
	}
	if err := decodeOf(r, TableCommit, r.Commit, &c); err != nil {
		return taskqueue.JobView{}, err
	}
	f, _ := r.fate()
	v := taskqueue.JobView{
		ID: r.ID, Name: b.Name, Step: b.Step, State: state, Priority: b.Priority, Effective: b.Priority,
		Reused: c.Reused || c.Attempt == ReusedAttempt, Submitted: b.Submitted.Time(), Committed: c.Attempt,
		Tasks: b.Tasks,
	}
	if state != taskqueue.Done {
		v.Reason = f.Reason
	}
	if f.Priority != nil {
		v.Priority, v.Effective = int(*f.Priority), int(*f.Priority)
	}
	return v, nil
}

func (r *RecordedJob) fate() (Fate, error) {
	var b Fate
	err := decodeOf(r, TableFate, r.Fate, &b)
	return b, err
}

func decodeOf(r *RecordedJob, table string, body []byte, into any) error {
	if body == nil {
		return nil
	}
	return Decode(taskqueue.Record{Table: table, Run: r.ID.Run(), Key: JobKey(r.ID), Body: body}, into)
}

// TakenResults are the keys of the results, in TableResult, that commits have taken and do not
// hold themselves. An error means that a record cannot be read.
func TakenResults(commits []taskqueue.Record) (keys map[string]bool, err error) {
	keys = map[string]bool{}
	for _, r := range commits {
		if r.Table != TableCommit {
			continue
		}
		var c Commit
		if err := Decode(r, &c); err != nil {
			return nil, err
		}
		if c.Key != (Identity{}) && !c.Whole {
			keys[c.Key.Hex()] = true
		}
	}
	return keys, nil
}

// ReusedAttempt stands for the attempt of an earlier run.
const ReusedAttempt taskqueue.AttemptID = 1

func hexOf(marks []Mark) []string {
	texts := make([]string, len(marks))
	for i, m := range marks {
		texts[i] = m.Hex()
	}
	return texts
}
