package cli

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/spf13/cobra"

	"fairway/internal/cli/console"
	"fairway/internal/cli/look"
	"fairway/internal/cli/screen"
	"fairway/internal/flow/draft"
	"fairway/internal/flow/workflow"
	"fairway/internal/quantity"
	"fairway/internal/wfformat"
)

func (c *commands) initCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "init FILES...",
		Short: "Make a workflow file for files that are there",
		Long: `Make a workflow.yaml in this folder (or that of -C) for FILES. Files of one folder
with the same ending become one input, with the placeholder {sample} for what
differs; files in pairs (..._R1, ..._R2, or ..._1, ..._2) become two. Each input has a
step that counts bytes: put your command in its place. The file can be checked and
run as it is. A file that is there is not replaced.`,
		Example: "  fairway init reads/*.fq.gz genome.fa\n  fairway check\n  fairway run",
		Args:    console.Takes(1, console.AnyNumber, "FILE"),
		RunE: func(_ *cobra.Command, arguments []string) error {
			file := filepath.Join(c.Dir, console.DefaultFile)
			folder, err := filepath.Abs(filepath.Dir(file))
			if err != nil {
				return err
			}
			shown, err := shownFiles(folder, arguments)
			if err != nil {
				return err
			}
			text := draft.Workflow(folder, shown)
			if _, err := wfformat.ParseEither(file, text, workflow.Scales{}); err != nil {
				return console.Fail(console.ExitUsage, "write the workflow by hand", "these names cannot be made a workflow: %w",
					err)
			}
			err = look.WriteNew(file, func(out io.Writer) error { _, err := out.Write(text); return err })
			if errors.Is(err, fs.ErrExist) {
				return console.Fail(console.ExitUsage, "move it away first", "there is a %s already", screen.DisplayPath(file))
			}
			if err != nil {
				return err
			}
			return c.Answer(initialised{file, len(shown)}, func() {
				fmt.Fprintf(c.Out, "made %s for %s: replace its commands, then `fairway check` and `fairway run`\n",
					screen.DisplayPath(file), quantity.Count(int64(len(shown)), "file"))
			})
		},
	}
}

type initialised struct {
	File  string `json:"file"`
	Files int    `json:"files"`
}

// unfit are characters that mean something in a pattern or in the command of a step.
const unfit = "*?{}[]\"$`\\'"

func shownFiles(folder string, arguments []string) (files []string, err error) {
	for _, argument := range arguments {
		info, err := os.Stat(argument)
		switch {
		case errors.Is(err, fs.ErrNotExist):
			return nil, console.Fail(console.ExitUsage, "name files that are there", "there is no file %s", argument)
		case err != nil:
			return nil, err
		case !info.Mode().IsRegular():
			return nil, console.Fail(console.ExitUsage, "name files, as with "+filepath.Join(argument, "*"), "%s is no file",
				argument)
		}
		file, err := filepath.Abs(argument)
		if err != nil {
			return nil, err
		}
		if within, err := filepath.Rel(folder, file); err == nil && filepath.IsLocal(within) {
			file = within
		}
		bad := strings.ContainsAny(file, unfit) || strings.ContainsFunc(file, unicode.IsControl)
		if bad || !utf8.ValidString(file) {
			return nil, console.Fail(console.ExitUsage, "rename it, or write the workflow by hand",
				"%q has a character in its name that patterns or shells take for something else", argument)
		}
		files = append(files, file)
	}
	slices.Sort(files)
	return slices.Compact(files), nil
}
