package crash

import (
	"context"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"fairway/lib/sched"
	"fairway/test/files"
)

// nodes is a site whose batch system starts processes of this machine.
const nodes = `
sites:
  nodes:
    system: command
    poll: 200ms
    command:
      submit: [sh, -c, 'setsid sh "$1" >/dev/null 2>&1 & echo "$2 $!" >> "$WORK/submitted"', sh, "{script}", "{name}"]
      status: [sh, -c, 'while read name id; do kill -0 $id 2>/dev/null && echo "$name $id runs"; done < "$WORK/submitted"; true']
      job: '(?m)^(?P<name>\S+) (?P<id>\d+) (?P<state>\S+)$'
      states: {running: [runs]}
      cancel: [sh, -c, 'kill "$1"', sh, "{id}"]
`

// Tokens stand in files that nobody else may read, and nowhere else: in no list of
// processes, script or log, and in nothing that is printed.
func TestTokensStandInPrivateFilesOnly(t *testing.T) {
	folder := t.TempDir()
	files.Write(t, filepath.Join(folder, "sites.yaml"), nodes)
	hungRun(t, folder, "--site", "nodes", "--server", "site")
	tokens, private := map[string]string{}, 0
	holds := regexp.MustCompile(`"token": ?"([^"]+)"`)
	look := func(found func(path, text string, mode fs.FileMode)) {
		t.Helper()
		err := filepath.WalkDir(folder, func(path string, d fs.DirEntry, err error) error {
			if err != nil || !d.Type().IsRegular() {
				return err
			}
			text, err := os.ReadFile(path)
			if info, of := d.Info(); err == nil && of == nil {
				found(path, string(text), info.Mode())
			}
			return nil // some come and go
		})
		if err != nil {
			t.Error(err)
		}
	}
	look(func(path, text string, _ fs.FileMode) {
		if m := holds.FindStringSubmatch(text); m != nil {
			tokens[m[1]] = path
		}
	})
	if len(tokens) < 2 {
		t.Fatalf("those of a pilot and of people are looked for, and found is %v", tokens)
	}
	look(func(path, text string, mode fs.FileMode) {
		for token := range tokens {
			switch kept := filepath.Ext(path) == ".connect" || filepath.Ext(path) == ".term"; {
			case !strings.Contains(text, token):
			case kept && mode.Perm() == 0o600:
				private++
			default:
				t.Errorf("a token is in %s (%v)", path, mode)
			}
		}
	})
	if private < 2 {
		t.Errorf("%d files hold tokens", private)
	}
	lists, _ := filepath.Glob("/proc/[0-9]*/cmdline")
	pilots := 0
	for _, list := range lists {
		text, _ := os.ReadFile(list)
		if strings.Contains(string(text), folder) && strings.Contains(string(text), "--connect") {
			pilots++
		}
		for token := range tokens {
			if strings.Contains(string(text), token) {
				t.Errorf("a token is in the list of processes: %q", text)
			}
		}
	}
	if pilots == 0 {
		t.Error("there is no pilot in the list of processes, so the test looks in the wrong place")
	}
}

// Whoever asks why nothing runs is told which program no node has, and what to do.
func TestAProgramThatNoNodeHasIsNamed(t *testing.T) {
	folder := t.TempDir()
	files.Write(t, filepath.Join(folder, "sites.yaml"), nodes)
	files.Write(t, filepath.Join(folder, "workflow.yaml"), `
workflow: want
steps:
  first: {writes: first, command: echo > "$out"}
  wants: {reads: first, writes: wants, tools: [no-such-program], command: no-such-program > "$out"}
`)
	run := exec.Command(fairway, "run", "--site", "nodes")
	run.Dir, run.Env = folder, append(os.Environ(), "WORK="+folder)
	if err := run.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() {
		_ = run.Process.Signal(os.Interrupt)
		_ = run.Wait()
	}()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	explain := sched.NewStatus(sched.Default(), sched.StatusConfig[string, string]{
		Name: t.Name(), Every: 100 * time.Millisecond, Failures: 1 << 20,
		Query: func(_ context.Context, keys []string) (map[string]string, error) {
			said, _ := exec.Command(fairway, "-C", folder, "explain", "wants").CombinedOutput() // there may be no run yet
			return map[string]string{keys[0]: string(said)}, nil
		},
	})
	answer, err := explain.Wait(ctx, "wants", func(a sched.Answer[string]) bool {
		return strings.Contains(a.Value, "for want of the program no-such-program") &&
			strings.Contains(a.Value, "must be in PATH") &&
			strings.Contains(a.Value, "site nodes has as many pilots as it may have: 1")
	})
	if err != nil {
		t.Errorf("%v:\n%s", err, answer.Value)
	}
}
