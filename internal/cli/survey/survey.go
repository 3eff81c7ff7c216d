// Package survey looks at which files the inputs of a workflow have on this machine now, and at the jobs
// that they would make. It reads none of them.
package survey

import (
	"fmt"
	"slices"
	"time"

	"fairway/internal/flow"
	"fairway/internal/flow/workflow"
	"fairway/internal/yamlfile"
)

// Inputs looks at what each input of a workflow has, and fails where one has no files or others than it can
// take. lines asks for the lines of lists too: a run that goes on needs no second look at those
// that it was fed.
func Inputs(work *workflow.Workflow, file, folder string, listed *Listing, lines bool) (all []Input, err error) {
	needed := slices.ContainsFunc(work.Parameters, func(p workflow.Parameter) bool { return p.Required })
	var missing yamlfile.Problems
	for _, input := range work.Inputs {
		found := Input{Declared: input, folder: folder, listed: listed, lines: lines}
		found.survey()
		all = append(all, found)
		for _, p := range found.problems {
			if !needed || found.Files+found.unfit > 0 {
				p.File, p.Line, p.Column = file, input.Line, 1
				missing = append(missing, p)
			}
		}
	}
	if len(missing) > 0 {
		return nil, missing
	}
	return all, nil
}

// RefusedJobs returns an error if the files that were found would make jobs that cannot
// be, as far as that is known before any runs: their outputs have names that are taken,
// or too long.
func RefusedJobs(work *workflow.Workflow, file string, found []Input) error {
	if slices.ContainsFunc(work.Parameters, func(p workflow.Parameter) bool { return p.Required }) {
		return nil
	}
	f, err := flow.New(work)
	if err != nil {
		return err
	}
	now := time.Now()
	for i := range found {
		in := found[i].Declared
		if _, err := f.StepToEnd(now, flow.Arrived{Input: in.Name, Files: found[i].arrived}); err != nil {
			return err
		}
		if in.IsOpen() || slices.ContainsFunc(in.Globs, workflow.IsURL) {
			continue
		}
		if _, err := f.StepToEnd(now, flow.Closed{Input: in.Name}); err != nil {
			return err
		}
	}
	var problems yamlfile.Problems
	for _, why := range f.Refused() {
		problems = append(problems, yamlfile.Problem{File: file, Line: 1, Column: 1, What: why})
	}
	if len(problems) > 0 {
		return problems
	}
	return nil
}

// Input is what an input has on this machine now. No file is read.
type Input struct {
	Declared *workflow.DeclaredInput
	folder   string // of the workflow
	listed   *Listing
	lines    bool     // those of lists, and the sizes of files, are looked at
	Files    int      // that are there
	unfit    int      // what was met that can be no file of the input
	Left     []string // of it, what a run leaves alone
	problems []yamlfile.Problem
	arrived  []flow.InputFile // what a run would be fed, of files that are named by paths
}

func (s *Input) add(instead, format string, values ...any) {
	what := fmt.Sprintf("input %q: ", s.Declared.Name) + fmt.Sprintf(format, values...)
	s.problems = append(s.problems, yamlfile.Problem{What: what, Instead: instead})
}
