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
	if len(values) == 0 {
		return work, nil
	}
	if work, err = work.With(values); err != nil {
		return nil, &Failure{Code: ExitBadFile, Err: err}
	}
	return work, nil
}
