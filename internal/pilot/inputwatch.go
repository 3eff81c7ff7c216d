package pilot

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"

	"fairway/internal/pilot/process"
	"fairway/internal/wire"
	"fairway/lib/sched"
)

// WatchMode says of which attempts a pilot watches what files they open, to
// tell of inputs that a step does not declare.
type WatchMode string

// The modes of watching.
const (
	// WatchAuto watches the first attempt of each step that the pilot runs, if
	// that takes nothing from the command: if the pilot has CAP_SYS_ADMIN.
	WatchAuto WatchMode = "auto"
	// WatchAll watches each attempt that runs while no other one is watched.
	// Without CAP_SYS_ADMIN, set-user-ID programs have no privileges in it.
	WatchAll WatchMode = "all"
	// WatchNone watches nothing.
	WatchNone WatchMode = "none"
)

// maxWatchedSteps bounds the steps that WatchAuto looks at; of further ones
// nothing is noticed.
const maxWatchedSteps = 100

// maxWatchedInputs bounds the inputs of an attempt that WatchAuto watches: each file that a command
// opens waits for the pilot then, and a merge of 20,000 files took a seventh longer.
const maxWatchedInputs = 2000

type inputWatch struct {
	mode WatchMode

	mu    sync.Mutex         // guards what follows
	opens *process.OpenWatch // nil before it is needed, and where it is not possible
	tried bool
	steps map[string]bool // that WatchAuto has looked at
}

func (w *inputWatch) close() {
	if w.opens != nil {
		w.opens.Close()
	}
}

// choose returns the watch of an attempt that is to be watched, else nil. The
// caller ends it.
func (p *pilot) choose(a *attempt) *process.OpenWatch {
	w := p.watch
	w.mu.Lock()
	defer w.mu.Unlock()
	if a.Payload.GetUnwatched() || !w.wants(a.GetStep(), len(a.GetInputs())) {
		return nil
	}
	if !w.tried {
		w.tried = true
		var err error
		if w.opens, err = process.NewOpenWatch(p.sched); err != nil {
			w.opens = nil
			p.log.Info("files that jobs open are not watched", "reason", err)
		}
	}
	if w.opens == nil || !w.opens.Begin() {
		return nil
	}
	w.steps[a.GetStep()] = true
	return w.opens
}

func (w *inputWatch) wants(step string, inputs int) bool {
	switch w.mode {
	case WatchNone:
		return false
	case WatchAll:
		return true
	default:
		return !w.steps[step] && len(w.steps) < maxWatchedSteps && inputs <= maxWatchedInputs && process.Unrestricted()
	}
}

// maxOpenNotes bounds the files that the notes of one attempt name.
const maxOpenNotes = 5

func (p *pilot) noteUndeclared(r *running, opened []string) {
	var found []string
	for _, path := range opened {
		if p.undeclared(r, path) {
			found = append(found, path)
		}
	}
	for _, path := range found[:min(len(found), maxOpenNotes)] {
		r.Note("it opened " + path + ", which the step does not declare: " + p.advice(path))
	}
	if more := len(found) - maxOpenNotes; more > 0 {
		r.Note(fmt.Sprintf("it opened %d more files that the step does not declare", more))
	}
}

func (p *pilot) advice(path string) string {
	if p.cfg.Workflow != "" {
		if lfn, below := strings.CutPrefix(path, filepath.Join(p.cfg.Workflow, "results")+"/"); below {
			return "name " + lfn + " in reads"
		}
	}
	return "make it an input of the workflow and name it in reads"
}

// undeclared reports whether a path is that of data which the command was not
// given. What it made itself, programs and what belongs to them, and what
// Fairway gave it are none.
func (p *pilot) undeclared(r *running, path string) bool {
	path = filepath.Clean(path)
	if isSystem(path) || p.given(r, path) { // the other way round a job of many inputs looks at each for each library
		return false
	}
	info, err := os.Stat(path)
	if err != nil || !info.Mode().IsRegular() || !info.ModTime().Before(r.Since.Add(-sched.FileClockStep)) {
		return false
	}
	real, err := filepath.EvalSymlinks(path)
	return err == nil && !isSystem(real) && !p.given(r, real)
}

func (p *pilot) given(r *running, path string) bool {
	if path == ownProgram { // which starts processes in other tasks
		return true
	}
	for _, folder := range []string{p.workspace.folder, p.cfg.Cache.Dir, p.cfg.LogDir} {
		if folder != "" && (path == folder || strings.HasPrefix(path, folder+"/")) {
			return true
		}
	}
	return slices.ContainsFunc(r.GetInputs(), func(f *wire.InputFile) bool {
		stored, err := p.stage.Roots.Path(f.GetPfn())
		return err == nil && stored == path
	})
}

// systemFolders hold programs, their libraries and data, and what the kernel
// and services show as files.
var systemFolders = []string{
	"/bin", "/boot", "/cvmfs", "/dev", "/etc", "/gnu", "/lib", "/lib32", "/lib64", "/libx32", "/nix", "/opt", "/proc",
	"/run", "/sbin", "/snap", "/sys", "/usr",
	"/var/cache", "/var/lib",
}

// programFolders are the names of folders with programs and what belongs to
// them, wherever they are.
var programFolders = []string{
	"bin", "include", "lib", "lib32", "lib64", "libexec", "node_modules", "sbin", "site-packages", "__pycache__",
}

// isSystem reports whether a path is no data: it is in a folder of the system or
// of programs, or hidden.
func isSystem(path string) bool {
	if slices.ContainsFunc(systemFolders, func(folder string) bool { return strings.HasPrefix(path, folder+"/") }) {
		return true
	}
	for part := range strings.SplitSeq(path, "/") {
		if strings.HasPrefix(part, ".") || slices.Contains(programFolders, part) {
			return true
		}
	}
	return filepath.Base(path) == "pyvenv.cfg"
}
