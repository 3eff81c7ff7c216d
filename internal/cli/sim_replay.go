package cli

import (
	"errors"
	"fmt"
	"os"

	"github.com/spf13/cobra"

	"fairway/internal/recording"
)

func (c *console) simReplayCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "replay FILE",
		Short: "Decide again what a recorded run decided, and compare",
		Long: `Step the cores of a run that was recorded with run --record: under virtual time,
with the same inputs at the same instants. Whatever they decide (records,
answers to pilots, jobs, publications) must be the same, byte for byte. The
first difference is printed with the line of FILE, and the exit code is 1.`,
		Example: `  fairway run workflow.yaml --record run.jsonl
  fairway sim replay run.jsonl`,
		Args: takes(1, 1, "FILE"),
		RunE: func(_ *cobra.Command, arguments []string) error {
			return c.replay(arguments[0])
		},
	}
}

func (c *console) replay(name string) error {
	file, err := os.Open(name)
	if err != nil {
		return fail(exitBadFile, "", "cannot read the recording: %w", err)
	}
	defer func() { _ = file.Close() }()
	replayed, err := recording.Replay(file)
	if difference, ok := errors.AsType[*recording.Difference](err); ok {
		return fmt.Errorf("%s: %w", name, difference)
	}
	if err != nil {
		return fail(exitBadFile, "", "%s: %w", name, err)
	}
	c.printReplayed(replayed)
	return nil
}

func (c *console) printReplayed(replayed recording.Replayed) {
	if c.json {
		c.printJSON(replayed)
		return
	}
	fmt.Fprintf(c.out, "%d steps of dispatch and %d of flow: the same effects, byte for byte\n", replayed.Dispatch, replayed.Flow)
	if replayed.Cut != "" {
		fmt.Fprintf(c.out, "the recording ends before the run: %s\n", replayed.Cut)
	}
}
