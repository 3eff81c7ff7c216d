package flow

import (
	"strings"
	"testing"

	"fairway/internal/flow/workflow"
	"fairway/internal/taskqueue"
)

// A job with more files than a pilot could be told of is not created.
func TestJobsWithTooManyFilesAreTold(t *testing.T) {
	reads := make([]string, 500_000)
	j := &job{key: key{name: "sum"}, new: workflow.NewJob{Job: taskqueue.Job{Reads: reads}}}
	if why := new(Flow).unfit(j); !strings.Contains(why, "job sum cannot be created: it reads 500000 files and writes "+
		"0: a pilot could not be told of so many") {
		t.Error(why)
	}
}
