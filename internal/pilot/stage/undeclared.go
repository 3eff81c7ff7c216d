package stage

import (
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"slices"
	"strings"
)

// Bounds of what is told of files that a command made beside its outputs.
const (
	maxMadeNamed    = 3    // that are named
	maxMadeDepth    = 10   // folders deep
	maxMadeLookedAt = 1000 // files that are looked at; of others nothing is told
)

var errLookedEnough = errors.New("as many files were looked at as may be")

// undeclared names files of the sandbox, up to maxMadeNamed, that are neither inputs nor outputs nor
// hidden, and says how many more there are; empty: there are none.
func (a *Execution) undeclared() (named string, several bool) {
	if a.Slot.bare {
		return "", false
	}
	known := a.declared()
	var made []string
	looked := 0
	err := walk(a.Slot.dir, ".", maxMadeDepth, func(path string, info fs.FileInfo) error {
		if looked++; looked > maxMadeLookedAt {
			return errLookedEnough
		}
		if info.Mode().IsRegular() && !isHidden(path) && !isBelow(path, known) {
			made = append(made, path)
		}
		return nil
	})
	if err != nil && !errors.Is(err, errLookedEnough) || len(made) == 0 {
		return "", false
	}
	slices.Sort(made)
	named = strings.Join(made[:min(len(made), maxMadeNamed)], ", ")
	if more := len(made) - maxMadeNamed; more > 0 {
		named += fmt.Sprintf(" and %d more", more)
	}
	return named, len(made) > 1
}

// declared are the paths of inputs and outputs, and of folders that are one.
func (a *Execution) declared() map[string]bool {
	known := map[string]bool{}
	add := func(lfn string) {
		if path, err := a.PathOf(lfn); err == nil {
			known[path] = true
		}
	}
	for _, i := range a.In.files {
		known[i.path] = true
	}
	for _, o := range a.GetOutputs() {
		add(o.GetLfn())
	}
	for _, o := range a.Result.GetOutputs() { // what matched a pattern
		add(o.GetLfn())
	}
	add(a.GetCheckpoint().GetLfn())
	return known
}

func isBelow(path string, known map[string]bool) bool {
	for ; path != "."; path = filepath.Dir(path) {
		if known[path] {
			return true
		}
	}
	return false
}

func isHidden(path string) bool {
	return strings.HasPrefix(path, ".") || strings.Contains(path, "/.") || strings.Contains(path, "__pycache__/")
}

// madeInstead names files of which one may be what an output should have been.
func (a *Execution) madeInstead() string {
	named, _ := a.undeclared()
	if named == "" {
		return ""
	}
	return "; it made " + named + ", which the step does not declare in writes"
}

// NoteUndeclared tells of files that a command made and that go with its sandbox. It is called when
// the outputs are stored, and reports whether there were any.
func (a *Execution) NoteUndeclared() bool {
	named, several := a.undeclared()
	if named == "" {
		return false
	}
	it := "it is"
	if several {
		it = "they are"
	}
	a.Note(fmt.Sprintf("it made %s, which the step does not declare: %s not kept; writes names what is, and --writes of "+
		"exec and map", named, it))
	return true
}
