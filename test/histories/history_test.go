package histories

import (
	"encoding/json"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"fairway/lib/seed"
	"fairway/test/files"
	"fairway/test/program"
)

// longest is the latest random moment of a disturbance, about as long as a run
// takes.
const longest = 500 * time.Millisecond

// enough is after how long the short form begins no further round, so that it
// ends soon on a slow machine too.
const enough = 10 * time.Second

// TestHistories: see the package comment. The seed of a history that fails
// begins with that one when it is given in FAIRWAY_SEED; then no round is left
// out.
func TestHistories(t *testing.T) {
	histories, rounds, short := 2, 4, os.Getenv(seed.Variable) == ""
	if os.Getenv("FAIRWAY_SOAK") != "" {
		histories, rounds, short = 300, 8, false
	}
	first, began, done := seed.Of(t), time.Now(), 0
	for n := range histories {
		h := newHistory(t, first+uint64(n))
		for range rounds {
			if short && time.Since(began) > enough {
				t.Logf("%d rounds in %v", done, enough)
				return
			}
			h.round()
			done++
		}
	}
}

// history is what happens to a folder.
type history struct {
	t       *testing.T
	random  *rand.Rand
	folder  string
	log     string // what was executed, one job a line
	project *project
	story   []string // what was done, for messages
	want    first    // what a first run of the project gives
	key     string   // of the project that want is of
}

func newHistory(t *testing.T, number uint64) *history {
	random := rand.New(rand.NewPCG(number, 0))
	h := &history{
		t: t, random: random, folder: t.TempDir(), log: filepath.Join(t.TempDir(), "log"), project: newProject(random),
	}
	h.say(fmt.Sprintf("%s=%d", seed.Variable, number))
	h.project.write(t, h.folder, h.log)
	return h
}

func (h *history) say(what string) { h.story = append(h.story, what) }

func (h *history) fatalf(format string, arguments ...any) {
	h.t.Helper()
	h.t.Fatalf("%s\nafter:\n  %s\nworkflow, run with %q:\n%s", fmt.Sprintf(format, arguments...),
		strings.Join(h.story, "\n  "), h.project.parameters(), h.project.workflow(h.log))
}

// round changes something, perhaps disturbs runs, and then runs to the end.
func (h *history) round() {
	for range h.random.IntN(3) {
		h.edit()
	}
	for range h.random.IntN(3) {
		h.disturb()
		if h.random.IntN(3) == 0 {
			h.edit()
		}
	}
	if h.random.IntN(3) == 0 {
		h.damage()
	}
	h.complete()
	if h.random.IntN(2) == 0 {
		h.again()
	}
}

// flags are those of run that must not matter.
func (h *history) flags() []string {
	return []string{
		"--cache", pick(h.random, []string{"auto", "host", "pilot", "none"}), "--pilots", fmt.Sprint(1 + h.random.IntN(4)),
	}
}

func (h *history) start(flags ...string) *call {
	h.t.Helper()
	return start(h.t, h.folder, slices.Concat([]string{"run", "--json"}, flags, h.project.parameters())...)
}

// disturb starts a run and ends it, or a part of it, at a random moment.
func (h *history) disturb() {
	c := h.start(h.flags()...)
	moment := time.Duration(h.random.Int64N(int64(longest)))
	if !c.at(moment) {
		c.wait()
		return
	}
	ways := []struct {
		name string
		do   func(*call)
	}{
		{"kill the server", func(c *call) { _ = c.cmd.Process.Kill() }},
		{"kill the server and then the pilots", func(c *call) { _ = c.cmd.Process.Kill(); h.killPilots(true) }},
		{"kill the pilots", func(*call) { h.killPilots(true) }},
		{"kill a pilot", func(*call) { h.killPilots(false) }},
		{"interrupt", func(c *call) { _ = c.cmd.Process.Signal(os.Interrupt) }},
		{"terminate", func(c *call) { _ = c.cmd.Process.Signal(syscall.SIGTERM) }},
		{"interrupt twice", func(c *call) {
			_ = c.cmd.Process.Signal(os.Interrupt)
			_ = c.at(10 * time.Millisecond)
			_ = c.cmd.Process.Signal(os.Interrupt)
		}},
		{"cancel and retry a job", h.cancelAndRetry},
	}
	way := pick(h.random, ways)
	h.say(fmt.Sprintf("run %v, and after %v %s", c.cmd.Args[3:7], moment, way.name))
	way.do(c)
	c.wait()
}

func (h *history) killPilots(all bool) {
	pilots := program.Pilots(h.folder)
	if len(pilots) > 0 && !all {
		pilots = []int{pick(h.random, pilots)}
	}
	for _, pid := range pilots {
		_ = syscall.Kill(pid, syscall.SIGKILL)
	}
}

func (h *history) cancelAndRetry(*call) {
	var list jobList
	if h.ask(&list, "jobs") && len(list.Jobs) > 0 {
		name := pick(h.random, list.Jobs).Name
		do(h.t, h.folder, "cancel", name)
		retry := do(h.t, h.folder, "retry", name)
		if code := retry.cmd.ProcessState.ExitCode(); code != 0 && !strings.Contains(retry.said(), "is done") {
			h.fatalf("retry of %s ended with %d, whether a server runs, ends, or has ended:\n%s", name, code, retry.said())
		}
	}
}

// damage removes what a person may remove.
func (h *history) damage() {
	if len(program.Pilots(h.folder)) > 0 {
		return // not while anything runs
	}
	switch h.random.IntN(4) {
	case 0:
		h.say("remove .fairway/cache")
		if err := os.RemoveAll(h.path(".fairway/cache")); err != nil {
			h.t.Fatal(err)
		}
	case 1:
		h.say("clean")
		do(h.t, h.folder, "clean", "--results")
	case 2:
		h.say("remove results")
		if err := os.RemoveAll(h.path("results")); err != nil {
			h.t.Fatal(err)
		}
	default:
		if names := slices.Sorted(maps.Keys(files.Below(h.t, filepath.Join(h.folder, "results")))); len(names) > 0 {
			name := pick(h.random, names)
			h.say("remove the result " + name)
			if err := os.Remove(h.path("results/" + name)); err != nil {
				h.t.Fatal(err)
			}
		}
	}
}

// complete runs to the end, and compares with a first run.
func (h *history) complete() {
	h.t.Helper()
	var predicted *plan
	if len(program.Pilots(h.folder)) == 0 {
		predicted = h.predict()
	}
	before := h.executed()
	c := h.start(h.flags()...)
	if !c.wait() {
		h.fatalf("the run failed:\n%s", c.said())
	}
	h.say("complete a run")
	h.compare()
	if left := program.Pilots(h.folder); len(left) > 0 {
		h.fatalf("the run has left the pilots %v", left)
	}
	if predicted != nil {
		h.comparePlan(predicted, h.executed()[len(before):])
	}
}

// again runs once more, which has nothing to do.
func (h *history) again() {
	h.t.Helper()
	before := h.executed()
	c := start(h.t, h.folder, slices.Concat([]string{"run"}, h.flags(), h.project.parameters())...)
	if !c.wait() || !strings.Contains(c.said(), "nothing to do") {
		h.fatalf("a run that has nothing to do says:\n%s", c.said())
	}
	if more := h.executed()[len(before):]; len(more) > 0 {
		h.fatalf("a run that has nothing to do ran %v", more)
	}
	h.compare()
}

// executed lists the jobs that were executed, with repetitions.
func (h *history) executed() []string {
	text, err := os.ReadFile(h.log)
	if err != nil && !os.IsNotExist(err) {
		h.t.Fatal(err)
	}
	return strings.Fields(string(text))
}

// first is what a first run of a project gives.
type first struct {
	results map[string]string
	jobs    []string
}

func (h *history) compare() {
	h.t.Helper()
	if key := h.project.key(); key != h.key {
		h.want, h.key = h.firstRun(), key
	}
	if got := files.Below(h.t, filepath.Join(h.folder, "results")); !maps.Equal(got, h.want.results) {
		h.fatalf("the results differ from those of a first run:\n%s", difference(got, h.want.results))
	}
	if got := h.jobs(h.folder); !slices.Equal(got, h.want.jobs) {
		h.fatalf("the jobs differ from those of a first run:\n got %v\nwant %v", got, h.want.jobs)
	}
}

// firstRun runs the project in an empty folder.
func (h *history) firstRun() first {
	h.t.Helper()
	folder := h.t.TempDir()
	h.project.write(h.t, folder, os.DevNull)
	c := start(h.t, folder, slices.Concat([]string{"run"}, h.flags(), h.project.parameters())...)
	if !c.wait() {
		h.fatalf("a first run failed:\n%s", c.said())
	}
	return first{files.Below(h.t, filepath.Join(folder, "results")), h.jobs(folder)}
}

func difference(got, want map[string]string) string {
	var b strings.Builder
	for _, name := range slices.Sorted(maps.Keys(got)) {
		if _, ok := want[name]; !ok {
			fmt.Fprintf(&b, "%s should not be there\n", name)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(want)) {
		if text, ok := got[name]; !ok {
			fmt.Fprintf(&b, "%s is missing\n", name)
		} else if text != want[name] {
			fmt.Fprintf(&b, "%s is\n%q\nand should be\n%q\n", name, text, want[name])
		}
	}
	return b.String()
}

// jobList is what `fairway jobs --json` prints.
type jobList struct {
	Jobs []struct {
		Name, State string
	}
}

// ask reads what the program tells as JSON; false if it refuses.
func (h *history) ask(into any, arguments ...string) bool {
	h.t.Helper()
	c := start(h.t, h.folder, append(arguments, "--json")...)
	if !c.wait() {
		return false
	}
	if err := json.Unmarshal(c.output.Bytes(), into); err != nil {
		h.fatalf("%v: %v in\n%s", arguments, err, c.said())
	}
	return true
}

// jobs are the names of all jobs of a folder, which must be done.
func (h *history) jobs(folder string) []string {
	h.t.Helper()
	var list jobList
	c := do(h.t, folder, "jobs", "--json", "--limit", "1000")
	if err := json.Unmarshal(c.output.Bytes(), &list); err != nil {
		h.fatalf("jobs: %v in\n%s", err, c.said())
	}
	var names []string
	for _, job := range list.Jobs {
		if job.State != "done" {
			h.fatalf("job %s is %s after a run that succeeded", job.Name, job.State)
		}
		names = append(names, job.Name)
	}
	slices.Sort(names)
	return names
}
