package feed

import (
	"io/fs"
	"sync"

	"fairway/internal/flow/workflow"
	"fairway/internal/server/state"
)

// Enumeration is what the patterns of inputs match in a folder. Whoever checks a workflow before it
// runs hands it on with the workflow, so that each folder is listed once. Any goroutine may use it.
type Enumeration struct {
	folder string // absolute

	mu    sync.Mutex // guards found
	found map[inputGlob]globbed
}

type inputGlob struct{ input, glob string }

type globbed struct {
	paths []string
	err   error
}

// NewEnumeration is that of a folder, an absolute path, in which nothing was looked for yet.
func NewEnumeration(folder string) *Enumeration {
	return &Enumeration{folder: folder, found: map[inputGlob]globbed{}}
}

// Glob is [Glob] for a pattern of an input, and remembers what it gives if no more files can come.
func (e *Enumeration) Glob(in *workflow.DeclaredInput, glob string) ([]string, error) {
	paths, err := Glob(e.folder, glob)
	if !in.IsOpen() {
		e.mu.Lock()
		defer e.mu.Unlock()
		e.found[inputGlob{in.Name, glob}] = globbed{paths, err}
	}
	return paths, err
}

// take gives what is remembered, once.
func (e *Enumeration) take(folder string, in *workflow.DeclaredInput, glob string) (found globbed, ok bool) {
	if e == nil || e.folder != folder {
		return globbed{}, false
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	at := inputGlob{in.Name, glob}
	found, ok = e.found[at]
	delete(e.found, at)
	return found, ok
}

// glob is [Glob] for a pattern of an input, or what Enumerated has of it.
func (f *Finder) glob(in *workflow.DeclaredInput, glob string) ([]string, error) {
	if found, ok := f.Enumerated.take(f.folder, in, glob); ok {
		return found.paths, found.err
	}
	return Glob(f.folder, glob)
}

// readLists are URL lists that were read when a run was opened, and whose lines are still to be
// fed. It is empty at first.
type readLists struct {
	mu   sync.Mutex // guards read
	read map[string]readList
}

type readList struct {
	stamp state.Stamp // of the list before it was read
	found *Listed
	known Known // files that were fed then; they are not in found
}

// keep keeps what a list has for the first who asks for it.
func (r *readLists) keep(input string, l readList) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.read == nil {
		r.read = map[string]readList{}
	}
	r.read[input] = l
}

// forget forgets what nobody has asked for.
func (r *readLists) forget() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.read = nil
}

// take gives what a list has, once, if it was not written to since and has all files that known
// does not know.
func (r *readLists) take(input string, now fs.FileInfo, complete bool, known Known) *Listed {
	r.mu.Lock()
	l, ok := r.read[input]
	delete(r.read, input)
	r.mu.Unlock()
	if !ok || l.stamp != state.StampOf(now) || l.found.unended && !complete {
		return nil
	}
	for lfn := range l.found.lines {
		_, left := l.known.pfn(lfn)
		if _, fed := known.pfn(lfn); left && !fed {
			return nil
		}
	}
	return l.found
}
