//go:build linux

package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"

	"fairway/internal/cli/console"
	"fairway/internal/cli/screen"
	"fairway/internal/quantity"
	"fairway/internal/server/folder"
	"fairway/internal/server/publish"
)

type cleanedObject struct {
	Removed []string `json:"removed"`
	Left    []string `json:"left"` // what Fairway has not put there, or could not remove
	Bytes   int64    `json:"bytes"`
}

func (c *commands) cleanCommand() *cobra.Command {
	var results bool
	command := &cobra.Command{
		Use:   "clean",
		Short: "Remove the state of a finished run",
		Long: `Remove the state of this folder, or of the one that -C names: records, caches,
sandboxes, logs and stored files. Published results stay unless you give --results
(later it is not known any more which files these are),
	files of others always. The next run starts from the beginning. Clean names what
it cannot remove, and ends with 1. It is refused while a run is under way.`,
		Example: "  fairway clean\n  fairway -C examples/lambda clean --results",
		Args:    console.NoArgument,
		RunE: func(command *cobra.Command, _ []string) error {
			folder, err := c.folderItself()
			if results && err != nil {
				return withoutState(err, folder)
			}
			if err != nil {
				return err
			}
			return c.clean(command.Context(), folder, results)
		},
	}
	command.Flags().BoolVar(&results, "results", false, "remove the published results too")
	return command
}

// folderItself is the folder whose state is to be removed: never one above it.
func (c *commands) folderItself() (string, error) {
	dir, err := console.GivenFolder(cmp.Or(c.Dir, "."))
	if err != nil {
		return "", err
	}
	if console.HasState(dir) {
		return dir, folder.CheckOwner(dir)
	}
	if above, err := c.WorkflowFolder(); err == nil && console.HasState(above) {
		return "", console.Fail(console.ExitNoState, fmt.Sprintf("if you mean that one: fairway -C %s clean",
			screen.DisplayPath(above)),
			"no workflow was run in %s, but in %s above it", console.FolderText(dir), screen.DisplayPath(above))
	}
	return dir, console.NoState(dir)
}

// withoutState is the error where results are to go, and nothing is known any more of whose they are.
func withoutState(err error, dir string) error {
	known, ok := errors.AsType[*console.Failure](err)
	if !ok || known.Code != console.ExitNoState || dir == "" {
		return err
	}
	if info, look := os.Stat(filepath.Join(dir, folder.ResultsFolder)); look != nil || !info.IsDir() {
		return err
	}
	return console.Fail(console.ExitNoState, "remove what you do not need by hand",
		"no workflow was run in %s, or its state was "+
			"removed: which files of %s/ Fairway made is not known", console.FolderText(dir), folder.ResultsFolder)
}

func (c *commands) clean(ctx context.Context, dir string, results bool) error {
	if connection := console.RunningIn(ctx, dir); connection != nil {
		connection.Close()
		return stillRunning(dir)
	}
	if err := refuseSurvivors(ctx, dir); err != nil {
		return err
	}
	if err := refuseFarServer(dir); err != nil {
		return err
	}
	cleaned, err := folder.Clean(dir, func(l folder.Layout, cleaned *folder.Cleaned) error {
		if results {
			if err := publish.Clean(ctx, l, cleaned); err != nil {
				return err
			}
		}
		if err := publish.CleanFences(ctx, l, cleaned); err != nil {
			return err
		}
		return publish.CleanStores(ctx, l, cleaned)
	})
	if _, running := errors.AsType[*folder.RunningError](err); running {
		return stillRunning(dir)
	}
	if err != nil {
		return fmt.Errorf("cleaning: %w", err)
	}
	object := cleanedObject{append([]string{}, cleaned.Removed...), append([]string{}, cleaned.Left...), cleaned.Bytes}
	_ = c.Answer(object, func() {
		for _, path := range cleaned.Removed {
			fmt.Fprintf(c.Out, "removed %s\n", screen.OneLine(screen.DisplayPath(path)))
		}
		for _, what := range cleaned.Left {
			fmt.Fprintf(c.Out, "left %s\n", screen.OneLine(screen.DisplayPath(what)))
		}
		fmt.Fprintf(c.Out, "%s freed\n", quantity.Bytes(cleaned.Bytes))
		if _, err := os.Stat(filepath.Join(dir, folder.ResultsFolder)); err == nil && !results {
			fmt.Fprintf(c.Out, "%s/ stays; from now on its files are yours, and `fairway clean --results` does not know them\n",
				folder.ResultsFolder)
		}
	})
	if cleaned.Failed > 0 {
		return console.Quietly(console.ExitFailed)
	}
	return nil
}

func stillRunning(folder string) error {
	return console.Fail(console.ExitRunning, "end it with `fairway stop` first",
		"a run is under way in %s", console.FolderText(folder))
}
