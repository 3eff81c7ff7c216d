package cli

import (
	"errors"
	"io"
	"strings"
	"testing"

	"fairway/internal/cli/console"
)

// Who watches a run whose server goes away as it is reached is told how the run ended, by its records.
func TestFollowersOfARunThatIsOverAskItsRecords(t *testing.T) {
	folder := t.TempDir()
	t.Chdir(folder)
	if code := execute(t.Context(), allCommands, []string{"exec", "--", "true"}, strings.NewReader(""), io.Discard,
		io.Discard); code != 0 {
		t.Fatal(code)
	}
	c := commandsOf(&console.Console{Err: io.Discard})
	report, err := c.followNext(t.Context(), folder, errors.New("connection refused"))
	if err != nil || !report.GetEnded() || !report.GetSucceeded() {
		t.Error(report, err)
	}
}
