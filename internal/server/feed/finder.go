package feed

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"unicode/utf8"

	"fairway/internal/archive"
	"fairway/internal/catalog"
	"fairway/internal/flow"
	"fairway/internal/flow/workflow"
	"fairway/internal/logical"
	"fairway/internal/server/state"
	"fairway/internal/storage"
	"fairway/internal/taskqueue"
)

// Finder enumerates the files of declared inputs, in the order of
// [flow.DeclaredInput.Order]; lines of a URL list in their own. Names that begin with a
// dot are matched only by a pattern that has the dot.
type Finder struct {
	folder   string // of the workflow; patterns are relative to it
	roots    storage.Roots
	Made     string          // where files of traces are made
	Run      taskqueue.RunID // that the files are found for; its records bear it
	element  storage.Element
	Contents *Contents
	Compared int64 // up to which size files are known by what they hold; those up to ComparedSize always are
	Dry      bool  // only: files of traces are not made
	Apart    bool  // the folder is not that of the state: all files have absolute names
	// Alone is another text for each run. A file on a server that does not say when it was written is known
	// by it, so that what another run has read of it does not count; empty: its size is enough.
	Alone string
	Brief bool // no file is read and no server asked: identities and sizes on servers are missing
	// Enumerated is what whoever asks for the run has listed already of closed inputs; nil: nothing.
	Enumerated *Enumeration

	lists readLists

	mu      sync.Mutex
	outside map[string]bool // folders that were found to be in no state
}

// NewFinder makes the finder of a workflow folder.
func NewFinder(folder string, element storage.Element) *Finder {
	return &Finder{
		folder: folder, element: element,
		roots: storage.Roots{Folder: folder}, Contents: NewContents(),
	}
}

// Find returns the files that an input has now. What stands in a watched folder and can
// be no file of the input is left out of files: left has an error for each, and err is nil
// all the same, since whoever put it there can still mend that. If two files would have
// one name, the one that was fed before is taken, or else the first.
func (f *Finder) Find(
	ctx context.Context, in *workflow.DeclaredInput, known Known,
) (files []flow.InputFile, left []error, err error) {
	switch {
	case len(in.Sizes) > 0:
		files, err = f.makeSized(in.Sizes)
	case in.URLList != "":
		files, err = f.urls(ctx, in)
		if errors.Is(err, fs.ErrNotExist) {
			return nil, nil, err // the list is still to come
		}
	default:
		files, left, err = f.matching(ctx, in)
	}
	if err == nil {
		var wrong []error
		files, wrong = f.apart(files, known)
		if in.Watch {
			left = append(left, wrong...)
		} else {
			err = errors.Join(wrong...)
		}
	}
	if err != nil {
		return nil, nil, inInput(in, err)
	}
	return files, left, nil
}

// Known gives the PFN of a file of an input that was fed before. None was where it is nil.
type Known func(lfn string) (pfn string, fed bool)

func (k Known) pfn(lfn string) (pfn string, fed bool) {
	if k == nil {
		return "", false
	}
	return k(lfn)
}

func inInput(in *workflow.DeclaredInput, err error) error {
	return fmt.Errorf("input %q (line %d): %w", in.Name, in.Line, err)
}

// recordable refuses names of files that no record and no message to a pilot
// can hold.
func (f *Finder) recordable(files []flow.InputFile) error {
	for _, file := range files {
		if !utf8.ValidString(file.PFN) {
			return fmt.Errorf("the name %q is not UTF-8: give the file another name", f.roots.Shown(file.PFN))
		}
	}
	return nil
}

func (f *Finder) apart(files []flow.InputFile, known Known) (good []flow.InputFile, wrong []error) {
	taken := make(map[string]string, len(files))
	for _, file := range files {
		other, ok := taken[file.LFN]
		if !ok {
			other, ok = known.pfn(file.LFN)
		}
		if err := f.recordable([]flow.InputFile{file}); err != nil {
			wrong = append(wrong, err)
		} else if ok && other != file.PFN {
			wrong = append(wrong, fmt.Errorf("%s and %s would both be called %s: tell them apart by placeholders in `as`",
				f.roots.Shown(other), f.roots.Shown(file.PFN), file.LFN))
		} else {
			taken[file.LFN] = file.PFN
			good = append(good, file)
		}
	}
	return good, wrong
}

func (f *Finder) absolute(path string) string {
	if filepath.IsAbs(path) {
		return filepath.Clean(path)
	}
	return filepath.Join(f.folder, path)
}

// pfn is that of a path as it is written in a workflow or a list. What is in the
// folder of the workflow is found there wherever the folder is moved.
func (f *Finder) pfn(path string) string {
	if filepath.IsLocal(path) && !f.Apart {
		return storage.Join(storage.FolderScheme+":", filepath.Clean(path))
	}
	return f.absolute(path)
}

func (f *Finder) matching(
	ctx context.Context, in *workflow.DeclaredInput,
) (files []flow.InputFile, left []error, err error) {
	paths, left, err := f.matched(ctx, in)
	if err != nil {
		return nil, nil, err
	}
	paths = in.Order(paths)
	for part := range slices.Chunk(paths, describedTogether) { // so that an error ends it soon
		found, errs := f.described(ctx, in, part)
		for i, err := range errs {
			switch {
			case err != nil && !in.Watch:
				return nil, nil, err
			case err != nil:
				left = append(left, err)
			case found[i] != nil:
				files = append(files, *found[i])
			}
		}
	}
	return files, left, nil
}

// describedTogether is how many files are described by several goroutines before the next ones are.
const describedTogether = 4096

// described is named for some paths, in their order. To look at files and read the small ones takes
// longer than all else that a run begins with, so each processor takes a part.
func (f *Finder) described(
	ctx context.Context, in *workflow.DeclaredInput, paths []string,
) (files []*flow.InputFile, errs []error) {
	files, errs = make([]*flow.InputFile, len(paths)), make([]error, len(paths))
	parts := runtime.GOMAXPROCS(0)
	if slices.ContainsFunc(paths, workflow.IsURL) {
		parts = 1 // a server answers in its own time
	}
	each := max(minDescribed, (len(paths)+parts-1)/parts)
	var all sync.WaitGroup
	for from := 0; from < len(paths); from += each {
		all.Go(func() {
			for i := from; i < min(from+each, len(paths)); i++ {
				files[i], errs[i] = f.named(ctx, in, paths[i])
			}
		})
	}
	all.Wait()
	return files, errs
}

// minDescribed is how many files a goroutine describes at least: fewer cost less than another one.
const minDescribed = 64

func (f *Finder) matched(ctx context.Context, in *workflow.DeclaredInput) (paths []string, left []error, err error) {
	for i, glob := range in.Globs {
		if workflow.IsURL(glob) {
			found, err := f.remote(ctx, in, glob)
			if err != nil {
				return nil, nil, fmt.Errorf("pattern %s: %w", in.Patterns[i], err)
			}
			if len(found) == 0 && !in.MayBeEmpty {
				return nil, nil, fmt.Errorf("no file matches %s", in.Patterns[i])
			}
			paths = append(paths, found...)
			continue
		}
		found, err := f.glob(in, glob)
		switch {
		case err != nil && !in.Watch:
			return nil, nil, fmt.Errorf("pattern %s: %w; permit that, or write a pattern that leaves the folder out",
				in.Patterns[i], err)
		case err != nil:
			left = append(left, err)
		}
		before := len(paths)
		for _, path := range found {
			written := AsWritten(f.folder, glob, path)
			if _, fits, err := in.LFN(written); fits || err != nil {
				paths = append(paths, written)
			}
		}
		if len(paths) == before && !in.Watch && !in.MayBeEmpty {
			return nil, nil, NothingMatches(f.folder, glob, f.absolute(in.Patterns[i]))
		}
		if folder := OnlyFolders(found); folder != "" && !in.Watch && !logical.IsFolder(glob) {
			return nil, nil, fmt.Errorf("%s is a folder; %s", folder, InsteadOfFolder(in.Patterns[i]))
		}
	}
	return paths, left, nil
}

// NothingMatches is the error of a pattern of an input that matches nothing of the
// kind that it stands for. It is shown as a path.
func NothingMatches(folder, glob, shown string) error {
	if !logical.IsFolder(glob) {
		return fmt.Errorf("no file matches %s", shown)
	}
	shown = archive.Clean(shown)
	if files, err := globAll(folder, glob); err == nil && len(files) > 0 {
		return fmt.Errorf("%s is a file, and a name that ends in '/' stands for a folder; leave out the '/'", shown)
	}
	return fmt.Errorf("no folder matches %s/", shown)
}

// InsteadOfFolder is what to write instead of a pattern that matches folders only.
func InsteadOfFolder(pattern string) string {
	return fmt.Sprintf("name the files in it, as in %s, or write %s/ to take it as a whole",
		filepath.Join(pattern, "{name}"), pattern)
}

// OnlyFolders returns one of the paths, which must exist, if all of them are
// folders, and else nothing.
func OnlyFolders(paths []string) string {
	folder := ""
	for _, path := range paths {
		if info, err := os.Stat(path); err != nil || !info.IsDir() {
			return ""
		}
		folder = path
	}
	return folder
}

// named describes the file at a path that one of the globs matches; nil if it
// is none of the input's.
func (f *Finder) named(ctx context.Context, in *workflow.DeclaredInput, path string) (*flow.InputFile, error) {
	lfn, fits, err := in.LFN(path)
	if err != nil || !fits {
		return nil, err
	}
	if workflow.IsURL(path) {
		file, err := f.stated(ctx, lfn, path)
		file.Path = path
		return &file, err
	}
	file, err := f.existing(lfn, f.pfn(path))
	switch {
	case file != nil:
		file.Path = path
	case err == nil && in.Watch: // of another kind
		err = Unfit(f.absolute(path))
	case errors.Is(err, fs.ErrNotExist) && in.Watch:
		err = nil // it went away meanwhile, or is still to come
	case errors.Is(err, fs.ErrNotExist):
		err = danglingLink(f.absolute(path))
	}
	return file, err
}

// AsWritten gives a path that a glob matched in a folder the form of the glob,
// which may be relative to the folder.
func AsWritten(folder, glob, path string) string {
	if filepath.IsAbs(glob) {
		return path
	}
	if relative, err := filepath.Rel(folder, path); err == nil {
		if logical.IsFolder(path) {
			relative += "/"
		}
		return relative
	}
	return path
}

func tagOf(pfn string, now storage.Info) taskqueue.Tag {
	return taskqueue.Tag(storage.TagOf(pfn, now))
}

// fileIdentity changes whenever a file is written to or replaced, as far as
// that can be told without reading it.
func fileIdentity(info fs.FileInfo) string { return storage.StateText("", storage.InfoOf(info)) }

func (f *Finder) urls(ctx context.Context, in *workflow.DeclaredInput) ([]flow.InputFile, error) {
	found, err := f.List(ctx, in, true, nil)
	if err != nil {
		return nil, err
	}
	return found.Files, found.Err()
}

// Current describes a file that was fed as it is now; nil where it is of another kind.
func (f *Finder) Current(ctx context.Context, in *workflow.DeclaredInput, r state.Input) (*flow.InputFile, error) {
	if in.URLList != "" || !storage.IsLocal(r.PFN) {
		file, err := f.stated(ctx, r.LFN, r.PFN)
		return &file, err
	}
	return f.existing(r.LFN, r.PFN)
}

// stated describes what a URL, or a path of a list of them, leads to.
func (f *Finder) stated(ctx context.Context, lfn, url string) (flow.InputFile, error) {
	if storage.IsLocal(url) {
		file, err := f.existing(lfn, url)
		if err == nil && file == nil {
			err = Unfit(f.roots.Shown(url))
		}
		if err != nil {
			return flow.InputFile{}, err
		}
		return *file, nil
	}
	if f.Brief {
		return flow.InputFile{}, nil
	}
	info, err := f.element.Stat(ctx, url)
	if err != nil {
		return flow.InputFile{}, err
	}
	e := taskqueue.ExistingFile{
		LFN: lfn, PFN: url, Size: max(info.Size, 0), Identity: storage.StateText(url, info), Tag: tagOf(url, info),
	}
	if f.Alone != "" && info.Inode == 0 && info.ModTime.IsZero() {
		e.Identity += "-" + f.Alone
		e.Tag = taskqueue.Tag(storage.FixedTag(e.Identity))
	}
	return flow.InputFile{ExistingFile: e, Unsized: info.Size < 0}, nil
}

// locate gives the PFN of what stands in a URL list: a URL, a path, or, where
// there are rules, a logical name.
func (f *Finder) locate(in *workflow.DeclaredInput, rules *catalog.Catalog, name string) (string, error) {
	url := name
	if rules != nil && !hasScheme(name) {
		var err error
		if url, err = rules.PFN(in.Catalog.Protocol, name); err != nil {
			return "", fmt.Errorf("catalog %s: %w", in.Catalog.File, err)
		}
		if storage.Scheme(url) != "file" {
			return url, nil
		}
	}
	if !hasScheme(url) {
		url = f.pfn(url)
	}
	return url, nil
}

func hasScheme(url string) bool {
	return workflow.IsURL(url) || strings.HasPrefix(strings.ToLower(url), "file:")
}

// ReadCatalog reads the catalogue that an input of a workflow in folder names,
// and makes sure that it has rules for the protocol. Without a name there is
// none.
func ReadCatalog(folder string, ref *workflow.CatalogRef) (*catalog.Catalog, error) {
	if ref == nil {
		return nil, nil
	}
	path := (&Finder{folder: folder}).absolute(ref.File)
	if err := Unfit(path); err != nil {
		return nil, fmt.Errorf("catalog: %w", err)
	}
	rules, err := catalog.ReadFile(path, ref.Site, ref.Volume)
	if err != nil {
		return nil, fmt.Errorf("catalog: %w", err)
	}
	if known := rules.Protocols(); !slices.Contains(known, ref.Protocol) {
		return nil, fmt.Errorf("catalog %s: it has no rules for the protocol %q, but for %s", ref.File, ref.Protocol,
			strings.Join(known, ", "))
	}
	return rules, nil
}

// makeSized makes the files of a trace: holes of the right size.
func (f *Finder) makeSized(sizes []workflow.SizedFile) ([]flow.InputFile, error) {
	files := make([]flow.InputFile, len(sizes))
	for i, sized := range sizes {
		pfn := f.pfn(filepath.Join(f.Made, sized.LFN))
		if err := f.provide(f.roots.Shown(pfn), sized.Size); err != nil {
			return nil, err
		}
		size := fmt.Sprint(sized.Size)
		files[i] = flow.InputFile{ExistingFile: taskqueue.ExistingFile{
			LFN: sized.LFN, PFN: pfn, Size: sized.Size, Identity: size, Tag: taskqueue.Tag(storage.FixedTag(size)),
		}}
	}
	return files, nil
}

func (f *Finder) provide(path string, size int64) error {
	if f.Dry {
		return nil
	}
	return makeSparse(path, size)
}

func makeSparse(path string, size int64) error {
	if info, err := os.Stat(path); err == nil && info.Size() == size {
		return nil
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o777); err != nil {
		return err
	}
	file, err := os.Create(path)
	if err != nil {
		return err
	}
	return errors.Join(file.Truncate(size), file.Close())
}
