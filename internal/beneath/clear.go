package beneath

import (
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strings"

	"golang.org/x/sys/unix"
)

const (
	// maxDepth bounds the folders that are open at a time: what is deeper is
	// moved up before it is removed.
	maxDepth = 32
	// removeTries bounds how often something is removed that comes back.
	removeTries = 100
	// keptTries bounds how often a file is removed that is open, and so comes back ([ErrOpen]).
	keptTries = 3
	// elementsAtOnce bounds the elements of one folder that are held in memory.
	elementsAtOnce = 1024
)

// Clear removes what has a name, with all beneath it, whatever a program has
// done to it: also what its owner may not read or write, and paths longer than the
// kernel takes. A link is removed, and what it leads to stays. What is mounted
// beneath is unmounted, without a look at what is in it, where this process may do
// that; else the error wraps [ErrOutside]. What cannot be removed is named by the error
// with its reason, and the rest is removed all the same: the error wraps [ErrOpen] where that is a
// file which was removed while somebody had it open. What is not there is no error.
func (f *Folder) Clear(name string) error { return f.clear(name, false) }

// RemoveAll is Clear, except that a mount stays, and so do the folders above it: the
// error wraps [ErrOutside] and names it.
func (f *Folder) RemoveAll(name string) error { return f.clear(name, true) }

func (f *Folder) clear(name string, keepMounts bool) error {
	f.forgetParent()
	err := f.in(name, func(in *Folder, element string) error {
		r := &removal{top: in, keepMounts: keepMounts}
		r.remove(in, element, 0)
		for len(r.moved) > 0 {
			last := len(r.moved) - 1
			element, r.moved = r.moved[last], r.moved[:last]
			r.remove(in, element, 0)
		}
		return r.err()
	})
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}

// removal is one call of Clear or RemoveAll.
type removal struct {
	top        *Folder
	keepMounts bool
	moved      []string // names in top of what was too deep
	names      int      // given so far
	left       []error  // at most leftNamed
	more       int      // what else could not be removed
}

// leftNamed bounds how much of what cannot be removed an error names.
const leftNamed = 10

func (r *removal) err() error {
	err := errors.Join(r.left...)
	if r.more > 0 {
		err = fmt.Errorf("%w\nand %d more", err, r.more)
	}
	return err
}

// remove reports whether it has removed something.
func (r *removal) remove(in *Folder, name string, depth int) bool {
	err := r.try(in, name, depth)
	if err != nil && !errors.Is(err, errLeft) { // what that is was named
		r.leave(in, name, err)
	}
	return err == nil
}

func (r *removal) leave(in *Folder, name string, err error) {
	if len(r.left) == leftNamed {
		r.more++
		return
	}
	r.left = append(r.left, in.failed("remove", name, err))
}

// ErrOpen says that a file system keeps a file that was removed, under another name, until it is closed.
var ErrOpen = errors.New("it was removed, and is still open")

// keptPrefixes begin the names under which NFS and FUSE do that.
var keptPrefixes = []string{".nfs", ".fuse_hidden"}

// isKept reports whether a name is such a one, unless a program has given it to a file.
func isKept(name string) bool {
	return slices.ContainsFunc(keptPrefixes, func(prefix string) bool { return strings.HasPrefix(name, prefix) })
}

// errLeft says that something in a folder could not be removed.
var errLeft = errors.New("something is left in it")

func (r *removal) try(in *Folder, name string, depth int) (err error) {
	for range removeTries {
		err = unix.Unlinkat(in.fd(), name, 0)
		if errors.Is(err, unix.EISDIR) {
			err = r.removeFolder(in, name, depth)
		}
		switch {
		case err == nil || errors.Is(err, unix.ENOENT):
			return nil
		case errors.Is(err, unix.EBUSY) && isKept(name):
			return ErrOpen
		case errors.Is(err, unix.EBUSY), errors.Is(err, unix.EXDEV):
			if r.keepMounts || in.unmount(name) != nil {
				return unix.EXDEV
			}
		case errors.Is(err, unix.EACCES):
			if !in.allowOwner() {
				return err
			}
		case errors.Is(err, unix.ENOTDIR), errors.Is(err, unix.ELOOP), errors.Is(err, unix.ENOTEMPTY),
			errors.Is(err, unix.EINTR):
			// It became something else meanwhile.
		default:
			return err
		}
	}
	return err
}

func (r *removal) removeFolder(in *Folder, name string, depth int) error {
	if unix.Unlinkat(in.fd(), name, unix.AT_REMOVEDIR) == nil { // it is empty
		return nil
	}
	folder, err := in.Sub(name)
	if err != nil {
		return err
	}
	defer func() { _ = folder.Close() }()
	folder.allowOwner()
	if depth >= maxDepth {
		return r.moveUp(in, name)
	}
	if err := r.removeElements(folder, depth+1); err != nil {
		return err
	}
	return unix.Unlinkat(in.fd(), name, unix.AT_REMOVEDIR)
}

func (r *removal) removeElements(folder *Folder, depth int) error {
	left := map[string]bool{}
	for kept := 0; ; {
		elements, err := folder.list(elementsAtOnce + len(left))
		if err != nil {
			return err
		}
		fresh := false
		if len(elements) > 0 && !slices.ContainsFunc(elements, func(e string) bool { return !isKept(e) }) {
			kept++ // as often as it is removed it is there again, under the next name
		}
		for _, element := range elements {
			if left[element] {
				continue
			}
			if kept > keptTries {
				r.leave(folder, element, ErrOpen)
				left[element] = true
				continue
			}
			fresh = true
			if !r.remove(folder, element, depth) {
				left[element] = true
			}
		}
		switch {
		case fresh:
		case len(left) > 0:
			return errLeft
		default:
			return nil
		}
	}
}

// moveUp makes something that lies too deep be removed from the top.
func (r *removal) moveUp(in *Folder, name string) error {
	for {
		r.names++
		fresh := fmt.Sprintf(".removed-%d", r.names)
		err := in.Move(name, r.top, fresh)
		if errors.Is(err, fs.ErrExist) {
			continue
		}
		if err == nil {
			r.moved = append(r.moved, fresh)
		}
		return err
	}
}

// allowOwner lets the owner list and change the folder, and reports whether that was
// not so before.
func (f *Folder) allowOwner() bool {
	st, err := f.Stat()
	return err == nil && st.Mode&0o700 != 0o700 && f.Chmod(0o700) == nil
}

// unmount takes away what is mounted on an element, while those who use it may go
// on.
func (f *Folder) unmount(element string) error {
	return unix.Unmount(f.Path(element), unix.MNT_DETACH|unix.UMOUNT_NOFOLLOW)
}
