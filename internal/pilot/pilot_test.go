package pilot

import (
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"google.golang.org/protobuf/types/known/durationpb"

	"fairway/internal/wire"
)

func TestRunsCommands(t *testing.T) {
	q := newTaskQueue(t)
	p := q.start(q.config("p1"))
	expect(t, q.run("p1", shell("", argv("true"))), wire.Outcome_OUTCOME_SUCCEEDED, "")
	a := shell("echo hello; echo oops >&2")
	expect(t, q.run("p1", a), wire.Outcome_OUTCOME_SUCCEEDED, "")
	if got := contents(t, q.log(a, "out")); got != "hello\n" {
		t.Error(got)
	}
	if got := contents(t, q.log(a, "err")); got != "oops\n" {
		t.Error(got)
	}
	a = shell("tr a-z A-Z < raw/in > done/out", reads("raw/in", 0, 3, "file:"+writeFile(t, "abc")), writes("done/out"))
	r := q.run("p1", a)
	expect(t, r, wire.Outcome_OUTCOME_SUCCEEDED, "")
	out := r.GetOutputs()[0]
	if got := contents(t, out.GetPfn()); got != "ABC" || out.GetSize() != 3 || out.GetAdler32() != 0x018d00c7 {
		t.Error(got, out)
	}
	if want := fmt.Sprintf("file:%s/se/done/out.v1.a%d", q.folder, a.GetAttempt()); out.GetPfn() != want {
		t.Error(out.GetPfn(), want)
	}
	p.stop()
	q.until("farewell", func() bool { return q.pilots["p1"].left })
	if left, _ := os.ReadDir(q.folder + "/sandbox"); len(left) != 0 {
		t.Error("left in the sandbox folder:", left)
	}
}

// A pilot that has nothing printed keeps no files of it.
func TestNothingPrintedNothingKept(t *testing.T) {
	q := newTaskQueue(t)
	q.start(q.config("p1"))
	q.run("p1", shell("true"))
	if left, _ := os.ReadDir(q.folder + "/logs"); len(left) != 0 {
		t.Error(left)
	}
}

func TestOutcomes(t *testing.T) {
	q := newTaskQueue(t)
	cfg := q.config("p1")
	cfg.LogBytes = 1000
	q.start(cfg)
	short := needs(&wire.Resources{Time: durationpb.New(time.Millisecond)})
	for name, c := range map[string]struct {
		assignment *wire.Assignment
		outcome    wire.Outcome
		message    string
	}{
		"exit code":          {shell("echo that was it >&2; exit 3"), wire.Outcome_OUTCOME_EXITED, "that was it"},
		"errexit":            {shell("false; true"), wire.Outcome_OUTCOME_EXITED, ""},
		"signal":             {shell("kill -USR1 $$"), wire.Outcome_OUTCOME_SIGNALLED, "SIGUSR1"},
		"no program":         {shell("", argv("no-such-program")), wire.Outcome_OUTCOME_EXITED, "no-such-program is not in PATH"},
		"no command":         {shell(""), wire.Outcome_OUTCOME_EXITED, "no command"},
		"time":               {shell("sleep 1000 & sleep 1000", short), wire.Outcome_OUTCOME_OUT_OF_TIME, "longer than its limit"},
		"missing output":     {shell("true", writes("out")), wire.Outcome_OUTCOME_MISSING_OUTPUT, "output out is not there"},
		"output is a link":   {shell("ln -s /etc/passwd out", writes("out")), wire.Outcome_OUTCOME_MISSING_OUTPUT, "not a regular file"},
		"output outside":     {shell("true", writes("../out")), wire.Outcome_OUTCOME_STAGE_IN_FAILED, "not usable as a name"},
		"no input":           {shell("true", reads("x", 1, 5, "/no/such/file")), wire.Outcome_OUTCOME_STAGE_IN_FAILED, "input x"},
		"nowhere":            {shell("true", reads("x", 1, 5, "")), wire.Outcome_OUTCOME_STAGE_IN_FAILED, "in no cache"},
		"wrong size":         {shell("true", reads("x", 1, 5, writeFile(t, "four"))), wire.Outcome_OUTCOME_STAGE_IN_FAILED, "4 bytes and should have 5"},
		"changed input":      {shell("echo more >> x", reads("x", 1, 4, writeFile(t, "four"))), wire.Outcome_OUTCOME_INPUT_CHANGED, "wrote to its input x in place, and so changed /"},
		"changed, same size": {shell("printf FOUR 1<>x", reads("x", 1, 4, writeFile(t, "four"))), wire.Outcome_OUTCOME_INPUT_CHANGED, "wrote to its input x"},
		"changed and failed": {shell("echo more >> x; exit 3", reads("x", 1, 4, writeFile(t, "four"))), wire.Outcome_OUTCOME_INPUT_CHANGED, "wrote to its input x"},
		"input replaced":     {shell("rm x; echo mine >x", reads("x", 1, 4, writeFile(t, "four"))), wire.Outcome_OUTCOME_SUCCEEDED, ""},
		"undeclared":         {shell("cat raw/x.fq"), wire.Outcome_OUTCOME_EXITED, "found no file raw/x.fq"},
		"bad report":         {shell("echo lines >$FAIRWAY_REPORT; : >out", writes("out")), wire.Outcome_OUTCOME_STAGE_OUT_FAILED, "line 1"},
	} {
		t.Run(name, func(t *testing.T) { expect(t, q.run("p1", c.assignment), c.outcome, c.message) })
	}
}

// Who tells of a result puts the exit code or the signal before the message.
func TestMessageDoesNotRepeatTheOutcome(t *testing.T) {
	q := newTaskQueue(t)
	q.start(q.config("p1"))
	for command, want := range map[string]string{
		"exit 3":                       "",
		"echo that was it >&2; exit 3": "that was it",
		"kill -USR1 $$":                "SIGUSR1",
		"echo a.txt: No such file or directory >&2; exit 3": "it found no file a.txt: a job sees only the files that its step declares in reads; it said: a.txt: No such file or directory",
	} {
		if got := q.run("p1", shell(command)).GetMessage(); got != want {
			t.Errorf("%s: message %q, want %q", command, got, want)
		}
	}
}

func TestHintAtUndeclaredFile(t *testing.T) {
	folder := t.TempDir()
	if err := os.WriteFile(folder+"/calibration.txt", nil, 0o644); err != nil {
		t.Fatal(err)
	}
	for said, want := range map[string]string{
		"cat: calibration.txt: No such file or directory":                   "make it an input",
		"sh: 1: cannot open calibration.txt: No such file":                  "make it an input",
		"FileNotFoundError: [Errno 2] No such file or directory: 'x y.txt'": "no file x y.txt",
		"segmentation fault": "",
	} {
		if got := undeclaredIn(said, folder); !strings.Contains(got, want) || (got == "") != (want == "") {
			t.Errorf("%s: %q", said, got)
		}
	}
}

func TestOutputIsBounded(t *testing.T) {
	q := newTaskQueue(t)
	cfg := q.config("p1")
	cfg.LogBytes = 1000
	q.start(cfg)
	a := shell("head -c 100000 /dev/zero | tr '\\0' x")
	expect(t, q.run("p1", a), wire.Outcome_OUTCOME_SUCCEEDED, "")
	if got := contents(t, q.log(a, "out")); got != strings.Repeat("x", 1000)+cutNotice {
		t.Error(len(got))
	}
	a = shell("yes")
	q.assign("p1", a)
	text := appears(t, q.log(a, "out"))
	if len(text) == 0 {
		t.Error("it cannot be read while it runs")
	}
	q.end("p1", a.GetAttempt())
	expect(t, q.result(a.GetAttempt()), wire.Outcome_OUTCOME_ENDED, "")
	if got := contents(t, q.log(a, "out")); len(got) != 1000+len(cutNotice) {
		t.Error(len(got))
	}
}

func TestPatterns(t *testing.T) {
	q := newTaskQueue(t)
	q.start(q.config("p1"))
	command := `mkdir -p parts/deep; cp in parts/c.fq; for x in b a; do echo $x > parts/$x.fq; done
		ln -s /etc/passwd parts/d.fq; mkdir parts/e.fq; echo x > parts/deep/f.fq; echo y > parts/named.fq
		printf 'records parts/a.fq 7\n' > $FAIRWAY_REPORT`
	r := q.run("p1", shell(command, reads("in", 1, 2, writeFile(t, "in")), reads("parts/input.fq", 1, 2, writeFile(t, "in")), writes("parts/*.fq", "parts/named.fq", "none/*")))
	expect(t, r, wire.Outcome_OUTCOME_SUCCEEDED, "")
	var got []string
	for _, o := range r.GetOutputs() {
		got = append(got, fmt.Sprint(o.GetLfn(), " ", o.GetRecords()))
	}
	if want := "parts/named.fq 0 parts/a.fq 7 parts/b.fq 0 parts/c.fq 0"; strings.Join(got, " ") != want {
		t.Error(got)
	}
}

func TestEnvironmentOfACommand(t *testing.T) {
	t.Setenv("INHERITED", "yes")
	t.Setenv("REPLACED", "no")
	q := newTaskQueue(t)
	q.start(q.config("p1"))
	a := shell(`cat "$FAIRWAY_INPUTS_FILE" "$FAIRWAY_OUTPUTS_FILE"; grep -c lfn-to-pfn "$FAIRWAY_CATALOG"
		echo "$in $FAIRWAY_JOB $FAIRWAY_ATTEMPT $FAIRWAY_TRY $FAIRWAY_STEP $FAIRWAY_PILOT $INHERITED $REPLACED"
		[ "$FAIRWAY_DEADLINE" -gt 0 ]; [ "$FAIRWAY_TIME_LEFT" = 100 ]; [ "$PWD" = "$FAIRWAY_SANDBOX" ]; cat; : > out`,
		reads("deep/in", 1, 2, writeFile(t, "in")), writes("out"), needs(&wire.Resources{Time: durationpb.New(100 * time.Second)}))
	a.Payload.Environment = map[string]string{"in": "deep/in", "REPLACED": "yes", "FAIRWAY_JOB": "forged"}
	a.Payload.Stdin = []string{"deep/in"}
	expect(t, q.run("p1", a), wire.Outcome_OUTCOME_SUCCEEDED, "")
	want := fmt.Sprintf("deep/in\nout\n1\ndeep/in %d %d 1 step p1%s yes yes\nin", a.GetJob(), a.GetAttempt(), q.mark())
	if got := contents(t, q.log(a, "out")); got != want {
		t.Errorf("%q, want %q", got, want)
	}
}

// Nothing of one attempt is seen by the next, whatever it leaves.
func TestSandboxIsEmptied(t *testing.T) {
	q := newTaskQueue(t)
	cfg := q.config("p1")
	cfg.MilliCPUs = 1000
	q.start(cfg)
	for _, left := range []string{
		": > file", "mkdir -p a/b; : > a/b/c; chmod 000 a/b a", "rmdir ../$(basename $PWD)", "chmod 500 .", "mkfifo pipe; ln -s / root", "mv ../$(basename $PWD) ../away; mkdir ../$(basename $OLDPWD) || true",
	} {
		q.run("p1", shell(left))
		expect(t, q.run("p1", shell(`[ -z "$(ls -A)" ]; : > writable`)), wire.Outcome_OUTCOME_SUCCEEDED, "")
	}
}

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
	expect(t, q.run("p1", shell(hide(file)+"while ! [ -s "+file+" ]; do sleep 0.01; done")), wire.Outcome_OUTCOME_SUCCEEDED, "")
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

func TestOutOfMemory(t *testing.T) {
	q := newTaskQueue(t)
	q.start(q.config("p1"))
	r := q.run("p1", shell("head -c 200000000 /dev/zero | tail", needs(&wire.Resources{MemoryBytes: 50 << 20})))
	expect(t, r, wire.Outcome_OUTCOME_OUT_OF_MEMORY, "more than its 52.4 MB")
	r = q.run("p1", shell("head -c 150000000 /dev/zero | tail > file", needs(&wire.Resources{MemoryBytes: 400 << 20})))
	expect(t, r, wire.Outcome_OUTCOME_SUCCEEDED, "")
	if r.GetUsage().GetMaxRssBytes() < 100<<20 {
		t.Error(r.GetUsage())
	}
	if r = q.run("p1", shell("true")); r.GetUsage().GetMaxRssBytes() != 0 {
		t.Error("the memory of the pilot is held to be that of the command:", r.GetUsage())
	}
}

// What the process that started the pilot had of memory says nothing of the
// commands.
func TestMemoryOfTheStarterIsNotThePilots(t *testing.T) {
	large := make([]byte, 200<<20)
	for i := 0; i < len(large); i += os.Getpagesize() {
		large[i] = 1
	}
	q := newTaskQueue(t)
	q.start(q.config("p1"))
	runtime.KeepAlive(large)
	r := q.run("p1", shell("head -c 150000000 /dev/zero | tail > file"))
	expect(t, r, wire.Outcome_OUTCOME_SUCCEEDED, "")
	if got := r.GetUsage().GetMaxRssBytes(); got < 100<<20 || got >= 200<<20 {
		t.Error(r.GetUsage())
	}
	if r = q.run("p1", shell("true")); r.GetUsage().GetMaxRssBytes() != 0 {
		t.Error("the memory of the pilot is held to be that of the command:", r.GetUsage())
	}
}

func TestReplay(t *testing.T) {
	q := newTaskQueue(t)
	q.start(q.config("p1"))
	a := shell("", writes("big", "empty"))
	a.Payload.Replay = &wire.Replay{Compute: durationpb.New(time.Millisecond), WritesBytes: map[string]int64{"big": 1 << 20, "empty": 0}}
	r := q.run("p1", a)
	expect(t, r, wire.Outcome_OUTCOME_SUCCEEDED, "")
	if r.GetOutputs()[0].GetSize() != 1<<20 || r.GetOutputs()[1].GetSize() != 0 {
		t.Error(r.GetOutputs())
	}
	a = shell("")
	a.Payload.Replay = &wire.Replay{Compute: durationpb.New(time.Hour)}
	q.assign("p1", a)
	q.started("p1", a.GetAttempt())
	q.end("p1", a.GetAttempt())
	expect(t, q.result(a.GetAttempt()), wire.Outcome_OUTCOME_ENDED, "")
}

// Attempts ahead wait for their resources, in order, and can be recalled.
func TestQueue(t *testing.T) {
	q := newTaskQueue(t)
	cfg := q.config("p1")
	cfg.MilliCPUs = 1000
	q.start(cfg)
	file := filepath.Join(t.TempDir(), "go")
	first := shell("while ! [ -e " + file + " ]; do sleep 0.01; done")
	second, third := shell("true"), shell("true")
	q.assign("p1", first, second, third)
	q.started("p1", first.GetAttempt())
	q.end("p1", second.GetAttempt())
	expect(t, q.result(second.GetAttempt()), wire.Outcome_OUTCOME_ENDED, "recalled")
	if err := os.WriteFile(file, nil, 0o644); err != nil {
		t.Fatal(err)
	}
	expect(t, q.result(first.GetAttempt()), wire.Outcome_OUTCOME_SUCCEEDED, "")
	expect(t, q.result(third.GetAttempt()), wire.Outcome_OUTCOME_SUCCEEDED, "")
}

// What Fairway has made is shared by links: no command writes to it in place,
// not even one of root.
func TestInputsAreReadOnly(t *testing.T) {
	for _, mode := range []CacheMode{CacheNone, CachePilot} {
		t.Run(string(mode), func(t *testing.T) {
			q := newTaskQueue(t)
			cfg := q.config("p1")
			cfg.Cache = CacheConfig{Mode: mode, Dir: t.TempDir()}
			q.start(cfg)
			made := q.run("p1", shell("printf four > x", writes("x"))).GetOutputs()[0].GetPfn()
			input := reads("x", 1, 4, made)
			for _, command := range []string{"printf FOUR > x", "printf FOUR >> x", "truncate -s 0 x", "dd if=/dev/zero of=x conv=notrunc count=1"} {
				expect(t, q.run("p1", shell(command, input)), wire.Outcome_OUTCOME_EXITED, "ermission denied")
			}
			expect(t, q.run("p1", shell("cp x y; printf more > z; mv -f z x", input)), wire.Outcome_OUTCOME_SUCCEEDED, "")
			if got := contents(t, made); got != "four" {
				t.Error(got)
			}
		})
	}
}

// A sandbox that is prepared before its turn is made anew if the attempt before
// changes an input of it, and that one alone is blamed.
func TestInputChangedBeforeItsTurn(t *testing.T) {
	q := newTaskQueue(t)
	cfg := q.config("p1")
	cfg.MilliCPUs = 1000
	cfg.Cache = CacheConfig{Mode: CachePilot, Dir: t.TempDir()}
	q.start(cfg)
	input := reads("x", 1, 4, writeFile(t, "four"))
	expect(t, q.run("p1", shell("cat x", input)), wire.Outcome_OUTCOME_SUCCEEDED, "")
	file := filepath.Join(t.TempDir(), "go")
	first := shell("while ! [ -e "+file+" ]; do sleep 0.01; done; printf FOUR 1<>x", input)
	second := shell("cat x; : > x.copy", input)
	q.assign("p1", first, second)
	q.started("p1", first.GetAttempt())
	if err := os.WriteFile(file, nil, 0o644); err != nil {
		t.Fatal(err)
	}
	expect(t, q.result(first.GetAttempt()), wire.Outcome_OUTCOME_INPUT_CHANGED, "wrote to its input x")
	expect(t, q.result(second.GetAttempt()), wire.Outcome_OUTCOME_SUCCEEDED, "")
}

// An attempt starts while those before it are stored, and each result names its
// own outputs.
func TestOutputsOfFollowingAttempts(t *testing.T) {
	q := newTaskQueue(t)
	cfg := q.config("p1")
	cfg.MilliCPUs = 1000
	q.start(cfg)
	var all []*wire.Assignment
	for i := range 50 {
		all = append(all, shell(fmt.Sprintf("printf %d; [ -z \"$(ls)\" ]; printf %d > out%d", i, i, i), writes(fmt.Sprintf("out%d", i))))
	}
	q.assign("p1", all...)
	for i, a := range all {
		r := q.result(a.GetAttempt())
		expect(t, r, wire.Outcome_OUTCOME_SUCCEEDED, "")
		if path := r.GetOutputs()[0].GetPfn(); contents(t, strings.TrimPrefix(path, "file:")) != strconv.Itoa(i) || contents(t, q.log(a, "out")) != strconv.Itoa(i) {
			t.Errorf("attempt %d stored %q and printed %q", i, contents(t, strings.TrimPrefix(path, "file:")), contents(t, q.log(a, "out")))
		}
	}
}

func TestLeavesWhenDrained(t *testing.T) {
	q := newTaskQueue(t)
	p := q.start(q.config("p1"))
	file := filepath.Join(t.TempDir(), "go")
	a := shell("while ! [ -e " + file + " ]; do sleep 0.01; done")
	q.assign("p1", a)
	q.started("p1", a.GetAttempt())
	q.change(func() { q.pilot("p1").leave, q.pilot("p1").news = true, true })
	if err := os.WriteFile(file, nil, 0o644); err != nil {
		t.Fatal(err)
	}
	expect(t, q.result(a.GetAttempt()), wire.Outcome_OUTCOME_SUCCEEDED, "")
	if err := p.wait(); err != nil {
		t.Error(err)
	}
}

func TestEnvironmentCheck(t *testing.T) {
	q := newTaskQueue(t)
	count := 0
	for name, change := range map[string]func(*Config){
		"no-such-tool is not in PATH": func(c *Config) { c.Tools = []string{"sh", "no-such-tool"} },
		"MB of memory":                func(c *Config) { c.Memory = 1 << 60 },
		"bytes free":                  func(c *Config) { c.Disk = 1 << 60 },
		"storage element":             func(c *Config) { c.Storage = "/dev/null/x" },
	} {
		count++
		id := "p" + strconv.Itoa(count)
		cfg := q.config(id)
		change(&cfg)
		p := q.start(cfg)
		if p.wait() == nil {
			t.Error(name, "did not end the pilot with an error")
		}
		q.until("announcement", func() bool {
			seen := q.pilots[id]
			return seen != nil && strings.Contains(seen.hello.GetError(), name) && seen.left
		})
	}
	cfg := q.config("fine")
	cfg.Tools, cfg.Probe = []string{"sh"}, []string{"no-such-tool", "cat"}
	q.start(cfg)
	q.until("tools", func() bool {
		hello := q.pilot("fine").hello
		return strings.Join(hello.GetTools(), " ") == "sh cat" && hello.GetHas().GetMilliCpus() == 2000
	})
}

func TestLease(t *testing.T) {
	q := newTaskQueue(t)
	cfg := q.config("p1")
	cfg.Lease = 300 * time.Millisecond
	p := q.start(cfg)
	file := filepath.Join(t.TempDir(), "pid")
	q.assign("p1", shell("echo $$ > "+file+"; sleep 1000"))
	pid := number(t, file)
	q.http.Close()
	if err := p.wait(); err == nil {
		t.Error("the pilot ended as if all were well")
	}
	gone(t, pid)
}

// The folder of the sandboxes goes while there is no server: a server that comes
// later must not get this pilot, where each attempt would fail.
func TestFolderRemoved(t *testing.T) {
	q := newTaskQueue(t)
	p := q.start(q.config("p1"))
	file := filepath.Join(t.TempDir(), "pid")
	q.assign("p1", shell("echo $$ > "+file+"; sleep 1000"))
	pid := number(t, file)
	q.http.Close()
	if err := removeAll(q.folder + "/sandbox"); err != nil {
		t.Fatal(err)
	}
	if err := p.wait(); err == nil {
		t.Error("the pilot ended as if all were well")
	}
	gone(t, pid)
}

func TestLifeEnds(t *testing.T) {
	q := newTaskQueue(t)
	cfg := q.config("p1")
	cfg.Life, cfg.Grace = time.Second, 100*time.Millisecond
	p := q.start(cfg)
	a := shell("sleep 1000")
	q.assign("p1", a)
	expect(t, q.result(a.GetAttempt()), wire.Outcome_OUTCOME_LOST, "life is over")
	if err := p.wait(); err != nil {
		t.Error(err)
	}
}

// The server goes away and comes back, with no memory of what it knew: jobs go
// on, and the pilot tells its whole state.
func TestReconnect(t *testing.T) {
	q := newTaskQueue(t)
	q.start(q.config("p1"))
	go1, go2 := filepath.Join(t.TempDir(), "go"), filepath.Join(t.TempDir(), "go")
	wait := func(file string) string { return "while ! [ -e " + file + " ]; do sleep 0.01; done" }
	first, second, third := shell(wait(go1)), shell(wait(go2)), shell("true")
	q.assign("p1", first, second, third)
	q.started("p1", first.GetAttempt())
	q.started("p1", second.GetAttempt())
	q.http.Close()
	if err := os.WriteFile(go1, nil, 0o644); err != nil {
		t.Fatal(err)
	}
	q.change(func() { q.pilots, q.results = map[string]*pilotSeen{}, map[uint64]*wire.Result{} })
	q.serve()
	expect(t, q.result(first.GetAttempt()), wire.Outcome_OUTCOME_SUCCEEDED, "")
	expect(t, q.result(third.GetAttempt()), wire.Outcome_OUTCOME_SUCCEEDED, "")
	q.until("hello", func() bool { return q.pilot("p1").hello != nil && q.pilot("p1").started[second.GetAttempt()] })
	if err := os.WriteFile(go2, nil, 0o644); err != nil {
		t.Fatal(err)
	}
	expect(t, q.result(second.GetAttempt()), wire.Outcome_OUTCOME_SUCCEEDED, "")
}

// The first Sync after a failure is not held: until it is answered no other may
// follow, and a result would wait as long as a server without news holds it.
func TestFirstSyncAfterAFailureIsNotHeld(t *testing.T) {
	q := newTaskQueue(t)
	q.start(q.config("p1"))
	proceed := filepath.Join(t.TempDir(), "go")
	a := shell("while ! [ -e " + proceed + " ]; do sleep 0.01; done")
	q.assign("p1", a)
	q.started("p1", a.GetAttempt())
	q.http.Close()
	q.change(func() { q.pilots, q.silent, q.hold = map[string]*pilotSeen{}, true, 2*patience })
	q.serve()
	q.until("the whole state", func() bool { return q.pilot("p1").hello != nil })
	if err := os.WriteFile(proceed, nil, 0o644); err != nil {
		t.Fatal(err)
	}
	expect(t, q.result(a.GetAttempt()), wire.Outcome_OUTCOME_SUCCEEDED, "")
	q.mu.Lock()
	defer q.mu.Unlock()
	if first := q.pilot("p1").syncs[0]; first.GetHold() || !first.GetFull() {
		t.Errorf("the first Sync was %v", first)
	}
}

// A result is told until it is acknowledged, and not after that.
func TestResultsAreToldUntilAcknowledged(t *testing.T) {
	q := newTaskQueue(t)
	q.refuse = true
	q.start(q.config("p1"))
	a := shell("true")
	q.run("p1", a)
	q.change(func() { q.results, q.pilot("p1").news = map[uint64]*wire.Result{}, true })
	q.result(a.GetAttempt())
	q.change(func() { q.refuse, q.pilot("p1").news = false, true })
	q.run("p1", shell("true"))
	q.change(func() { q.results = map[uint64]*wire.Result{} })
	q.run("p1", shell("true"))
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.results[a.GetAttempt()] != nil {
		t.Error("told again after it was acknowledged")
	}
}

func TestDiskFull(t *testing.T) {
	if os.Getuid() != 0 {
		t.Skip("mounting a tmpfs needs root")
	}
	small := t.TempDir()
	if err := syscall.Mount("fairway-test", small, "tmpfs", 0, "size=1m"); err != nil {
		t.Skip("no tmpfs here:", err)
	}
	t.Cleanup(func() { _ = syscall.Unmount(small, syscall.MNT_DETACH) })
	q := newTaskQueue(t)
	big := writeFile(t, strings.Repeat("x", 2<<20))

	cfg := q.config("sandbox")
	cfg.SandboxDir = small + "/sandbox"
	p := q.start(cfg)
	expect(t, q.run("sandbox", shell("head -c 2000000 /dev/zero > out", writes("out"))), wire.Outcome_OUTCOME_OUT_OF_DISK, "no space left")
	expect(t, q.run("sandbox", shell("true", reads("x", 1, 2<<20, big))), wire.Outcome_OUTCOME_OUT_OF_DISK, "no space left")
	expect(t, q.run("sandbox", shell("echo 1 > out", writes("out"))), wire.Outcome_OUTCOME_SUCCEEDED, "")
	p.stop()

	cfg = q.config("storage")
	cfg.Storage = small + "/se"
	q.start(cfg)
	expect(t, q.run("storage", shell("head -c 2000000 /dev/zero > out", writes("out"))), wire.Outcome_OUTCOME_OUT_OF_DISK, "no space left")
	if left, _ := os.ReadDir(small + "/se"); len(left) != 0 {
		t.Error("left behind:", left)
	}

	cfg = q.config("cache")
	cfg.Cache = CacheConfig{Mode: CachePilot, Dir: small + "/cache"}
	q.start(cfg)
	expect(t, q.run("cache", shell("wc -c x", reads("x", 1, 2<<20, big))), wire.Outcome_OUTCOME_SUCCEEDED, "")
	q.until("nothing cached", func() bool { return len(q.pilot("cache").cached) == 0 })
}

func (q *taskQueue) log(a *wire.Assignment, stream string) string {
	return filepath.Join(q.folder, "logs", logName(a.GetAttempt(), stream))
}

func TestConfig(t *testing.T) {
	if _, err := DecodeConfig(`{"serve": 1}`); err == nil {
		t.Error("an unknown field was accepted")
	}
	for _, c := range []Config{
		{},
		{Server: "unix:/x"},
		{Server: "unix:/x", Launch: "l"},
		{Server: "unix:/x", Launch: "l", Pilot: "../p", SandboxDir: "/s", LogDir: "/l"},
		{Server: "unix:/x", Launch: "l", SandboxDir: "/s", LogDir: "/l", Cache: CacheConfig{Mode: "moon"}},
		{Server: "unix:/x", Launch: "l", SandboxDir: "/s", LogDir: "/l", Cache: CacheConfig{Mode: CacheHost}},
	} {
		if c.check() == nil {
			t.Errorf("%+v was accepted", c)
		}
	}
	if _, err := newPilot(Config{Server: "gopher://x", Launch: "l", SandboxDir: "/s", LogDir: "/l"}); err == nil {
		t.Error("an unknown address was accepted")
	}
}
