package console

import (
	"os"

	"fairway/internal/flow"
	"fairway/internal/wfformat"
)

// ReadWorkflow reads a workflow file, with its parameters where any are given,
// or a trace.
func ReadWorkflow(file string, values map[string]string, scales flow.Scales) (*flow.Workflow, error) {
	data, err := os.ReadFile(file)
	if err != nil {
		return nil, Fail(ExitBadFile, "", "cannot read the workflow: %w", err)
	}
	workflow, err := wfformat.ParseEither(file, data, scales)
	if err != nil {
		return nil, &Failure{Code: ExitBadFile, Err: err}
	}
	if len(values) == 0 {
		return workflow, nil
	}
	if workflow, err = workflow.With(values); err != nil {
		return nil, &Failure{Code: ExitBadFile, Err: err}
	}
	return workflow, nil
}
