package warm

import (
	"context"
	"errors"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"fairway/internal/pilot/process"
	"fairway/lib/sched"
)

// fixture is a pilot with nothing but workers and a folder for jobs.
type fixture struct {
	*Workers
	t      *testing.T
	python string
	jobs   uint64
}

func newFixture(t *testing.T) *fixture {
	t.Helper()
	python, err := exec.LookPath("python3")
	if err != nil {
		t.Skip("there is no python3")
	}
	if out, err := exec.Command(python, "-c", "import sys; print(sys.executable)").Output(); err == nil {
		python = strings.TrimSpace(string(out)) // and not a script that finds it
	}
	tree, err := process.NewTree(sched.Default())
	if err != nil {
		t.Fatal(err)
	}
	w := &Workers{
		Tree: tree, Env: os.Environ(), Dir: t.TempDir(), Log: slog.New(slog.DiscardHandler),
		Find: func(program, _ string) (string, error) { return exec.LookPath(program) }, AnswerTime: AnswerTime,
	}
	t.Cleanup(func() { w.Close(); tree.Close() })
	return &fixture{Workers: w, t: t, python: python}
}

// run has a worker begin a job, and returns its exit code and what it has printed.
func (f *fixture) run(named string, argv []string, env ...string) (code int, printed string, err error) {
	f.t.Helper()
	f.jobs++
	folder := f.t.TempDir()
	out, err := os.Create(filepath.Join(folder, "out"))
	if err != nil {
		f.t.Fatal(err)
	}
	defer out.Close()
	null, err := os.Open(os.DevNull)
	if err != nil {
		f.t.Fatal(err)
	}
	defer null.Close()
	lead, err := f.Start(named, &Job{
		Attempt: f.jobs, Path: f.python, Argv: argv, Env: append(f.Env, env...), Dir: folder,
		Files: [3]uintptr{null.Fd(), out.Fd(), out.Fd()},
	})
	if err != nil {
		return 0, "", err
	}
	exit, err := f.Tree.Reap(context.Background(), lead)
	if err != nil {
		f.t.Fatal(err)
	}
	if err := f.Tree.Clear(f.jobs); err != nil {
		f.t.Fatal(err)
	}
	f.Tree.Forget(f.jobs)
	text, err := os.ReadFile(out.Name())
	if err != nil {
		f.t.Fatal(err)
	}
	return exit.Status.ExitStatus(), string(text), nil
}

// becomes has jobs be those of another interpreter.
func (f *fixture) becomes(program string) *fixture {
	f.t.Helper()
	path, err := exec.LookPath(program)
	if err != nil {
		f.t.Skip("there is no " + program)
	}
	f.python = path
	return f
}

// kind names the worker for Python by its interpreter.
func (f *fixture) kind(modules string) string { return f.python + " " + Script + " " + modules }

// program names a worker that is a program of a user.
func (f *fixture) program(text string) string {
	f.t.Helper()
	folder := f.t.TempDir()
	for name, body := range map[string][]byte{"worker.py": python, "own.py": []byte("import os, sys, worker\n" + text)} {
		if err := os.WriteFile(filepath.Join(folder, name), body, 0o666); err != nil {
			f.t.Fatal(err)
		}
	}
	return f.python + " " + filepath.Join(folder, "own.py")
}

// worker is the only one that there is.
func (f *fixture) worker() *worker {
	for _, k := range f.known {
		return k
	}
	return nil
}

// A job finds what a new interpreter finds, in all ways in which one is called.
func TestJobsAreAsInANewInterpreter(t *testing.T) {
	f := newFixture(t)
	script := filepath.Join(t.TempDir(), "script.py")
	if err := os.WriteFile(script, []byte("import sys, os\nprint(__name__, sys.argv[1:], os.getcwd() == sys.argv[2], "+
		"os.environ['ABC'], sys.path[0] == os.path.dirname(__file__))\n"), 0o666); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		name string
		argv []string
		code int
		want string
	}{
		{"text", []string{"python3", "-c", "import sys; print(sys.argv)", "a b"}, 0, "['-c', 'a b']\n"},
		{"module", []string{"python3", "-m", "json.tool", "--help"}, 0, "usage"},
		{"code", []string{"python3", "-c", "import sys; sys.exit(7)"}, 7, ""},
		{"message", []string{"python3", "-c", "import sys; sys.exit('no')"}, 1, "no\n"},
		{"error", []string{"python3", "-c", "1/0"}, 1, "ZeroDivisionError"},
		{"at exit", []string{"python3", "-c", "import atexit; atexit.register(print, 'bye')"}, 0, "bye\n"},
		{"pickled", []string{"python3", "-c", "import pickle\nclass A: pass\nprint(type(pickle.loads(pickle.dumps(A()))) is A)"}, 0, "True\n"},
		{"options", []string{"python3", "-I", "-c", "import sys; print(sys.flags.isolated)"}, 0, "1\n"},
		{"signals", []string{"python3", "-c", "import os; os.kill(os.getpid(), 9)"}, -1, ""},
		{"session", []string{"python3", "-c", "import os; print(os.getsid(0) == os.getpid(), os.getppid() == " + strconv.Itoa(os.Getpid()) + ")"}, 0, "True True\n"},
		{"preloaded", []string{"python3", "-c", "import sys; print('decimal' in sys.modules)"}, 0, "True\n"},
	} {
		code, printed, err := f.run(f.kind("decimal"), c.argv, "ABC=d")
		if err != nil || code != c.code || !strings.Contains(printed, c.want) {
			t.Errorf("%s: code %d, printed %q, %v", c.name, code, printed, err)
		}
	}
	if code, printed, err := f.run(f.kind("decimal"), []string{"python3", script, "x", "y"}, "ABC=d"); err != nil ||
		code != 0 || printed != "__main__ ['x', 'y'] False d True\n" {
		t.Errorf("script: code %d, printed %q, %v", code, printed, err)
	}
	first, second := "", ""
	for _, p := range []*string{&first, &second} {
		_, *p, _ = f.run(f.kind("decimal"), []string{"python3", "-c", "import random; print(random.random())"})
	}
	if first == second {
		t.Errorf("two jobs drew the same random number %s", first)
	}
}

// What a module imports when it is asked for is imported by no job that does not ask.
func TestJobsImportNothingUnasked(t *testing.T) {
	f := newFixture(t)
	own := f.program("import types\nclass Lazy(types.ModuleType):\n def __getattr__(self, name):\n" +
		"  print('asked for', name)\n  raise AttributeError(name)\n" +
		"sys.modules['numpy'] = Lazy('numpy')\nworker.serve(lambda argv: print('made'))\n")
	if code, printed, err := f.run(own, []string{"python3"}); err != nil || code != 0 || printed != "made\n" {
		t.Errorf("code %d, printed %q, %v", code, printed, err)
	}
}

// A job of R prints what Rscript prints by itself, and ends as it ends; only where R finds its program and how
// long it has run may differ.
func TestJobsOfRAreAsByRscript(t *testing.T) {
	f := newFixture(t).becomes("Rscript")
	folder := t.TempDir()
	write := func(name, text string) string {
		t.Helper()
		path := filepath.Join(folder, name)
		if err := os.WriteFile(path, []byte(text), 0o666); err != nil {
			t.Fatal(err)
		}
		return path
	}
	script := write("script.R", "print(commandArgs())\n1 + 1\nf <- function(x) {\n  x * 2\n}\nf(21)\n"+
		"cat(Sys.getenv('ABC'), interactive(), nchar('"+strings.Repeat("x", 6000)+"'), '\\n')\n"+
		"Sys.getenv(c('R_HOME', 'R_SHARE_DIR', 'R_INCLUDE_DIR', 'R_DOC_DIR')); "+
		"sort(c('b', 'A', 'a')); readLines(file('stdin')); warning('careful'); search()")
	for _, c := range []struct {
		name string
		argv []string
	}{
		{"script", []string{script, "a b", "-x"}},
		{"no words", []string{script}},
		{"text", []string{"-e", "x <- 3", "-e", "x; commandArgs()", "more"}},
		{"code", []string{"-e", "quit(status = 7)"}},
		{"error", []string{"-e", "stop('broken')"}},
		{"syntax", []string{write("syntax.R", "1 +\n")}},
		{"lines of DOS", []string{write("dos.R", "cat('dos\\n')\r\nx <- 'a\r\nb'\r\nnchar(x)\r\n")}},
		{"no file", []string{"none.R"}},
		{"options", []string{"--vanilla", "-e", "commandArgs()"}},
		{"at the end", []string{"-e", ".Last <- function() cat('bye\\n')"}},
		{"signals", []string{"-e", "tools::pskill(Sys.getpid(), 9)"}},
		{"loaded later", []string{"-e", "library(tools); file_ext('a.txt')"}},
	} {
		alone := exec.Command(f.python, c.argv...)
		alone.Dir, alone.Env = t.TempDir(), append(os.Environ(), "ABC=d")
		out, _ := alone.CombinedOutput()
		code, printed, err := f.run("R tools", append([]string{"Rscript"}, c.argv...), "ABC=d")
		if err != nil || code != alone.ProcessState.ExitCode() || printed != string(out) {
			t.Errorf("%s: code %d, %v, printed\n%s\nby itself %d\n%s", c.name, code, err, printed,
				alone.ProcessState.ExitCode(), out)
		}
	}
	if k := f.worker(); k == nil || len(f.known) != 1 || k.failures != 0 {
		t.Errorf("workers: %v", f.known)
	}
	for locale, want := range map[string]string{"C": "FALSE", "C.UTF-8": "TRUE"} {
		_, printed, err := f.run("R tools", []string{"Rscript", "-e", "cat(l10n_info()[['UTF-8']])"}, "LC_ALL="+locale)
		if err != nil || printed != want {
			t.Errorf("in the locale %s it printed %q, %v", locale, printed, err)
		}
	}
}

// Two jobs of R draw other numbers and have other folders for temporary files, which are where TMPDIR says
// and gone afterwards. The worker leaves none.
func TestJobsOfRShareNothing(t *testing.T) {
	temporary := t.TempDir()
	t.Setenv("TMPDIR", temporary)
	f := newFixture(t).becomes("Rscript")
	f.run("R stats", []string{"Rscript", "-e", "1"})
	jobs := t.TempDir()
	said := map[string]bool{}
	for range 2 {
		code, printed, err := f.run("R stats", []string{"Rscript", "-e",
			"writeLines('x', tempfile()); cat(tempdir(), runif(1), 'stats' %in% loadedNamespaces(), " +
				"any(grepl('memfd', Sys.readlink(list.files('/proc/self/fd', full.names = TRUE)))))"}, "TMPDIR="+jobs)
		words := strings.Fields(printed)
		if err != nil || code != 0 || len(words) != 4 || filepath.Dir(words[0]) != jobs || words[2] != "TRUE" ||
			words[3] != "FALSE" { // files of the worker

			t.Fatalf("code %d, printed %q, %v", code, printed, err)
		}
		said[words[0]], said[words[1]] = true, true
	}
	if len(said) != 4 {
		t.Errorf("two jobs share a folder or a number: %v", said)
	}
	for _, folder := range []string{jobs, temporary} {
		if left, err := os.ReadDir(folder); err != nil || len(left) > 0 {
			t.Errorf("%v is left in %s, %v", left, folder, err)
		}
	}
}

// A package that is not there is told, and the job is started without a worker.
func TestWorkerOfRThatDoesNotStart(t *testing.T) {
	f := newFixture(t).becomes("Rscript")
	for name, want := range map[string]string{"no.such.package": "no.such.package", "a;b": "no name of an R package"} {
		_, _, err := f.run("R "+name, []string{"Rscript", "-e", "1"})
		if !errors.Is(err, ErrNone) || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// A worker that is killed, hangs, prints too much or becomes large is replaced; no job notices.
func TestWorkersAreReplaced(t *testing.T) {
	f := newFixture(t)
	ok := func(named string) (pid string) {
		t.Helper()
		code, printed, err := f.run(named, []string{"python3", "-c", "print('ok')"})
		if err != nil || code != 0 || printed != "ok\n" {
			t.Fatalf("code %d, printed %q, %v", code, printed, err)
		}
		return strconv.Itoa(f.worker().lead.PID())
	}
	kind := f.kind("")
	before := ok(kind)
	if again := ok(kind); again != before {
		t.Errorf("worker %s was replaced by %s for no reason", before, again)
	}
	if err := unix.Kill(f.worker().lead.PID(), unix.SIGKILL); err != nil {
		t.Fatal(err)
	}
	killed := ok(kind)
	if killed == before {
		t.Error("the dead worker was not replaced")
	}
	if err := unix.Kill(f.worker().lead.PID(), unix.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	f.AnswerTime = 100 * time.Millisecond
	if hung := ok(kind); hung == killed {
		t.Error("the worker that hung was not replaced")
	}
	f.AnswerTime = AnswerTime
	k := f.worker()
	killed = strconv.Itoa(k.lead.PID())
	k.size, k.jobs = -Growth, looked
	if grown := ok(kind); grown == killed {
		t.Error("the grown worker was not replaced")
	}
}

// Where a worker does not start, the job has not begun, and the error says why; it is not tried
// without end.
func TestWorkerThatDoesNotStart(t *testing.T) {
	f := newFixture(t)
	for range 3 {
		_, _, err := f.run(f.kind("no_such_module"), []string{"python3", "-c", ""})
		if !errors.Is(err, ErrNone) || !strings.Contains(err.Error(), "no_such_module") {
			t.Fatalf("it said %v", err)
		}
	}
	if n := f.worker().failures; n != maxFailures {
		t.Errorf("it was tried %d times", n)
	}
}

// A program of a user is told the words of the command; a job that it leaks into, or ends, is not
// the next one's.
func TestOwnProgram(t *testing.T) {
	f := newFixture(t)
	named := f.program("held = []\n" +
		"def main(argv):\n    held.append(bytearray(1 << 20))\n    print(argv, len(held))\n    return int(argv[1])\n" +
		"worker.serve(main)\n")
	for _, code := range []string{"0", "3", "0"} {
		got, printed, err := f.run(named, []string{"fit", code})
		if err != nil || strconv.Itoa(got) != code || printed != "['fit', '"+code+"'] 1\n" {
			t.Errorf("code %d, printed %q, %v", got, printed, err)
		}
	}
	words := strings.Fields(named)
	out, err := exec.Command(words[0], append(words[1:], "--", "fit", "0")...).CombinedOutput()
	if err != nil || string(out) != "['fit', '0'] 1\n" {
		t.Errorf("by itself it printed %q, %v", out, err)
	}
}

// There are at most MaxWorkers.
func TestWorkersMakeRoom(t *testing.T) {
	f := newFixture(t)
	for i := range MaxWorkers + 2 {
		if _, _, err := f.run(f.kind(""), []string{"python3", "-c", ""}, "PYTHONNUMBER="+strconv.Itoa(i)); err != nil {
			t.Fatal(err)
		}
	}
	if n := len(f.known); n != MaxWorkers {
		t.Errorf("there are %d", n)
	}
}
