package dispatch

import (
	"encoding/json"
	"fmt"
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
