package feed

import (
	"cmp"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"sync"

	"github.com/zeebo/blake3"
	"golang.org/x/sys/unix"

	"fairway/internal/archive"
	"fairway/internal/dispatch"
	"fairway/internal/flow"
	"fairway/internal/logical"
	"fairway/internal/server/state"
	"fairway/internal/storage"
)

// ComparedSize is the largest input, in bytes, that is known by its contents where nothing
// else is said (Finder.Compared). Larger ones are known by size, time of modification and inode: they
// are not read by the server.
const ComparedSize = 4 << 20

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
	switch {
	case info.Size() <= ComparedSize:
		return sumOf(path)
	case info.Size() <= compared:
		return hashOf(path)
	}
	return fileIdentity(info), nil
}

// hashOf reads a large file. BLAKE3 is as fast as disks are.
func hashOf(path string) (string, error) {
	file, err := os.Open(path)
	if err != nil {
		return "", err
	}
	defer func() { _ = file.Close() }()
	sum := blake3.New()
	if _, err := io.CopyBuffer(sum, struct{ io.Reader }{file}, make([]byte, 1<<20)); err != nil {
		return "", fmt.Errorf("reading %s: %w", path, err)
	}
	return "blake3-" + hex.EncodeToString(sum.Sum(nil)), nil
}

// sumPieces has what sumOf reads into. A run looks at all inputs that its jobs have links to,
// since each link changes the stamp.
var sumPieces = sync.Pool{New: func() any { return new([64 << 10]byte) }}

// sumOf does without os.File, which costs as much as to read a small file.
func sumOf(path string) (string, error) {
	fd, err := retried(func() (int, error) { return unix.Open(path, unix.O_RDONLY|unix.O_NONBLOCK|unix.O_CLOEXEC, 0) })
	if err != nil {
		return "", &os.PathError{Op: "open", Path: path, Err: err}
	}
	defer func() { _ = unix.Close(fd) }()
	piece := sumPieces.Get().(*[64 << 10]byte)
	defer sumPieces.Put(piece)
	sum := sha256.New()
	for left := ComparedSize + 1; left > 0; {
		n, err := retried(func() (int, error) { return unix.Read(fd, piece[:min(left, len(piece))]) })
		if err != nil {
			return "", &os.PathError{Op: "read", Path: path, Err: err}
		}
		if n == 0 {
			break
		}
		_, _ = sum.Write(piece[:n])
		left -= n
	}
	return "sha256-" + hex.EncodeToString(sum.Sum(nil)), nil
}

func retried(call func() (int, error)) (n int, err error) {
	for {
		if n, err = call(); !errors.Is(err, unix.EINTR) {
			return n, err
		}
	}
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
		return new(flow.InputFile), Unfit(path)
	}
	identity, err := f.Contents.identify(pfn, path, info, f.Compared)
	if errors.Is(err, fs.ErrPermission) {
		identity, err = fileIdentity(info), nil // whoever reads it will say so
	}
	if err != nil {
		return nil, err
	}
	return &flow.InputFile{ExistingFile: dispatch.ExistingFile{
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
	return &flow.InputFile{ExistingFile: dispatch.ExistingFile{
		LFN: lfn, PFN: pfn, Size: listing.Size(), Identity: identity, Tag: dispatch.Tag(storage.FixedTag(listing.State())),
	}}, nil
}

// identifyFolder is identify for a folder, by the manifest of what it holds.
func (c *Contents) identifyFolder(pfn, path string, listing archive.Listing, compared int64) (string, error) {
	sum := sha256.Sum256([]byte(listing.State()))
	now := state.Stamp{Size: listing.Size(), Tree: binary.LittleEndian.Uint64(sum[:])}
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

// manifestIdentity says what each file holds where all together have at most compared bytes, and else
// what [fileIdentity] tells.
func manifestIdentity(path string, listing archive.Listing, compared int64) (string, error) {
	sum := sha256.New()
	for _, found := range listing {
		held := found.Target
		if found.Kind == archive.File {
			held = fileIdentity(found.Info)
		}
		if found.Kind == archive.File && listing.Size() <= compared {
			text, err := identityIn(filepath.Join(path, found.Name), found.Info, compared)
			if err != nil && !errors.Is(err, fs.ErrPermission) { // whoever reads it will say so
				return "", err
			}
			held = cmp.Or(text, held)
		}
		fmt.Fprintf(sum, "%c %t %q %q\n", found.Kind, found.Executable, found.Name, held)
	}
	return "folder-" + hex.EncodeToString(sum.Sum(nil)), nil
}
