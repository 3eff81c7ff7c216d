// Package storage reads and writes storage elements: the places where files
// live for good.
//
// A file is named by its PFN (physical file name): a URL whose scheme says how
// it is reached. A PFN without a scheme is an absolute path, and the same as
// "file:" before that path; no character in such a path is escaped. PFNs of
// [StateScheme] and [FolderScheme] are relative to [Roots].
//
// Guarantees of every [Element]:
//
//   - Put and Get show a file complete or not at all, whenever the process or
//     the machine ends, and never overwrite one.
//   - What came or went over a network has the length and the checksum that the
//     server tells, if it tells one; else the error is a [ChecksumError] or
//     [io.ErrUnexpectedEOF].
//   - What is said of the machine does not hold for an output of the state's own element
//     ([StateScheme]) until Put returns, on file systems that do not keep the order of changes
//     (other than ext4 with a journal and XFS): nobody knows its name before.
//   - When Put returns, the file and its name are durable. Put of a PFN that
//     holds the same contents already succeeds, so an attempt may repeat it.
//   - Remove of a file that is not there succeeds.
//   - Errors wrap [fs.ErrNotExist], [fs.ErrExist], [ErrNoSpace], [ErrReadOnly]
//     [ErrScheme], [ErrPermission] or [ErrNoList] where one of them is the
//     reason. After [ErrNoSpace] nothing half-written is left.
//   - No error, and no argument of another process, holds a password, a token or
//     the query of a URL.
//
// This package has the elements of local files. Those of networks are in
// packages below it, and internal/storage/elements puts all together.
//
// Methods may be called from any goroutine, and block until they are done or
// ctx ends; local copies notice ctx between pieces of [disk.CopyPiece] bytes.
package storage

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"slices"
	"strings"
	"syscall"
	"time"
)

var (
	// ErrNoSpace says that a disk or a quota is full.
	ErrNoSpace = errors.New("no space left")
	// ErrReadOnly says that files of this scheme can only be read.
	ErrReadOnly = errors.New("storage element can only be read")
	// ErrScheme says that no element knows the scheme of a PFN.
	ErrScheme = errors.New("unknown scheme")
	// ErrPermission says that a server wants other credentials, or none that the
	// user has are good for this file.
	ErrPermission = errors.New("the server refuses access")
	// ErrNoList says that a server cannot tell which files it has.
	ErrNoList = errors.New("the server does not list folders")
)

// Info is what Stat tells of a file.
type Info struct {
	Size    int64     // bytes; -1 where the element does not tell
	ModTime time.Time // zero where the element does not tell
	Inode   uint64    // another one where the file was replaced; 0 where there are none
}

// InfoOf is what Stat tells of a local file.
func InfoOf(file fs.FileInfo) Info {
	i := Info{Size: file.Size(), ModTime: file.ModTime()}
	if st, ok := file.Sys().(*syscall.Stat_t); ok {
		i.Inode = st.Ino
	}
	return i
}

// Element is a storage element, or a decorator around one.
type Element interface {
	// Open reads the file; the caller closes the reader.
	Open(ctx context.Context, pfn string) (io.ReadCloser, error)
	// Get makes the file available at the local path, which must not exist, and
	// returns its size. The file at path may share its contents with the
	// storage element, so it must not be written to. A copy of a local file has
	// its time of modification.
	Get(ctx context.Context, pfn, path string) (int64, error)
	// Put stores the local file at path, which may be that of an open file
	// (disk.Descriptor). It may share its contents with the storage element from
	// then on, so it must not be written to any more.
	Put(ctx context.Context, path, pfn string) error
	Stat(ctx context.Context, pfn string) (Info, error)
	Remove(ctx context.Context, pfn string) error
	// List returns what is in a folder, in no order.
	List(ctx context.Context, pfn string) ([]Entry, error)
}

// Entry is one name in a folder.
type Entry struct {
	Name   string // without slashes, as it would stand in a PFN
	Folder bool
}

// IsElement reports whether a name that a server lists is one in a folder: it
// may be "..", or hold a slash, and lead anywhere. One with a line break is such a name,
// so that who takes the file is told that it cannot be read.
func IsElement(name string) bool {
	return name != "" && name != "." && name != ".." && !strings.ContainsAny(name, "/\x00")
}

// Schemes is the Element that hands each PFN to the element of its scheme.
type Schemes map[string]Element

// Local returns the elements of the schemes that need no network: file, and those
// that are relative to roots.
func Local(roots Roots) Schemes {
	return Schemes{"file": File{}, StateScheme: own{roots}, FolderScheme: inFolder{roots}, SiteScheme: inFolder{roots}}
}

// Scheme returns the scheme of a PFN in lower case, "file" where it has none.
func Scheme(pfn string) string {
	scheme, _, ok := strings.Cut(pfn, ":")
	if !ok || strings.ContainsAny(scheme, "/.") {
		return "file"
	}
	return strings.ToLower(scheme)
}

func (s Schemes) of(pfn string) Element {
	if e := s[Scheme(pfn)]; e != nil {
		return e
	}
	known := slices.DeleteFunc(slices.Sorted(maps.Keys(s)),
		func(scheme string) bool {
			return scheme == StateScheme || scheme == FolderScheme || scheme == SiteScheme
		})
	return refused{fmt.Errorf("%s: %w %q; known are %s", Shown(pfn), ErrScheme, Scheme(pfn), strings.Join(known, ", "))}
}

// Open is part of Element.
func (s Schemes) Open(ctx context.Context, pfn string) (io.ReadCloser, error) {
	return s.of(pfn).Open(ctx, pfn)
}

// Get is part of Element.
func (s Schemes) Get(ctx context.Context, pfn, path string) (int64, error) {
	return s.of(pfn).Get(ctx, pfn, path)
}

// Put is part of Element.
func (s Schemes) Put(ctx context.Context, path, pfn string) error {
	return s.of(pfn).Put(ctx, path, pfn)
}

// Stat is part of Element.
func (s Schemes) Stat(ctx context.Context, pfn string) (Info, error) {
	return s.of(pfn).Stat(ctx, pfn)
}

// Remove is part of Element.
func (s Schemes) Remove(ctx context.Context, pfn string) error {
	return s.of(pfn).Remove(ctx, pfn)
}

// List is part of Element.
func (s Schemes) List(ctx context.Context, pfn string) ([]Entry, error) {
	return s.of(pfn).List(ctx, pfn)
}

type refused struct{ err error }

func (r refused) Open(context.Context, string) (io.ReadCloser, error) { return nil, r.err }
func (r refused) Get(context.Context, string, string) (int64, error)  { return 0, r.err }
func (r refused) Put(context.Context, string, string) error           { return r.err }
func (r refused) Stat(context.Context, string) (Info, error)          { return Info{}, r.err }
func (r refused) Remove(context.Context, string) error                { return r.err }
func (r refused) List(context.Context, string) ([]Entry, error)       { return nil, r.err }
