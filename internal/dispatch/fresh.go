package dispatch

import (
	"encoding/json"
	"fmt"
)

// Fresh returns the records that delete what belongs to one submission of a
// workflow and not to the next: everything but the incarnation, with which the
// next one begins, the results and what is to be removed. The results of its commits become records of
// their own. The caller makes all durable and Loads again. An error means that
// a record cannot be read.
func Fresh(records []Record) ([]Record, error) {
	var fresh []Record
	jobs := make(map[string][]byte)
	for _, r := range records {
		if r.Table == TableJob {
			jobs[r.Key] = r.Body
		}
	}
	for _, r := range records {
		switch r.Table {
		case TableCommit:
			results, err := resultOf(r, jobs[r.Key])
			if err != nil {
				return nil, err
			}
			fresh = append(fresh, results...)
		case TableMeta:
			meta, err := begun(r)
			if err != nil {
				return nil, err
			}
			fresh = append(fresh, meta)
			continue
		case TableFile, TableJob, TableFate, TablePublished, TablePilot:
		default:
			continue
		}
		fresh = append(fresh, Record{Table: r.Table, Key: r.Key})
	}
	return fresh, nil
}

// begun has a new submission begin with the next incarnation: its jobs bear
// the numbers of earlier ones, so attempts of before are known by their
// incarnation alone.
func begun(meta Record) (Record, error) {
	var b metaBody
	if err := json.Unmarshal(meta.Body, &b); err != nil {
		return Record{}, fmt.Errorf("dispatch: reading record %s of table %s: %w", meta.Key, meta.Table, err)
	}
	b.Since = b.Incarnation + 1
	body, err := json.Marshal(b)
	return Record{Table: meta.Table, Key: meta.Key, Body: body}, err
}

// resultOf makes the result that a commit holds a record of its own, if it
// holds one that a later run could take.
func resultOf(r Record, job []byte) ([]Record, error) {
	var c commitBody
	var j jobBody
	if err := json.Unmarshal(r.Body, &c); err != nil {
		return nil, fmt.Errorf("dispatch: reading the commit of job %s: %w", r.Key, err)
	}
	if !c.Whole || c.Key == "" {
		return nil, nil
	}
	if err := json.Unmarshal(job, &j); err != nil {
		return nil, fmt.Errorf("dispatch: reading job %s: %w", r.Key, err)
	}
	for i := range c.Outputs {
		c.Outputs[i].Tag = c.Outputs[i].tag(c.Attempt)
	}
	b := resultBody{Job: j.Name, Digest: j.Digest, Inputs: c.Inputs, Made: uint64(c.Attempt >> 32), Outputs: c.Outputs}
	return []Record{{TableResult, c.Key, appendResult(nil, &b)}}, nil
}
