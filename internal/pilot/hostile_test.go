package pilot

import (
	"fmt"
	"io/fs"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"
	"google.golang.org/protobuf/types/known/durationpb"

	"fairway/internal/pilot/process"
	"fairway/internal/pilot/view"
	"fairway/internal/wire"
)

// possession is a folder of a person, which no job is to change through a
// sandbox.
type possession struct {
	path   string
	before string
}

func newPossession(t *testing.T) *possession {
	t.Helper()
	m := &possession{path: t.TempDir()}
	if err := os.Mkdir(m.path+"/deep", 0o755); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"file", "out", "report", "inputs", "deep/file"} {
		if err := os.WriteFile(filepath.Join(m.path, name), []byte("mine"), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	m.before = m.state(t)
	t.Cleanup(func() {
		if now := m.state(t); now != m.before {
			t.Errorf("a person's folder was\n%s\nand is\n%s", m.before, now)
		}
	})
	return m
}

// state is all that a person may notice of the folder.
func (m *possession) state(t *testing.T) string {
	t.Helper()
	var b strings.Builder
	err := filepath.WalkDir(m.path, func(path string, _ fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		info, err := os.Lstat(path)
		if err != nil {
			return err
		}
		fmt.Fprintf(&b, "%s %s %d %s", path, info.Mode(), info.Sys().(*syscall.Stat_t).Ino, info.ModTime())
		if info.Mode().IsRegular() {
			text, err := os.ReadFile(path)
			fmt.Fprintf(&b, " %q %v", text, err)
		}
		b.WriteByte('\n')
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return b.String()
}

func needsRoot(t *testing.T) {
	t.Helper()
	if os.Getuid() != 0 {
		t.Skip("needs root")
	}
}

// Whatever kind of file stands where an output is promised, it is taken, copied or
// refused, and nothing outside of the sandbox is touched.
func TestOutputsOfEveryKindOfFile(t *testing.T) {
	q := newTaskQueue(t)
	cfg := q.config("p1")
	cfg.Cache = CacheConfig{Mode: CachePilot, Dir: q.folder + "/cache"}
	q.start(cfg)
	const succeeded, missing = wire.Outcome_OUTCOME_SUCCEEDED, wire.Outcome_OUTCOME_MISSING_OUTPUT
	for name, c := range map[string]struct {
		command string
		root    bool
		output  string // default: out
		outcome wire.Outcome
		want    string // in the message, or the contents
	}{
		"regular":           {command: "printf x > out", want: "x"},
		"no bytes":          {command: ": > out"},
		"sparse":            {command: "truncate -s 100M out", want: strings.Repeat("\x00", 100<<20)},
		"hard link inside":  {command: "printf x > a; ln a out", want: "x"},
		"hard link outside": {command: "ln $mine/file out", want: "mine"},
		"moved input":       {command: "mv in out", want: "mine"},
		"linked input":      {command: "ln in out", want: "mine"},
		"input left alone":  {command: ":", output: "in", want: "mine"},
		"of another owner":  {command: "printf x > out; chown 65534 out", root: true, want: "x"},
		"folder":            {command: "mkdir out", outcome: missing, want: "a folder"},
		"named pipe":        {command: "mkfifo out", outcome: missing, want: "a named pipe"},
		"socket":            {command: `perl -MIO::Socket::UNIX -e 'IO::Socket::UNIX->new(Local => "out", Listen => 1) or die'`, outcome: missing, want: "a socket"},
		"device":            {command: "mknod out c 1 3", root: true, outcome: missing, want: "a device"},
		"link inside":       {command: "printf x > a; ln -s a out", outcome: missing, want: "a symbolic link"},
		"link outside":      {command: "ln -s $mine/file out", outcome: missing, want: "a symbolic link"},
		"dangling link":     {command: "ln -s nothing out", outcome: missing, want: "a symbolic link"},
		"link to itself":    {command: "ln -s out out", outcome: missing, want: "a symbolic link"},
		"folder is a link":  {command: "rmdir d; ln -s $mine d", output: "d/file", outcome: missing, want: "d is a symbolic link"},
		"folder is a file":  {command: "rmdir d; : > d", output: "d/file", outcome: missing, want: "d is a regular file"},
		"folder of pattern": {command: "rmdir d; ln -s $mine d", output: "d/*", outcome: missing, want: "is to be in d, which is a symbolic link"},
		"mounted folder":    {command: "mount --bind $mine d", root: true, output: "d/file", outcome: missing, want: "mounted"},
		"mounted pattern":   {command: "mount --bind $mine d", root: true, output: "d/*", outcome: missing, want: "mounted"},
		"mounted file":      {command: ": > out; mount --bind $mine/file out", root: true, outcome: missing, want: "mounted"},
		"sandbox is a link": {command: "d=$PWD; cd /; mv $d $d.away; ln -s $mine $d", outcome: missing, want: "is not there"},
		"sandbox is gone":   {command: "rm -r $PWD", outcome: missing, want: "is not there"},
		"mounted sandbox":   {command: "mount --bind $mine $PWD", root: true, outcome: missing, want: "is not there"},
	} {
		t.Run(name, func(t *testing.T) {
			if c.root {
				needsRoot(t)
			}
			if c.output == "" {
				c.output = "out"
			}
			mine := newPossession(t)
			r := q.run("p1", shell("mine="+mine.path+"; "+c.command, writes(c.output),
				tagged(t, reads("in", 0, 4, mine.path+"/deep/file"), mine.path+"/deep/file")))
			if c.outcome != succeeded {
				expect(t, r, c.outcome, c.want)
				return
			}
			expect(t, r, succeeded, "")
			o := r.GetOutputs()[0]
			if got := contents(t, o.GetPfn()); got != c.want || o.GetSize() != int64(len(c.want)) {
				t.Errorf("stored %d bytes, want %d", len(got), len(c.want))
			}
			info, err := os.Stat(strings.TrimPrefix(o.GetPfn(), "file:"))
			if err != nil || info.Mode().Perm()&0o222 != 0 || info.Sys().(*syscall.Stat_t).Blocks > 1<<10 {
				t.Error(info.Mode(), err)
			}
		})
	}
	for _, left := range mounts(t) {
		if strings.HasPrefix(left, q.folder) {
			t.Error("still mounted:", left)
		}
	}
	expect(t, q.run("p1", shell("printf x > out", writes("out"))), succeeded, "")
}

// mounts are the paths on which something is mounted.
func mounts(t *testing.T) (paths []string) {
	t.Helper()
	for line := range strings.Lines(contents(t, "/proc/self/mounts")) {
		paths = append(paths, strings.Fields(line)[1])
	}
	return paths
}

// What somebody still has open for writing is not what is stored.
func TestOutputThatIsOpenForWritingIsCopied(t *testing.T) {
	q := newTaskQueue(t)
	q.start(q.config("p1"))
	folder := t.TempDir()
	if err := unix.Mkfifo(folder+"/go", 0o644); err != nil {
		t.Fatal(err)
	}
	a := shell("printf before > out; echo $PWD/out > "+folder+"/path; read line < "+folder+"/go", writes("out"))
	q.assign("p1", a)
	path := strings.TrimSpace(appears(t, folder+"/path"))
	f, err := os.OpenFile(path, os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if err := os.WriteFile(folder+"/go", []byte("go\n"), 0); err != nil {
		t.Fatal(err)
	}
	r := q.result(a.GetAttempt())
	expect(t, r, wire.Outcome_OUTCOME_SUCCEEDED, "")
	if _, err := f.WriteString("after!"); err != nil {
		t.Fatal(err)
	}
	if got := contents(t, r.GetOutputs()[0].GetPfn()); got != "before" {
		t.Errorf("what is stored became %q", got)
	}
}

// A link that matches a pattern is no output, and a person is told.
func TestWhatMatchesAPatternAndIsNoFileIsTold(t *testing.T) {
	q := newTaskQueue(t)
	q.start(q.config("p1"))
	r := q.run("p1", shell("mkdir -p p/d; echo x > p/a; ln -s a p/b; mkfifo p/c", writes("p/*")))
	expect(t, r, wire.Outcome_OUTCOME_SUCCEEDED, "")
	notes := strings.Join(r.GetNotes(), "\n")
	if len(r.GetOutputs()) != 1 ||
		!strings.Contains(notes, "matches the output p/* and is left out, since it is no regular file; so are 1 more") {
		t.Error(r.GetOutputs(), notes)
	}
}

// The report is a file of the pilot's, whatever the command has made of its name.
func TestReportThatIsNoFile(t *testing.T) {
	q := newTaskQueue(t)
	cfg := q.config("p1")
	cfg.MilliCPUs = 1000
	p := q.start(cfg)
	mine := newPossession(t)
	const failed = wire.Outcome_OUTCOME_STAGE_OUT_FAILED
	for name, c := range map[string]struct {
		command string
		outcome wire.Outcome
		want    string
	}{
		"pipe":             {`rm $r; mkfifo $r`, failed, "a named pipe"},
		"pipe with writer": {`rm $r; mkfifo $r; setsid sh -c "echo x > $r" & `, failed, "a named pipe"},
		"link":             {`ln -sf $mine/report $r`, failed, "a symbolic link"},
		"folder":           {`rm $r; mkdir $r`, failed, "a folder"},
		"gone":             {`rm $r`, wire.Outcome_OUTCOME_SUCCEEDED, ""},
		"too long":         {`head -c 20000000 /dev/zero | tr '\0' 1 > $r`, failed, "longer than"},
		"folder replaced":  {`mv ${r%/*} ${r%/*}.away; ln -s $mine ${r%/*}`, wire.Outcome_OUTCOME_SUCCEEDED, ""},
		"folder mounted":   {`mount --bind $mine ${r%/*} || true`, wire.Outcome_OUTCOME_SUCCEEDED, ""},
	} {
		t.Run(name, func(t *testing.T) {
			r := q.run("p1", shell("r=$FAIRWAY_REPORT; mine="+mine.path+"; : > out; "+c.command, writes("out")))
			expect(t, r, c.outcome, c.want)
			r = q.run("p1", shell("printf 'records out 3' > $FAIRWAY_REPORT; : > out", writes("out")))
			expect(t, r, wire.Outcome_OUTCOME_SUCCEEDED, "")
			if got := r.GetOutputs()[0].GetRecords(); got != 3 {
				t.Error("records of the next attempt:", got)
			}
		})
	}
	p.stop()
	if left, _ := os.ReadDir(q.folder + "/sandbox"); len(left) != 0 {
		t.Error("left in the sandbox folder:", left)
	}
}

// What a job has mounted, or linked, is not emptied when its sandbox is: by its
// own pilot, and by the one that comes after a pilot that was killed.
func TestRemovalCrossesNoMountAndNoLink(t *testing.T) {
	needsRoot(t)
	for _, killed := range []bool{false, true} {
		t.Run(fmt.Sprintf("killed %v", killed), func(t *testing.T) {
			q := newTaskQueue(t)
			p := q.start(q.config("p1"))
			mine := newPossession(t)
			ready := t.TempDir() + "/ready"
			command := "mkdir -p a/b; mount --bind " + mine.path + " a/b; mount --bind " + mine.path + " a/b/deep; ln -s " +
				mine.path + " link; cat /proc/self/mounts > " + ready
			if killed {
				q.assign("p1", shell(command+"; sleep 1000"))
				appears(t, ready)
				if err := p.Process.Kill(); err != nil {
					t.Fatal(err)
				}
				_ = p.wait()
				q.start(q.config("p2"))
				expect(t, q.run("p2", shell("true")), wire.Outcome_OUTCOME_SUCCEEDED, "")
			} else {
				if r := q.run("p1", shell(command)); r.GetOutcome() != wire.Outcome_OUTCOME_SUCCEEDED {
					t.Skip("nothing can be mounted here:", r.GetMessage())
				}
				expect(t, q.run("p1", shell(`[ -z "$(ls -A)" ]`)), wire.Outcome_OUTCOME_SUCCEEDED, "")
				p.stop()
			}
			if _, err := os.Stat(q.folder + "/sandbox/p1" + q.mark()); err == nil {
				t.Error("the sandbox is still there")
			}
		})
	}
}

// A mark that no attempt has does not hide a process from its attempt's end.
func TestForgedMarkHidesNoProcess(t *testing.T) {
	q := newTaskQueue(t)
	q.start(q.config("p1"))
	bystander := shell("sleep 1000 & wait")
	q.assign("p1", bystander)
	q.started("p1", bystander.GetAttempt())
	for _, mark := range []string{"7", fmt.Sprint(bystander.GetAttempt()), "x", "18446744073709551616"} {
		for _, away := range []string{"", "cd /; "} {
			file := filepath.Join(t.TempDir(), "pid")
			command := "FAIRWAY_ATTEMPT=" + mark + " %s sh -c '" + away + "echo $$ > " + file +
				"; exec sleep 7777' & while ! [ -s " + file + " ]; do sleep 0.01; done"
			how := "setsid"
			if mark == fmt.Sprint(bystander.GetAttempt()) {
				how = "" // in its session it is known whatever it says
			} else if away != "" {
				continue // it may be of any attempt then
			}
			expect(t, q.run("p1", shell(fmt.Sprintf(command, how))), wire.Outcome_OUTCOME_SUCCEEDED, "")
			gone(t, number(t, file))
		}
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	if r := q.results[bystander.GetAttempt()]; r != nil {
		t.Error("the bystander ended:", r)
	}
}

// Nothing that a job has started outlives its pilot, also if it is not known
// which job that was.
func TestProcessOfUnknownJobEndsWithThePilot(t *testing.T) {
	q := newTaskQueue(t)
	p := q.start(q.config("p1"))
	bystander := shell("sleep 1000 & wait")
	q.assign("p1", bystander)
	q.started("p1", bystander.GetAttempt())
	file := filepath.Join(t.TempDir(), "pid")
	expect(t, q.run("p1", shell("cd /; FAIRWAY_ATTEMPT=7 setsid sh -c 'echo $$ > "+file+"; exec sleep 7777' & while ! "+
		"[ -s "+file+" ]; do sleep 0.01; done")), wire.Outcome_OUTCOME_SUCCEEDED, "")
	pid := number(t, file)
	p.stop()
	gone(t, pid)
}

// person starts a process of somebody who is no job.
func person(t *testing.T, folder string, environment ...string) *exec.Cmd {
	t.Helper()
	c := exec.Command("sleep", "1000")
	c.Dir, c.Env = folder, append(os.Environ(), environment...)
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := c.Process.Signal(syscall.Signal(0)); err != nil || process.StatOf(c.Process.Pid)[0] == "Z" {
			t.Error("the process of a person was ended:", c.Dir, environment)
		}
		_ = c.Process.Kill()
		_ = c.Wait()
	})
	return c
}

// A pilot that cleans up behind another one ends only what comes from it.
func TestProcessInADeadPilotsSandboxLives(t *testing.T) {
	q := newTaskQueue(t)
	mark := process.PilotVariable + "=p1" + q.mark()
	person(t, "/", mark) // from before the pilot
	waitForClockTick(t)
	p := q.start(q.config("p1"))
	file, left := filepath.Join(t.TempDir(), "pwd"), filepath.Join(t.TempDir(), "pid")
	q.assign("p1", shell("setsid sh -c 'echo $$ > "+left+"; exec sleep 1000' & pwd > "+file+"; sleep 1000"))
	sandbox := strings.TrimSpace(appears(t, file))
	pid := number(t, left)
	person(t, sandbox)

	// A copy of the folder while the pilot lives is no folder of a dead pilot.
	other := newTaskQueue(t)
	if out, err := exec.Command("cp", "-a", q.folder+"/sandbox", other.folder+"/sandbox").CombinedOutput(); err != nil {
		t.Fatal(string(out))
	}
	other.start(other.config("p2"))
	expect(t, other.run("p2", shell("true")), wire.Outcome_OUTCOME_SUCCEEDED, "")
	if err := syscall.Kill(pid, 0); err != nil {
		t.Error("a pilot beside a copy ended the process of a live job")
	}
	if _, err := os.Stat(other.folder + "/sandbox/p1" + q.mark()); err == nil {
		t.Error("the copy is still there")
	}

	if err := p.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = p.wait()
	q.start(q.config("p3"))
	expect(t, q.run("p3", shell("true")), wire.Outcome_OUTCOME_SUCCEEDED, "")
	gone(t, pid)
}

// waitForClockTick returns when a process that starts now starts later than all
// that run, as the kernel counts.
func waitForClockTick(t *testing.T) {
	t.Helper()
	began := process.StartOf(person(t, "/").Process.Pid)
	for range 1000 {
		c := exec.Command("true")
		if err := c.Start(); err != nil {
			t.Fatal(err)
		}
		later := process.StartOf(c.Process.Pid) > began
		_ = c.Wait()
		if later {
			return
		}
	}
	t.Fatal("the clock stands still")
}

// An attempt of which the kernel ended a part for memory has failed, whatever
// the rest of it says.
func TestOutOfMemoryInAPartFailsTheWhole(t *testing.T) {
	boxes := process.NewMemoryBoxes("fairway-test-" + fmt.Sprint(time.Now().UnixNano()))
	t.Cleanup(boxes.Close)
	if !boxes.Possible() {
		t.Skip("no cgroup for memory can be made here")
	}
	q := newTaskQueue(t)
	q.start(q.config("p1"))
	for _, command := range []string{
		"head -c 200000000 /dev/zero | tail -c 150000000 | wc -c > out",
		"( head -c 200000000 /dev/zero | tail > out ) & wait; : > out",
		"head -c 200000000 /dev/zero | tail > /dev/null || true; echo > out",
	} {
		r := q.run("p1", shell(command, needs(&wire.Resources{MemoryBytes: 50 << 20}), writes("out")))
		expect(t, r, wire.Outcome_OUTCOME_OUT_OF_MEMORY, "more than its 52.4 MB")
		if len(r.GetOutputs()) != 0 {
			t.Error(r.GetOutputs())
		}
	}
}

// stalling is a server that never comes to the end of a file. Its channel is closed
// when somebody reads.
func stalling(t *testing.T) (url string, asked <-chan struct{}) {
	t.Helper()
	reading := make(chan struct{})
	var once sync.Once
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Length", "1000000")
		if r.Method == http.MethodHead {
			return
		}
		_, _ = w.Write([]byte("x"))
		w.(http.Flusher).Flush()
		once.Do(func() { close(reading) })
		<-r.Context().Done()
	}))
	t.Cleanup(s.Close)
	return s.URL + "/file", reading
}

// A server that stalls holds up neither the end of an attempt, nor that it is given back, nor
// the end of a pilot which is to leave when what runs has ended.
func TestStalledStageInCanBeEnded(t *testing.T) {
	for _, how := range []string{"end", "give back", "leave"} {
		t.Run(how, func(t *testing.T) {
			q := newTaskQueue(t)
			p := q.start(q.config("p1"))
			url, asked := stalling(t)
			a := shell("true", reads("x", 1, 1000000, url), needs(&wire.Resources{Time: durationpb.New(5 * time.Second)}))
			q.assign("p1", a)
			<-asked
			switch how {
			case "end":
				q.end("p1", a.GetAttempt())
				expect(t, q.result(a.GetAttempt()), wire.Outcome_OUTCOME_ENDED, "ended by the TaskQueue")
			case "give back":
				q.giveBack("p1", a.GetAttempt())
				expect(t, q.result(a.GetAttempt()), wire.Outcome_OUTCOME_ENDED, "before its command started")
			case "leave":
				q.change(func() { q.pilot("p1").leave, q.pilot("p1").news = true, true })
				expect(t, q.result(a.GetAttempt()), wire.Outcome_OUTCOME_ENDED, "before its command started")
				if err := p.wait(); err != nil {
					t.Error(err)
				}
			}
		})
	}
}

// `needs: time` bounds the command. A stage-in that stalls ends by itself, whatever it is,
// and says which file it was; then the job may be tried again.
func TestStalledStageInEndsByItself(t *testing.T) {
	q := newTaskQueue(t)
	cfg := q.config("p1")
	cfg.StallTime = 50 * time.Millisecond
	q.start(cfg)
	url, _ := stalling(t)
	short := needs(&wire.Resources{Time: durationpb.New(5 * time.Second)})
	r := q.run("p1", shell("cat x", reads("x", 1, 1000000, url), short))
	expect(t, r, wire.Outcome_OUTCOME_STAGE_IN_FAILED, "input x: get "+url+": "+url+": the transfer brought less than "+
		"1024 bytes in 50ms")
	if r.GetUsage().GetStart() != nil {
		t.Error("the command was started")
	}
	input := writeFile(t, "input")
	expect(t, q.run("p1", shell("cat x", reads("x", 1, 5, input), short)), wire.Outcome_OUTCOME_SUCCEEDED, "")
}

// The checksum of an output may take long, too.
func TestChecksumOfALargeOutputCanBeEnded(t *testing.T) {
	q := newTaskQueue(t)
	q.start(q.config("p1"))
	a := shell("truncate -s 8T out", writes("out"))
	q.assign("p1", a)
	q.started("p1", a.GetAttempt())
	q.end("p1", a.GetAttempt())
	expect(t, q.result(a.GetAttempt()), wire.Outcome_OUTCOME_ENDED, "")
}

// What a command has printed stays, whatever it does with the name of its stream.
func TestTruncatedStreamKeepsTheLog(t *testing.T) {
	q := newTaskQueue(t)
	q.start(q.config("p1"))
	a := shell("echo one >&2; echo two > /dev/stderr; echo three >&2; echo four | tee /dev/stderr > /dev/null; echo " +
		"out; echo more > /dev/stdout; sh -c 'truncate -s 0 /dev/stdout || true' 2> /dev/null")
	expect(t, q.run("p1", a), wire.Outcome_OUTCOME_SUCCEEDED, "")
	if got := contents(t, q.log(a, "err")); got != "one\ntwo\nthree\nfour\n" {
		t.Errorf("%q", got)
	}
	if got := contents(t, q.log(a, "out")); got != "out\nmore\n" {
		t.Errorf("%q", got)
	}
}

// What one attempt does to its streams does not reach the next one.
func TestStreamsAreAsNewForEachAttempt(t *testing.T) {
	q := newTaskQueue(t)
	cfg := q.config("p1")
	cfg.MilliCPUs = 1000
	q.start(cfg)
	expect(t, q.run("p1", shell("echo one; perl -e 'use Fcntl; fcntl(STDOUT, F_SETFL, O_NONBLOCK)'")),
		wire.Outcome_OUTCOME_SUCCEEDED, "")
	a := shell("head -c 3000000 /dev/zero")
	expect(t, q.run("p1", a), wire.Outcome_OUTCOME_SUCCEEDED, "")
	if got := contents(t, q.log(a, "out")); len(got) != 3000000 {
		t.Error(len(got), "bytes are kept")
	}
}

func TestSandboxOfAFailedAttemptIsKept(t *testing.T) {
	q := newTaskQueue(t)
	cfg := q.config("p1")
	cfg.MilliCPUs, cfg.KeepSandbox = 1000, true
	p := q.start(cfg)
	kept := q.folder + "/sandbox/" + KeptFolder
	for count, command := range []string{
		"echo half > out; exit 3", "mkdir deep; echo half > deep/out", "echo half > out; kill $$",
	} {
		a := shell(command, writes("out2"))
		r := q.run("p1", a)
		path := fmt.Sprintf("%s/%d", kept, a.GetAttempt())
		if r.GetOutcome() == wire.Outcome_OUTCOME_SUCCEEDED || !slices.Contains(r.GetNotes(), "its sandbox is kept: "+path) {
			t.Error(r.GetOutcome(), r.GetNotes())
		}
		found, _ := filepath.Glob(path + "/*")
		if all, _ := os.ReadDir(kept); len(found) != 1 || len(all) != count+1 {
			t.Error(found, all)
		}
		expect(t, q.run("p1", shell(`[ -z "$(ls -A)" ]`)), wire.Outcome_OUTCOME_SUCCEEDED, "")
	}
	for range MaxKeptSandboxes {
		q.run("p1", shell("false"))
	}
	r := q.run("p1", shell("false"))
	if notes := strings.Join(r.GetNotes(), "; "); !strings.Contains(notes,
		"its sandbox is not kept: 20 others are in "+kept) {
		t.Error(notes)
	}
	p.stop()
	q.start(q.config("p2"))
	expect(t, q.run("p2", shell("false")), wire.Outcome_OUTCOME_EXITED, "")
	if all, _ := os.ReadDir(kept); len(all) != MaxKeptSandboxes {
		t.Error(len(all), "are kept")
	}
}

// A pilot that was killed leaves nothing behind once somebody has cleaned up.
func TestCleanUpAfterAKilledPilot(t *testing.T) {
	q := newTaskQueue(t)
	alive, killed := q.start(q.config("alive")), q.start(q.config("killed"))
	defer alive.stop()
	file := filepath.Join(t.TempDir(), "pid")
	q.assign("killed", shell("setsid sh -c 'echo $$ > "+file+"; exec sleep 1000' & sleep 1000"))
	pid := number(t, file)
	q.until("both", func() bool { return q.pilots["alive"] != nil })
	if err := killed.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = killed.wait()
	if err := CleanUp(q.folder+"/sandbox", slog.Default()); err != nil {
		t.Error(err)
	}
	gone(t, pid)
	left, _ := os.ReadDir(q.folder + "/sandbox")
	if len(left) != 1 || left[0].Name() != "alive"+q.mark() {
		t.Error(left)
	}
	if err := CleanUp(q.folder+"/nothing", slog.Default()); err != nil {
		t.Error(err)
	}
}

// Where an attempt has no cgroup, what is known of a process that was ended for
// memory is told.
func TestOutOfMemoryWithoutACgroupIsNoted(t *testing.T) {
	boxes := process.NewMemoryBoxes("fairway-test-" + fmt.Sprint(time.Now().UnixNano()))
	if !boxes.Possible() || process.KillsFile() != "/proc/vmstat" {
		t.Skip("no process can be ended for memory here in a way that counts")
	}
	t.Cleanup(boxes.Close)
	q := newTaskQueue(t)
	q.start(q.config("p1"))
	folder := t.TempDir()
	if err := unix.Mkfifo(folder+"/go", 0o644); err != nil {
		t.Fatal(err)
	}
	a := shell("sleep 0.2; echo x > " + folder + "/ready; read line < " + folder + "/go")
	q.assign("p1", a)
	appears(t, folder+"/ready")
	box := boxes.Open(1, 20<<20)
	path, argv := box.Command("/bin/sh", []string{"sh", "-c", "head -c 100000000 /dev/zero | tail > /dev/null"})
	c := &exec.Cmd{Path: path, Args: argv}
	_ = c.Run()
	if !box.Exceeded() {
		t.Fatal("nothing was ended for memory")
	}
	box.Close()
	if err := os.WriteFile(folder+"/go", []byte("go\n"), 0); err != nil {
		t.Fatal(err)
	}
	r := q.result(a.GetAttempt())
	expect(t, r, wire.Outcome_OUTCOME_SUCCEEDED, "")
	if notes := strings.Join(r.GetNotes(), "; "); !strings.Contains(notes,
		"the kernel ended processes for lack of memory") {
		t.Error(notes)
	}
}

// A job with a strict sandbox sees its own files and what it declares, wherever that stands, and
// neither the state of its run, nor other sandboxes, results and caches, nor keys and tokens. All
// else is as without.
func TestStrictSandbox(t *testing.T) {
	if err := view.Possible(); err != nil {
		t.Skip(err)
	}
	q := newTaskQueue(t)
	elsewhere := t.TempDir()
	token := oldFile(t, elsewhere+"/token", "the secret")
	away := oldFile(t, elsewhere+"/away", "from away")
	oldFile(t, q.folder+"/.fairway/authority", "the secret")
	oldFile(t, q.folder+"/results/other", "the secret")
	declared := oldFile(t, q.folder+"/in/declared", "declared")
	if err := os.Symlink(away, q.folder+"/in/link"); err != nil {
		t.Fatal(err)
	}
	cfg := q.config("p1")
	cfg.Workflow, cfg.Cache, cfg.Sandbox, cfg.WatchInputs = q.folder,
		CacheConfig{Mode: CacheHost, Dir: q.folder + "/cache"}, SandboxSteps, WatchAll
	cfg.Grace = 100 * time.Millisecond
	q.start(cfg, "AWS_SECRET_ACCESS_KEY=the secret", "BEARER_TOKEN=the secret", "BEARER_TOKEN_FILE="+token,
		"HARMLESS=harmless")
	strict := payload(func(p *wire.Payload) { p.Strict = true })
	// Another attempt runs meanwhile, whose sandbox holds a secret.
	other := shell("echo the secret > x; echo > "+elsewhere+"/ready; sleep 1000", writes("x"))
	q.assign("p1", other)
	appears(t, elsewhere+"/ready")

	const succeeded, exited = wire.Outcome_OUTCOME_SUCCEEDED, wire.Outcome_OUTCOME_EXITED
	for name, command := range map[string]string{
		"the state":           "cat $w/.fairway/authority",
		"results":             "cat $w/results/other",
		"stored files":        "cat $w/se/*",
		"other sandboxes":     "cat ../*/x",
		"by their path":       "find $w -name x -exec cat {} + 2>/dev/null",
		"a cache":             "cat $w/cache/*/*",
		"the socket":          "perl -MIO::Socket::UNIX -e 'IO::Socket::UNIX->new(Peer => $ARGV[0]) and print \"the secret\"' " + strings.TrimPrefix(q.address, "unix:"),
		"variables":           "env",
		"the token file":      "cat " + token,
		"the pilot's":         "cat /proc/$PPID/environ",
		"the pilot's folders": "cat /proc/$PPID/root/$w/.fairway/authority /proc/$PPID/cwd/* /proc/$PPID/fd/*",
		"by unmounting":       "umount -l $w; unshare -rm umount -l $w; cat $w/.fairway/authority",
		"another process":     "cat /proc/[0-9]*/environ /proc/[0-9]*/cwd/x",
	} {
		a := shell("set +euo pipefail; w="+q.folder+"; { "+command+"; } > out 2>&1; exit 0", writes("out"), strict)
		r := q.run("p1", a)
		expect(t, r, succeeded, "")
		if said := contents(t, r.GetOutputs()[0].GetPfn()); strings.Contains(said, "the secret") {
			t.Errorf("%s: %s", name, said)
		}
	}

	inputs := []func(*wire.Assignment){
		tagged(t, reads("a", 0, 8, declared), declared),
		tagged(t, reads("b", 0, 9, q.folder+"/in/link"), q.folder+"/in/link"),
		tagged(t, reads("c", 0, 9, away), away), strict,
	}
	with := func(command string, more ...func(*wire.Assignment)) *wire.Assignment {
		return shell(command, append(slices.Clone(inputs), more...)...)
	}
	streamed := func(a *wire.Assignment) {
		for _, in := range a.Inputs {
			in.Access = wire.Access_ACCESS_STREAM
		}
	}
	for range 2 { // past the cache, and from it
		for name, change := range map[string]func(*wire.Assignment){
			"linked":   func(*wire.Assignment) {},
			"streamed": streamed,
		} {
			r := q.run("p1", with("cat a b c > out; echo records out 3 > $FAIRWAY_REPORT; test \"$HARMLESS\" = harmless; "+
				"while read f; do cat $f; done < $FAIRWAY_INPUTS_FILE > /dev/null", writes("out"), change))
			expect(t, r, succeeded, "")
			if len(r.GetOutputs()) != 1 || contents(t, r.GetOutputs()[0].GetPfn()) != "declaredfrom awayfrom away" ||
				r.GetOutputs()[0].GetRecords() != 3 || len(r.GetNotes()) != 0 {
				t.Error(name, r)
			}
		}
	}
	expect(t, q.run("p1", with("exit 7")), exited, "")
	expect(t, q.run("p1", with("kill -SEGV $$")), wire.Outcome_OUTCOME_SIGNALLED, "SIGSEGV")
	expect(t, q.run("p1", with("sleep 1000", needs(&wire.Resources{Time: durationpb.New(300 * time.Millisecond)}))),
		wire.Outcome_OUTCOME_OUT_OF_TIME, "")
	expect(t, q.run("p1", with("head -c 200000000 /dev/zero | tail -c 150000000 | wc -c",
		needs(&wire.Resources{MemoryBytes: 50 << 20}))), wire.Outcome_OUTCOME_OUT_OF_MEMORY, "")
	left := filepath.Join(elsewhere, "pid")
	expect(t, q.run("p1", with("setsid sh -c 'echo $$ > "+left+"; exec sleep 1000' & while ! [ -s "+left+
		" ]; do sleep 0.01; done")), succeeded, "")
	gone(t, number(t, left))
	q.end("p1", other.GetAttempt()) // which is watched until then
	expect(t, q.result(other.GetAttempt()), wire.Outcome_OUTCOME_ENDED, "")
	undeclared := oldFile(t, elsewhere+"/data/undeclared", "x")
	if notes := strings.Join(q.run("p1", with("cat "+undeclared)).GetNotes(), "; "); !strings.Contains(notes, undeclared) {
		t.Error("notes:", notes)
	}
	ended := with("trap '' TERM; echo > " + elsewhere + "/trapped; sleep 1000")
	q.assign("p1", ended)
	appears(t, elsewhere+"/trapped")
	q.end("p1", ended.GetAttempt())
	expect(t, q.result(ended.GetAttempt()), wire.Outcome_OUTCOME_ENDED, "")
	expect(t, q.run("p1", shell("cat "+token)), succeeded, "") // without, all is as it was
}
