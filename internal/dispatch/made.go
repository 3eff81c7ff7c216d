package dispatch

import (
	"encoding/json"
	"fmt"
	"slices"
)

// Made tells what a result was made from, and by which attempt: what a person
// wants to know of it when the job itself is no longer recorded.
type Made struct {
	Key     string // of the result, as in [UnusedResult] and [JobDetail]
	Job     JobID  // in the submission that made it
	Name    string
	Attempt AttemptID
	Payload []byte
	Reads   []string
	Marks   []string // of the contents of Reads, as in [FileView]
}

// Provenance tells of each result that [Fresh] makes of these records how it was
// made. An error means that a record cannot be read.
func Provenance(records []Record) ([]Made, error) {
	jobs := make(map[string][]byte)
	for _, r := range records {
		if r.Table == TableJob {
			jobs[r.Key] = r.Body
		}
	}
	var list []Made
	for _, r := range records {
		if r.Table != TableCommit {
			continue
		}
		var c commitBody
		if err := json.Unmarshal(r.Body, &c); err != nil {
			return nil, fmt.Errorf("dispatch: reading the commit of job %s: %w", r.Key, err)
		}
		if !c.Whole || c.Key == "" {
			continue
		}
		var j jobBody
		if err := json.Unmarshal(jobs[r.Key], &j); err != nil {
			return nil, fmt.Errorf("dispatch: reading job %s: %w", r.Key, err)
		}
		id, err := parseJobKey(r.Key)
		if err != nil {
			return nil, fmt.Errorf("dispatch: the key %q of a commit: %w", r.Key, err)
		}
		list = append(list, Made{
			Key: c.Key, Job: id, Name: j.Name, Attempt: c.Attempt, Payload: j.Payload, Reads: j.Reads, Marks: c.Inputs,
		})
	}
	return list, nil
}

// Rerun names the results that may not be taken again if some jobs are to run
// once more: those of these jobs and of all that depend on them, by their keys.
// Of results that were left by earlier submissions it is not known what depends
// on what, so all of jobs that are not recorded any more are among them. jobs
// counts those of the last submission that were chosen. The records of a table
// come in the order of their keys. An error means that one cannot be read.
func Rerun(records []Record, chosen func(step, job string) bool) (keys map[string]bool, jobs int, err error) {
	commits, results := make(map[string]commitBody), make(map[string]resultBody)
	var submitted []jobBody
	var numbers []string
	for _, r := range records {
		var err error
		switch r.Table {
		case TableCommit:
			var c commitBody
			err = json.Unmarshal(r.Body, &c)
			commits[r.Key] = c
		case TableResult:
			var b resultBody
			err = json.Unmarshal(r.Body, &b)
			results[r.Key] = b
		case TableJob:
			var j jobBody
			err = json.Unmarshal(r.Body, &j)
			submitted, numbers = append(submitted, j), append(numbers, r.Key)
		}
		if err != nil {
			return nil, 0, fmt.Errorf("dispatch: reading record %s of table %s: %w", r.Key, r.Table, err)
		}
	}
	keys = make(map[string]bool)
	stay, written := make(map[string]bool), make(map[string]bool) // jobs that do not run; files of those that do
	for i := range submitted {                                    // writers before readers
		j, c := &submitted[i], commits[numbers[i]]
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
