package stage

import (
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"slices"
	"strings"

	"fairway/internal/beneath"
	"fairway/internal/logical"
	"fairway/internal/wire"
)

func (a *Execution) folderOf(o *wire.OutputFile) (string, error) {
	path, err := a.PathOf(o.GetLfn())
	if err != nil || !o.GetPattern() {
		return filepath.Dir(path), err
	}
	return filepath.Clean(logical.Above(path)), nil
}

// findMatches finds the regular files, or the folders, that match a pattern and are
// not taken. Symbolic links are not followed.
func findMatches(a *Execution, o *wire.OutputFile, taken map[string]bool) (found []written, err error) {
	pattern, err := a.PathOf(o.GetLfn())
	if err != nil || a.Slot.bare {
		return nil, err
	}
	root, folders := filepath.Clean(logical.Above(pattern)), logical.IsFolder(o.GetLfn())
	left := &leftOut{attempt: a, pattern: o.GetLfn()}
	err = walk(a.Slot.dir, root, strings.Count(pattern, "/"), func(path string, info fs.FileInfo) error {
		if info.IsDir() && !folders || taken[path] || !logical.Matches(pattern, path) {
			return nil
		}
		if part := logical.LongPart(path); part != "" {
			return &missingOutput{
				path, fmt.Sprintf("has a name with a part of %d bytes, the limit is %d", len(part), logical.MaxPart),
			}
		}
		if folders != info.IsDir() || !folders && !info.Mode().IsRegular() {
			left.add(path)
			return nil
		}
		if why := logical.WhyNot(path); why != "" {
			return fmt.Errorf("the name %q %s, so it cannot be recorded", path, why)
		}
		taken[path] = true
		found = append(found, written{o, lfnOf(o.GetLfn(), path), path})
		return nil
	})
	slices.SortFunc(found, func(a, b written) int { return strings.Compare(a.lfn, b.lfn) })
	left.note()
	var kind *beneath.KindError
	if errors.As(err, &kind) {
		err = &missingOutput{o.GetLfn(), fmt.Sprintf("is to be in %s, which is %s", kind.Name, kind.Kind)}
	}
	return found, err
}

// leftOut is what matches a pattern and is no regular file. A person is told of
// it, who may have taken a link for a file.
type leftOut struct {
	attempt *Execution
	pattern string
	count   int
	first   string
}

func (l *leftOut) add(path string) {
	if l.count++; l.count == 1 {
		l.first = path
	}
}

func (l *leftOut) note() {
	if l.count == 0 {
		return
	}
	kind := "regular file"
	if logical.IsFolder(l.pattern) {
		kind = "folder"
	}
	note := fmt.Sprintf("%s matches the output %s and is left out, since it is no %s", l.first, l.pattern, kind)
	if l.count > 1 {
		note += fmt.Sprintf("; so are %d more", l.count-1)
	}
	l.attempt.Note(note)
}

// walk visits what is in a folder beneath another one and, down to paths with so
// many slashes, in the folders below it. A folder that is not there has nothing
// in it.
func walk(top *beneath.Folder, name string, slashes int, visit func(path string, info fs.FileInfo) error) error {
	folder := top
	if name != "." {
		below, err := top.Sub(name)
		if isMissing(err) {
			return nil
		}
		if err != nil {
			return err
		}
		defer below.Close()
		folder = below
	}
	elements, err := folder.List(".")
	if err != nil {
		return err
	}
	for _, element := range elements {
		path := filepath.Join(name, element)
		info, err := folder.Lstat(element)
		switch {
		case err == nil && info.IsDir() && strings.Count(path, "/") < slashes:
			err = walk(top, path, slashes, visit)
		case err == nil:
			err = visit(path, info)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// lfnOf gives a match the slashes that the pattern begins and ends with.
func lfnOf(pattern, path string) string {
	lfn := pattern[:len(pattern)-len(strings.TrimLeft(pattern, "/"))] + path
	if logical.IsFolder(pattern) {
		lfn += "/"
	}
	return lfn
}
