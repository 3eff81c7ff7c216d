package cli_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"
)

const lateUrgent = `workflow: late
parameters: {here: null}
inputs: {late: {watch: "in/{x}", as: "late/{x}"}}
steps:
  work:
    times: 80
    writes: w/{number}
    command: if [ $number = 8 ]; then touch "$here/in/a"; fi; sleep 0.25; echo > "$out"
  urgent:
    each: late/{x}
    writes: u/{x}
    priority: 9
    retry: {attempts: 1}
    command: exit 3                      # which ends the run
`

// A job of a high priority whose input comes while eighty others run and wait, at real pilots, is among
// the next to begin: behind those at most that its pilots begin at that moment.
func TestALateJobOfHighPriorityIsAmongTheNext(t *testing.T) {
	for _, pilots := range []int{1, 2} {
		t.Run(fmt.Sprintf("%d pilots", pilots), func(t *testing.T) {
			t.Parallel()
			folder := t.TempDir()
			if err := os.Mkdir(filepath.Join(folder, "in"), 0o755); err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(filepath.Join(folder, "workflow.yaml"), []byte(lateUrgent), 0o600); err != nil {
				t.Fatal(err)
			}
			out, err := fairwayIn(folder, "run", "workflow.yaml", "--pilots", fmt.Sprint(pilots), "--set", "here="+folder)
			if exit, ok := errors.AsType[*exec.ExitError](err); !ok || exit.ExitCode() != 1 {
				t.Fatalf("%v\n%s", err, out)
			}
			between, begun := begunBefore(t, folder, "urgent/a")
			t.Logf("%d jobs began between, %d in all", between, begun)
			if most := 4 * pilots; between > most {
				t.Errorf("%d jobs began after it was ready and before it, of %d; at most %d", between, begun, most)
			}
		})
	}
}

func fairwayIn(folder string, arguments ...string) ([]byte, error) {
	c := exec.CommandContext(context.Background(), fairway, arguments...)
	c.Dir = folder
	return c.CombinedOutput()
}

// begunBefore counts the jobs that began after one was submitted, and before it began, and all
// that began.
func begunBefore(t *testing.T, folder, name string) (between, begun int) {
	t.Helper()
	text, err := fairwayIn(folder, "jobs", "--limit", "1000", "--json")
	if err != nil {
		t.Fatalf("%v\n%s", err, text)
	}
	var list struct {
		Jobs []struct {
			Name               string
			Submitted, Started time.Time
		}
	}
	if err := json.Unmarshal(text, &list); err != nil {
		t.Fatalf("%v\n%s", err, text)
	}
	var from, to time.Time
	for _, job := range list.Jobs {
		if job.Name == name {
			from, to = job.Submitted, job.Started
		}
	}
	if from.IsZero() || to.IsZero() {
		t.Fatalf("job %s did not begin:\n%s", name, text)
	}
	for _, job := range list.Jobs {
		if !job.Started.IsZero() {
			begun++
		}
		if job.Started.After(from) && job.Started.Before(to) {
			between++
		}
	}
	return between, begun
}
