package gangs

import (
	"bytes"
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"fairway/lib/sched"
	"fairway/lib/seed"
	"fairway/test/program"
)

func TestMain(m *testing.M) {
	if released := os.Getenv(memberVariable); released != "" {
		if err := member(released); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	if os.Getenv(adderVariable) != "" {
		if err := adder(context.Background()); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	os.Exit(m.Run())
}

// killsEach is how many tasks are killed of each job.
const killsEach = 2

const workflow = `workflow: ring
steps:
  ring:
    times: %d
    tasks: 3
    writes: ring/{number}
    retry: {attempts: 20, backoff: 10ms}
    command: %s=%s %s
`

// TestKillsOfTasks kills tasks of jobs at any moment. All of the others are ended with them, and what
// the jobs make is what they would have made undisturbed. FAIRWAY_SOAK makes 200 kills.
func TestKillsOfTasks(t *testing.T) {
	jobs := 4
	if os.Getenv("FAIRWAY_SOAK") != "" {
		jobs = 200 / killsEach
	}
	rng := rand.New(rand.NewPCG(seed.Of(t), 0))
	folder, released := t.TempDir(), t.TempDir()
	fairway, err := program.Build(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	text := fmt.Sprintf(workflow, jobs, memberVariable, released, self)
	if err := os.WriteFile(filepath.Join(folder, "workflow.yaml"), []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Minute)
	defer cancel()
	var out bytes.Buffer
	run := exec.CommandContext(ctx, fairway, "run", filepath.Join(folder, "workflow.yaml"), "--pilots", "4")
	run.Stdout, run.Stderr = &out, &out
	if err := run.Start(); err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() { ended <- run.Wait() }()
	killed := killMembers(t, rng, released, jobs, ended)
	if err := <-ended; err != nil {
		t.Fatalf("%v\n%s", err, out.String())
	}
	if killed != jobs*killsEach {
		t.Errorf("%d tasks were killed", killed)
	}
	for i := range jobs {
		made, err := os.ReadFile(filepath.Join(folder, "results/ring", fmt.Sprint(i+1)))
		if err != nil || string(made) != expected(3) {
			t.Errorf("job %d has made %q, want %q: %v", i+1, made, expected(3), err)
		}
	}
}

// killMembers kills tasks, killsEach of each job, and then lets the job end. Each task that is killed
// is of another attempt of the job.
func killMembers(t *testing.T, rng *rand.Rand, released string, jobs int, ended chan error) (killed int) {
	t.Helper()
	kills, last := map[string]int{}, map[string]string{}
	for done := 0; done < jobs; pause(t, time.Duration(rng.IntN(int(5*time.Millisecond)))) {
		select {
		case err := <-ended:
			ended <- err
			return killed
		default:
		}
		running := members(released)
		if len(running) == 0 {
			continue
		}
		m := running[rng.IntN(len(running))]
		switch {
		case kills[m.name] < killsEach && last[m.name] != m.attempt:
			if syscall.Kill(m.pid, syscall.SIGKILL) == nil {
				kills[m.name]++
				last[m.name] = m.attempt
				killed++
			}
		case kills[m.name] == killsEach && last[m.name] != m.attempt:
			kills[m.name]++
			done++
			path := filepath.Join(released, m.name)
			if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(path, nil, 0o600); err != nil {
				t.Fatal(err)
			}
		}
	}
	return killed
}

func pause(t *testing.T, d time.Duration) {
	t.Helper()
	if err := sched.Default().Sleep(t.Context(), d); err != nil {
		t.Fatal(err)
	}
}

type process struct {
	pid           int
	name, attempt string // of the gang
}

// members are the tasks that run now.
func members(released string) (list []process) {
	entries, _ := filepath.Glob("/proc/[0-9]*/environ")
	for _, entry := range entries {
		environment, err := os.ReadFile(entry)
		if err != nil || !bytes.Contains(environment, []byte(memberVariable+"="+released)) {
			continue
		}
		p := process{}
		for variable := range strings.SplitSeq(string(environment), "\x00") {
			switch name, value, _ := strings.Cut(variable, "="); name {
			case "FAIRWAY_NAME":
				p.name = value
			case "FAIRWAY_TRY":
				p.attempt = value
			}
		}
		if _, err := fmt.Sscanf(entry, "/proc/%d/environ", &p.pid); err == nil && p.name != "" {
			list = append(list, p)
		}
	}
	return list
}
