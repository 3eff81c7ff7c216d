package server

import (
	"fmt"
	"path/filepath"
)

// OtherWorkflowError says that a folder holds the run of another workflow, whose
// results a run of this one would remove.
type OtherWorkflowError struct {
	Folder       string
	There, Asked string // names of workflows
	File         string // of the one that is there, as it was named
}

func (e *OtherWorkflowError) Error() string {
	return fmt.Sprintf("%s holds the run of the workflow %s (%s); a run of %s would remove its results", e.Folder, e.There, e.File, e.Asked)
}

// refuseOther refuses a workflow of another name, unless the same file was given
// another name for it.
func (o *opened) refuseOther(config *Config) error {
	asked := config.Workflow.Name
	if o.run == nil || o.run.Workflow == asked || o.run.Source == sourceOf(config) {
		return nil
	}
	return &OtherWorkflowError{Folder: config.Folder, There: o.run.Workflow, Asked: asked, File: o.run.File}
}

// sourceOf is the workflow's file as it is found from the folder of the state,
// wherever both are moved together.
func sourceOf(config *Config) string {
	file, err := filepath.Abs(config.Workflow.File)
	if err != nil {
		return config.Workflow.File
	}
	folder := config.Folder
	for _, path := range []*string{&file, &folder} {
		if resolved, err := filepath.EvalSymlinks(*path); err == nil {
			*path = resolved
		}
	}
	if relative, err := filepath.Rel(folder, file); err == nil {
		return relative
	}
	return file
}
