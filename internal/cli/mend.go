package cli

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/rogpeppe/go-internal/diff"

	"fairway/internal/cli/console"
	"fairway/internal/cli/screen"
	"fairway/internal/disk"
	"fairway/internal/flow/workflow"
	"fairway/internal/quantity"
	"fairway/internal/wfformat"
	"fairway/internal/yamlfile"
)

type changeObject struct {
	File   string `json:"file"`
	Line   int    `json:"line"`
	Column int    `json:"column"`
	Old    string `json:"old"`
	New    string `json:"new"`
}

// mend changes what has one certain answer in a workflow or a file of sites, prints the
// difference, and replaces the file unless it is dry.
func (c *commands) mend(file string, dry bool) ([]changeObject, error) {
	data, err := os.ReadFile(file)
	if err != nil {
		return nil, console.Fail(console.ExitBadFile, "", "cannot read %s: %w", screen.DisplayPath(file), err)
	}
	mended, made := yamlfile.Mend(data, func(data []byte) yamlfile.Problems { return problemsOf(file, data) })
	if len(made) == 0 {
		return []changeObject{}, nil
	}
	name := screen.DisplayPath(file)
	if !c.JSON {
		_, _ = c.Out.Write(diff.Diff(name, data, name+" (mended)", mended))
	}
	changes := make([]changeObject, 0, len(made))
	for _, e := range made {
		changes = append(changes, changeObject{name, e.Line, e.Column, e.Old, e.New})
	}
	if dry {
		return changes, nil
	}
	if err := replaceWritten(file, data, mended); err != nil {
		return nil, err
	}
	fmt.Fprintf(c.Err, "fairway: %s: %s made\n", name, quantity.Count(int64(len(made)), "change"))
	return changes, nil
}

// replaceWritten replaces a file that people write, in the place where it is, unless somebody has
// changed it meanwhile.
func replaceWritten(file string, was, is []byte) error {
	path, err := filepath.EvalSymlinks(file)
	if err != nil {
		return err
	}
	info, err := os.Stat(path)
	if err != nil {
		return err
	}
	now, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	if !bytes.Equal(now, was) {
		return console.Fail(console.ExitFailed, "call this again", "%s was changed meanwhile, and stays as it is",
			screen.DisplayPath(file))
	}
	if err := disk.Replace(path, is, info.Mode().Perm()); err != nil {
		return fmt.Errorf("%s is not mended: %w", screen.DisplayPath(file), err)
	}
	return nil
}

func problemsOf(file string, data []byte) yamlfile.Problems {
	var err error
	if isSiteFile(file) {
		err = checkSites(file, data)
	} else {
		_, err = wfformat.ParseEither(file, data, workflow.Scales{})
	}
	problems, _ := errors.AsType[yamlfile.Problems](err)
	return problems
}

func isSiteFile(file string) bool { return filepath.Base(file) == sitesFile }

const sitesFile = "sites.yaml"

// mendableBy adds to an error how problems of it can be mended, if some can and that was not asked for.
func mendableBy(err error, o *checkOptions) error {
	problems, _ := errors.AsType[yamlfile.Problems](err)
	certain := int64(0)
	for _, p := range problems {
		if p.Fix != (yamlfile.Edit{}) {
			certain++
		}
	}
	if certain == 0 || o.fix {
		return err
	}
	hint := fmt.Sprintf("--fix mends %d of them or more; with --dry-run it only prints what", certain)
	return &console.Failure{Code: console.ExitBadFile, Err: err, Hint: hint}
}

type checkedSites struct {
	File    string         `json:"file"`
	Changes []changeObject `json:"changes"`
}

func (c *commands) checkSiteFile(file string, changes []changeObject, o *checkOptions) error {
	data, err := os.ReadFile(file)
	if err != nil {
		return console.Fail(console.ExitBadFile, "", "cannot read %s: %w", screen.DisplayPath(file), err)
	}
	if err := checkSites(file, data); err != nil {
		return mendableBy(&console.Failure{Code: console.ExitBadFile, Err: err}, o)
	}
	return c.Answer(checkedSites{file, changes}, func() {
		fmt.Fprintf(c.Out, "%s: the sites are in order\n", screen.DisplayPath(file))
	})
}

func mendable(file, folder string) []string {
	beside := filepath.Join(folder, sitesFile)
	if _, err := os.Stat(beside); err != nil || isSiteFile(file) {
		return []string{file}
	}
	return []string{file, beside}
}
