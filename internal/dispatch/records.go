package dispatch

import (
	"encoding/json"
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
	var b fateBody
	if err := decode(k, &b); err != nil || b.Gang == nil || b.Gang.Result == nil {
		return nil, err
	}
	for _, o := range b.Gang.Result.Outputs {
		if o.PFN != "" {
			list = append(list, taskqueue.Record{
				Table: TableRemove, Key: o.PFN, Body: fmt.Appendf(nil, `{"v":%d}`, bodyVersion),
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
	var c commitBody
	if err := decode(commit, &c); err != nil || c.Key == "" {
		return taskqueue.Record{}, nil, nil, err
	}
	if job.Body == nil {
		return taskqueue.Record{}, nil, nil, fmt.Errorf("dispatch: job %s has a commit, and no record of what it is",
			commit.Key)
	}
	var j jobBody
	if err := decode(job, &j); err != nil {
		return taskqueue.Record{}, nil, nil, err
	}
	if !c.Whole {
		var b resultBody
		r, ok := results[c.Key]
		if ok {
			err = decode(r, &b)
		}
		if c.Reused || !ok || err != nil {
			return taskqueue.Record{}, nil, j.handed(b.Outputs), err
		}
		return r, &taskqueue.Made{
			Key: c.Key, Name: j.Name, Attempt: c.Attempt, Payload: j.Payload, Reads: j.Reads, Marks: b.Inputs,
		}, j.handed(b.Outputs), nil // it made what others have taken too
	}
	if _, err := parseJobKey(commit.Run, commit.Key); err != nil {
		return taskqueue.Record{}, nil, nil, fmt.Errorf("dispatch: the key %q of a commit: %w", commit.Key, err)
	}
	for i := range c.Outputs {
		c.Outputs[i].Tag = c.Outputs[i].tag(c.Attempt)
	}
	b := resultBody{Job: j.Name, Digest: j.Digest, Inputs: c.Inputs, Made: uint64(c.Attempt >> 32), Outputs: c.Outputs}
	return taskqueue.Record{Table: TableResult, Key: c.Key, Body: appendResult(nil, &b)}, &taskqueue.Made{
		Key: c.Key, Name: j.Name, Attempt: c.Attempt, Payload: j.Payload, Reads: j.Reads, Marks: c.Inputs,
	}, j.handed(c.Outputs), nil
}

// handed are those outputs of a job that is done which are to be published.
func (j *jobBody) handed(outputs []output) (list []taskqueue.StoredFile) {
	publish := make(map[string]bool, len(j.Writes))
	for _, w := range j.Writes {
		publish[w.LFN] = w.Publish
	}
	for i := range outputs {
		if o := &outputs[i]; o.PFN != "" && (publish[o.LFN] || o.Pattern != "" && publish[o.Pattern]) {
			list = append(list, taskqueue.StoredFile{File: taskqueue.FileRef{LFN: o.LFN}, PFN: o.PFN, Size: o.Size})
		}
	}
	return list
}

// decode reads the body of a record into a zero one.
func decode[T any](r taskqueue.Record, into *T) error {
	if scanned(r.Body, into) {
		return nil
	}
	*into = *new(T) // what may have been read of it
	if err := json.Unmarshal(r.Body, into); err != nil {
		return fmt.Errorf("dispatch: reading record %s of table %s: %w", r.Key, r.Table, err)
	}
	return nil
}

// Rerun names the results that may not be taken again if some jobs are to run
// once more: those of these jobs and of all that depend on them, by their keys.
// Of results that were left by earlier submissions it is not known what depends
// on what, so all of jobs that are not recorded any more are among them. jobs
// counts those of runs that are recorded that were chosen. The records of a table
// come in the order of their runs and keys. An error means that one cannot be read.
func Rerun(records []taskqueue.Record, chosen func(step, job string) bool) (keys map[string]bool, jobs int, err error) {
	commits, results := make(map[taskqueue.JobID]commitBody), make(map[string]resultBody)
	var submitted []jobBody
	var ids []taskqueue.JobID
	for _, r := range records {
		var err error
		switch r.Table {
		case TableCommit:
			var c commitBody
			err = decode(r, &c)
			id, wrong := parseJobKey(r.Run, r.Key)
			err = errors.Join(err, wrong)
			commits[id] = c
		case TableResult:
			var b resultBody
			err = decode(r, &b)
			results[r.Key] = b
		case TableJob:
			var j jobBody
			err = decode(r, &j)
			id, wrong := parseJobKey(r.Run, r.Key)
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
		keys[c.Key] = true
		for _, w := range j.Writes {
			written[w.LFN] = true
		}
		for _, o := range slices.Concat(c.Outputs, results[c.Key].Outputs) { // also names chosen by content
			written[o.LFN] = true
		}
	}
	for key, b := range results {
		if !stay[b.Job] {
			keys[key] = true
		}
	}
	delete(keys, "")
	return keys, jobs, nil
}

// JobKey is the key of a job's records in the tables of its run that have one for each
// job. Keys sort as the numbers do.
func JobKey(id taskqueue.JobID) string { return jobKey(id) }

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

// View is what [Core.Job] would return for a job whose state is known, but for
// its inherited priority, and what was added to that of its run's jobs.
func (r *RecordedJob) View() (taskqueue.JobView, error) {
	state, _, err := r.State()
	if err != nil {
		return taskqueue.JobView{}, err
	}
	var b jobBody
	var c commitBody
	if err := decodeOf(r, TableJob, r.Job, &b); err != nil {
		return taskqueue.JobView{}, err
	}
	if err := decodeOf(r, TableCommit, r.Commit, &c); err != nil {
		return taskqueue.JobView{}, err
	}
	f, _ := r.fate()
	v := taskqueue.JobView{
		ID: r.ID, Name: b.Name, Step: b.Step, State: state, Priority: b.Priority, Effective: b.Priority,
		Reused: c.Reused || c.Attempt == reusedAttempt, Submitted: b.Submitted.Time(), Committed: c.Attempt,
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

func (r *RecordedJob) fate() (fate, error) {
	var b fateBody
	err := decodeOf(r, TableFate, r.Fate, &b)
	return b.fate, err
}

func decodeOf[T any](r *RecordedJob, table string, body []byte, into *T) error {
	if body == nil {
		return nil
	}
	return decode(taskqueue.Record{Table: table, Run: r.ID.Run(), Key: jobKey(r.ID), Body: body}, into)
}

// TakenResults are the keys of the results, in TableResult, that commits have taken and do not
// hold themselves. An error means that a record cannot be read.
func TakenResults(commits []taskqueue.Record) (keys map[string]bool, err error) {
	keys = map[string]bool{}
	for _, r := range commits {
		if r.Table != TableCommit {
			continue
		}
		var c commitBody
		if err := decode(r, &c); err != nil {
			return nil, err
		}
		if c.Key != "" && !c.Whole {
			keys[c.Key] = true
		}
	}
	return keys, nil
}
