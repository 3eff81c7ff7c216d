// Package beneath works on files in a folder by names that are relative to it,
// such as "a/b". Guarantees:
//
//   - No name leads out of the folder: it has no "..", no symbolic link on the
//     way to its last element is followed, and no mount is crossed. What is met
//     there is an error that wraps [ErrOutside].
//   - The last element of a name is never followed either.
//   - The folder is the one that was opened, whatever its path leads to later.
//
// The path of the folder itself may lead through links and mounts. Methods may
// be called from any goroutine until Close.
package beneath

import (
	"errors"
	"fmt"
	"io/fs"
	"math"
	"os"
	"path"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"

	"golang.org/x/sys/unix"
)

// ErrOutside says that a name leads through a link, into another mount or
// upwards.
var ErrOutside = errors.New("it leads out of the folder, through a link or into another mount")

// KindError says that a name stands for something else than what was to be
// opened. It wraps [ErrOutside] where that is a link or a mount.
type KindError struct {
	Name string
	Kind string // for a person: "a named pipe"
	err  error
}

func (e *KindError) Error() string { return e.Name + " is " + e.Kind }

func (e *KindError) Unwrap() error { return e.err }

// Kinds of what a name may stand for.
const (
	KindLink    = "a symbolic link"
	KindBehind  = "behind a symbolic link"
	KindMounted = "on a file system that was mounted there"
	KindFolder  = "a folder"
	KindPipe    = "a named pipe"
	KindSocket  = "a socket"
	KindDevice  = "a device"
	KindFile    = "a regular file"
)

// KindOf names the kind of what has a mode, for a person.
func KindOf(mode fs.FileMode) string {
	switch mode.Type() {
	case fs.ModeSymlink:
		return KindLink
	case fs.ModeDir:
		return KindFolder
	case fs.ModeNamedPipe:
		return KindPipe
	case fs.ModeSocket:
		return KindSocket
	case 0:
		return KindFile
	default:
		return KindDevice
	}
}

// Folder is an open folder. Its path is for messages only: a name is put behind
// it when there is something to say.
type Folder struct {
	opened int          // its descriptor
	users  atomic.Int32 // that have yet to close it
	above  *Folder      // nil, or what path is beneath; it may be closed
	path   string
	kept   atomic.Pointer[keptParent] // nil: none is kept
}

func newFolder(fd int, above *Folder, name string) *Folder {
	f := &Folder{opened: fd, above: above, path: name}
	f.users.Store(1)
	return f
}

// Open opens the folder at a path.
func Open(name string) (*Folder, error) {
	fd, err := retried(func() (int, error) {
		return unix.Open(name, unix.O_DIRECTORY|unix.O_PATH|unix.O_CLOEXEC, 0)
	})
	if err != nil {
		return nil, &fs.PathError{Op: "open", Path: name, Err: err}
	}
	return newFolder(fd, nil, name), nil
}

// Close gives the descriptor back.
func (f *Folder) Close() error {
	switch left := f.users.Add(-1); {
	case left > 0:
		return nil
	case left < 0:
		return &fs.PathError{Op: "close", Path: f.path, Err: fs.ErrClosed}
	}
	return unix.Close(f.opened)
}

// Path is what stands before an element, which has no slash, to reach that
// element of this very folder as long as it is open.
func (f *Folder) Path(element string) string {
	return fmt.Sprintf("/proc/self/fd/%d/%s", f.fd(), element)
}

// Name is the path that the folder was opened by, with a name beneath it. It is
// for messages.
func (f *Folder) Name(name string) string {
	if name = filepath.Join(f.path, name); f.above != nil {
		return f.above.Name(name)
	}
	return name
}

// Sub opens a folder beneath this one; "." stands for this one. The caller
// closes it.
func (f *Folder) Sub(name string) (*Folder, error) {
	fd, err := f.open(name, unix.O_DIRECTORY|unix.O_PATH)
	if errors.Is(err, unix.ENOTDIR) || errors.Is(err, unix.ELOOP) {
		if info, otherwise := f.Lstat(name); otherwise == nil && !info.IsDir() {
			err = f.failed("open", name, otherKind(name, info.Mode()))
		}
	}
	if err != nil {
		return nil, err
	}
	return newFolder(fd, f, name), nil
}

// Parent opens the folder that holds the last element of a name, and returns
// that element too.
func (f *Folder) Parent(name string) (folder *Folder, element string, err error) {
	if !validPath(name) || name == "." {
		return nil, "", f.failed("open", name, ErrOutside)
	}
	if kept := f.kept.Load(); kept != nil {
		folder, err = kept.open(f, path.Dir(name))
	} else {
		folder, err = f.Sub(path.Dir(name))
	}
	return folder, path.Base(name), err
}

// keptParent is the folder that held the last element of a name.
type keptParent struct {
	mu     sync.Mutex
	name   string
	folder *Folder // nil: there was none yet
}

// KeepParent has the folder that holds the last element of a name stay open until it ends, or a name
// comes that is in another one: most names are in the same folder as the one before. Until then it is
// the one that was opened, whatever its name leads to. So it is for a moment only.
func (f *Folder) KeepParent() (end func()) {
	kept := &keptParent{}
	f.kept.Store(kept)
	return func() {
		f.kept.CompareAndSwap(kept, nil)
		kept.forget()
	}
}

// forgetParent is for a name that is about to stand for something else.
func (f *Folder) forgetParent() {
	if kept := f.kept.Load(); kept != nil {
		kept.forget()
	}
}

func (k *keptParent) open(in *Folder, name string) (*Folder, error) {
	if folder := k.take(name); folder != nil {
		return folder, nil
	}
	folder, err := in.Sub(name) // which may look at a name in another folder, so that one is kept
	if err != nil {
		return nil, err
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	k.close()
	k.name, k.folder = name, folder
	folder.users.Add(1)
	return folder, nil
}

// take returns the folder that is kept, if it has that name, and nil otherwise.
func (k *keptParent) take(name string) *Folder {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.folder == nil || k.name != name {
		return nil
	}
	k.folder.users.Add(1)
	return k.folder
}

func (k *keptParent) forget() {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.close()
}

func (k *keptParent) close() {
	if k.folder != nil {
		_ = k.folder.Close()
		k.folder = nil
	}
}

// in calls do with the folder that holds the last element of a name, which is
// this one where the name has no more, and with that element.
func (f *Folder) in(name string, do func(folder *Folder, element string) error) error {
	if isElement(name) {
		return do(f, name)
	}
	folder, element, err := f.Parent(name)
	if err != nil {
		return err
	}
	defer func() { _ = folder.Close() }()
	return do(folder, element)
}

// Make is Parent, and makes folders that are missing. made is called for each
// folder whose entries changed.
func (f *Folder) Make(name string, made func(*Folder) error) (folder *Folder, element string, err error) {
	folder, element, err = f.Parent(name)
	if !errors.Is(err, fs.ErrNotExist) {
		return folder, element, err
	}
	above, last, err := f.Make(path.Dir(name), made)
	if err != nil {
		return nil, "", err
	}
	defer func() { _ = above.Close() }()
	switch err := unix.Mkdirat(above.fd(), last, 0o777); {
	case err == nil:
		if err := made(above); err != nil {
			return nil, "", err
		}
	case !errors.Is(err, unix.EEXIST):
		return nil, "", f.failed("mkdir", path.Dir(name), err)
	}
	return f.Parent(name)
}

// Open opens a regular file for reading. Of anything else, which is not opened,
// the error wraps a [KindError].
func (f *Folder) Open(name string) (*os.File, error) {
	found, err := f.findRegular(name)
	if err != nil {
		return nil, f.failed("open", name, err)
	}
	defer func() { _ = unix.Close(found) }()
	// It is the same file whatever has become of its name. O_NONBLOCK matters where
	// somebody holds a lease on it.
	self := fmt.Sprintf("/proc/self/fd/%d", found)
	fd, err := retried(func() (int, error) { return unix.Open(self, unix.O_RDONLY|unix.O_NONBLOCK|unix.O_CLOEXEC, 0) })
	if err != nil {
		return nil, f.failed("open", name, err)
	}
	return os.NewFile(uintptr(fd), f.Name(name)), nil
}

// findRegular returns a descriptor that refers to a regular file without opening it.
func (f *Folder) findRegular(name string) (fd int, err error) {
	if fd, err = f.open(name, unix.O_PATH|unix.O_NOFOLLOW); err != nil {
		return -1, err
	}
	var st unix.Stat_t
	if err = unix.Fstat(fd, &st); err == nil && st.Mode&unix.S_IFMT != unix.S_IFREG {
		err = otherKind(name, modeOf(&st))
	}
	if err != nil {
		_ = unix.Close(fd)
		return -1, err
	}
	return fd, nil
}

// modeOf is what is said of a file of that kind. The kind is all that counts.
func modeOf(st *unix.Stat_t) fs.FileMode {
	switch st.Mode & unix.S_IFMT {
	case unix.S_IFLNK:
		return fs.ModeSymlink
	case unix.S_IFDIR:
		return fs.ModeDir
	case unix.S_IFIFO:
		return fs.ModeNamedPipe
	case unix.S_IFSOCK:
		return fs.ModeSocket
	case unix.S_IFREG:
		return 0
	default:
		return fs.ModeDevice
	}
}

func otherKind(name string, mode fs.FileMode) error {
	e := &KindError{Name: name, Kind: KindOf(mode)}
	if mode.Type() == fs.ModeSymlink {
		e.err = ErrOutside
	}
	return e
}

// Lstat describes what has a name.
func (f *Folder) Lstat(name string) (info fs.FileInfo, err error) {
	err = f.in(name, func(folder *Folder, element string) (err error) {
		info, err = os.Lstat(folder.Path(element))
		return f.failed("stat", name, err)
	})
	return info, err
}

// Status is Lstat without its detour by /proc, for what every attempt asks.
func (f *Folder) Status(name string) (st unix.Stat_t, err error) {
	err = f.in(name, func(folder *Folder, element string) error {
		return f.failed("stat", name, unix.Fstatat(folder.fd(), element, &st, unix.AT_SYMLINK_NOFOLLOW))
	})
	return st, err
}

// Kind is what has a name: the mode without permissions.
func (f *Folder) Kind(name string) (fs.FileMode, error) {
	st, err := f.Status(name)
	return modeOf(&st), err
}

// Stat describes the folder itself.
func (f *Folder) Stat() (st unix.Stat_t, err error) {
	return st, f.failed("stat", ".", unix.Fstat(f.fd(), &st))
}

// ChmodFile changes the permissions of a regular file.
func (f *Folder) ChmodFile(name string, mode fs.FileMode) error {
	found, err := f.findRegular(name)
	if err != nil {
		return f.failed("chmod", name, err)
	}
	defer func() { _ = unix.Close(found) }()
	return f.failed("chmod", name, unix.Chmod(fmt.Sprintf("/proc/self/fd/%d", found), uint32(mode.Perm())))
}

// Chmod changes the permissions of the folder itself.
func (f *Folder) Chmod(mode fs.FileMode) error {
	// fchmod(2) refuses a descriptor that was opened as a path only.
	return f.failed("chmod", ".", unix.Chmod(fmt.Sprintf("/proc/self/fd/%d", f.fd()), uint32(mode.Perm())))
}

// Is reports whether a path leads to this very folder, and that by no link in its
// last component.
func (f *Folder) Is(name string) bool {
	var own, there unix.Stat_t
	return unix.Fstat(f.fd(), &own) == nil && unix.Lstat(name, &there) == nil && own.Dev == there.Dev &&
		own.Ino == there.Ino
}

// Mkdir makes a folder.
func (f *Folder) Mkdir(name string, mode fs.FileMode) error {
	return f.in(name, func(folder *Folder, element string) error {
		return f.failed("mkdir", name, unix.Mkdirat(folder.fd(), element, uint32(mode.Perm())))
	})
}

// Create makes a file that was not there and opens it for reading and writing.
func (f *Folder) Create(name string, mode fs.FileMode) (file *os.File, err error) {
	err = f.in(name, func(folder *Folder, element string) error {
		const how = unix.O_RDWR | unix.O_CREAT | unix.O_EXCL | unix.O_NOFOLLOW | unix.O_CLOEXEC
		fd, err := retried(func() (int, error) { return unix.Openat(folder.fd(), element, how, uint32(mode.Perm())) })
		if err == nil {
			file = os.NewFile(uintptr(fd), f.Name(name))
		}
		return f.failed("create", name, err)
	})
	return file, err
}

// Symlink makes a symbolic link that was not there. Its target is not looked at.
func (f *Folder) Symlink(target, name string) error {
	return f.in(name, func(folder *Folder, element string) error {
		return f.failed("link", name, unix.Symlinkat(target, folder.fd(), element))
	})
}

// Move gives an element of this folder another name in a folder of the same file
// system, unless something has that name.
func (f *Folder) Move(element string, to *Folder, name string) error {
	for _, n := range []string{element, name} {
		if !isElement(n) {
			return f.failed("rename", n, ErrOutside)
		}
	}
	f.forgetParent()
	err := unix.Renameat2(f.fd(), element, to.fd(), name, unix.RENAME_NOREPLACE)
	if errors.Is(err, unix.EINVAL) || errors.Is(err, unix.ENOSYS) { // the file system cannot refuse
		if err = unix.EEXIST; !exists(to.fd(), name) {
			err = unix.Renameat(f.fd(), element, to.fd(), name)
		}
	}
	return f.failed("rename", element, err)
}

// Replace is Move, and takes the place of a file that has the name.
func (f *Folder) Replace(element string, to *Folder, name string) error {
	for _, n := range []string{element, name} {
		if !isElement(n) {
			return f.failed("rename", n, ErrOutside)
		}
	}
	return f.failed("rename", element, unix.Renameat(f.fd(), element, to.fd(), name))
}

// isElement reports whether a name has no folder before it.
func isElement(name string) bool {
	return validPath(name) && name != "." && !strings.Contains(name, "/")
}

func exists(at int, element string) bool {
	var st unix.Stat_t
	return !errors.Is(unix.Fstatat(at, element, &st, unix.AT_SYMLINK_NOFOLLOW), unix.ENOENT)
}

// Remove removes a file or a link, which is not followed.
func (f *Folder) Remove(name string) error { return f.unlink(name, 0) }

// RemoveFolder removes an empty folder.
func (f *Folder) RemoveFolder(name string) error {
	f.forgetParent()
	return f.unlink(name, unix.AT_REMOVEDIR)
}

func (f *Folder) unlink(name string, flags int) error {
	return f.in(name, func(folder *Folder, element string) error {
		return f.failed("remove", name, unix.Unlinkat(folder.fd(), element, flags))
	})
}

// List gives the elements of a folder beneath this one, in no order.
func (f *Folder) List(name string) ([]string, error) {
	if name == "." {
		return f.list(math.MaxInt)
	}
	folder, err := f.Sub(name)
	if err != nil {
		return nil, err
	}
	defer func() { _ = folder.Close() }()
	return folder.list(math.MaxInt)
}

// IsEmpty reports whether nothing is in the folder.
func (f *Folder) IsEmpty() bool {
	elements, err := f.list(1)
	return err == nil && len(elements) == 0
}

func (f *Folder) list(most int) (elements []string, err error) {
	fd, err := f.open(".", unix.O_DIRECTORY|unix.O_RDONLY)
	if err != nil {
		return nil, err
	}
	defer func() { _ = unix.Close(fd) }()
	buffer := listBuffers.Get().(*[listBuffer]byte)
	defer listBuffers.Put(buffer)
	for len(elements) < most {
		n, err := retried(func() (int, error) { return unix.Getdents(fd, buffer[:]) })
		if err != nil {
			return elements, f.failed("list", ".", err)
		}
		if n <= 0 {
			break
		}
		_, _, elements = unix.ParseDirent(buffer[:n], most-len(elements), elements)
	}
	return elements, nil
}

// listBuffer is how much of a folder is read at a time.
const listBuffer = 8 << 10

var listBuffers = sync.Pool{New: func() any { return new([listBuffer]byte) }}

// Walk calls visit for everything beneath the folder but folders, in no order. Other mounts and links to
// folders are not entered, and are visited as what they are.
func (f *Folder) Walk(visit func(name string, info fs.FileInfo) error) error {
	return f.walk(".", visit)
}

func (f *Folder) walk(name string, visit func(string, fs.FileInfo) error) error {
	elements, err := f.List(name)
	if err != nil {
		return err
	}
	for _, element := range elements {
		below := path.Join(name, element)
		info, err := f.Lstat(below)
		if errors.Is(err, fs.ErrNotExist) {
			continue // it went meanwhile
		}
		if err == nil && info.IsDir() {
			err = f.walk(below, visit)
			if errors.Is(err, ErrOutside) {
				err = visit(below, info)
			}
		} else if err == nil {
			err = visit(below, info)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// Sync brings the names in the folder to disk.
func (f *Folder) Sync() error {
	fd, err := f.open(".", unix.O_DIRECTORY|unix.O_RDONLY)
	if err != nil {
		return err
	}
	return f.failed("sync", "", errors.Join(unix.Fsync(fd), unix.Close(fd)))
}

// validPath is fs.ValidPath, but for names in any encoding.
func validPath(name string) bool {
	return fs.ValidPath(strings.ToValidUTF8(name, "?")) && !strings.Contains(name, "\x00")
}

// fd is -1, which no system call takes, once the folder is closed.
func (f *Folder) fd() int {
	if f.users.Load() <= 0 {
		return -1
	}
	return f.opened
}

// noOpenat2 is set where the kernel or a filter of system calls does not know
// openat2, and in tests.
var noOpenat2 = false

func (f *Folder) open(name string, flags int) (int, error) {
	if !validPath(name) {
		return -1, f.failed("open", name, ErrOutside)
	}
	flags |= unix.O_CLOEXEC
	fd, err := -1, error(unix.ENOSYS)
	if !noOpenat2 {
		how := unix.OpenHow{
			Flags: uint64(flags), Resolve: unix.RESOLVE_BENEATH | unix.RESOLVE_NO_SYMLINKS | unix.RESOLVE_NO_XDEV,
		}
		fd, err = retried(func() (int, error) { return unix.Openat2(f.fd(), name, &how) })
	}
	if errors.Is(err, unix.ENOSYS) || errors.Is(err, unix.EPERM) {
		fd, err = f.step(name, flags|unix.O_NOFOLLOW)
	}
	return fd, f.failed("open", name, err)
}

// step is open in single steps, each of which is looked at.
func (f *Folder) step(name string, flags int) (int, error) {
	home, err := mountOf(f.fd())
	if err != nil {
		return -1, err
	}
	at, err := unix.Openat(f.fd(), ".", unix.O_PATH|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if err != nil {
		return -1, err
	}
	elements := strings.Split(name, "/")
	for i, element := range elements {
		next := unix.O_PATH | unix.O_DIRECTORY | unix.O_CLOEXEC | unix.O_NOFOLLOW
		if i == len(elements)-1 {
			next = flags
		}
		fd, err := retried(func() (int, error) { return unix.Openat(at, element, next, 0) })
		if errors.Is(err, unix.ENOTDIR) && isLink(at, element) {
			err = unix.ELOOP
		}
		_ = unix.Close(at)
		if err != nil {
			return -1, err
		}
		if mount, err := mountOf(fd); err != nil || mount != home {
			_ = unix.Close(fd)
			return -1, errors.Join(err, unix.EXDEV)
		}
		at = fd
	}
	return at, nil
}

func isLink(at int, element string) bool {
	var st unix.Stat_t
	return unix.Fstatat(at, element, &st, unix.AT_SYMLINK_NOFOLLOW) == nil && st.Mode&unix.S_IFMT == unix.S_IFLNK
}

// mount tells one mount from another; where the kernel does not number them,
// one file system from another.
type mount struct {
	major, minor uint32
	id           uint64
}

func mountOf(fd int) (mount, error) {
	var st unix.Statx_t
	if err := unix.Statx(fd, "", unix.AT_EMPTY_PATH|unix.AT_SYMLINK_NOFOLLOW, unix.STATX_MNT_ID, &st); err != nil {
		return mount{}, err
	}
	m := mount{major: st.Dev_major, minor: st.Dev_minor}
	if st.Mask&unix.STATX_MNT_ID != 0 {
		m.id = st.Mnt_id
	}
	return m, nil
}

func retried(open func() (int, error)) (int, error) {
	for {
		fd, err := open()
		if !errors.Is(err, unix.EINTR) && !errors.Is(err, unix.EAGAIN) {
			return fd, err
		}
	}
}

func (f *Folder) failed(doing, name string, err error) error {
	if err == nil {
		return nil
	}
	if at, ok := errors.AsType[*fs.PathError](err); ok {
		err = at.Err
	}
	var kind *KindError
	switch {
	case errors.As(err, &kind):
	case errors.Is(err, unix.ELOOP):
		err = &KindError{name, KindBehind, fmt.Errorf("%w (%w)", ErrOutside, err)}
	case errors.Is(err, unix.EXDEV):
		err = &KindError{name, KindMounted, fmt.Errorf("%w (%w)", ErrOutside, err)}
	}
	return &fs.PathError{Op: doing, Path: f.Name(name), Err: err}
}
