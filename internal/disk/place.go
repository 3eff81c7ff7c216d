//go:build linux

package disk

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"

	"golang.org/x/sys/unix"
)

// CopyPiece is how much Copy copies before it looks at its context again.
const CopyPiece = 16 << 20

// Descriptor is a path that leads to an open file, in this process and as long as
// it is open, whatever has become of its name.
func Descriptor(f *os.File) string { return fmt.Sprintf("/proc/self/fd/%d", f.Fd()) }

// Link gives an open file another name: that very file, whatever has become of
// the name under which it was opened.
func Link(f *os.File, target string) error {
	err := unix.Linkat(unix.AT_FDCWD, Descriptor(f), unix.AT_FDCWD, target, unix.AT_SYMLINK_FOLLOW)
	if err != nil {
		return &os.LinkError{Op: "link", Old: f.Name(), New: target, Err: err}
	}
	return nil
}

// Copy makes an empty file hold what a regular one holds now. The two share
// blocks where the file system can; else holes stay holes. What is appended to the
// original meanwhile is not copied, so it always comes to an end, or ctx does.
func Copy(ctx context.Context, out, in *os.File) error {
	if unix.IoctlFileClone(int(out.Fd()), int(in.Fd())) == nil {
		return nil
	}
	info, err := in.Stat()
	if err != nil {
		return err
	}
	size := info.Size()
	for at := int64(0); at < size; {
		if err := ctx.Err(); err != nil {
			return fmt.Errorf("copy %s after %d bytes: %w", in.Name(), at, err)
		}
		from, to := nextData(in, at, size)
		if err := copyRange(ctx, out, in, from, to); err != nil {
			return err
		}
		at = to
	}
	return out.Truncate(size)
}

// Within is a reader that ends with a context.
func Within(ctx context.Context, from io.Reader) io.Reader { return within{ctx, from} }

type within struct {
	ctx  context.Context
	from io.Reader
}

func (w within) Read(b []byte) (int, error) {
	if err := w.ctx.Err(); err != nil {
		return 0, err
	}
	return w.from.Read(b)
}

// CopyTo makes a new file, with permissions of its own, hold what an open one holds now.
// What stands at target already is left alone; a file that was begun and not completed is
// removed.
func CopyTo(ctx context.Context, in *os.File, target string, perm fs.FileMode) error {
	out, err := os.OpenFile(target, os.O_RDWR|os.O_CREATE|os.O_EXCL, perm)
	if err != nil {
		return err
	}
	if err := errors.Join(Copy(ctx, out, in), out.Close()); err != nil {
		_ = os.Remove(target)
		return err
	}
	return nil
}

// nextData is the first stretch from a place on that is no hole; the end of the
// file if there is none.
func nextData(f *os.File, at, size int64) (from, to int64) {
	from, err := f.Seek(at, unix.SEEK_DATA)
	switch {
	case errors.Is(err, unix.ENXIO):
		return size, size
	case err != nil: // the file system knows nothing of holes
		return at, size
	}
	if to, err = f.Seek(from, unix.SEEK_HOLE); err != nil || to <= from {
		to = size
	}
	return min(from, size), min(to, size)
}

func copyRange(ctx context.Context, out, in *os.File, from, to int64) error {
	for _, f := range []*os.File{out, in} {
		if _, err := f.Seek(from, io.SeekStart); err != nil {
			return err
		}
	}
	for from < to {
		if err := ctx.Err(); err != nil {
			return fmt.Errorf("copy %s after %d bytes: %w", in.Name(), from, err)
		}
		n, err := io.CopyN(out, in, min(CopyPiece, to-from))
		if errors.Is(err, io.EOF) { // it has become shorter
			return nil
		}
		if err != nil {
			return err
		}
		from += n
	}
	return nil
}
