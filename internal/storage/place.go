package storage

import (
	"bytes"
	"context"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"

	"fairway/internal/disk"
)

// durability is what place does for a crash of the machine.
type durability int

const (
	// fleeting is nothing.
	fleeting durability = iota
	// firstContents has the contents on disk before they have their name: a name never stands for
	// a part of a file.
	firstContents
	// withName has both on disk in the end, which takes one write of the journal of a file system
	// and not two. The contents are written before the name is given, so file systems that keep
	// the order of such changes (ext4 with a journal, XFS) show no part of a file after a crash.
	// Others may, under a name that nobody has been told.
	withName
)

// place makes the contents of source appear at target, complete or not at all,
// and durable as far as that is asked for.
func place(ctx context.Context, source, target string, d durability) error {
	in, info, err := OpenForPut(source)
	if err != nil {
		return err
	}
	defer in.Close()
	if mayLink(in, filepath.Dir(target)) {
		if err := d.before(in); err != nil {
			return err
		}
		err = disk.Link(in, target)
		if err == nil {
			return d.after(in, target)
		}
		if errors.Is(err, os.ErrExist) {
			return err
		}
		if err = Full(err); errors.Is(err, ErrNoSpace) {
			return err
		}
	} else if _, err := os.Lstat(target); err == nil { // known before anything is copied
		return &os.LinkError{Op: "link", Old: source, New: target, Err: os.ErrExist}
	}
	return Full(create(target, info.Mode(), d, func(out *os.File) error { return disk.Copy(ctx, out, in) }))
}

func (d durability) before(f *os.File) error {
	switch d {
	case firstContents:
		return f.Sync()
	case withName:
		return disk.Flush(f)
	}
	return nil
}

// after is due when a file has got its name. If it fails, the file has none.
func (d durability) after(f *os.File, target string) error {
	if d != withName {
		return nil
	}
	err := f.Sync()
	if err != nil {
		_ = os.Remove(target)
	}
	return err
}

// mayLink reports whether a file could have a name in a folder: whether both are on one
// mount. It tells by the mount, since numbers of devices differ on one overlay; a system
// that does not tell leaves it to be tried. The original of a copy need not be brought to
// disk, which costs more than the copy of a small file.
func mayLink(in *os.File, folder string) bool {
	var file, there unix.Statx_t
	if unix.Statx(int(in.Fd()), "", unix.AT_EMPTY_PATH, unix.STATX_MNT_ID, &file) != nil ||
		unix.Statx(unix.AT_FDCWD, folder, 0, unix.STATX_MNT_ID, &there) != nil {
		return true
	}
	return file.Mask&there.Mask&unix.STATX_MNT_ID == 0 || file.Mnt_id == there.Mnt_id
}

// Mount is where a folder is mounted. The zero value is that of one of which the system does not
// tell.
type Mount uint64

// MountOf is that of a folder.
func MountOf(folder string) Mount {
	var there unix.Statx_t
	if unix.Statx(unix.AT_FDCWD, folder, 0, unix.STATX_MNT_ID, &there) != nil || there.Mask&unix.STATX_MNT_ID == 0 {
		return 0
	}
	return Mount(there.Mnt_id)
}

// Holds reports whether the regular file at a path could have a name on the mount: it is there, and
// the system lets this user name it (protected_hardlinks in proc_sys_fs(5)).
func (m Mount) Holds(path string) bool {
	var file unix.Statx_t
	const asked = unix.STATX_MNT_ID | unix.STATX_UID | unix.STATX_TYPE
	if m == 0 || unix.Statx(unix.AT_FDCWD, path, 0, asked, &file) != nil || file.Mask&unix.STATX_MNT_ID == 0 {
		return false
	}
	user := os.Geteuid()
	return m == Mount(file.Mnt_id) && file.Mode&unix.S_IFMT == unix.S_IFREG && (user == 0 || file.Uid == uint32(user))
}

// openRegular opens a file for reading; what could block, or do something when it
// is opened, is not opened.
func openRegular(path string) (*os.File, error) {
	if _, err := regular(path); err != nil {
		return nil, err
	}
	return os.OpenFile(path, os.O_RDONLY|unix.O_NONBLOCK, 0)
}

// create makes a file at target whose contents write provides, and which may be
// used as mode says but for writing. Until they are complete the file has no
// name, so nothing is left of it if the process ends.
func create(target string, mode fs.FileMode, d durability, write func(*os.File) error) error {
	out, err := disk.CreateUnnamed(filepath.Dir(target), 0, 0o666)
	if err != nil {
		return err
	}
	defer out.Close()
	if err := write(out.File); err != nil {
		return err
	}
	if err := out.Chmod(mode.Perm()&^0o222 | 0o400); err != nil {
		return err
	}
	if err := d.before(out.File); err != nil {
		return err
	}
	point := getWritten
	if d != fleeting {
		point = putWritten
	}
	if err := point.Hit(); err != nil {
		return err
	}
	if err := out.Link(target); err != nil {
		return err
	}
	return d.after(out.File, target)
}

// sameContents returns an error that wraps fs.ErrExist unless both files hold
// the same bytes.
func sameContents(path, target string) error {
	a, err := os.Open(path)
	if err != nil {
		return err
	}
	defer a.Close()
	b, err := os.OpenFile(target, os.O_RDONLY|unix.O_NOFOLLOW|unix.O_NONBLOCK, 0)
	if err != nil {
		return err
	}
	defer b.Close()
	same, err := Equal(a, b)
	if err == nil && !same {
		err = &os.PathError{Op: "create", Path: target, Err: os.ErrExist}
	}
	return err
}

// Equal reports whether two open files hold the same bytes from where they stand,
// which is their beginning.
func Equal(a, b *os.File) (bool, error) {
	infoA, errA := a.Stat()
	infoB, errB := b.Stat()
	if err := errors.Join(errA, errB); err != nil || os.SameFile(infoA, infoB) {
		return err == nil, err
	}
	if infoA.Size() != infoB.Size() {
		return false, nil
	}
	var left, right [64 << 10]byte
	for {
		n, err := io.ReadFull(a, left[:])
		m, _ := io.ReadFull(b, right[:])
		if !bytes.Equal(left[:n], right[:m]) {
			return false, nil
		}
		if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
			return true, nil
		}
		if err != nil {
			return false, err
		}
	}
}
