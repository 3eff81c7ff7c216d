package stage

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"sync"
	"syscall"

	"golang.org/x/sys/unix"

	"fairway/internal/archive"
	"fairway/internal/beneath"
	"fairway/internal/disk"
	"fairway/internal/logical"
)

// sealedFile is an output that nobody can write to any more but who has the right
// to override permissions: what the command has left, or a copy of it.
type sealedFile struct {
	*os.File
	in   *beneath.Folder
	copy string // name of the copy, empty if it is none
}

// Close ends the use of the file. A copy has got its names elsewhere by then.
func (f *sealedFile) Close() {
	_ = f.File.Close()
	if f.copy != "" {
		_ = f.in.Clear(f.copy)
	}
}

// sealed opens an output that can be shared with caches and the storage element.
// What nobody else has is made read-only and taken as it is. A file with other
// names, such as an input that was moved or a link to somebody's file, one of
// another owner and one that somebody still has open for writing are not touched,
// but copied.
func (a *Execution) sealed(w written) (*sealedFile, error) {
	if logical.IsFolder(w.lfn) {
		return a.packed(w)
	}
	f, err := a.Slot.dir.Open(w.path)
	if errors.Is(err, fs.ErrPermission) {
		f, err = a.openForbidden(w.path, err)
	}
	if err != nil {
		return nil, unusable(w.lfn, err)
	}
	info, err := f.Stat()
	if err != nil {
		_ = f.Close()
		return nil, err
	}
	if a.owns(info) && f.Chmod(readable(info)) == nil && !openForWriting(f) {
		return &sealedFile{File: f}, nil
	}
	defer f.Close()
	return a.copyOf(f, info)
}

// readable is the mode of a file that is stored and published: nobody may write to it, and
// its owner may read it, whatever umask the command has set.
func readable(info fs.FileInfo) fs.FileMode { return info.Mode().Perm()&0o555 | 0o400 }

// openForbidden opens an output that its command has not permitted anybody to read. What
// is not only in the sandbox stays as it is.
func (a *Execution) openForbidden(name string, refused error) (*os.File, error) {
	info, err := a.Slot.dir.Lstat(name)
	if err != nil || !info.Mode().IsRegular() || !a.owns(info) || a.Slot.dir.ChmodFile(name, readable(info)) != nil {
		return nil, refused
	}
	return a.Slot.dir.Open(name)
}

func (a *Execution) owns(info fs.FileInfo) bool {
	st := info.Sys().(*syscall.Stat_t)
	if st.Nlink != 1 || int(st.Uid) != os.Geteuid() {
		return false
	}
	for _, i := range a.In.files {
		if i.before != nil && os.SameFile(i.before, info) {
			return false
		}
	}
	return true
}

// openForWriting reports whether any process has the file open for writing, as far as
// the file system can tell: it grants no lease for reading then (fcntl(2)).
func openForWriting(f *os.File) bool {
	if !leaseRefused(f) {
		return false
	}
	// A child of this process between fork and exec may have a descriptor that it
	// gives up in a moment. While this is held there is none.
	syscall.ForkLock.RLock()
	defer syscall.ForkLock.RUnlock()
	return leaseRefused(f)
}

func leaseRefused(f *os.File) bool {
	_, err := unix.FcntlInt(f.Fd(), unix.F_SETLEASE, unix.F_RDLCK)
	if err == nil {
		_, _ = unix.FcntlInt(f.Fd(), unix.F_SETLEASE, unix.F_UNLCK)
	}
	return errors.Is(err, unix.EAGAIN)
}

// copyName begins the names of copies in a sandbox; a number follows.
const copyName = ".fairway-copy-"

func (a *Execution) copyOf(f *os.File, info fs.FileInfo) (*sealedFile, error) {
	return a.newCopy(readable(info), func(out *os.File) error {
		if err := disk.Copy(a.Ctx, out, f); err != nil {
			return err
		}
		return unchanged(f, info)
	})
}

func (a *Execution) packed(w written) (*sealedFile, error) {
	folder, err := a.Slot.dir.Sub(w.path)
	if err != nil {
		return nil, unusable(w.lfn, err)
	}
	defer folder.Close()
	f, err := a.newCopy(0o444, func(out *os.File) error { return archive.Pack(a.Ctx, out, folder) })
	if err != nil {
		return nil, unusable(w.lfn, err)
	}
	return f, nil
}

func (a *Execution) newCopy(mode fs.FileMode, write func(out *os.File) error) (*sealedFile, error) {
	dir := a.Slot.dir
	var out *os.File
	var name string
	for number := 1; out == nil; number++ {
		var err error
		name = fmt.Sprint(copyName, number)
		if out, err = dir.Create(name, 0o600); err != nil && !errors.Is(err, fs.ErrExist) {
			return nil, err
		}
	}
	err := write(out)
	if err = errors.Join(err, out.Chmod(mode), out.Close()); err == nil {
		var f *os.File
		if f, err = dir.Open(name); err == nil {
			return &sealedFile{File: f, in: dir, copy: name}, nil
		}
	}
	_ = dir.Clear(name)
	return nil, err
}

// unchanged returns an error if a file was written to since info was true.
func unchanged(f *os.File, info fs.FileInfo) error {
	now, err := f.Stat()
	if err == nil && !sameState(now, info) {
		err = errors.New("somebody wrote to it while it was stored")
	}
	return err
}

// sumPieces has what readInto reads into. With less, the system calls cost as much as the sums; with
// more, the processor has it in its cache no longer when it is summed up.
var sumPieces = sync.Pool{New: func() any { return new([256 << 10]byte) }}

// readInto writes what a file holds that nobody writes to into its sums, and returns its size.
func readInto(ctx context.Context, sums io.Writer, f *os.File) (size int64, err error) {
	info, err := f.Stat()
	if err != nil {
		return 0, err
	}
	piece := sumPieces.Get().(*[256 << 10]byte)
	defer sumPieces.Put(piece)
	for err == nil {
		if err = ctx.Err(); err == nil {
			var n int
			n, err = f.Read(piece[:])
			_, _ = sums.Write(piece[:n]) // never fails
			size += int64(n)
		}
	}
	if !errors.Is(err, io.EOF) {
		return 0, fmt.Errorf("checksum after %d bytes: %w", size, err)
	}
	return size, unchanged(f, info)
}
