package pilot

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"google.golang.org/protobuf/types/known/durationpb"

	"fairway/internal/wire"
)

// The kernel shares processors among sessions, so a pilot keeps its share beside
// attempts that compute only if they are not in its own.
func TestEachAttemptIsASession(t *testing.T) {
	q := newTaskQueue(t)
	q.start(q.config("p1"))
	expect(t, q.run("p1", shell(`read -r _ _ _ _ _ session _ < /proc/$$/stat; [ "$session" = $$ ]`)), wire.Outcome_OUTCOME_SUCCEEDED, "")
}

// hidden is a command that leaves a process which has done all it can to get
// away from its parent, and prints its number.
const hidden = `setsid sh -c 'env -i sh -c "echo \$\$ > '$0'; trap : TERM; while :; do sleep 1; done" & exit' $0 & `

func hide(file string) string { return strings.ReplaceAll(hidden, "$0", file) }

func number(t *testing.T, path string) int {
	t.Helper()
	pid, err := strconv.Atoi(strings.TrimSpace(appears(t, path)))
	if err != nil {
		t.Fatal(err)
	}
	return pid
}

// All processes of a job end with it, however it ends, and those of another
// job do not.
func TestProcessTrees(t *testing.T) {
	q := newTaskQueue(t)
	cfg := q.config("p1")
	cfg.Grace = 200 * time.Millisecond
	p := q.start(cfg)
	bystander := shell("sleep 1000 & wait")
	q.assign("p1", bystander)
	q.started("p1", bystander.GetAttempt())

	file := filepath.Join(t.TempDir(), "pid")
	expect(t, q.run("p1", shell(hide(file)+"while ! [ -s "+file+" ]; do sleep 0.01; done")),
		wire.Outcome_OUTCOME_SUCCEEDED, "")
	gone(t, number(t, file))

	file = filepath.Join(t.TempDir(), "pid")
	a := shell(hide(file) + "trap : TERM; while :; do sleep 1; done")
	q.assign("p1", a)
	pid := number(t, file)
	q.end("p1", a.GetAttempt())
	expect(t, q.result(a.GetAttempt()), wire.Outcome_OUTCOME_ENDED, "")
	gone(t, pid)

	q.mu.Lock()
	if r := q.results[bystander.GetAttempt()]; r != nil {
		t.Error("the bystander ended:", r)
	}
	q.mu.Unlock()
	file = filepath.Join(t.TempDir(), "pid")
	q.assign("p1", shell(hide(file)+"sleep 1000"))
	pid = number(t, file)
	p.stop()
	gone(t, pid)
	expect(t, q.result(bystander.GetAttempt()), wire.Outcome_OUTCOME_LOST, "")
}

// SIGTERM comes first, and a job that heeds it may tidy up.
func TestGrace(t *testing.T) {
	q := newTaskQueue(t)
	q.start(q.config("p1"))
	file := filepath.Join(t.TempDir(), "ready")
	a := shell(`trap 'echo tidy; exit' TERM; echo 1 > ` + file + `; while :; do sleep 0.01; done`)
	q.assign("p1", a)
	appears(t, file)
	q.end("p1", a.GetAttempt())
	expect(t, q.result(a.GetAttempt()), wire.Outcome_OUTCOME_ENDED, "")
	if got := contents(t, q.log(a, "out")); got != "tidy\n" {
		t.Errorf("%q", got)
	}
}

// What a killed pilot leaves ends: its commands at once, what they left
// behind when the next pilot comes.
func TestKilledPilot(t *testing.T) {
	q := newTaskQueue(t)
	p := q.start(q.config("p1"))
	file, own := filepath.Join(t.TempDir(), "pid"), filepath.Join(t.TempDir(), "own")
	q.assign("p1", shell(strings.Replace(hide(file), "env -i ", "", 1)+"echo $$ > "+own+"; exec sleep 1000"))
	lead, left := number(t, own), number(t, file)
	if err := p.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	if err := p.wait(); err == nil {
		t.Fatal("it was killed")
	}
	gone(t, lead)
	q.start(q.config("p2"))
	gone(t, left)
	expect(t, q.run("p2", shell("true")), wire.Outcome_OUTCOME_SUCCEEDED, "")
	if _, err := os.Stat(q.folder + "/sandbox/p1" + q.mark()); err == nil {
		t.Error("its sandboxes are there")
	}
}

// A process that a job has left, and that has ended, is gone while the job goes on: it may wait for
// that by the number of the process.
func TestOrphansAreReapedWhileTheirJobRuns(t *testing.T) {
	q := newTaskQueue(t)
	q.start(q.config("p1"))
	const orphan = `read -r pid < <(%s sh -c 'echo $$; exec >&- 2>&-; exec sleep 0.1' &); while kill -0 "$pid" 2>/dev/null; do :; done`
	for _, by := range []string{"", "setsid", "env -i"} {
		expect(t, q.run("p1", shell(fmt.Sprintf(orphan, by), needs(&wire.Resources{Time: durationpb.New(time.Minute)}))),
			wire.Outcome_OUTCOME_SUCCEEDED, "")
	}
}
