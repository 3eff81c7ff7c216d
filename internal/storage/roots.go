package storage

import (
	"context"
	"fmt"
	"io"
	"net/url"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
)

// The schemes of PFNs that are relative, so that they hold wherever the folder
// of a workflow is moved or copied.
const (
	// StateScheme is that of files in a state's own storage element, as in
	// "state:a/b.v1.a7".
	StateScheme = "state"
	// FolderScheme is that of files in the folder of the workflow, as in
	// "folder:reads/a.fq". Only in folders where states store outputs can such files be
	// made and removed.
	FolderScheme = "folder"
	// SiteScheme is that of files which a pilot finds by the catalogue of its site, as in
	// "site:/pnfs/a": their paths are those of its node, and the server does not know them.
	SiteScheme = "site"
)

// MarkName begins the names of the files by which pilots find out which folders
// they share with their server.
const MarkName = ".fairway-mark"

// StorePrefix begins the name of the folder in which a state stores outputs at a place.
const StorePrefix = "fairway-"

var storeName = regexp.MustCompile(`^` + StorePrefix + `[a-z2-7]{16}$`)

// IsStore reports whether a folder has the name of one in which a state stores outputs.
func IsStore(name string) bool { return storeName.MatchString(name) }

// Roots are the folders that relative PFNs are relative to. An empty one has
// no files.
type Roots struct {
	State  string // of StateScheme; nothing leads out of it, nor through links in it
	Folder string // of FolderScheme; what is in it may be links
	Site   bool   // whether there are files of SiteScheme
}

// Path returns the path of a file that this machine reaches by one.
func (p Roots) Path(pfn string) (string, error) {
	base := ""
	switch Scheme(pfn) {
	case StateScheme:
		base = p.State
	case FolderScheme:
		base = p.Folder
	case SiteScheme:
		if !p.Site {
			return "", fmt.Errorf("%s: no catalogue of a site leads there", pfn)
		}
		return Path("file:" + afterScheme(pfn))
	default:
		return Path(pfn)
	}
	name := afterScheme(pfn)
	if base == "" || !filepath.IsLocal(name) {
		return "", fmt.Errorf("%s: this machine does not know where that is", pfn)
	}
	return filepath.Join(base, name), nil
}

// Shown is a PFN as people know it: the path where there is one, and nothing that may be
// secret.
func (p Roots) Shown(pfn string) string {
	if path, err := p.Path(pfn); err == nil {
		return path
	}
	return Shown(pfn)
}

// IsLocal reports whether a PFN is that of a file that a machine reaches by its
// path.
func IsLocal(pfn string) bool {
	switch Scheme(pfn) {
	case "file", StateScheme, FolderScheme, SiteScheme:
		return true
	}
	return false
}

// StateName is the name of a file in the state's own storage element; ok is
// false for a PFN of another scheme.
func StateName(pfn string) (name string, ok bool) {
	if Scheme(pfn) != StateScheme {
		return "", false
	}
	return filepath.Clean(afterScheme(pfn)), true
}

func afterScheme(pfn string) string {
	_, name, _ := strings.Cut(pfn, ":")
	return name
}

// Join is the PFN of a name in an element, given how the PFNs of that element
// begin.
func Join(prefix, name string) string {
	if strings.HasSuffix(prefix, ":") || strings.HasSuffix(prefix, "/") {
		return prefix + name
	}
	return prefix + "/" + name
}

// OutputPFN is where an attempt stores an output, given how the PFNs of the
// element begin: a name of its own for each version and attempt.
func OutputPFN(prefix, lfn string, version uint32, attempt uint64) string {
	lfn = strings.TrimLeft(lfn, "/")
	if strings.HasSuffix(lfn, "/") && Scheme(prefix) != StateScheme {
		lfn += "folder.zip" // nginx lists no name that begins with a dot
	}
	name := fmt.Sprintf("%s.v%d.a%d", lfn, version, attempt)
	if IsEscaped(prefix) {
		name = (&url.URL{Path: name}).EscapedPath()
	}
	return Join(prefix, name)
}

// IsEscaped reports whether names in a PFN are written as URLs have them.
func IsEscaped(pfn string) bool { return ProtocolOf(pfn) == HTTP }

// NameBy is the PFN that a catalogue gives a file of a workflow: by "/" and its name, which is escaped where
// PFNs are.
func NameBy(catalog func(lfn string) (pfn string, err error), name string) (string, error) {
	lfn := "/" + strings.TrimLeft(name, "/")
	pfn, err := catalog(lfn)
	if err != nil || !IsEscaped(pfn) {
		return pfn, err
	}
	return catalog((&url.URL{Path: lfn}).EscapedPath())
}

type inFolder struct{ roots Roots }

// absolute is the PFN for File. Where there is none, the error of File names the PFN.
func (e inFolder) absolute(pfn string) string {
	path, err := e.roots.Path(pfn)
	if err != nil {
		return pfn
	}
	return path
}

// Open is part of Element.
func (e inFolder) Open(ctx context.Context, pfn string) (io.ReadCloser, error) {
	return File{}.Open(ctx, e.absolute(pfn))
}

// Get is part of Element.
func (e inFolder) Get(ctx context.Context, pfn, path string) (int64, error) {
	return File{}.Get(ctx, e.absolute(pfn), path)
}

// Stat is part of Element.
func (e inFolder) Stat(ctx context.Context, pfn string) (Info, error) {
	return File{}.Stat(ctx, e.absolute(pfn))
}

// List is part of Element.
func (e inFolder) List(ctx context.Context, pfn string) ([]Entry, error) {
	return File{}.List(ctx, e.absolute(pfn))
}

// Put is part of Element.
func (e inFolder) Put(ctx context.Context, path, pfn string) error {
	if !inStore(pfn) {
		return fmt.Errorf("put %s: %w", pfn, ErrReadOnly)
	}
	return File{}.Put(ctx, path, e.absolute(pfn))
}

// Remove is part of Element.
func (e inFolder) Remove(ctx context.Context, pfn string) error {
	if !inStore(pfn) {
		return fmt.Errorf("remove %s: %w", pfn, ErrReadOnly)
	}
	return File{}.Remove(ctx, e.absolute(pfn))
}

// inStore reports whether a file is in a folder where a state stores outputs.
func inStore(pfn string) bool {
	folders, _ := filepath.Split(afterScheme(pfn))
	return slices.ContainsFunc(strings.Split(folders, "/"), IsStore)
}
