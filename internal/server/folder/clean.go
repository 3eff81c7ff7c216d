package folder

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"fairway/internal/beneath"
	"fairway/internal/disk"
	"fairway/internal/storage"
	"fairway/lib/sched"
)

// Cleaned says what Clean has removed, and what it has left.
type Cleaned struct {
	Removed []string // paths
	Left    []string // one sentence each
	Failed  int      // how many of those could not be removed, though they are ours
	Bytes   int64    // of removed files, linked ones as often as they are linked

	needed bool // the state knows what is still to be removed at another place
}

// LeaveElsewhere notes that something at another place could not be removed, which is
// one sentence. Clean leaves the state then, which alone knows of it.
func (c *Cleaned) LeaveElsewhere(what string) {
	c.Left, c.needed = append(c.Left, what), true
	c.Failed++
}

// Clean removes the state of a workflow folder where nothing runs. What Fairway
// has not put there stays. Before that it calls results, which may remove what the
// state has published, unless it is nil. If that has to leave something at another place,
// the state stays, to be cleaned once more. An error is a *RunningError where a server
// runs.
func Clean(workflow string, results func(Layout, *Cleaned) error) (*Cleaned, error) {
	lock, err := openLock(filepath.Join(workflow, StateFolder))
	if err != nil {
		return nil, err
	}
	defer func() { _ = lock.Release() }()
	l, err := Of(workflow)
	if errors.Is(err, errDamagedIdentity) {
		if err := mendIdentity(filepath.Join(workflow, StateFolder)); err != nil {
			return nil, err
		}
		l, err = Of(workflow)
	}
	if err != nil {
		return nil, err
	}
	c := new(Cleaned)
	if results != nil {
		if err := results(l, c); err != nil {
			return c, err
		}
	}
	if c.needed {
		c.Left = append(c.Left, l.State+": it knows what is left at other places; if you cannot reach them any more, "+
			"remove it yourself")
		return c, nil
	}
	if err := c.state(l.State); err != nil || c.leavesIn(l.State) {
		return c, err
	}
	if err := errors.Join(lock.Release(), removeEmptied(l.State)); err != nil {
		return c, err
	}
	c.Removed = append(c.Removed, l.State)
	return c, nil
}

// emptiedTries is how often the emptied folder of a state is removed, with emptiedPause between.
const (
	emptiedTries = 40
	emptiedPause = 50 * time.Millisecond
)

// removeEmptied removes a folder from which all was removed. File systems such as NFS and FUSE keep the lock in
// it, which was open then, for a moment after that was closed.
func removeEmptied(state string) error {
	for tries := 1; ; tries++ {
		err := IgnoreMissing(os.Remove(state))
		if tries == emptiedTries || !errors.Is(err, unix.ENOTEMPTY) {
			return err
		}
		if err := sched.Default().WaitUntil(context.Background(), time.Now().Add(emptiedPause)); err != nil {
			return err
		}
	}
}

var storeFiles = []string{StoreFile, StoreFile + "-wal", StoreFile + "-shm", StoreFile + "-journal"}

// state removes what is in the folder of a state by the names that Fairway gives, its lock last if nothing else is
// in it.
func (c *Cleaned) state(state string) error {
	folder, err := beneath.Open(state)
	if err != nil {
		return IgnoreMissing(err)
	}
	defer func() { _ = folder.Close() }()
	id, ours := "", false
	if i, err := readIdentity(state); err == nil && i != nil {
		there, err := identify(state)
		id, ours = i.ID, err == nil && i.isOf(there)
	}
	for _, name := range sharedNames {
		if err := c.shared(folder, name, id, ours); err != nil {
			return err
		}
	}
	names, err := folder.List(".")
	if err != nil {
		return err
	}
	last := []string{lockName, identityName}
	for _, name := range names {
		known := slices.Contains(storeFiles, name) || name == SocketName || name == identityName+".new" ||
			name == birthName || name == PilotsSocket || strings.HasPrefix(name, PilotsSocket+"-") ||
			name == LinkName || name == LinkName+".new" ||
			name == AuthorityName || name == AuthorityName+".new" || name == StoreAddressName+".new" || name == ServersName ||
			strings.HasPrefix(name, disk.PartPrefix) || strings.HasPrefix(name, storage.MarkName)
		switch {
		case known:
			c.remove(folder, name)
		case name == StoreAddressName:
			address, err := StoreAddress(state)
			if err != nil {
				return err
			}
			c.Left = append(c.Left, "the records at "+address+": drop the schema yourself")
			c.remove(folder, name)
		case !slices.Contains(last, name) && !c.leavesIn(folder.Name(name)):
			c.Left = append(c.Left, folder.Name(name))
		}
	}
	if c.leavesIn(state) {
		return nil // the identity stays as the mark that the folder is ours
	}
	for _, name := range last {
		if err := IgnoreMissing(folder.Remove(name)); err != nil {
			return err
		}
	}
	return nil
}

func (c *Cleaned) leavesIn(folder string) bool {
	return slices.ContainsFunc(c.Left, func(left string) bool { return strings.HasPrefix(left, folder+"/") })
}

// shared removes what belongs to a state in one of its folders, which may be a
// link to one of others: there only what bears the identity, and then the link.
// A state without an identity, of an earlier version, has all that is in folders
// that are no links.
func (c *Cleaned) shared(folder *beneath.Folder, name, id string, ours bool) error {
	info, err := folder.Lstat(name)
	if err != nil {
		return IgnoreMissing(err)
	}
	if info.Mode().Type() == fs.ModeSymlink {
		if target, err := beneath.Open(folder.Name(name)); err == nil && id != "" && ours {
			defer func() { _ = target.Close() }()
			c.remove(target, id)
		}
		c.remove(folder, name)
		return nil
	}
	if id == "" {
		c.remove(folder, name)
		return nil
	}
	c.remove(folder, path.Join(name, id))
	_ = folder.RemoveFolder(name) // where it holds something else, it stays
	return nil
}

func (c *Cleaned) remove(folder *beneath.Folder, name string) {
	bytes := int64(0)
	if info, err := folder.Lstat(name); err == nil && info.Mode().IsRegular() {
		bytes = info.Size()
	} else if sub, err := folder.Sub(name); err == nil {
		_ = sub.Walk(func(_ string, info fs.FileInfo) error {
			if info.Mode().IsRegular() {
				bytes += info.Size()
			}
			return nil
		})
		_ = sub.Close()
	}
	if err := folder.RemoveAll(name); err != nil {
		c.Leave(folder.Name(name), err)
		return
	}
	c.Bytes += bytes
}

// Leave notes that something could not be removed, each part of it with its reason.
func (c *Cleaned) Leave(path string, err error) {
	reasons := []error{err}
	if joined, ok := err.(interface{ Unwrap() []error }); ok {
		reasons = joined.Unwrap()
	}
	for _, reason := range reasons {
		at, why := path, reason
		if failed, ok := errors.AsType[*fs.PathError](reason); ok {
			at, why = failed.Path, failed.Err
		}
		if errors.Is(reason, beneath.ErrOutside) {
			why = errors.New("something is mounted there")
		} else {
			c.Failed++
		}
		c.Left = append(c.Left, fmt.Sprintf("%s: %v", at, why))
	}
}
