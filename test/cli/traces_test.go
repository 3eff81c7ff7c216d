package cli_test

import (
	"encoding/json"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"fairway/test/traces"
)

// wfFormat is the part of a record that tells of order. It is read here, and not
// by the code that wrote it.
type wfFormat struct {
	Workflow struct {
		Specification struct {
			Tasks []struct {
				ID      string
				Parents []string
			}
		}
		Execution struct {
			Tasks []struct {
				ID               string
				RuntimeInSeconds json.Number
				ExecutedAt       time.Time
			}
		}
	}
}

// TestTraces runs each trace, without its computing and with small files, and
// looks in the record of that run whether every task was committed and none
// began before all its parents had ended.
func TestTraces(t *testing.T) {
	for _, path := range traces.Files(t) {
		t.Run(strings.TrimSuffix(filepath.Base(path), ".json"), func(t *testing.T) {
			folder := t.TempDir()
			record := filepath.Join(folder, "record.json")
			must(t, fairway, "run", path, "-C", folder, "--time-scale", "0", "--size-scale", "0.00001")
			must(t, fairway, "-C", folder, "export", "-o", record)
			checkRecord(t, parentsIn(readRecord(t, path)), readRecord(t, record))
		})
	}
}

// must runs fairway, which has to succeed.
func must(t *testing.T, fairway string, arguments ...string) {
	t.Helper()
	if out, err := exec.Command(fairway, arguments...).CombinedOutput(); err != nil {
		t.Fatalf("fairway %s: %v\n%s", strings.Join(arguments, " "), err, out)
	}
}

func readRecord(t *testing.T, path string) *wfFormat {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	record := new(wfFormat)
	if err := json.Unmarshal(text, record); err != nil {
		t.Fatalf("%s: %v", path, err)
	}
	return record
}

// parentsIn gives the parents of each task.
func parentsIn(record *wfFormat) map[string][]string {
	parents := map[string][]string{}
	for _, task := range record.Workflow.Specification.Tasks {
		parents[task.ID] = task.Parents
	}
	return parents
}

// checkRecord compares a record with the parents that its trace demands.
func checkRecord(t *testing.T, parents map[string][]string, record *wfFormat) {
	t.Helper()
	begun, ended := map[string]time.Time{}, map[string]time.Time{}
	for _, task := range record.Workflow.Execution.Tasks {
		took, err := time.ParseDuration(task.RuntimeInSeconds.String() + "s")
		if err != nil {
			t.Fatal(err)
		}
		begun[task.ID], ended[task.ID] = task.ExecutedAt, task.ExecutedAt.Add(took)
	}
	if got, want := slices.Sorted(maps.Keys(begun)), slices.Sorted(maps.Keys(parents)); !slices.Equal(got, want) {
		t.Fatalf("%d tasks were committed, and the trace has %d:\n%q\n%q", len(got), len(want), got, want)
	}
	for child, all := range parents {
		for _, parent := range all {
			if begun[child].Before(ended[parent]) {
				t.Errorf("%s began at %v, before its parent %s ended at %v", child, begun[child], parent, ended[parent])
			}
		}
	}
}
