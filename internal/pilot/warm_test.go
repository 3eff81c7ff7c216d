package pilot

import (
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"fairway/internal/wire"
)

// How a job's process looks from inside, for a command of another program.
const seenByShell = `grep -E '^(Umask|Threads|Sig(Ign|Blk|Cgt)|NoNewPrivs|CapBnd|CapEff|Seccomp):' /proc/self/status
grep -v 'Max core' /proc/self/limits; ls /proc/self/fd; pwd; umask
cat; readlink /proc/$$/fd/0; env | grep -v '^FAIRWAY_\|^_=' | sort; locale 2>/dev/null; nice; cat /proc/self/oom_score_adj
ps -o stat= -p $$ | tr -d +`

// How it looks for Python.
const seenByPython = `import datetime, locale, os, resource, signal, sys, tempfile, threading, time
print(sys.argv, getattr(sys, "orig_argv", None), sys.flags, sys.path, sys.warnoptions, sys.executable, sys.prefix)
print(sorted(globals()), __name__, __doc__, __spec__ is None, __package__, globals().get("__file__"), globals().get("__cached__"))
print([(s, signal.getsignal(s)) for s in sorted(signal.valid_signals())], signal.pthread_sigmask(signal.SIG_BLOCK, []))
print([resource.getrlimit(getattr(resource, r)) for r in sorted(dir(resource)) if r.startswith("RLIMIT_")])
print(sys.stdin.read(), [(f.encoding, f.errors, f.line_buffering, f.isatty(), f.fileno(), f.mode) for f in
    (sys.stdin, sys.stdout, sys.stderr)], os.umask(0o22), locale.setlocale(locale.LC_ALL), sys.getfilesystemencoding())
print(sorted((k, v) for k, v in os.environ.items() if not k.startswith("FAIRWAY_") and k != "_"), os.getcwd())
print(sorted(os.listdir("/proc/self/fd")), threading.active_count(), tempfile.gettempdir(), time.tzname, os.nice(0))
print(datetime.datetime.fromtimestamp(0).hour, open("/proc/self/comm").read(), "PYTHONHASHSEED" in os.environ and hash("fairway"), os.getsid(0) == os.getpid())
seen = dict(line.rstrip("\n").split(":\t", 1) for line in open("/proc/self/status") if ":\t" in line)
print([seen[k] for k in ("Umask", "Threads", "SigBlk", "SigIgn", "SigCgt", "CapEff", "CapBnd", "NoNewPrivs", "Groups")])
print([open("/proc/self/" + name).read() for name in ("oom_score_adj", "coredump_filter", "timerslack_ns")],
    os.getpgid(0) == os.getpid(), os.sched_getscheduler(0), os.sched_getaffinity(0), signal.getitimer(0))
try: os.open("/dev/tty", os.O_RDWR)
except OSError as e: print(e)
print(locale.getpreferredencoding(), sys.getrecursionlimit(), sys.getswitchinterval(), sys.excepthook is sys.__excepthook__)
`

// warmly is one command, which a worker begins or not.
type warmly struct {
	name    string
	shell   string
	argv    []string
	env     map[string]string
	files   map[string]string // beside the command, by name
	outputs []string
}

// saw runs a command, and tells all that can be seen of how it went.
func (c *warmly) saw(q *taskQueue, worker string) string {
	q.t.Helper()
	folder := q.t.TempDir()
	change := []func(*wire.Assignment){payload(func(p *wire.Payload) {
		p.Unwatched, p.Worker, p.Environment = true, worker, maps.Clone(c.env)
		for name := range c.env {
			p.Decisive = append(p.Decisive, name)
		}
		if len(c.argv) > 0 {
			p.Shell, p.Argv = "", c.argv
		}
	}), writes(c.outputs...)}
	version := uint32(lastAttempt)
	for name, text := range c.files {
		path := filepath.Join(folder, name)
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			q.t.Fatal(err)
		}
		change = append(change, reads(name, version, int64(len(text)), "file:"+path))
	}
	a := shell(c.shell, change...)
	r := q.run("p1", a)
	said := fmt.Sprintln(r.GetOutcome(), "code", r.GetExitCode(), "signal", r.GetSignal(), r.GetMessage())
	for _, name := range []string{"out", "err"} {
		text, _ := os.ReadFile(q.log(a, name))
		said += name + ": " + string(text) + "\n"
	}
	for _, o := range r.GetOutputs() {
		said += o.GetLfn() + ": " + contents(q.t, o.GetPfn()) + "\n"
	}
	return sandboxIn.ReplaceAllString(said, "SANDBOX")
}

func (c *warmly) compare(t *testing.T, q *taskQueue, worker string) {
	t.Helper()
	t.Run(c.name, func(t *testing.T) {
		if cold, warm := c.saw(q, ""), c.saw(q, worker); cold != warm {
			t.Fatalf("only by a new program:\n%sonly by a worker:\n%s", without(cold, warm), without(warm, cold))
		}
	})
}

// A job that a worker of Python has begun cannot be told from one that a new interpreter runs.
func TestWorkersOfPythonAreNotSeen(t *testing.T) {
	path := pathOfPython(t)
	q := newTaskQueue(t)
	q.start(q.config("p1"), path, "PYTHONUNBUFFERED=", "LANG=", "LC_ALL=", "LC_CTYPE=")
	python := func(text string, words ...string) []string { return append([]string{"python3", "-c", text}, words...) }
	script := map[string]string{"s.py": seenByPython}
	for _, c := range []warmly{
		{name: "shell", shell: seenByShell},
		{name: "broken pipe", shell: "yes | head -1; set +o pipefail; yes | head -1"},
		{name: "text", argv: python(seenByPython, "a b", "")},
		{name: "script", argv: []string{"python3", "s.py", "-x"}, files: script},
		{name: "unbuffered", argv: []string{"python3", "-u", "s.py"}, files: script},
		{name: "module", argv: []string{"python3", "-m", "s", "y"}, files: script},
		{name: "isolated", argv: []string{"python3", "-I", "s.py"}, files: script},
		{name: "variables", argv: python(seenByPython), env: map[string]string{
			"TZ": "Asia/Tokyo", "PYTHONHASHSEED": "0", "TMPDIR": "/var/tmp", "PYTHONUTF8": "1", "OMP_NUM_THREADS": "1"}},
		{name: "locale", argv: python(seenByPython), env: map[string]string{"LC_ALL": "C"}},
		{name: "safe path", argv: python(seenByPython), env: map[string]string{"PYTHONSAFEPATH": "1"}},
		{name: "relative path", argv: python(seenByPython), env: map[string]string{"PYTHONPATH": "lib:/usr/lib"}},
		{name: "variables of a shell", shell: "env | grep OMP; date +%Z", env: map[string]string{
			"TZ": "Asia/Tokyo", "OMP_NUM_THREADS": "3"}},
		{name: "code", argv: python("import sys; sys.exit(-1)")},
		{name: "text as code", argv: python("import sys; print('first'); sys.exit('no')")},
		{name: "interrupt", argv: python("raise KeyboardInterrupt")},
		{name: "error", argv: []string{"python3", "s.py"}, files: map[string]string{"s.py": "def f():\n    1/0\nf()\n"}},
		{name: "error in text", argv: python("def f():\n    1/0\nf()\n")},
		{name: "error at exit", argv: python("import atexit; atexit.register(print, 'bye'); 1/0")},
		{name: "syntax", argv: []string{"python3", "s.py"}, files: map[string]string{"s.py": "if\n"}},
		{name: "hook", argv: python("import sys; sys.excepthook = lambda *a: print('hook', a[1]); 1/0")},
		{name: "no file", argv: []string{"python3", "none.py"}},
		{name: "no module", argv: []string{"python3", "-m", "none"}},
		{name: "not closed", argv: python("f = open('out', 'w'); f.write('text')"), outputs: []string{"out"}},
		{name: "not closed in a module", argv: python("import s"), outputs: []string{"out"},
			files: map[string]string{"s.py": "f = open('out', 'w'); f.write('text'); g = lambda: f"}},
		{name: "not closed, and an error", outputs: []string{"out"},
			argv: python("def f():\n  g = open('out', 'w'); g.write('text'); 1/0\nf()")},
		{name: "destructor", argv: python("class A:\n  def __del__(self): print('gone')\na = A(); a.self = a")},
		{name: "closed output", argv: python("import os; print('x'); os.close(1)")},
		{name: "thread", argv: python("import threading\ndef f(): threading.main_thread().join(); print('late')\n" +
			"threading.Thread(target=f).start()")},
		{name: "shadowed", argv: []string{"python3", "s.py"}, files: map[string]string{
			"s.py": "import socket; print(socket.x)", "socket.py": "x = 3"}},
		{name: "no program", argv: []string{"./none"}},
		{name: "signal", argv: python("import os; os.kill(os.getpid(), 15)")},
		{name: "pipe of Python", argv: python("import subprocess\nprint(subprocess.run(" +
			"'yes | head -1; exit ${PIPESTATUS[0]}', shell=True, executable='/bin/bash'))")},
	} {
		c.compare(t, q, "python tempfile datetime")
	}
}

// A job that a worker of R has begun cannot be told from one that Rscript runs.
func TestWorkersOfRAreNotSeen(t *testing.T) {
	if _, err := exec.LookPath("Rscript"); err != nil {
		t.Skip("there is no Rscript")
	}
	q := newTaskQueue(t)
	q.start(q.config("p1"), "LANG=", "LC_ALL=", "LC_CTYPE=")
	text := "e <- Sys.getenv(); e <- e[!grepl('^(FAIRWAY_|_$|R_SESSION_TMPDIR)', names(e))]; " +
		"for (n in sort(names(e))) cat(n, '=', e[[n]], '\\n'); cat(commandArgs(), Sys.getlocale(), getwd(), " +
		"format(as.POSIXct(0), '%H'), Sys.timezone(), .libPaths(), interactive(), '\\n'); " +
		"system(\"grep -E '^(Umask|Sig(Ign|Blk))' /proc/self/status; yes | head -1\"); " +
		"system('cat /proc/self/limits; ls /proc/self/fd | head -3'); " +
		"print(options()[c('encoding', 'OutDec', 'warn')]); readLines(file('stdin'))"
	for _, c := range []warmly{
		{name: "shell", shell: seenByShell},
		{name: "text", argv: []string{"Rscript", "-e", text}},
		{name: "variables", argv: []string{"Rscript", "-e", text}, env: map[string]string{
			"TZ": "Asia/Tokyo", "OMP_NUM_THREADS": "2", "R_LIBS": "/usr/lib/R/library"}},
		{name: "not closed", argv: []string{"Rscript", "-e", "f <- file('out', 'w'); cat('text', file = f)"}, outputs: []string{"out"}},
		{name: "locale", argv: []string{"Rscript", "-e", text}, env: map[string]string{"LC_ALL": "C"}},
		{name: "error", argv: []string{"Rscript", "-e", "stop('broken')"}},
	} {
		c.compare(t, q, "R tools")
	}
}

// without are the lines of a text that another one has not.
func without(text, other string) (only string) {
	for line := range strings.Lines(text) {
		if !strings.Contains("\n"+other, "\n"+line) {
			only += line
		}
	}
	return only
}

// pathOfPython is the PATH in which python3 is an interpreter, and not a script that finds one.
func pathOfPython(t *testing.T) string {
	t.Helper()
	said, err := exec.Command("python3", "-c",
		"import os, sys; print(os.path.dirname(os.path.realpath(sys.executable)), end='')").Output()
	if err != nil {
		t.Skip("there is no python3")
	}
	return "PATH=" + string(said) + ":" + os.Getenv("PATH")
}

// sandboxIn finds what differs between two attempts anyhow: their numbers, and where they work.
var sandboxIn = regexp.MustCompile(`/[^ '":\n]*/sandbox/[^ '":/\n]*/[^ '":/\n]*`)
