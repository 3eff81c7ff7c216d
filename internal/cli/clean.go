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

	"fairway/internal/quantity"
	"fairway/internal/server/folder"
	"fairway/internal/server/publish"
)

type cleanedObject struct {
	Removed []string `json:"removed"`
	Left    []string `json:"left"` // what Fairway has not put there, or could not remove
	Bytes   int64    `json:"bytes"`
}

func (c *console) cleanCommand() *cobra.Command {
	var results bool
	command := &cobra.Command{
		Use:   "clean",
		Short: "Remove the state of a finished run",
		Long: `Remove the state of this folder, or of the one that -C names: records, caches,
sandboxes, logs and stored files. Published results stay unless you give --results
(later it is not known any more which files these are), files of others always. The next run starts from the beginning. Clean names what
it cannot remove, and ends with 1. It is refused while a run is under way.`,
		Example: "  fairway clean\n  fairway -C examples/lambda clean --results",
		Args:    noArgument,
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
func (c *console) folderItself() (string, error) {
	dir, err := givenFolder(cmp.Or(c.dir, "."))
	if err != nil {
		return "", err
	}
	if hasState(dir) {
		return dir, folder.CheckOwner(dir)
	}
	if above, err := c.workflowFolder(); err == nil && hasState(above) {
		return "", fail(exitNoState, fmt.Sprintf("if you mean that one: fairway -C %s clean", displayPath(above)),
			"no workflow was run in %s, but in %s above it", folderText(dir), displayPath(above))
	}
	return dir, noState(dir)
}

// withoutState is the error where results are to go, and nothing is known any more of whose they are.
func withoutState(err error, dir string) error {
	known, ok := errors.AsType[*failure](err)
	if !ok || known.code != exitNoState || dir == "" {
		return err
	}
	if info, look := os.Stat(filepath.Join(dir, folder.ResultsFolder)); look != nil || !info.IsDir() {
		return err
	}
	return fail(exitNoState, "remove what you do not need by hand", "no workflow was run in %s, or its state was "+
		"removed: which files of %s/ Fairway made is not known", folderText(dir), folder.ResultsFolder)
}

func (c *console) clean(ctx context.Context, dir string, results bool) error {
	if connection := runningIn(ctx, dir); connection != nil {
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
	_ = c.answer(object, func() {
		for _, path := range cleaned.Removed {
			fmt.Fprintf(c.out, "removed %s\n", oneLine(displayPath(path)))
		}
		for _, what := range cleaned.Left {
			fmt.Fprintf(c.out, "left %s\n", oneLine(displayPath(what)))
		}
		fmt.Fprintf(c.out, "%s freed\n", quantity.Bytes(cleaned.Bytes))
		if _, err := os.Stat(filepath.Join(dir, folder.ResultsFolder)); err == nil && !results {
			fmt.Fprintf(c.out, "%s/ stays; from now on its files are yours, and `fairway clean --results` does not know them\n",
				folder.ResultsFolder)
		}
	})
	if cleaned.Failed > 0 {
		return quietly(exitFailed)
	}
	return nil
}

func stillRunning(folder string) error {
	return fail(exitRunning, "end it with `fairway stop` first", "a run is under way in %s", folderText(folder))
}
