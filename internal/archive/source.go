package archive

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"fairway/internal/beneath"
)

// Found is an entry of a folder from outside, with what is known of its contents.
type Found struct {
	Entry
	Info fs.FileInfo // of the file that a link stands for
}

// Listing is all that a folder holds, in the order of [Walk].
type Listing []Found

// List looks at a folder from outside: a person's, which nobody else arranges. A
// link that leads out of it stands for the file that it leads to. Of a link that
// leads to nothing, or out of it to a folder, the error is a [ContentError].
func List(folder string) (Listing, error) {
	var l Listing
	err := l.add(folder, "")
	return l, err
}

func (l *Listing) add(folder, name string) error {
	elements, err := namesIn(filepath.Join(folder, name))
	if err != nil {
		return err
	}
	for _, element := range elements {
		if err := l.element(folder, path.Join(name, element)); err != nil {
			return err
		}
	}
	return nil
}

func namesIn(folder string) ([]string, error) {
	f, err := os.Open(folder)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	elements, err := f.Readdirnames(-1)
	slices.Sort(elements)
	return elements, err
}

func (l *Listing) element(folder, name string) error {
	at := filepath.Join(folder, name)
	info, err := os.Lstat(at)
	if err != nil {
		return err
	}
	e, err := entryOf(name, info, func() (string, error) { return os.Readlink(at) })
	if content := (*ContentError)(nil); e.Kind == Link && errors.As(err, &content) {
		e, info, err = behind(at, name)
	}
	if err != nil {
		return err
	}
	if len(*l) == MaxEntries {
		return &ContentError{name, fmt.Sprintf("is one of more than %d files, the limit for one folder", MaxEntries)}
	}
	*l = append(*l, Found{e, info})
	if e.Kind == Folder {
		return l.add(folder, name)
	}
	return nil
}

func behind(at, name string) (Entry, fs.FileInfo, error) {
	to, _ := os.Readlink(at)
	info, err := os.Stat(at)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return Entry{}, nil, &ContentError{name, fmt.Sprintf("is a link to %s, which is not there", to)}
	case err != nil:
		return Entry{}, nil, err
	case !info.Mode().IsRegular():
		return Entry{}, nil, &ContentError{name, fmt.Sprintf("is a link to %s, which is %s outside of the folder: name "+
			"that itself as an input", to, beneath.KindOf(info.Mode()))}
	}
	e, err := entryOf(name, info, nil)
	return e, info, err
}

// Size is that of all files together, in bytes.
func (l Listing) Size() (size int64) {
	for _, found := range l {
		size += found.Size
	}
	return size
}

// State is another text whenever the folder has become another one, as far as that
// can be told without reading its files: by their names, sizes and times of
// modification.
func (l Listing) State() string {
	sum := sha256.New()
	for _, found := range l {
		fmt.Fprintf(sum, "%c %t %d %d %q %q\n", found.Kind, found.Executable, found.Size, found.modified(), found.Name,
			found.Target)
	}
	return hex.EncodeToString(sum.Sum(nil))
}

// Contents is a text that tells the folder from any other one: by names, kinds, targets of links, and what
// held says of each file.
func (l Listing) Contents(held func(*Found) (string, error)) (string, error) {
	sum := sha256.New()
	for i := range l {
		found := &l[i]
		holds := found.Target
		if found.Kind == File {
			var err error
			if holds, err = held(found); err != nil {
				return "", err
			}
		}
		fmt.Fprintf(sum, "%c %t %q %q\n", found.Kind, found.Executable, found.Name, holds)
	}
	return hex.EncodeToString(sum.Sum(nil)), nil
}

// modified is the time of modification of a file. That of a folder says nothing
// that its names do not say.
func (f *Found) modified() int64 {
	if f.Kind != File {
		return 0
	}
	return f.Info.ModTime().UnixNano()
}

// Clean is a folder's logical name without the slash at its end: its path.
func Clean(lfn string) string { return strings.TrimSuffix(lfn, "/") }
