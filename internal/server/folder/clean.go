package folder

import (
	"errors"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"fairway/internal/beneath"
	"fairway/internal/disk"
	"fairway/internal/storage"
)

// Cleaned says what Clean has removed, and what it has left.
type Cleaned struct {
	Removed []string // paths
	Left    []string // one sentence each
	Bytes   int64    // of removed files, linked ones as often as they are linked
}

// Clean removes the state of a workflow folder where nothing runs. What Fairway
// has not put there stays. Before that it calls results, which may remove what the
// state has published, unless it is nil. An error is a *RunningError where a server
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
	return c, c.state(l.State)
}

// storeFiles are those that SQLite makes.
var storeFiles = []string{StoreFile, StoreFile + "-wal", StoreFile + "-shm", StoreFile + "-journal"}

// state removes what is in the folder of a state by the names that Fairway gives,
// and the folder if nothing else is in it.
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
		known := slices.Contains(storeFiles, name) || name == SocketName || name == identityName+".new" || name == AuthorityName || name == AuthorityName+".new" || name == ServersName || strings.HasPrefix(name, disk.PartPrefix) || strings.HasPrefix(name, storage.MarkName)
		switch {
		case known:
			if err := c.remove(folder, name); err != nil {
				return err
			}
		case !slices.Contains(last, name):
			c.Left = append(c.Left, folder.Name(name))
		}
	}
	if len(c.Left) > 0 && slices.ContainsFunc(c.Left, func(left string) bool { return strings.HasPrefix(left, state+"/") }) {
		return nil // the identity stays as the mark that the folder is ours
	}
	for _, name := range last {
		if err := IgnoreMissing(folder.Remove(name)); err != nil {
			return err
		}
	}
	if err := os.Remove(state); err != nil {
		return err
	}
	c.Removed = append(c.Removed, state)
	return nil
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
			if err := c.remove(target, id); err != nil {
				return err
			}
		}
		return c.remove(folder, name)
	}
	if id == "" {
		return c.remove(folder, name)
	}
	if err := c.remove(folder, path.Join(name, id)); err != nil {
		return err
	}
	_ = folder.RemoveFolder(name) // where it holds something else, it stays
	return nil
}

func (c *Cleaned) remove(folder *beneath.Folder, name string) error {
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
	err := folder.RemoveAll(name)
	if errors.Is(err, beneath.ErrOutside) {
		c.Left = append(c.Left, folder.Name(name)+": something is mounted there")
		return nil
	}
	if err == nil {
		c.Bytes += bytes
	}
	return err
}
