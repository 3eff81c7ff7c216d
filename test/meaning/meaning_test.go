package meaning

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"fairway/lib/sched"
	"fairway/lib/seed"
	"fairway/test/program"
)

// fairway is the path of the binary under test.
var fairway string

func TestMain(m *testing.M) { program.Main(m, &fairway) }

// enough is after how long the short form begins no further workflow.
const enough = 10 * time.Second

// patience is how long one run may take before it counts as hung.
const patience = 2 * time.Minute

// longest is the latest moment at which a run is killed.
const longest = 400 * time.Millisecond

// TestMeaning: see the package comment. The seed of a workflow that fails begins with that one
// when it is given in FAIRWAY_SEED.
func TestMeaning(t *testing.T) {
	workflows, short := 5, os.Getenv(seed.Variable) == ""
	if os.Getenv("FAIRWAY_SOAK") != "" {
		workflows, short = 200, false
	}
	first, began := seed.Of(t), time.Now()
	for n := range workflows {
		if short && n > 0 && time.Since(began) > enough {
			t.Logf("%d workflows in %v", n, enough)
			return
		}
		one(t, first+uint64(n))
	}
}

func one(t *testing.T, number uint64) {
	w := newWorkflow(rand.New(rand.NewPCG(number, 0)))
	folder := t.TempDir()
	story := []string{fmt.Sprintf("%s=%d", seed.Variable, number)}
	fail := func(format string, arguments ...any) {
		t.Helper()
		t.Fatalf("%s\nafter:\n  %s\nfiles: %q\n%s", fmt.Sprintf(format, arguments...), strings.Join(story, "\n  "),
			slices.Sorted(maps.Keys(w.tree())), w.text())
	}
	for round := range 1 + w.random.IntN(3) {
		for range min(round, 1) * (1 + w.random.IntN(2)) {
			story = append(story, w.edit())
		}
		writeTree(t, folder, w.tree())
		if w.random.IntN(2) == 0 {
			moment := time.Duration(w.random.Int64N(int64(longest)))
			story = append(story, fmt.Sprint("kill a run after ", moment))
			_, _ = run(t, folder, moment)
		}
		flags := []string{
			"--cache", pick(w.random, []string{"auto", "host", "pilot", "none"}), "--pilots", fmt.Sprint(1 + w.random.IntN(3)),
		}
		story = append(story, fmt.Sprint("run ", flags))
		if said, err := run(t, folder, patience, flags...); err != nil {
			fail("the run failed: %v\n%s", err, said)
		}
		got, want := readTree(t, filepath.Join(folder, "results")), w.meaning()
		for _, path := range slices.Sorted(maps.Keys(want)) {
			if content, ok := got[path]; !ok {
				fail("there is no result %q", path)
			} else if content != want[path] {
				fail("the result %q is\n%s\nand not\n%s", path, content, want[path])
			}
			delete(got, path)
		}
		if len(got) > 0 {
			fail("there are other results: %q", slices.Sorted(maps.Keys(got)))
		}
	}
}

// run lets the program run, and kills it after some time.
func run(t *testing.T, folder string, limit time.Duration, flags ...string) (said string, err error) {
	t.Helper()
	cmd := exec.Command(fairway, append([]string{"run"}, flags...)...)
	cmd.Dir = folder
	var output strings.Builder
	cmd.Stdout, cmd.Stderr = &output, &output
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	ended := make(chan struct{})
	go func() {
		err = cmd.Wait()
		close(ended)
	}()
	ctx, cancel := context.WithTimeout(context.Background(), limit)
	defer cancel()
	if _, waited := sched.Receive(ctx, sched.Default(), ended); !errors.Is(waited, sched.ErrChannelClosed) {
		_ = cmd.Process.Kill()
		<-ended
	}
	return output.String(), err
}

// writeTree makes files of inputs what they are to be, and leaves those alone that are so.
func writeTree(t *testing.T, folder string, tree map[string]string) {
	t.Helper()
	before := readTree(t, filepath.Join(folder, "files"))
	for path := range before {
		if _, ok := tree["files/"+path]; !ok {
			if err := os.Remove(filepath.Join(folder, "files", path)); err != nil {
				t.Fatal(err)
			}
		}
	}
	for path, content := range tree {
		if was, ok := before[strings.TrimPrefix(path, "files/")]; ok && was == content {
			continue
		}
		at := filepath.Join(folder, path)
		err := errors.Join(os.MkdirAll(filepath.Dir(at), 0o755), os.WriteFile(at, []byte(content), 0o644))
		if err != nil {
			t.Fatal(err)
		}
	}
}

// readTree has the files beneath a folder, by path.
func readTree(t *testing.T, folder string) map[string]string {
	t.Helper()
	tree := map[string]string{}
	err := filepath.WalkDir(folder, func(path string, entry fs.DirEntry, err error) error {
		if errors.Is(err, fs.ErrNotExist) || err == nil && entry.IsDir() {
			return nil
		}
		if err != nil {
			return err
		}
		content, err := os.ReadFile(path)
		name, _ := filepath.Rel(folder, path)
		tree[name] = string(content)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return tree
}
