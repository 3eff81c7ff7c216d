package cache

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"

	"golang.org/x/sys/unix"

	"fairway/internal/disk"
	"fairway/lib/sched"
)

// fetch is a file that is being brought in; others that want it wait.
type fetch struct{ done chan struct{} }

// Fetch takes a file into use, and has bring write it to a path if it is not there. Of
// several calls for one file, also by pilots that share, one brings it in. bring returns
// how many bytes it wrote and their hash, as far as it knows that: by it a later pilot
// finds out whether the file is still the same. Item.Size is what is reserved;
// a file of another size is refused.
func (c *Cache) Fetch(
	ctx context.Context, wanted Item, bring func(path string) (int64, Hash, error),
) (f *File, hit bool, err error) {
	for {
		f, under, mine := c.begin(wanted)
		switch {
		case f != nil:
			hit = true
		case under == nil:
			return nil, false, errOther
		case mine:
			if f, hit, err = c.bringInTurn(ctx, wanted, under, bring); err != nil {
				return nil, false, err
			}
		default:
			if _, err := sched.Receive(ctx, c.cfg.Sched, under.done); !errors.Is(err, sched.ErrChannelClosed) {
				return nil, false, err
			}
			continue
		}
		if ok, err := c.proved(ctx, f); err != nil {
			return nil, false, err
		} else if ok {
			return f, hit, nil
		}
	}
}

// bringInTurn is bring, when no other pilot of the host brings the file in.
func (c *Cache) bringInTurn(
	ctx context.Context, wanted Item, under *fetch, write func(path string) (int64, Hash, error),
) (*File, bool, error) {
	defer c.end(wanted.Ref, under)
	release, err := c.turn(ctx, fileName(wanted))
	if err != nil {
		return nil, false, err
	}
	defer release()
	return c.bring(ctx, wanted, write)
}

// begin finds a file, or who brings it in, or says that the caller is to.
func (c *Cache) begin(wanted Item) (f *File, under *fetch, mine bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if f, ok := c.get(wanted); ok {
		return f, nil, false
	}
	if under = c.fetching[wanted.Ref]; under != nil || c.entries[wanted.Ref] != nil {
		return nil, under, false
	}
	under = &fetch{make(chan struct{})}
	c.fetching[wanted.Ref] = under
	return nil, under, true
}

func (c *Cache) end(ref Ref, under *fetch) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.fetching, ref)
	close(under.done)
}

// Add puts a local file of this user into the cache, by a link if that can be made; the file
// must not be written to any more. It is left where it is. The path may be that of
// an open file (disk.Descriptor).
func (c *Cache) Add(ctx context.Context, i Item, path string) error {
	for {
		f, under, mine := c.begin(i)
		switch {
		case f != nil:
			f.Release()
			return nil
		case under == nil:
			return errOther
		case mine: // nobody else brings in what was made here
			defer c.end(i.Ref, under)
			f, _, err := c.bring(ctx, i, func(target string) (int64, Hash, error) {
				size, err := linkOrCopy(ctx, path, target)
				if err == nil {
					err = c.letGroupRead(target, true)
				}
				return size, Hash{}, err
			})
			if err == nil {
				f.Release()
			}
			return err
		}
		if _, err := sched.Receive(ctx, c.cfg.Sched, under.done); !errors.Is(err, sched.ErrChannelClosed) {
			return err
		}
	}
}

func (c *Cache) bring(ctx context.Context, i Item, write func(path string) (int64, Hash, error)) (*File, bool, error) {
	if len(fileName(i)) > maxName {
		return nil, false, fmt.Errorf("%w: the name %s is too long", ErrFull, i.LFN)
	}
	r, f, linked, err := c.prepare(i)
	for len(linked) > 0 && c.untilDropped(ctx, linked) {
		r, f, linked, err = c.prepare(i)
	}
	if err != nil || f != nil {
		return f, f != nil, err
	}
	var hash Hash
	if err = addReserved.Hit(); err == nil {
		hash, err = c.write(r, i.Size, write)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.reserved -= i.Size
	if err != nil {
		r.end()
		c.claim()
		return nil, false, full(err)
	}
	f, err = c.commit(r, i, hash)
	return f, false, full(err)
}

// commit gives a written file its place, unless a link to a peer's has taken
// it meanwhile.
func (c *Cache) commit(r *reservation, i Item, hash Hash) (*File, error) {
	defer r.end()
	if e := c.entries[i.Ref]; e != nil {
		if e.is(i) {
			return c.pin(e), nil
		}
		return nil, errOther
	}
	if err := c.name(r, fileName(i)); err != nil {
		return nil, err
	}
	delete(c.damaged, fileName(i))
	if hash != (Hash{}) {
		c.recordSum(fileName(i), hash)
	}
	e := c.insert(i, hash)
	c.tellPeers()
	return c.pin(e), nil
}

// errOther says that a file of another size stands in the place, and is in use.
var errOther = fmt.Errorf("%w: a file of another size is in use under the same name", ErrFull)

// prepare makes room for a file, or takes it into use if it has come meanwhile. With an error
// it returns what makeRoom does.
func (c *Cache) prepare(i Item) (r *reservation, f *File, linked []string, err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if f, ok := c.get(i); ok { // a link that was taken while this waited for its turn
		return nil, f, nil, nil
	}
	if f, ok := c.adopt(i); ok {
		return nil, f, nil, nil
	}
	r, linked, err = c.reserve(i)
	return r, nil, linked, err
}

func (c *Cache) write(r *reservation, size int64, write func(path string) (int64, Hash, error)) (Hash, error) {
	got, hash, err := write(r.path)
	if err != nil {
		return Hash{}, err
	}
	if got != size {
		return Hash{}, fmt.Errorf("the file has %d bytes and should have %d", got, size)
	}
	return hash, addWritten.Hit()
}

// name gives a written file its name, or takes the link of a peer that was
// faster, so that the host holds the contents once, unless that may be one which nobody
// has read. The caller holds the mutex.
func (c *Cache) name(r *reservation, name string) error {
	unlock, taken := c.host.lock()
	defer unlock()
	if _, unread := c.recorded[name]; taken && !unread && c.linkFromPeer(name) {
		return nil
	}
	if err := c.letGroupRead(r.path, false); err != nil {
		return err
	}
	if err := unix.Rename(r.path, filepath.Join(c.folder, name)); err != nil {
		return &os.LinkError{Op: "rename", Old: r.path, New: name, Err: err}
	}
	r.named = true
	return addNamed.Hit()
}

type reservation struct {
	path  string // where it is written
	named bool   // it is there no more
}

func (r *reservation) end() {
	if !r.named {
		_ = os.Remove(r.path)
	}
}

// reserve makes room for a file. The caller holds the mutex.
func (c *Cache) reserve(i Item) (r *reservation, linked []string, err error) {
	unlock, taken := c.host.lock()
	defer unlock()
	if !taken {
		return nil, nil, errStopped
	}
	if err := unix.Access(c.folder, unix.W_OK); err != nil {
		return nil, nil, fmt.Errorf("%w, since %s cannot be written to: %w", ErrFull, c.folder, err)
	}
	if c.cfg.Group {
		if err := os.Mkdir(filepath.Join(c.folder, partsName), 0o700); err != nil && !errors.Is(err, fs.ErrExist) {
			return nil, nil, full(err)
		}
	}
	if linked, err := c.makeRoom(i.Size); err != nil {
		return nil, linked, err
	}
	c.parts++
	c.reserved += i.Size
	c.claim()
	return &reservation{path: filepath.Join(c.folder, c.partPath(strconv.Itoa(c.parts), fileName(i)))}, nil, nil
}

// linkOrCopy makes the contents of a local regular file appear at target, where a
// copy is read-only.
func linkOrCopy(ctx context.Context, path, target string) (int64, error) {
	in, err := os.OpenFile(path, os.O_RDONLY|unix.O_NONBLOCK, 0)
	if err != nil {
		return 0, err
	}
	defer in.Close()
	info, err := in.Stat()
	if err != nil {
		return 0, err
	}
	if !info.Mode().IsRegular() {
		return 0, fmt.Errorf("%s is not a regular file", path)
	}
	if disk.Link(in, target) == nil {
		return info.Size(), nil
	}
	return info.Size(), disk.CopyTo(ctx, in, target, info.Mode().Perm()&^0o222|0o400)
}
