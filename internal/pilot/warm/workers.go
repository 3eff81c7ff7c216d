package warm

import (
	_ "embed"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"

	"fairway/internal/pilot/process"
)

// Limits of workers.
const (
	// MaxWorkers is how many a pilot has at a time.
	MaxWorkers = 8
	// AnswerTime is how long a worker may take to fork, and StartTime to start and fork for the
	// first time.
	AnswerTime = 5 * time.Second
	StartTime  = time.Minute
	// Growth, in bytes, is how much larger than after its first job a worker may become.
	Growth = 64 << 20
	// maxFailures is after how many failures in a row jobs are started without.
	maxFailures = 3
	// looked is after how many jobs it is seen how large a worker is.
	looked = 64
)

// ErrNone says that a job has not begun, and is to be started without a worker.
var ErrNone = errors.New("no worker has begun the job")

// The worker for Python, and what it does for R.
var (
	//go:embed worker.py
	python []byte
	//go:embed r.py
	forR []byte
)

// Script is the word that stands for the path of the worker for Python, and scriptR for what it executes
// to begin jobs of R.
const (
	Script  = "fairway:python"
	scriptR = "fairway:R"
)

// Words are those of a worker as a step names it, and whether it stands for the interpreter of the
// command: then the command can be started by itself, else it is told to the program.
func Words(named string) (words []string, interpreter bool) {
	words = strings.Fields(named)
	switch {
	case len(words) == 0:
		return nil, false
	case words[0] == "python":
		words = append([]string{"python3", Script}, words[1:]...)
	case words[0] == "R":
		words = append([]string{"python3", Script, scriptR}, words[1:]...)
	case words[0] == "snakemake":
		words = append([]string{"python3", Script, "snakemake.cli", "snakemake_executor_plugin_fairway.warm?"}, words[1:]...)
	}
	return words, slices.Contains(words, Script)
}

// Job is what a worker is to begin.
type Job struct {
	Attempt  uint64
	Path     string // of the program, as a pilot without worker would start it
	Argv     []string
	Env      []string
	Decisive []string // names of Env that all jobs of its step have alike
	Dir      string
	Files    [3]uintptr // its standard input, output and error
	Box      *process.MemoryBox
}

// Workers are those of a pilot. Any goroutine may use them.
type Workers struct {
	Tree *process.Tree
	Env  []string // of the pilot, for workers
	Dir  string   // where they work
	Log  *slog.Logger
	// Find gives the path of a program, in a PATH; empty: that of the pilot.
	Find func(program, search string) (path string, err error)
	// AnswerTime is how long a worker may take to fork.
	AnswerTime time.Duration

	mu     sync.Mutex // guards what follows
	known  map[string]*worker
	clock  uint64 // counts uses
	closed bool
}

// Start has the worker that a step names begin a job. The error wraps ErrNone where the job has not
// begun, and can be started otherwise.
func (w *Workers) Start(named string, job *Job) (process.Lead, error) {
	words, _ := Words(named)
	own := decisive(job, w.Env)
	k, err := w.worker(strings.Join(append(words, own...), "\x00"), words, own)
	if err != nil {
		return process.Lead{}, err
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	for k.failures < maxFailures {
		var lead process.Lead
		if lead, err = k.begin(job); err == nil {
			k.failures = 0
			return lead, nil
		}
		k.failures++
		w.Log.Warn("a worker has failed, and is replaced", "worker", strings.Join(words, " "), "error", err)
		k.end()
	}
	return process.Lead{}, fmt.Errorf("%w: %w", ErrNone, k.reason(err))
}

// reads begin the names of variables that libraries look at once, when they are loaded, or that
// decide what is loaded. A worker starts with them, whoever has set them, also where each job has
// another value, as in a scan over numbers of threads.
var reads = []string{
	"PYTHON", "LD_", "R_", "CONDA_", "VIRTUAL_ENV=", "LANG", "LC_", "TZ=", "TZDIR=", "PATH=",
	"OMP_", "GOMP_", "KMP_", "MKL_", "OPENBLAS_", "BLIS_", "VECLIB_", "NUMEXPR_", "NUMBA_", "GLIBC_TUNABLES=", "MALLOC_",
}

// decisive are the variables that a worker starts with: those of a job that its step sets, and that
// libraries read when they are loaded, as far as they differ from those of the pilot.
func decisive(job *Job, pilots []string) (own []string) {
	for _, entry := range job.Env {
		name, _, _ := strings.Cut(entry, "=")
		if (slices.Contains(job.Decisive, name) ||
			slices.ContainsFunc(reads, func(prefix string) bool { return strings.HasPrefix(entry, prefix) })) &&
			!slices.Contains(pilots, entry) {
			own = append(own, entry)
		}
	}
	slices.Sort(own)
	return own
}

// worker is the one with a key. The one that was idle for longest makes room.
func (w *Workers) worker(key string, words, own []string) (*worker, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.closed || len(words) == 0 {
		return nil, ErrNone
	}
	w.clock++
	if k := w.known[key]; k != nil {
		k.used = w.clock
		return k, nil
	}
	if w.known == nil {
		w.known = map[string]*worker{}
	}
	if len(w.known) >= MaxWorkers {
		oldest := ""
		for key, k := range w.known {
			if oldest == "" || k.used < w.known[oldest].used {
				oldest = key
			}
		}
		k := w.known[oldest]
		delete(w.known, oldest)
		go k.close()
	}
	k := &worker{of: w, words: words, own: own, control: -1, used: w.clock}
	w.known[key] = k
	return k, nil
}

// Close ends all workers. What they have begun goes on.
func (w *Workers) Close() {
	w.mu.Lock()
	w.closed = true
	all := w.known
	w.known = nil
	w.mu.Unlock()
	for _, k := range all {
		k.close()
	}
}

// attr describes the process of a worker, with its end of the socket and its scripts as further files.
func (w *Workers) attr(own []string, null, said *os.File, control int, scripts []*os.File) *syscall.ProcAttr {
	env := slices.DeleteFunc(slices.Clone(w.Env), func(entry string) bool {
		name, _, _ := strings.Cut(entry, "=")
		return slices.ContainsFunc(own, func(other string) bool { return strings.HasPrefix(other, name+"=") })
	})
	env = append(env, own...)
	files := []uintptr{null.Fd(), said.Fd(), said.Fd(), uintptr(control)}
	for _, script := range scripts {
		files = append(files, script.Fd())
	}
	return &syscall.ProcAttr{Dir: w.Dir, Env: append(env, "FAIRWAY_WORKER_FD=3"), Files: files}
}
