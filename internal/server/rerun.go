package server

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"fairway/internal/dispatch/records"
	"fairway/internal/flow/workflow"
	"fairway/internal/store"
	"fairway/internal/taskqueue"
)

// rerun are the names of steps and jobs that a person wants to run once more.
type rerun []string

// TargetError says that no step or job has a name that a person gave.
type TargetError struct {
	Name  string
	Steps []string // that there are
}

// Error is part of error.
func (e *TargetError) Error() string {
	return fmt.Sprintf("no step or job is called %q; the steps are %s", e.Name, strings.Join(e.Steps, ", "))
}

// openRerun checks the names. Those of jobs are known from the last run, of which
// s has the records; nil where there was none.
func openRerun(ctx context.Context, names []string, work *workflow.Workflow, s store.Store) (rerun, error) {
	for _, name := range names {
		if slices.Contains(work.StepNames(), name) {
			continue
		}
		var jobs []taskqueue.Record
		if s != nil {
			var err error
			if jobs, err = s.Load(ctx, records.TableJob); err != nil {
				return nil, err
			}
		}
		_, found, err := records.Rerun(jobs, rerun{name}.chosen)
		if err != nil {
			return nil, err
		}
		if found == 0 {
			return nil, &TargetError{Name: name, Steps: work.StepNames()}
		}
	}
	return rerun(names), nil
}

func (r rerun) chosen(step, job string) bool {
	return slices.Contains(r, step) || slices.Contains(r, job)
}

// drop returns the records that delete the results which are not to be taken.
func (r rerun) drop(recorded []taskqueue.Record) ([]taskqueue.Record, error) {
	if len(r) == 0 {
		return nil, nil
	}
	keys, _, err := records.Rerun(recorded, r.chosen)
	var dropped []taskqueue.Record
	for key := range keys {
		dropped = append(dropped, taskqueue.Record{Table: records.TableResult, Key: key})
	}
	return dropped, err
}

func upTo(target string) string {
	if target == "" {
		return "to its end"
	}
	return "until " + target
}
