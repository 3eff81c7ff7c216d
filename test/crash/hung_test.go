package crash

import (
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"fairway/lib/sched"
	"fairway/test/files"
)

// asked is what people ask of a run, by command line, with what it says at its limit.
var asked = map[string]string{
	"jobs": "has not answered within 1m0s (ListJobs)", "explain slow": "has not answered within 1m0s (Explain)",
	"show slow": "has not answered within 1m0s (ShowJob)", "cancel slow": "has not answered within 1m0s (Cancel)",
	"stop": "has not answered within 1m0s (Stop)", "cache": "has not answered within 1m0s (ListCaches)",
	"logs slow": "has said nothing for 2m0s", "logs -f slow": "has said nothing for 2m0s",
	"run --follow":       "has said nothing for 2m0s",
	"files":              "has not answered within 5m0s (ListFiles)",
	"get quick.txt copy": "has not answered within 5m0s (ListFiles)",
	"retry":              "has not answered within 5m0s (Retry)",
}

// ask runs commands side by side, each of which must fail and say some words.
func ask(t *testing.T, folder string, words func(limit string) []string) {
	t.Helper()
	var group sync.WaitGroup
	for command, limit := range asked {
		group.Go(func() {
			c := exec.CommandContext(t.Context(), fairway, strings.Fields(command)...)
			c.Dir = folder
			said, _ := c.CombinedOutput()
			if code := c.ProcessState.ExitCode(); code != 1 {
				t.Errorf("%s: exit code %d", command, code)
			}
			for _, word := range words(limit) {
				if !strings.Contains(string(said), word) {
					t.Errorf("%s does not say %q:\n%s", command, word, said)
				}
			}
		})
	}
	group.Wait()
	if _, err := os.Lstat(filepath.Join(folder, "copy")); err == nil {
		t.Error("there is a copy of a file of which nobody told")
	}
}

// hungRun starts a run one of whose jobs waits until the test ends. It returns the process
// that is its server.
func hungRun(t *testing.T, folder string, arguments ...string) (server int) {
	t.Helper()
	files.Write(t, filepath.Join(folder, "workflow.yaml"), strings.ReplaceAll(`
workflow: hung
steps:
  quick: {writes: quick.txt, command: echo quick > "$out"}
  slow: {reads: quick.txt, writes: slow.txt, command: 'touch "FOLDER/begun"; cat "FOLDER/go" > "$out"'}
`, "FOLDER", folder))
	if err := syscall.Mkfifo(filepath.Join(folder, "go"), 0o600); err != nil {
		t.Fatal(err)
	}
	run := exec.Command(fairway, append([]string{"run"}, arguments...)...)
	run.Dir = folder
	run.Env = append(os.Environ(), "WORK="+folder)
	var said strings.Builder
	run.Stdout, run.Stderr = &said, &said
	if err := run.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if server != 0 {
			_ = syscall.Kill(server, syscall.SIGCONT)
		}
		hung := time.AfterFunc(patience, func() { _ = run.Process.Kill() })
		defer hung.Stop()
		files.Write(t, filepath.Join(folder, "go"), "on") // which somebody reads
		if err := run.Wait(); err != nil {
			t.Errorf("the run that hung does not go on: %v\n%s", err, said.String())
		}
	})
	wait := sched.FileQuery{
		Path: filepath.Join(folder, "begun"), Until: func(f sched.FileState) bool { return f.Info != nil },
	}
	if _, err := sched.Default().WaitFile(t.Context(), wait); err != nil {
		t.Fatal(err)
	}
	server, err := strconv.Atoi(strings.TrimSpace(files.Read(t, filepath.Join(folder, ".fairway/lock"))))
	if err != nil {
		t.Fatal(err)
	}
	return server
}

// Whoever asks a server that is a batch job, and was stopped, is told so: over TLS it
// takes connections and says nothing.
func TestAStoppedServerThatIsAJobIsTold(t *testing.T) {
	folder := t.TempDir()
	files.Write(t, filepath.Join(folder, "sites.yaml"), nodes)
	server := hungRun(t, folder, "--site", "nodes", "--server", "site")
	if err := syscall.Kill(server, syscall.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	ask(t, folder, func(string) []string {
		return []string{"was stopped (Ctrl-Z or SIGSTOP) and does not answer", fmt.Sprintf("`kill -CONT %d`", server)}
	})
}

// Each command ends at its limit, and says what to do, if the server takes its connection
// and never answers.
func TestServersThatNeverAnswerAreTold(t *testing.T) {
	if os.Getenv("FAIRWAY_SOAK") == "" {
		t.Skip("it waits for the longest limit, 5 minutes; run it with FAIRWAY_SOAK=1")
	}
	folder := t.TempDir()
	server := hungRun(t, folder, "--pilots", "1")
	socket := filepath.Join(folder, ".fairway/socket")
	if err := os.Rename(socket, socket+".aside"); err != nil {
		t.Fatal(err)
	}
	mute, err := net.Listen("unix", socket) // whose queue takes connections
	if err != nil {
		t.Fatal(err)
	}
	ask(t, folder, func(limit string) []string {
		return []string{
			limit, fmt.Sprintf("`kill -KILL %d`, and start `fairway run` again, which goes on from its records", server),
		}
	})
	if err := mute.Close(); err != nil {
		t.Error(err)
	}
	if err := os.Rename(socket+".aside", socket); err != nil {
		t.Error(err)
	}
}
