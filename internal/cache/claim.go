package cache

import (
	"encoding/binary"
	"io"
	"math"
	"os"
	"path/filepath"
)

// claims is the file in which a cache tells its peers how much it takes: the
// bytes of its files and reservations, little-endian, 8 bytes. Room is claimed
// under the lock of the host before anything is written, and given back after
// it was removed, so the sum of all claims is never less than what is taken;
// links to one file are counted in each.
type claims struct{ file *os.File }

func openClaims(folder string) (*claims, error) {
	f, err := os.OpenFile(filepath.Join(folder, changesName), os.O_RDWR|os.O_CREATE, 0o666)
	if err != nil {
		return nil, err
	}
	if _, err := f.WriteAt(make([]byte, 8), 0); err != nil {
		_ = f.Close()
		return nil, full(err)
	}
	return &claims{f}, nil
}

func (l *claims) close() { _ = l.file.Close() }

// claim writes what this cache takes now. The file has its 8 bytes since Open,
// so a full disk does not matter.
func (c *Cache) claim() {
	if c.claims == nil {
		return
	}
	var b [8]byte
	binary.LittleEndian.PutUint64(b[:], uint64(c.used+c.reserved))
	_, _ = c.claims.file.WriteAt(b[:], 0)
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
		sum += claimed
	}
	return sum
}

func (p *peer) claimed() (int64, bool) {
	f, err := os.Open(filepath.Join(p.folder, changesName))
	if err != nil {
		return 0, false
	}
	defer f.Close()
	var b [8]byte
	if _, err := io.ReadFull(f, b[:]); err != nil {
		return 0, false
	}
	n := int64(binary.LittleEndian.Uint64(b[:]))
	return n, n >= 0
}
