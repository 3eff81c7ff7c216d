package feed

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"sync"

	"fairway/internal/archive"
	"fairway/internal/flow"
	"fairway/internal/logical"
	"fairway/internal/server/state"
	"fairway/internal/storage"
	"fairway/internal/taskqueue"
)

// ComparedSize is the largest input, in bytes, that is known by its contents where nothing
// else is said (Finder.Compared). Larger ones are known by size, time of modification and inode: they
// are not read by the server.
const ComparedSize = storage.SmallFile

// Contents knows what inputs hold, by PFN. A file whose stamp is that of the last look is not read
// again. Goroutines may share it.
type Contents struct {
	mu   sync.Mutex
	seen map[string]looked
}

// NewContents knows nothing yet.
func NewContents() *Contents { return &Contents{seen: map[string]looked{}} }

// maxSeen bounds the files that are known. Beyond it all are forgotten, and are read again when they
// are looked at.
const maxSeen = 1 << 20

func (c *Contents) note(pfn string, l looked) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.seen) >= maxSeen {
		clear(c.seen)
	}
	c.seen[pfn] = l
}

type looked struct {
	stamp    state.Stamp
	identity string
}

// Remember takes over what is recorded of the inputs of the last run.
func (c *Contents) Remember(inputs []state.Input) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, r := range inputs {
		if r.Stamp != nil {
			c.seen[r.PFN] = looked{*r.Stamp, r.Identity}
		}
	}
}

// StampOf is that of the last look at a file, for its record.
func (c *Contents) StampOf(pfn string) *state.Stamp {
	c.mu.Lock()
	defer c.mu.Unlock()
	if known, ok := c.seen[pfn]; ok {
		return &known.stamp
	}
	return nil
}

// identify gives the identity of a file: another one when its contents changed
// and, where it is large, when it was replaced or only touched. A file that is
// written to just now has one that its readers will find to be over.
func (c *Contents) identify(pfn, path string, info fs.FileInfo, compared int64) (string, error) {
	now := state.StampOf(info)
	c.mu.Lock()
	known, ok := c.seen[pfn]
	c.mu.Unlock()
	if ok && known.stamp == now {
		return known.identity, nil
	}
	identity, err := identityIn(path, info, compared)
	if err == nil {
		c.note(pfn, looked{now, identity})
	}
	return identity, err
}

// identityIn is that of a file of a run which knows those up to a size by what they hold.
func identityIn(path string, info fs.FileInfo, compared int64) (string, error) {
	if info.Size() <= max(compared, ComparedSize) {
		return storage.ContentsOf(context.Background(), path, info.Size())
	}
	return fileIdentity(info), nil
}

// existing describes a file as it is now, or a folder if the name stands for
// one; nil for something of the other kind.
func (f *Finder) existing(lfn, pfn string) (*flow.InputFile, error) {
	path, err := f.roots.Path(pfn)
	if err != nil {
		return nil, err
	}
	info, err := os.Stat(path)
	if err != nil {
		return nil, err
	}
	if info.IsDir() != logical.IsFolder(lfn) {
		return nil, nil
	}
	if err := f.ofState(path); err != nil {
		return nil, err
	}
	if info.IsDir() {
		return f.existingFolder(lfn, pfn, path)
	}
	if err := notRegular(path, info); err != nil {
		return nil, err
	}
	if f.Brief {
		return new(flow.InputFile), notReadable(path)
	}
	identity, err := f.Contents.identify(pfn, path, info, f.Compared)
	if errors.Is(err, fs.ErrPermission) {
		identity, err = fileIdentity(info), nil // whoever reads it will say so
	}
	if err != nil {
		return nil, err
	}
	return &flow.InputFile{ExistingFile: taskqueue.ExistingFile{
		LFN: lfn, PFN: pfn, Size: info.Size(), Identity: identity, Tag: tagOf(pfn, storage.InfoOf(info)),
	}}, nil
}

// existingFolder describes a folder as it is now. One whose files are small
// together is known by what they hold.
func (f *Finder) existingFolder(lfn, pfn, path string) (*flow.InputFile, error) {
	listing, err := archive.List(path)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	for i := range listing {
		if listing[i].Kind == archive.File {
			if err := f.ofState(filepath.Join(path, listing[i].Name)); err != nil {
				return nil, fmt.Errorf("%s: %w", path, err)
			}
		}
	}
	identity, err := f.Contents.identifyFolder(pfn, path, listing, f.Compared)
	if err != nil {
		return nil, err
	}
	return &flow.InputFile{ExistingFile: taskqueue.ExistingFile{
		LFN: lfn, PFN: pfn, Size: listing.Size(), Identity: identity, Tag: taskqueue.Tag(storage.FixedTag(listing.State())),
	}}, nil
}

// identifyFolder is identify for a folder, by the manifest of what it holds.
func (c *Contents) identifyFolder(pfn, path string, listing archive.Listing, compared int64) (string, error) {
	now := state.StampOfFolder(listing.State(), listing.Size(), func(yield func(fs.FileInfo) bool) {
		for i := range listing {
			if listing[i].Kind == archive.File && !yield(listing[i].Info) {
				return
			}
		}
	})
	c.mu.Lock()
	known, ok := c.seen[pfn]
	c.mu.Unlock()
	if ok && known.stamp == now {
		return known.identity, nil
	}
	identity, err := manifestIdentity(path, listing, max(compared, ComparedSize))
	if err != nil {
		return "", err
	}
	c.note(pfn, looked{now, identity})
	return identity, nil
}

// manifestIdentity says what each file holds where all together have at most compared bytes and the server
// may read them, and else what [fileIdentity] tells.
func manifestIdentity(path string, listing archive.Listing, compared int64) (string, error) {
	form := logical.FolderOf
	if listing.Size() > compared {
		form = listedForm
	}
	text, err := listing.Contents(func(found *archive.Found) (string, error) {
		if form == logical.FolderOf {
			text, err := identityIn(filepath.Join(path, found.Name), found.Info, compared)
			if !errors.Is(err, fs.ErrPermission) {
				return text, err
			}
			form = listedForm // whoever reads it will say so
		}
		return fileIdentity(found.Info), nil
	})
	return form + text, err
}

// listedForm begins the identity of a folder that nobody has read.
const listedForm = "listed-"
