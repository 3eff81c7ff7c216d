package archive

import (
	"fmt"
	"io/fs"
	"os"
	"path"
	"slices"
	"strings"

	"fairway/internal/beneath"
)

// Walk visits all that a folder holds, each folder before what is in it, in an
// order that depends on the names only. in is the open folder that holds the
// element; info is of the entry itself.
func Walk(
	folder *beneath.Folder, visit func(in *beneath.Folder, element string, e Entry, info fs.FileInfo) error,
) error {
	w := &walk{visit: visit}
	return w.folder(folder, "")
}

type walk struct {
	visit   func(in *beneath.Folder, element string, e Entry, info fs.FileInfo) error
	entries int
}

func (w *walk) folder(folder *beneath.Folder, name string) error {
	elements, err := folder.List(".")
	if err != nil {
		return refused(name, err)
	}
	slices.Sort(elements)
	for _, element := range elements {
		if err := w.element(folder, element, path.Join(name, element)); err != nil {
			return err
		}
	}
	return nil
}

func (w *walk) element(in *beneath.Folder, element, name string) error {
	info, err := in.Lstat(element)
	if err != nil {
		return refused(name, err)
	}
	e, err := entryOf(name, info, func() (string, error) { return os.Readlink(in.Path(element)) })
	if err != nil {
		return err
	}
	if w.entries++; w.entries > MaxEntries {
		return &ContentError{name, fmt.Sprintf("is one of more than %d files, the limit for one folder: keep it as one "+
			"file (tar), or as several folders", MaxEntries)}
	}
	if err := w.visit(in, element, e, info); err != nil || e.Kind != Folder {
		return err
	}
	below, err := in.Sub(element)
	if err != nil {
		return refused(name, err)
	}
	defer below.Close()
	return w.folder(below, name)
}

func entryOf(name string, info fs.FileInfo, readlink func() (string, error)) (e Entry, err error) {
	e.Name = name
	if len(name) > MaxName {
		return e, &ContentError{name[:64] + "...", fmt.Sprintf("has a path of %d bytes, the limit is %d", len(name), MaxName)}
	}
	switch info.Mode().Type() {
	case 0:
		e.Kind, e.Size, e.Executable = File, info.Size(), info.Mode().Perm()&0o111 != 0
	case fs.ModeDir:
		e.Kind = Folder
	case fs.ModeSymlink:
		e.Kind = Link
		if e.Target, err = readlink(); err == nil {
			err = e.checkTarget()
		}
	default:
		err = &ContentError{
			name, "is " + beneath.KindOf(info.Mode()) + ", and a folder is kept with files, folders and links only: remove it",
		}
	}
	return e, err
}

// checkTarget refuses a link that may lead out of the folder. ".." may only stand
// at its beginning, where it means the folders above the link, which are real
// ones: behind the name of a link it would mean the folder above what that leads to.
func (e *Entry) checkTarget() error {
	if path.IsAbs(e.Target) {
		return &ContentError{e.Name, fmt.Sprintf("is a link to %s, which is no relative path: link to a file in the folder "+
			"(ln -sr), or copy the file", e.Target)}
	}
	up, down := strings.Count(e.Name, "/"), false
	for element := range strings.SplitSeq(e.Target, "/") {
		switch element {
		case "", ".":
		case "..":
			if up--; up < 0 || down {
				return &ContentError{e.Name, fmt.Sprintf("is a link to %s, which may lead out of the folder: link to a file in "+
					"the folder, or copy the file", e.Target)}
			}
		default:
			down = true
		}
	}
	if e.Target == "" || strings.Contains(e.Target, "\x00") || len(e.Target) > MaxName {
		return &ContentError{e.Name, "is a link to a name that is no path"}
	}
	return nil
}
