package pilot

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"google.golang.org/protobuf/types/known/durationpb"

	"fairway/internal/pilot/process"
	"fairway/internal/wire"
	"fairway/test/files"
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

// What the pilot itself reaches storage by, its jobs do not see, unless that is named.
func TestCommandsDoNotSeeSecrets(t *testing.T) {
	q := newTaskQueue(t)
	named := q.config("p2")
	named.Environment = []string{"BEARER_TOKEN"}
	for pilot, want := range map[string]string{"p1": "none, /ours\n", "p2": "t, /ours\n"} {
		cfg := q.config(pilot)
		if pilot == "p2" {
			cfg = named
		}
		q.start(cfg, "BEARER_TOKEN=t", "TOOLS=/ours")
		a := shell("echo ${BEARER_TOKEN:-none}, $TOOLS")
		expect(t, q.run(pilot, a), wire.Outcome_OUTCOME_SUCCEEDED, "")
		if got := contents(t, q.log(a, "out")); got != want {
			t.Errorf("%s: a job sees %q, want %q", pilot, got, want)
		}
	}
}

// Variables that the TaskQueue tells beside an attempt are those of its command, also where jobs get none
// of the pilot's. One that it does not tell fails the attempt, and says so.
func TestCommandsGetTheVariablesThatTheyName(t *testing.T) {
	q := newTaskQueue(t)
	cfg := q.config("p1")
	q.variables = map[string][]byte{"KEY": []byte("told"), "OTHER": []byte("for others")}
	q.start(cfg, "KEY=of the pilot")
	a := shell("echo $KEY ${OTHER:-none}", names("KEY"))
	expect(t, q.run("p1", a), wire.Outcome_OUTCOME_SUCCEEDED, "")
	if got := contents(t, q.log(a, "out")); got != "told none\n" {
		t.Errorf("a job sees %q", got)
	}
	expect(t, q.run("p1", shell("true", names("KEY", "AWAY"))), wire.Outcome_OUTCOME_STAGE_IN_FAILED, "the variable AWAY")
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
		"another output":     {shell("echo x > put", writes("out")), wire.Outcome_OUTCOME_MISSING_OUTPUT, "output out is not there; it made put, which the step does not declare"},
		"output is a link":   {shell("ln -s /etc/passwd out", writes("out")), wire.Outcome_OUTCOME_MISSING_OUTPUT, "not a regular file"},
		"output outside":     {shell("true", writes("../out")), wire.Outcome_OUTCOME_STAGE_IN_FAILED, "not usable as a name"},
		"no input":           {shell("true", reads("x", 1, 5, "/no/such/file")), wire.Outcome_OUTCOME_STAGE_IN_FAILED, "input x"},
		"nowhere":            {shell("true", reads("x", 1, 5, "")), wire.Outcome_OUTCOME_INPUT_LOST, "in no cache"},
		"wrong size":         {shell("true", reads("x", 1, 5, writeFile(t, "four"))), wire.Outcome_OUTCOME_STAGE_IN_FAILED, "4 bytes and should have 5"},
		"changed input":      {shell("echo more >> x", reads("x", 1, 4, writeFile(t, "four"))), wire.Outcome_OUTCOME_INPUT_CHANGED, "wrote to its input x in place, and so changed /"},
		"changed, same size": {shell("printf FOUR 1<>x", reads("x", 1, 4, writeFile(t, "four"))), wire.Outcome_OUTCOME_INPUT_CHANGED, "wrote to its input x"},
		"changed and failed": {shell("echo more >> x; exit 3", reads("x", 1, 4, writeFile(t, "four"))), wire.Outcome_OUTCOME_INPUT_CHANGED, "wrote to its input x"},
		"input replaced":     {shell("rm x; echo mine >x", reads("x", 1, 4, writeFile(t, "four"))), wire.Outcome_OUTCOME_SUCCEEDED, ""},
		"undeclared":         {shell("cat raw/x.fq"), wire.Outcome_OUTCOME_EXITED, "raw/x.fq: No such file or directory"},
		"output not made":    {shell("cat out", writes("out")), wire.Outcome_OUTCOME_EXITED, "out is an output of this job"},
		"left its folder":    {shell("cd /; cat x", reads("x", 1, 4, writeFile(t, "four"))), wire.Outcome_OUTCOME_EXITED, "was looked for elsewhere"},
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
		"echo a.txt: No such file or directory >&2; exit 3": "a.txt: No such file or directory",
	} {
		if got := q.run("p1", shell(command)).GetMessage(); got != want {
			t.Errorf("%s: message %q, want %q", command, got, want)
		}
	}
}

// What is said of a file that a command did not find is so, or nothing is said.
func TestHintAtMissingFile(t *testing.T) {
	workflow, folder := t.TempDir(), t.TempDir()
	files.Write(t, workflow+"/calibration.txt", "")
	files.Write(t, folder+"/raw/a.txt", "")
	files.Write(t, folder+"/raw/b c.txt", "")
	m := missing{
		inputs:  []string{"raw/a.txt", "raw/b c.txt", "raw/gone"},
		outputs: []string{"sum.txt", "raw/sum.txt", "parts/{n}.txt", "new/x"},
		folder:  folder, workflow: workflow,
	}
	const unknown = "No such file or directory"
	for said, want := range map[string]string{
		"cat: calibration.txt: " + unknown:                             "make it an input",
		"sh: 1: cannot open calibration.txt: No such file":             "make it an input",
		"cat: other.txt: " + unknown:                                   "",
		"FileNotFoundError: [Errno 2] " + unknown + ": 'x y.txt'":      "",
		"cat: 'raw/a.txt ': " + unknown:                                "ends with a space",
		"cat: raw/a.txt: " + unknown:                                   "was looked for elsewhere",
		"cat: " + folder + "/raw/gone: " + unknown:                     "removed or renamed its input raw/gone",
		"sort: cannot read: sum.txt: " + unknown:                       "sum.txt is an output of this job, and was read before",
		"bash: line 1: raw/sum.txt: " + unknown:                        "or was to be written elsewhere: after cd",
		"bash: line 1: parts/1.txt: " + unknown:                        "write mkdir -p parts first",
		"bash: line 1: new/x: " + unknown:                              "write mkdir -p new first",
		"cat: raw/b: " + unknown:                                       "part of the name",
		"cat: c.txt: " + unknown:                                       "part of the name of the input \"raw/b c.txt\"",
		"cat: 'raw/a.txt raw/a.txt': " + unknown:                       "as one word",
		"FileNotFoundError: [Errno 2] " + unknown + ": '/no/such/one'": "there is no /no/such/one on this node",
		"segmentation fault":                                           "",
	} {
		if got := m.hint(said); !strings.Contains(got, want) || (got == "") != (want == "") {
			t.Errorf("%s: %q, not %q", said, got, want)
		}
	}
}

// Of what a job prints, beginning and end are kept: the reason of a failure mostly comes last. What is
// within the limit is whole.
func TestTheEndOfALongOutputIsKept(t *testing.T) {
	q := newTaskQueue(t)
	cfg := q.config("p1")
	cfg.LogBytes = 1000
	q.start(cfg)
	a := shell("echo first; head -c 3000000 /dev/zero | tr '\\0' x; echo; echo last")
	expect(t, q.run("p1", a), wire.Outcome_OUTCOME_SUCCEEDED, "")
	got := contents(t, q.log(a, "out"))
	if !strings.HasPrefix(got, "first\nx") || !strings.HasSuffix(got, "x\nlast\n") ||
		len(got) != 1000+len(process.CutNotice) {
		t.Errorf("%d bytes: %q", len(got), got)
	}
	b := shell("seq 1 200 | tr -d '\\n' | head -c 490; head -c 510 /dev/zero | tr '\\0' y")
	expect(t, q.run("p1", b), wire.Outcome_OUTCOME_SUCCEEDED, "")
	if got := contents(t, q.log(b, "out")); len(got) != 1000 || strings.Count(got, "y") != 510 {
		t.Errorf("%d bytes: %q", len(got), got)
	}
}

// Where what a job prints is its result, none of it is left out.
func TestWholeOutput(t *testing.T) {
	q := newTaskQueue(t)
	cfg := q.config("p1")
	cfg.LogBytes = 1000
	q.start(cfg)
	a := shell("")
	a.Payload = encoded(&wire.Payload{Shell: "seq 300000; seq 200000 >&2", WholeOutput: true})
	expect(t, q.run("p1", a), wire.Outcome_OUTCOME_SUCCEEDED, "")
	for stream, last := range map[string]int{"out": 300000, "err": 200000} {
		want := strings.Builder{}
		for i := 1; i <= last; i++ {
			fmt.Fprintln(&want, i)
		}
		if got := contents(t, q.log(a, stream)); got != want.String() {
			t.Errorf("%s: %d bytes of %d", stream, len(got), want.Len())
		}
	}
	b := shell("seq 300000") // in the same slot
	expect(t, q.run("p1", b), wire.Outcome_OUTCOME_SUCCEEDED, "")
	if got := contents(t, q.log(b, "out")); len(got) != 1000+len(process.CutNotice) {
		t.Errorf("%d bytes", len(got))
	}
}

func TestOutputIsBounded(t *testing.T) {
	q := newTaskQueue(t)
	cfg := q.config("p1")
	cfg.LogBytes = 1000
	q.start(cfg)
	a := shell("head -c 100000 /dev/zero | tr '\\0' x")
	expect(t, q.run("p1", a), wire.Outcome_OUTCOME_SUCCEEDED, "")
	if got := contents(t, q.log(a, "out")); got != strings.Repeat("x", 500)+process.CutNotice+strings.Repeat("x", 500) {
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
	if got := contents(t, q.log(a, "out")); len(got) != 1000+len(process.CutNotice) {
		t.Error(len(got))
	}
}

func TestPatterns(t *testing.T) {
	q := newTaskQueue(t)
	q.start(q.config("p1"))
	command := `mkdir -p parts/deep; cp in parts/c.fq; for x in b a; do echo $x > parts/$x.fq; done
		ln -s /etc/passwd parts/d.fq; mkdir parts/e.fq; echo x > parts/deep/f.fq; echo y > parts/named.fq
		printf 'records parts/a.fq 7\n' > $FAIRWAY_REPORT`
	r := q.run("p1", shell(command, reads("in", 1, 2, writeFile(t, "in")),
		reads("parts/input.fq", 1, 2, writeFile(t, "in")), writes("parts/*.fq", "parts/named.fq", "none/*")))
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
		[ "$FAIRWAY_DEADLINE" -gt 0 ]; [ "$FAIRWAY_TIME_LEFT" = 100 ]; [ "$PWD" = "$FAIRWAY_SANDBOX" ]; cat; cat deep/in; : > out`,
		reads("deep/in", 1, 2, writeFile(t, "in")), writes("out"),
		needs(&wire.Resources{Time: durationpb.New(100 * time.Second)}))
	payload(func(p *wire.Payload) {
		p.Environment = map[string]string{"in": "deep/in", "REPLACED": "yes", "FAIRWAY_JOB": "forged"}
	})(a)
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
		": > file", "mkdir -p a/b; : > a/b/c; chmod 000 a/b a", "rmdir ../$(basename $PWD)", "chmod 500 .",
		"mkfifo pipe; ln -s / root", "mv ../$(basename $PWD) ../away; mkdir ../$(basename $OLDPWD) || true",
	} {
		q.run("p1", shell(left))
		expect(t, q.run("p1", shell(`[ -z "$(ls -A)" ]; : > writable`)), wire.Outcome_OUTCOME_SUCCEEDED, "")
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
	expect(t, q.run("sandbox", shell("head -c 2000000 /dev/zero > out", writes("out"))), wire.Outcome_OUTCOME_OUT_OF_DISK,
		"no space left")
	expect(t, q.run("sandbox", shell("true", reads("x", 1, 2<<20, big))), wire.Outcome_OUTCOME_OUT_OF_DISK,
		"no space left")
	expect(t, q.run("sandbox", shell("echo 1 > out", writes("out"))), wire.Outcome_OUTCOME_SUCCEEDED, "")
	p.stop()

	cfg = q.config("storage")
	cfg.Storage = small + "/se"
	q.start(cfg)
	expect(t, q.run("storage", shell("head -c 2000000 /dev/zero > out", writes("out"))), wire.Outcome_OUTCOME_OUT_OF_DISK,
		"no space left")
	if left, _ := os.ReadDir(small + "/se"); len(left) != 0 {
		t.Error("left behind:", left)
	}

	cfg = q.config("cache")
	cfg.Cache = CacheConfig{Mode: CachePilot, Dir: small + "/cache"}
	q.start(cfg)
	expect(t, q.run("cache", shell("wc -c x", reads("x", 1, 2<<20, big))), wire.Outcome_OUTCOME_SUCCEEDED, "")
	q.until("nothing cached", func() bool { return len(q.pilot("cache").cached) == 0 })
}

// What is said to be full is what is: room, files, a quota, or a place that is not known.
func TestWhatIsFullIsNamed(t *testing.T) {
	plenty := t.TempDir()
	for said, want := range map[string]string{
		"cp: error writing 'x': No space left on device": "no space left in the sandbox, or where else it wrote",
		"write x: no space left on device":               "no space left in the sandbox, or where else it wrote",
		"dd: writing 'x': Disk quota exceeded":           "a quota of the disk is used up",
		"OSError: [Errno 122] Disk quota exceeded: 'x'":  "a quota of the disk is used up",
		"cp: cannot stat 'x': No such file or directory": "",
	} {
		if got := noRoom(plenty, said); got != want {
			t.Errorf("%s: %q", said, got)
		}
	}
	if os.Getuid() != 0 {
		t.Skip("mounting a tmpfs needs root")
	}
	small := t.TempDir()
	if err := syscall.Mount("fairway-test", small, "tmpfs", 0, "size=1m,nr_inodes=2"); err != nil {
		t.Skip("no tmpfs here:", err)
	}
	t.Cleanup(func() { _ = syscall.Unmount(small, syscall.MNT_DETACH) })
	if got := noRoom(small, ""); got != "" {
		t.Error(got)
	}
	files.Write(t, small+"/last", "")
	if got := noRoom(small, "touch: cannot touch 'x': No space left on device"); !strings.Contains(got, "inode") {
		t.Error(got)
	}
}

func (q *taskQueue) log(a *wire.Assignment, stream string) string {
	return filepath.Join(q.folder, "logs", logName(a.GetAttempt(), stream))
}

// What the pilot was started with does not lead a command out of its sandbox.
func TestVariablesDoNotLeadOutOfTheSandbox(t *testing.T) {
	q := newTaskQueue(t)
	elsewhere := t.TempDir()
	if err := os.MkdirAll(filepath.Join(elsewhere, "sub"), 0o755); err != nil {
		t.Fatal(err)
	}
	startup := writeFile(t, "cd "+elsewhere+"; CDPATH="+elsewhere+"\n")
	q.start(q.config("p1"), "CDPATH="+elsewhere, "OLDPWD="+elsewhere, "PWD="+elsewhere, "GLOBIGNORE=*.txt",
		"SHELLOPTS=noclobber:noglob", "BASHOPTS=nullglob", "GIT_DIR="+elsewhere, "BASH_ENV="+startup)
	for _, a := range []*wire.Assignment{
		shell(`mkdir sub; x=$(cd sub && pwd); [ "$x" = "$FAIRWAY_SANDBOX/sub" ]; : > a.txt; [ *.txt = a.txt ]`),
		shell(`! cd - 2>/dev/null`),
		shell(`: > o; : > o; set -- *.none; [ "$1" = '*.none' ]`),
		shell("", argv("sh", "-c", `[ "$PWD" = "$FAIRWAY_SANDBOX" ]`)),
		shell("", argv("env")),
	} {
		expect(t, q.run("p1", a), wire.Outcome_OUTCOME_SUCCEEDED, "")
		if out, _ := os.ReadFile(q.log(a, "out")); strings.Contains(string(out), elsewhere) {
			t.Errorf("%s", out)
		}
	}
}
