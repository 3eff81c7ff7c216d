package cache

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"syscall"
	"time"

	"github.com/zeebo/blake3"
	"golang.org/x/sys/unix"
)

// The pilots of a host may be those of several users of one group, who read each other's files
// (paper 3, section IV-D). The paper makes links. Here each user writes to folders of their own
// and reads in those of the others: whoever owns a file may write to it, and Linux makes no link
// to a file that one may not write to (fs.protected_hardlinks). So a file of another user is
// copied, and the copy is checked by the hash that the TaskQueue knows before anybody reads it.
// Of users that share so, each has the space of their own pilots.

// errOtherContents says that a file of another user is not what its name says.
var errOtherContents = errors.New("it holds something else")

// maxOtherContents is how many such files a folder may have until it is not looked into any more.
const maxOtherContents = 3

// partsName is the folder, in that of a cache, where files are written if the group may read that
// of the cache: until they are complete nobody else may open them, whatever their modes.
const partsName = ".parts"

// groupFolder is what others may do with a folder of a cache.
const groupFolder = 0o750

// bookMode is that of the files that pilots of this user alone write to and read.
func (c *Cache) bookMode() fs.FileMode {
	if c.cfg.Group {
		return 0o600
	}
	return 0o666
}

// partPath is where what is written of a file stands until it is complete, in a cache folder.
func (c *Cache) partPath(number, name string) string {
	if c.cfg.Group {
		return filepath.Join(partsName, partOf(number, name))
	}
	return partOf(number, name)
}

// openToGroup makes the folders of this cache, which the group may read.
func (c *Cache) openToGroup() error {
	if !c.cfg.Group {
		return nil
	}
	for _, folder := range []string{c.cfg.Dir, c.folder} {
		if err := os.MkdirAll(folder, 0o700); err != nil {
			return err
		}
		info, err := os.Lstat(folder)
		if err != nil {
			return err
		}
		if err := os.Chmod(folder, info.Mode()&fs.ModeSetgid|groupFolder); err != nil {
			return err
		}
	}
	return nil
}

// letGroupRead has the group read a file that is to get its name, and nobody write to it. A file
// that has other names is somebody's outside of the cache, and stays as it is, unless it is ours.
func (c *Cache) letGroupRead(path string, ours bool) error {
	if !c.cfg.Group {
		return nil
	}
	info, err := os.Lstat(path)
	if err != nil {
		return err
	}
	if st, ok := info.Sys().(*syscall.Stat_t); !ok || st.Nlink > 1 && !ours {
		return nil
	}
	return os.Chmod(path, info.Mode().Perm()&^0o027|0o440)
}

// isOfThisUser reports whether the owner of this cache's folder has another one, too.
func (c *Cache) isOfThisUser(folder string) bool {
	own, err := os.Lstat(c.folder)
	if err != nil {
		return false
	}
	other, err := os.Lstat(folder)
	if err != nil {
		return false
	}
	a, ok := own.Sys().(*syscall.Stat_t)
	b, and := other.Sys().(*syscall.Stat_t)
	return ok && and && a.Uid == b.Uid
}

// setOthers says which folders are those of other users. The mutex is held.
func (c *Cache) setOthers(folders []string) {
	others := make(map[string]int, len(folders))
	for _, folder := range folders {
		others[folder] = c.others[folder]
	}
	c.others = others
}

// CopyFromGroup makes a file, which is to be brought in, at a path from that of another user of
// the host, if one has it. It is not made unless it holds what the hash says, and never without a
// hash. An error is that of the context.
func (c *Cache) CopyFromGroup(ctx context.Context, wanted Item, hash Hash, path string) (ok bool, err error) {
	if hash == (Hash{}) {
		return false, nil
	}
	c.mu.Lock()
	var folders []string
	for folder, bad := range c.others {
		if bad < maxOtherContents {
			folders = append(folders, folder)
		}
	}
	c.mu.Unlock()
	slices.Sort(folders)
	for _, folder := range folders {
		err := copyChecked(ctx, folder, wanted, hash, path)
		switch {
		case err == nil:
			return true, nil
		case ctx.Err() != nil:
			return false, ctx.Err()
		case errors.Is(err, errOtherContents):
			c.cfg.Log.Warn("a cached file of another user is not what it should be; it is not used", "lfn", wanted.LFN,
				"folder", folder, "reason", err)
			c.mu.Lock()
			if _, still := c.others[folder]; still {
				c.others[folder]++
			}
			c.mu.Unlock()
		}
	}
	return false, nil
}

// copyChecked copies a file of a folder, and removes the copy if it is not right.
func copyChecked(ctx context.Context, folder string, wanted Item, hash Hash, path string) (err error) {
	// What stands there may be anything: to open it does not wait for a writer, and follows no link.
	in, err := os.OpenFile(filepath.Join(folder, fileName(wanted)), os.O_RDONLY|unix.O_NOFOLLOW|unix.O_NONBLOCK, 0)
	if err != nil {
		return err
	}
	defer in.Close()
	info, err := in.Stat()
	if err != nil {
		return err
	}
	if !info.Mode().IsRegular() {
		return fmt.Errorf("%s: %w", in.Name(), errOtherContents)
	}
	out, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, info.Mode().Perm()&^0o222|0o400)
	if err != nil {
		return err
	}
	defer func() {
		if err = errors.Join(err, out.Close()); err != nil {
			_ = os.Remove(path)
		}
	}()
	sum := blake3.New()
	for left := wanted.Size + 1; ; { // one byte more tells that it is too long
		n, err := io.CopyN(io.MultiWriter(out, sum), in, min(left, 1<<20))
		left -= n
		switch {
		case errors.Is(err, io.EOF) && left == 1 && HashOf(sum) == hash:
			return os.Chtimes(path, time.Time{}, info.ModTime())
		case errors.Is(err, io.EOF) || err == nil && left == 0:
			return fmt.Errorf("%s: %w", in.Name(), errOtherContents)
		case err != nil:
			return err
		case ctx.Err() != nil:
			return ctx.Err()
		}
	}
}
