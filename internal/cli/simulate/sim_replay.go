package simulate

import (
	"errors"
	"fmt"
	"os"

	"github.com/spf13/cobra"

	"fairway/internal/cli/console"
	"fairway/internal/recording"
)

func (c *commands) simReplayCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "replay FILE",
		Short: "Decide again what a recorded run decided, and compare",
		Long: `Decide again what a run decided that was recorded with run --record: with the
same inputs, at the same instants of virtual time. All decisions (records,
answers to pilots, jobs, publications) must be the same, byte for byte. If not,
replay prints the first difference with its line in FILE, and exits with code 1.`,
		Example: `  fairway run workflow.yaml --record run.jsonl
  fairway sim replay run.jsonl`,
		Args: console.Takes(1, 1, "FILE"),
		RunE: func(_ *cobra.Command, arguments []string) error {
			return c.replay(arguments[0])
		},
	}
}

func (c *commands) replay(name string) error {
	file, err := os.Open(name)
	if err != nil {
		return console.Fail(console.ExitBadFile, "", "cannot read the recording: %w", err)
	}
	defer func() { _ = file.Close() }()
	replayed, err := recording.Replay(file)
	if difference, ok := errors.AsType[*recording.Difference](err); ok {
		return fmt.Errorf("%s: %w", name, difference)
	}
	if err != nil {
		return console.Fail(console.ExitBadFile, "", "%s: %w", name, err)
	}
	return c.Answer(replayed, func() {
		fmt.Fprintf(c.Out, "%d steps of dispatch and %d of flow: the same effects, byte for byte\n", replayed.Dispatch,
			replayed.Flow)
		if replayed.Cut != "" {
			fmt.Fprintf(c.Out, "the recording ends before the run: %s\n", replayed.Cut)
		}
	})
}
