package cache

import (
	"encoding/binary"
	"io/fs"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"
)

// usesName is the file in a cache folder that tells the peers which files are in use, in slots of
// useSize bytes: the place of a file (placeOf), or 0. It counts as long as its pilot has it locked,
// so what a pilot used that was killed is in use no more. The kernel keeps one lock for each pilot
// and none for each file: it walks through all locks of a file whenever one of them changes.
const usesName = ".uses"

// useSize is that of a little-endian number of 64 bits.
const useSize = 8

// uses is the file of usesName, and which of its slots are free. What cannot be written to it the
// peers do not see: they may then drop their links to a file in vain, and nothing more.
type uses struct {
	file  *os.File
	slots int   // that have ever been taken
	free  []int // those of them that nobody has
}

func ownUses() *unix.Flock_t { return &unix.Flock_t{Type: unix.F_WRLCK, Len: 1} }

func openUses(folder string, mode fs.FileMode) (*uses, error) {
	f, err := os.OpenFile(filepath.Join(folder, usesName), os.O_RDWR|os.O_CREATE|os.O_TRUNC, mode)
	if err != nil {
		return nil, err
	}
	// Where the file system has no such locks, no peer sees any use.
	_ = unix.FcntlFlock(f.Fd(), unix.F_OFD_SETLK, ownUses())
	return &uses{file: f}, nil
}

func (u *uses) close() {
	if u != nil {
		_ = u.file.Close()
	}
}

// tell takes a slot for a file. The first slot has the number 1.
func (u *uses) tell(name string) (slot int) {
	if last := len(u.free) - 1; last >= 0 {
		slot, u.free = u.free[last], u.free[:last]
	} else {
		u.slots++
		slot = u.slots
	}
	u.set(slot, placeOf(name))
	return slot
}

func (u *uses) end(slot int) {
	u.set(slot, 0)
	u.free = append(u.free, slot)
}

func (u *uses) set(slot int, place int64) {
	_, _ = u.file.WriteAt(binary.LittleEndian.AppendUint64(nil, uint64(place)), int64(slot-1)*useSize)
}

// tellUse has the peers know whether an entry is in use. While there are none, nothing is written.
// The mutex is held.
func (c *Cache) tellUse(e *entry) {
	switch {
	case e.pins > 0 && e.use == 0 && len(c.peers) > 0:
		e.use = c.uses.tell(fileName(e.Item))
	case e.pins == 0 && e.use != 0:
		c.uses.end(e.use)
		e.use = 0
	}
}

// usedByPeers are the places of the files that live peers have in use. The mutex is held.
func (c *Cache) usedByPeers() map[int64]bool {
	used := map[int64]bool{}
	for _, p := range c.peers {
		for _, place := range p.uses() {
			used[place] = true
		}
	}
	return used
}

// uses are the places of the files that a peer has in use; none if it is dead.
func (p *peer) uses() (places []int64) {
	f, err := os.Open(filepath.Join(p.folder, usesName))
	if err != nil {
		return nil
	}
	defer f.Close()
	lock := ownUses()
	if err := unix.FcntlFlock(f.Fd(), unix.F_OFD_GETLK, lock); err != nil || lock.Type == unix.F_UNLCK {
		return nil
	}
	info, err := f.Stat()
	if err != nil {
		return nil
	}
	told := make([]byte, info.Size())
	n, _ := f.ReadAt(told, 0) // what has been cut meanwhile is no use
	for told = told[:n]; len(told) >= useSize; told = told[useSize:] {
		if place := int64(binary.LittleEndian.Uint64(told)); place != 0 {
			places = append(places, place)
		}
	}
	return places
}
