package stage

import (
	"context"
	"encoding/binary"
	"fmt"
	"os"
	"path/filepath"

	"fairway/internal/archive"
	"fairway/internal/disk"
	"fairway/internal/logical"
	"fairway/internal/storage"
)

// Where other runs take results, the key of a result says what the inputs held when the run
// took them up. Somebody may write to one afterwards and leave size and time as they were, and
// a cache may have it from before that. So what a job reads is compared with the key: each file
// is copied, by itself, and the copy is read once by each pilot. A link would show what is
// written to the file after that, and each link changes the time by which the server sees
// whether it has to read the file again.

// known is that of logical.Known.
type known [16]byte

func (k known) short() uint32 { return binary.LittleEndian.Uint32(k[:]) }

func (i *input) isKnownBy(contents string) bool { return logical.Known(i.LFN, contents) == i.known }

// compareKnown reads a copy of an input. The error is a damagedError if it holds something else
// than its key says.
func (ar *Area) compareKnown(ctx context.Context, i *input, path string) error {
	info, err := os.Stat(path)
	if err != nil {
		return err
	}
	contents, err := storage.ContentsOf(ctx, path, info.Size())
	if err != nil {
		return err
	}
	if !i.isKnownBy(contents) {
		return &damagedError{"holds other bytes than when the run took it up"}
	}
	ar.identified.add(info, i.known.short())
	return nil
}

// compareFolder is compareKnown for a folder that was unpacked, or copied, to a path.
func (ar *Area) compareFolder(ctx context.Context, i *input, path string) error {
	if i.known == (known{}) {
		return nil
	}
	listing, err := archive.List(path)
	if err != nil {
		return err
	}
	contents, err := listing.Contents(func(f *archive.Found) (string, error) {
		return storage.ContentsOf(ctx, filepath.Join(path, f.Name), f.Size)
	})
	if err == nil && !i.isKnownBy(logical.FolderOf+contents) {
		err = &changedError{ar.Roots.Shown(i.pfn)}
	}
	return err
}

// copyApart is Get of an element of local files, but that the copy shares nothing with its original.
func (ar *Area) copyApart(ctx context.Context, pfn, path string) (int64, error) {
	source, err := ar.Roots.Path(pfn)
	if err != nil {
		return 0, err
	}
	from, info, err := storage.OpenForPut(source)
	if err != nil {
		return 0, err
	}
	defer from.Close()
	if err = disk.CopyTo(ctx, from, path, info.Mode().Perm()|0o400); err != nil {
		return 0, fmt.Errorf("get %s: %w", pfn, err)
	}
	return info.Size(), os.Chtimes(path, info.ModTime(), info.ModTime())
}
