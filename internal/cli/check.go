package cli

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"fairway/internal/flow"
	"fairway/internal/quantity"
	"fairway/internal/server/feed"
	"fairway/internal/yamlfile"
)

type checkedObject struct {
	File       string            `json:"file"`
	Workflow   string            `json:"workflow"`
	About      string            `json:"about"`
	Steps      []string          `json:"steps"`
	Inputs     []checkedInput    `json:"inputs"`
	Parameters []parameterObject `json:"parameters"`
}

type checkedInput struct {
	Name    string `json:"name"`
	Files   int    `json:"files"` // there now
	Watched bool   `json:"watched"`
}

type parameterObject struct {
	Name     string `json:"name"`
	Value    string `json:"value"`
	Required bool   `json:"required"`
}

func (c *console) checkCommand() *cobra.Command {
	var settings []string
	command := &cobra.Command{
		Use:   "check [FILE]",
		Short: "Check a workflow file",
		Long: `Check a workflow file (default: workflow.yaml), and run nothing. Fairway checks
  - the grammar and the names;
  - that the steps fix the order of any two writers of a file, and of a reader
    and a writer;
  - that the inputs are there.
It reports all problems of the file at once.`,
		Example:           "  fairway check workflow.yaml\n  fairway check workflow.yaml --set reads=/data --json",
		Args:              maybeFile,
		ValidArgsFunction: workflowFiles,
		RunE: func(_ *cobra.Command, arguments []string) error {
			values, err := parameters(settings)
			if err != nil {
				return err
			}
			file, folder, err := c.fileAndFolder(arguments)
			if err != nil {
				return err
			}
			workflow, err := readWorkflow(file, values, flow.TraceOptions{})
			if err != nil {
				return err
			}
			checked, err := inspect(workflow, file, folder)
			if err != nil {
				return err
			}
			return c.answer(checked, func() { c.printChecked(checked) })
		},
	}
	command.Flags().StringArrayVar(&settings, "set", nil, "give a parameter a value: name=value (may be repeated)")
	_ = command.RegisterFlagCompletionFunc("set", c.completeParameters)
	return command
}

// readWorkflow reads a workflow file, with its parameters where any are given,
// or a trace.
func readWorkflow(file string, values map[string]string, scales flow.TraceOptions) (*flow.Workflow, error) {
	data, err := os.ReadFile(file)
	if err != nil {
		return nil, fail(exitBadFile, "", "cannot read the workflow: %w", err)
	}
	if isTrace(data) {
		workflow, err := flow.ParseTrace(file, data, scales)
		if err != nil {
			return nil, &failure{code: exitBadFile, err: err}
		}
		return workflow, nil
	}
	workflow, err := flow.Parse(file, data)
	if err != nil || len(values) == 0 {
		return workflow, err
	}
	if workflow, err = workflow.With(values); err != nil {
		return nil, &failure{code: exitBadFile, err: err}
	}
	return workflow, nil
}

// isTrace tells WfFormat from a workflow file: it is a JSON object, and a
// workflow in JSON has its steps at the top.
func isTrace(data []byte) bool {
	if !bytes.HasPrefix(bytes.TrimSpace(data), []byte("{")) {
		return false
	}
	var top struct{ Steps json.RawMessage }
	return json.Unmarshal(data, &top) != nil || top.Steps == nil
}

// inspect tells what is in a workflow, and fails where an input has no files.
func inspect(workflow *flow.Workflow, file, folder string) (checkedObject, error) {
	checked := checkedObject{
		File: file, Workflow: workflow.Name, About: workflow.About, Steps: workflow.Steps(),
		Inputs: []checkedInput{}, Parameters: []parameterObject{},
	}
	needed := false
	for _, p := range workflow.Parameters {
		checked.Parameters = append(checked.Parameters, parameterObject(p))
		needed = needed || p.Required
	}
	var missing yamlfile.Problems
	for _, input := range workflow.Inputs {
		count := len(input.Sizes)
		for _, glob := range localGlobs(input) {
			found, _ := feed.Glob(folder, glob) // inputProblems tells
			count += len(found)
		}
		checked.Inputs = append(checked.Inputs, checkedInput{Name: input.Name, Files: count, Watched: comesLater(input)})
		for _, p := range inputProblems(input, folder) {
			if !needed || count > 0 {
				p.File, p.Line, p.Column = file, input.Line, 1
				missing = append(missing, p)
			}
		}
	}
	if len(missing) > 0 {
		return checked, missing
	}
	return checked, nil
}

// localGlobs are the patterns of files on this machine.
func localGlobs(input *flow.DeclaredInput) []string {
	return slices.DeleteFunc(slices.Clone(input.Globs), flow.IsURL)
}

func comesLater(input *flow.DeclaredInput) bool { return input.Watch || input.URLList != "" }

// inputProblems says which patterns of an input match no files.
func inputProblems(input *flow.DeclaredInput, folder string) (problems []yamlfile.Problem) {
	add := func(instead, format string, values ...any) {
		problems = append(problems, yamlfile.Problem{What: fmt.Sprintf("input %q: ", input.Name) + fmt.Sprintf(format, values...), Instead: instead})
	}
	for i, glob := range input.Globs {
		if flow.IsURL(glob) {
			continue // a run asks the server
		}
		found, err := feed.Glob(folder, glob)
		switch path := feed.OnlyFolders(found); {
		case err != nil:
			add("permit that, or write a pattern that leaves the folder out", "%v", err)
		case comesLater(input) || len(input.Sizes) > 0:
		case len(found) == 0 && input.MayBeEmpty:
		case len(found) == 0:
			says, instead, _ := strings.Cut(feed.NothingMatches(folder, glob, displayPath(inFolder(folder, input.Patterns[i]))).Error(), "; ")
			add(cmp.Or(instead, "name files that are there, or watch the folder if they come later"), "%s", says)
		case path != "" && !strings.HasSuffix(glob, "/"):
			add(feed.InsteadOfFolder(input.Patterns[i]), "%s is a folder", displayPath(path))
		}
	}
	for _, err := range misnamed(input, folder) {
		says, instead, _ := strings.Cut(err.Error(), "; ")
		add(cmp.Or(instead, "give the file another name, or the input another `as`"), "%s", says)
	}
	if input.URLList != "" {
		if path := inFolder(folder, input.URLList); isFolder(path) {
			add("name a file with a URL or path a line", "%s is a folder", displayPath(path))
		}
	}
	if _, err := feed.ReadCatalog(folder, input.Catalog); err != nil {
		add("name a storage.xml or storage.json, and one of its protocols", "%v", err)
	}
	return problems
}

// misnamed finds files of which no logical name can be told.
func misnamed(input *flow.DeclaredInput, folder string) (problems []error) {
	for _, glob := range localGlobs(input) {
		found, _ := feed.Glob(folder, glob) // the caller tells why not
		for _, path := range found {
			if _, _, err := input.LFN(feed.AsWritten(folder, glob, path)); err != nil && len(problems) < maxMisnamed {
				problems = append(problems, err)
			}
		}
	}
	return problems
}

// maxMisnamed bounds the files of an input that check names.
const maxMisnamed = 5

func isFolder(path string) bool {
	info, err := os.Stat(path)
	return err == nil && info.IsDir()
}

func inFolder(folder, path string) string {
	if filepath.IsAbs(path) {
		return path
	}
	return filepath.Join(folder, path)
}

func (c *console) printChecked(checked checkedObject) {
	files := 0
	for _, input := range checked.Inputs {
		files += input.Files
	}
	fmt.Fprintf(c.out, "%s: workflow %s is in order: %s, %s, %s now\n", checked.File, checked.Workflow,
		quantity.Count(int64(len(checked.Steps)), "step"), quantity.Count(int64(len(checked.Inputs)), "input"), quantity.Count(int64(files), "file"))
	for _, p := range checked.Parameters {
		if p.Required {
			fmt.Fprintf(c.out, "  needs --set %s=VALUE\n", p.Name)
		}
	}
}
