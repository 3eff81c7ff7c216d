//go:build linux

package look

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"

	"fairway/internal/cli/console"
	"fairway/internal/disk"
	"fairway/internal/logical"
	"fairway/internal/storage"
	"fairway/internal/storage/elements"
	"fairway/internal/wire"
	"fairway/lib/sched"
)

func (c *Commands) getStored(
	ctx context.Context, lfn string, number *uint32, destination string,
) (*Fetched, error) {
	v, err := c.storedVersion(ctx, lfn, number)
	if err != nil {
		return nil, err
	}
	roots, err := c.Roots()
	if err != nil {
		return nil, err
	}
	if logical.IsFolder(lfn) && v.Writer == nil {
		return nil, console.Fail(console.ExitNotFound, "copy it from there", "%s is a folder from outside, at %s", lfn,
			roots.Shown(v.Pfn))
	}
	source := storage.TellSlow(elements.New(roots, sched.Default().Sleep), func(host string, why error) {
		fmt.Fprintf(c.Err, "fairway: %s\n", storage.SlowText(host, why, storage.AwayTime.String()))
	})
	if destination == standardOutput {
		_, err := copyVersion(ctx, source, lfn, v, c.Out)
		return nil, err
	}
	f := &Fetched{LFN: lfn, Version: v.Version, Adler32: v.Adler32, Destination: destinationOf(lfn, destination)}
	if _, err := os.Lstat(f.Destination); err == nil { // known before anything is copied
		return nil, taken(f.Destination)
	}
	out, err := disk.CreateUnnamed(filepath.Dir(f.Destination), 0, 0o666)
	if err != nil {
		return nil, fmt.Errorf("making %s: %w", f.Destination, err)
	}
	defer func() { _ = out.Close() }()
	if f.Size, err = copyVersion(ctx, source, lfn, v, out); err != nil {
		return nil, err
	}
	if err := errors.Join(out.Sync(), out.Link(f.Destination)); err != nil {
		if errors.Is(err, fs.ErrExist) {
			return nil, taken(f.Destination)
		}
		return nil, fmt.Errorf("making %s: %w", f.Destination, err)
	}
	return f, nil
}

func copyVersion(
	ctx context.Context, source storage.Element, lfn string, v *wire.FileVersion, out io.Writer,
) (size int64, err error) {
	body, err := source.Open(ctx, v.Pfn)
	if errors.Is(err, fs.ErrNotExist) {
		return 0, console.Fail(console.ExitNotFound, remakeHint(v), "version %d of %s was stored, and is lost: %w",
			v.Version, lfn, err)
	}
	if err != nil {
		return 0, fmt.Errorf("fetching %s: %w", lfn, err)
	}
	defer func() { _ = body.Close() }()
	sum := storage.Checksum{}
	if v.Adler32 != "" {
		sum = storage.Checksum{Kind: "adler32", Value: v.Adler32}
	}
	hash := sum.Hash()
	to := out
	if hash != nil {
		to = io.MultiWriter(out, hash)
	}
	if size, err = io.Copy(to, body); err != nil {
		return size, fmt.Errorf("fetching %s: %w", lfn, err)
	}
	if v.Writer != nil && size != v.Size || sum.Check(hash, v.Pfn) != nil {
		return size, console.Fail(console.ExitFailed, remakeHint(v),
			"version %d of %s holds other bytes than its job stored", v.Version, lfn)
	}
	return size, nil
}
