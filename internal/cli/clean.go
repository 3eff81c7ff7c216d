package cli

import (
	"context"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"

	"fairway/internal/quantity"
)

type cleanedObject struct {
	Removed []string `json:"removed"`
	Bytes   int64    `json:"bytes"`
}

func (c *console) cleanCommand() *cobra.Command {
	var results bool
	command := &cobra.Command{
		Use:   "clean",
		Short: "Remove the state of a finished run",
		Long: `Remove the state of the run of this folder: records, caches, sandboxes, logs and
stored files. The published results stay, unless --results is given. The next
run begins anew. It is refused while a run is under way.`,
		Example: "  fairway clean\n  fairway -C examples/lambda clean --results",
		Args:    noArgument,
		RunE: func(command *cobra.Command, _ []string) error {
			folder, err := c.folderWithState()
			if err != nil {
				return err
			}
			remove := []string{filepath.Join(folder, stateFolder)}
			if results {
				remove = append(remove, filepath.Join(folder, "results"))
			}
			return c.clean(command.Context(), folder, remove)
		},
	}
	command.Flags().BoolVar(&results, "results", false, "remove the published results too")
	return command
}

func (c *console) clean(ctx context.Context, folder string, remove []string) error {
	if connection := runningIn(ctx, folder); connection != nil {
		connection.Close()
		return fail(exitRunning, "end it with `fairway stop` first", "a run is under way in %s", folderText(folder))
	}
	if err := refuseSurvivors(ctx, folder); err != nil {
		return err
	}
	cleaned := cleanedObject{Removed: []string{}}
	for _, path := range remove {
		size, err := sizeOf(path)
		if err != nil {
			continue // it is not there
		}
		if err := os.RemoveAll(path); err != nil {
			return fmt.Errorf("cleaning: %w", err)
		}
		cleaned.Bytes += size
		cleaned.Removed = append(cleaned.Removed, path)
	}
	if c.json {
		c.printJSON(cleaned)
		return nil
	}
	for _, path := range cleaned.Removed {
		fmt.Fprintf(c.out, "removed %s\n", displayPath(path))
	}
	fmt.Fprintf(c.out, "%s freed\n", quantity.Bytes(cleaned.Bytes))
	return nil
}

// sizeOf adds up the files below path, linked ones as often as they are linked.
func sizeOf(path string) (int64, error) {
	var size int64
	err := filepath.WalkDir(path, func(_ string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if info, err := entry.Info(); err == nil && info.Mode().IsRegular() {
			size += info.Size()
		}
		return nil
	})
	return size, err
}
