package beneath

import (
	"errors"
	"fmt"
	"io/fs"

	"golang.org/x/sys/unix"
)

const (
	// maxDepth bounds the folders that are open at a time: what is deeper is
	// moved up before it is removed.
	maxDepth = 32
	// removeTries bounds how often something is removed that comes back.
	removeTries = 100
	// elementsAtOnce bounds the elements of one folder that are held in memory.
	elementsAtOnce = 1024
)

// Clear removes what has a name, with all beneath it, whatever a program has
// done to it: also what its owner may not read or write, and paths longer than the
// kernel takes. A link is removed, and what it leads to stays. What is mounted
// beneath is unmounted, without a look at what is in it, where this process may do
// that; else the error wraps [ErrOutside]. What is not there is no error.
func (f *Folder) Clear(name string) error {
	return f.in(name, func(in *Folder, element string) error {
		r := &removal{top: in}
		err := r.remove(in, element, 0)
		for len(r.moved) > 0 && err == nil {
			last := len(r.moved) - 1
			element, r.moved = r.moved[last], r.moved[:last]
			err = r.remove(in, element, 0)
		}
		return f.failed("remove", name, err)
	})
}

// removal is one call of Clear.
type removal struct {
	top   *Folder
	moved []string // names in top of what was too deep
	names int      // given so far
}

func (r *removal) remove(in *Folder, name string, depth int) (err error) {
	for range removeTries {
		err = unix.Unlinkat(in.fd(), name, 0)
		if errors.Is(err, unix.EISDIR) {
			err = r.removeFolder(in, name, depth)
		}
		switch {
		case err == nil || errors.Is(err, unix.ENOENT):
			return nil
		case errors.Is(err, unix.EBUSY), errors.Is(err, unix.EXDEV):
			if in.unmount(name) != nil {
				return unix.EXDEV
			}
		case errors.Is(err, unix.EACCES):
			if !in.allowOwner() {
				return err
			}
		case errors.Is(err, unix.ENOTDIR), errors.Is(err, unix.ELOOP), errors.Is(err, unix.ENOTEMPTY), errors.Is(err, unix.EINTR):
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
	for {
		elements, err := folder.list(elementsAtOnce)
		if err != nil || len(elements) == 0 {
			return err
		}
		for _, element := range elements {
			if err := r.remove(folder, element, depth); err != nil {
				return err
			}
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
	info, err := f.Stat()
	return err == nil && info.Mode().Perm()&0o700 != 0o700 && f.Chmod(0o700) == nil
}

// unmount takes away what is mounted on an element, while those who use it may go
// on.
func (f *Folder) unmount(element string) error {
	return unix.Unmount(f.Path(element), unix.MNT_DETACH|unix.UMOUNT_NOFOLLOW)
}
