package gangs

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"fairway/lib/orwl"
	"fairway/test/program"
)

// adderVariable says that this program is a task of TestLocationsAreSiblingsOfFiles.
const adderVariable = "GANG_TEST_ADDER"

// A step hands a file to a location as its first version, and the last version of the location is a
// file that the next step reads.
const siblings = `workflow: siblings
steps:
  first:
    writes: first.txt
    command: printf 'begin' > "$out"
  add:
    tasks: 2
    reads: first.txt
    writes: last.txt
    command: %s=1 %s
  read:
    reads: last.txt
    writes: read.txt
    command: tr a-z A-Z < "$in" > "$out"
`

const added = 5 // times by each task

// adder is one of two tasks that write to a location in turns: the first one adds a character, and
// the other one.
func adder(ctx context.Context) error {
	m, err := orwl.Join(ctx)
	if err != nil {
		return err
	}
	defer m.Close()
	var text orwl.Resource
	if m.Process() == 0 {
		l, err := orwl.NewFromFile("text", os.Getenv("in"), orwl.StartWith(m.Processes()))
		if err == nil {
			err = m.Serve(ctx, l)
		}
		if err != nil {
			return err
		}
		text = l
	} else {
		if err := m.Serve(ctx); err != nil {
			return err
		}
		if text, err = m.Resource(ctx, "text"); err != nil {
			return err
		}
	}
	var turn orwl.Pair
	last := m.Process() == 0 // it comes second in each round, so what it sees in the end is the last version
	rank := 0
	if last {
		rank = 1
	}
	if err := orwl.Insert(ctx, turn.Writing(text).At(rank)); err != nil {
		return err
	}
	for i := range added {
		if err := turn.Acquire(ctx); err != nil {
			return err
		}
		before, err := turn.ReadMap()
		if err != nil {
			return err
		}
		n := len(before)
		if err := turn.Resize(n + 1); err != nil {
			return err
		}
		data, err := turn.WriteMap()
		if err != nil {
			return err
		}
		data[n] = "yx"[rank]
		release := turn.Release
		if i == added-1 {
			release = turn.Finish
		}
		if err := release(); err != nil {
			return err
		}
	}
	if last {
		err = orwl.WriteFile(ctx, text, os.Getenv("out"))
	}
	return errors.Join(err, m.Finish(ctx))
}

func TestLocationsAreSiblingsOfFiles(t *testing.T) {
	folder := t.TempDir()
	fairway, err := program.Build(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(folder, "workflow.yaml")
	if err := os.WriteFile(path, fmt.Appendf(nil, siblings, adderVariable, self), 0o600); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Minute)
	defer cancel()
	if out, err := exec.CommandContext(ctx, fairway, "run", path, "--pilots", "2").CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	got, err := os.ReadFile(filepath.Join(folder, "results/read.txt"))
	if want := "BEGIN" + strings.Repeat("YX", added); err != nil || string(got) != want {
		t.Errorf("the last step read %q, %v; want %q", got, err, want)
	}
}
