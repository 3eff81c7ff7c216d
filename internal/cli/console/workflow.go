package console

import (
	"os"

	"fairway/internal/flow/workflow"
	"fairway/internal/wfformat"
)

// ReadWorkflow reads a workflow file, with its parameters where any are given,
// or a trace.
func ReadWorkflow(file string, values map[string]string, scales workflow.Scales) (*workflow.Workflow, error) {
	data, err := os.ReadFile(file)
	if err != nil {
		return nil, Fail(ExitBadFile, "", "cannot read the workflow: %w", err)
	}
	work, err := wfformat.ParseEither(file, data, scales)
	if err != nil {
		return nil, &Failure{Code: ExitBadFile, Err: err}
	}
	if len(values) > 0 {
		return Chosen(work, values, "", 0)
	}
	return work, nil
}

// Chosen is a workflow with values of its parameters, up to a step, and with another priority. An error is a *Failure.
func Chosen(
	work *workflow.Workflow, values map[string]string, until string, priority int32,
) (*workflow.Workflow, error) {
	work, err := work.With(values) // also if none was given, and one has to be
	if err != nil {
		return nil, &Failure{Code: ExitBadFile, Err: err}
	}
	if until != "" {
		if work, err = work.Until(until); err != nil {
			return nil, &Failure{Code: ExitNotFound, Err: err}
		}
	}
	if work, err = work.Raised(int(priority)); err != nil {
		return nil, &Failure{Code: ExitUsage, Err: err}
	}
	return work, nil
}
