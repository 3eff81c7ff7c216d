package cache

import (
	"encoding/binary"
	"io"
	"io/fs"
	"math"
	"os"
	"path/filepath"
)

// claims is the file in which a cache tells its peers how much it takes: a
// claim. Room is claimed under the lock of the host before anything is written,
// and given back after it was removed, so the sum of all claims is never less
// than what is taken; links to one file are counted in each.
type claims struct{ file *os.File }

// claim is what one cache takes, in bytes. In the file both numbers are
// little-endian, with 8 bytes each.
type claim struct{ files, reserved int64 }

const claimSize = 16

func openClaims(folder string, mode fs.FileMode) (*claims, error) {
	f, err := os.OpenFile(filepath.Join(folder, changesName), os.O_RDWR|os.O_CREATE, mode)
	if err != nil {
		return nil, err
	}
	if _, err := f.WriteAt(make([]byte, claimSize), 0); err != nil {
		_ = f.Close()
		return nil, err
	}
	return &claims{f}, nil
}

func (l *claims) close() {
	if l != nil {
		_ = l.file.Close()
	}
}

// claim writes what this cache takes now. The file has its size since Open, so a
// full disk does not matter.
func (c *Cache) claim() {
	if c.claims == nil {
		return
	}
	b := make([]byte, 0, claimSize)
	b = binary.LittleEndian.AppendUint64(b, uint64(c.used))
	b = binary.LittleEndian.AppendUint64(b, uint64(c.reserved))
	_, _ = c.claims.file.WriteAt(b, 0)
}

// atMost is what the pilots of the host together take at the most. While that
// leaves room nobody needs to list the folders to count each file once. The
// caller holds the mutex and the lock of the host.
func (c *Cache) atMost() int64 {
	sum := c.used + c.reserved
	for _, p := range c.peers {
		claimed, ok := p.claimed()
		if !ok {
			return math.MaxInt64
		}
		sum += claimed.files + claimed.reserved
	}
	return sum
}

// claimed reads the claim of a peer; false if there is none that makes sense.
func (p *peer) claimed() (claim, bool) {
	f, err := os.Open(filepath.Join(p.folder, changesName))
	if err != nil {
		return claim{}, false
	}
	defer f.Close()
	var b [claimSize]byte
	if _, err := io.ReadFull(f, b[:]); err != nil {
		return claim{}, false
	}
	l := claim{int64(binary.LittleEndian.Uint64(b[:])), int64(binary.LittleEndian.Uint64(b[8:]))}
	return l, l.files >= 0 && l.reserved >= 0 && l.files <= math.MaxInt64-l.reserved
}
