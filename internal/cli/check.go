package cli

import (
	"fmt"
	"path/filepath"

	"github.com/spf13/cobra"

	"fairway/internal/cli/console"
	"fairway/internal/cli/survey"
	"fairway/internal/flow/workflow"
	"fairway/internal/quantity"
)

type checkedObject struct {
	File       string            `json:"file"`
	Workflow   string            `json:"workflow"`
	About      string            `json:"about"`
	Steps      []string          `json:"steps"`
	Inputs     []checkedInput    `json:"inputs"`
	Parameters []parameterObject `json:"parameters"`
	Changes    []changeObject    `json:"changes"` // by --fix
	Notes      []string          `json:"notes"`   // what may be wrong, and is allowed
}

type checkedInput struct {
	Name    string   `json:"name"`
	Files   int      `json:"files"` // there now
	Watched bool     `json:"watched"`
	Left    []string `json:"left_alone"` // what stands in a watched folder and can be no file of it
}

type parameterObject struct {
	Name     string `json:"name"`
	Value    string `json:"value"`
	Required bool   `json:"required"`
}

type checkOptions struct {
	parameters map[string]string
	sites      []string
	fix, dry   bool
}

func (c *commands) checkCommand() *cobra.Command {
	o := checkOptions{}
	command := &cobra.Command{
		Use:   "check [FILE]",
		Short: "Check a workflow file, and mend it",
		Long: `Check a workflow file (default: workflow.yaml), and run nothing. Fairway checks
grammar and names, that the steps fix the order of the readers and writers of each
file, that a site has what steps need (one of --site; without it what is named under
needs: and is no limit), that the inputs are there, and the names of outputs of the jobs that the files
of this machine would make. It reports all problems at once. A FILE named sites.yaml
is checked as a file of sites.

With --fix it first mends what has one certain answer in the file and in sites.yaml
beside it: misspelt keys, keys of other systems that have another name here, values
that lack quotes, units that are spelled out, names of variables in commands. It
prints the difference, changes nothing else, and then checks what is left. With
--dry-run it prints the difference, and ends.`,
		Example: `  fairway check workflow.yaml
  fairway check workflow.yaml --set reads=/data --json
  fairway check workflow.yaml --fix --dry-run`,
		Args:              console.MaybeFile,
		ValidArgsFunction: console.WorkflowFiles,
		RunE:              func(_ *cobra.Command, arguments []string) error { return c.check(arguments, &o) },
	}
	flags := command.Flags()
	c.ParametersFlag(command, &o.parameters)
	flags.StringArrayVar(&o.sites, "site", nil, "check that this `site`, or another one of those named, could "+
		"run each step (may be repeated)")
	flags.BoolVar(&o.fix, "fix", false, "mend what has one certain answer")
	flags.BoolVar(&o.dry, "dry-run", false, "with --fix: print what it would change, change nothing, and end")
	return command
}

func (c *commands) check(arguments []string, o *checkOptions) error {
	if o.dry && !o.fix {
		return console.Fail(console.ExitUsage, "add --fix; check alone changes nothing", "--dry-run is for --fix")
	}
	file, _, err := c.FileAndFolder(arguments)
	if err != nil {
		return err
	}
	folder, err := filepath.Abs(filepath.Dir(file))
	if err != nil {
		return err
	}
	changes := []changeObject{}
	if o.fix {
		for _, f := range mendable(file, folder) {
			made, err := c.mend(f, o.dry)
			if err != nil {
				return err
			}
			changes = append(changes, made...)
		}
	}
	if o.dry {
		return c.Answer(checkedSites{file, changes}, func() {
			fmt.Fprintf(c.Err, "fairway: %s would be made\n", quantity.Count(int64(len(changes)), "change"))
		})
	}
	if isSiteFile(file) {
		return c.checkSiteFile(file, changes, o)
	}
	checked, err := c.checkWorkflow(file, folder, o.parameters, o.sites)
	if err != nil {
		return mendableBy(err, o)
	}
	checked.Changes = changes
	return c.Answer(checked, func() { c.printChecked(checked) })
}

func (c *commands) checkWorkflow(
	file, folder string, values map[string]string, sites []string,
) (checked checkedObject, err error) {
	work, err := console.ReadWorkflow(file, values, workflow.Scales{})
	if err != nil {
		return checked, err
	}
	listed, err := survey.NewListing(folder)
	if err != nil {
		return checked, err
	}
	found, err := survey.Inputs(work, file, folder, listed, true)
	if err != nil {
		return checked, err
	}
	checked = checkedObject{
		File: file, Workflow: work.Name, About: work.About, Steps: work.StepNames(), Inputs: []checkedInput{},
		Parameters: []parameterObject{}, Notes: append([]string{}, work.Unnamed()...),
	}
	for _, p := range work.Parameters {
		checked.Parameters = append(checked.Parameters, parameterObject(p))
	}
	for i := range found {
		in := found[i].Declared
		checked.Inputs = append(checked.Inputs, checkedInput{
			Name: in.Name, Files: found[i].Files + len(in.Sizes), Watched: in.IsOpen(),
			Left: append([]string{}, found[i].Left...),
		})
	}
	if err := checkNeeds(work, folder, sites); err != nil {
		return checked, err
	}
	if err := survey.RefusedJobs(work, file, found); err != nil {
		return checked, &console.Failure{Code: console.ExitBadFile, Err: err}
	}
	if survey.Unsurveyed != "" && len(work.Inputs) > 0 {
		fmt.Fprintln(c.Err, "fairway: "+survey.Unsurveyed)
	}
	return checked, nil
}

func (c *commands) printChecked(checked checkedObject) {
	files := 0
	for _, input := range checked.Inputs {
		files += input.Files
	}
	fmt.Fprintf(c.Out, "%s: workflow %s is in order: %s, %s, %s now\n", checked.File, checked.Workflow,
		quantity.Count(int64(len(checked.Steps)), "step"), quantity.Count(int64(len(checked.Inputs)), "input"),
		quantity.Count(int64(files), "file"))
	for _, note := range checked.Notes {
		fmt.Fprintf(c.Out, "  note: %s\n", note)
	}
	for _, input := range checked.Inputs {
		for _, left := range input.Left {
			fmt.Fprintf(c.Out, "  the input %s leaves this alone: %s\n", input.Name, left)
		}
	}
	for _, p := range checked.Parameters {
		if p.Required {
			fmt.Fprintf(c.Out, "  needs --set %s=VALUE\n", p.Name)
		}
	}
}
