package cache

import (
	"context"
	"encoding/hex"
	"fairway/internal/disk"
	"io"
	"os"
	"path/filepath"
	"strings"

	"github.com/zeebo/blake3"
)

// Hash is the BLAKE3 hash of the contents of a file, which no other contents have. The zero
// value is that of a file of which it is not known.
type Hash [32]byte

// HashOf is the hash of what was written to h.
func HashOf(h *blake3.Hasher) (of Hash) {
	h.Sum(of[:0])
	return of
}

// sumsName is the file in Dir in which the pilots of a host keep the hashes of what they
// have brought in: a line for each file, with the hash (64 hexadecimal digits) and the
// name. The last line of a name counts; one that is cut says nothing. By them the next
// pilot finds out whether a file still holds what it held.
const sumsName = ".sums"

// maxSums bounds that file, in bytes. A pilot that starts cuts a longer one down to the
// files that are there; until then nothing is added.
const maxSums = 16 << 20

func readSums(dir string) map[string]Hash {
	recorded := map[string]Hash{}
	f, err := os.Open(filepath.Join(dir, sumsName))
	if err != nil {
		return recorded
	}
	defer f.Close()
	text, _ := io.ReadAll(io.LimitReader(f, 2*maxSums)) // what can be read counts
	for line := range strings.Lines(string(text)) {
		digits, name, _ := strings.Cut(strings.TrimSuffix(line, "\n"), " ")
		sum, err := hex.DecodeString(digits)
		if _, ok := parseName(name); ok && err == nil && len(sum) == len(Hash{}) {
			recorded[name] = Hash(sum)
		}
	}
	return recorded
}

// recordSum adds a line. If that fails, the next pilot does not know the file.
func (c *Cache) recordSum(name string, hash Hash) {
	f, err := os.OpenFile(filepath.Join(c.cfg.Dir, sumsName), os.O_WRONLY|os.O_CREATE|os.O_APPEND, c.bookMode())
	if err != nil {
		return
	}
	defer f.Close()
	if info, err := f.Stat(); err == nil && info.Size() < maxSums {
		_, _ = f.WriteString(sumLine(name, hash))
	}
}

func sumLine(name string, hash Hash) string { return hex.EncodeToString(hash[:]) + " " + name + "\n" }

// cutSums leaves nothing but the sums of files that some pilot of the host has, in a file
// that has become long.
func (c *Cache) cutSums(recorded map[string]Hash) {
	unlock, taken := c.host.lock()
	defer unlock()
	if !taken {
		return // it stays long until the next pilot
	}
	path := filepath.Join(c.cfg.Dir, sumsName)
	if info, err := os.Stat(path); err != nil || info.Size() < maxSums/2 {
		return
	}
	var text strings.Builder
	written := map[string]bool{}
	folders, _ := os.ReadDir(c.cfg.Dir)
	for _, folder := range folders {
		names, _ := os.ReadDir(filepath.Join(c.cfg.Dir, folder.Name())) // none in what is no folder
		for _, n := range names {
			if hash, ok := recorded[n.Name()]; ok && !written[n.Name()] {
				text.WriteString(sumLine(n.Name(), hash))
				written[n.Name()] = true
			}
		}
	}
	if os.WriteFile(path+".new", []byte(text.String()), c.bookMode()) == nil {
		_ = os.Rename(path+".new", path)
	}
}

// proved makes sure of a file that was taken over, when it is asked for first: it
// holds what its hash says, or goes. It reports whether the file may be used.
func (c *Cache) proved(ctx context.Context, f *File) (bool, error) {
	c.mu.Lock()
	due, hash := f.entry.unproved, f.entry.hash
	c.mu.Unlock()
	if !due {
		return true, nil
	}
	right, err := holds(ctx, f.Path(), hash)
	if err != nil && ctx.Err() != nil {
		f.Release()
		return false, err
	}
	if !right {
		c.mu.Lock()
		c.damaged[fileName(f.entry.Item)] = true
		c.mu.Unlock()
		c.Drop(f.entry.Ref)
		f.Release()
		return false, nil
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	f.entry.unproved = false
	return true, nil
}

func holds(ctx context.Context, path string, hash Hash) (bool, error) {
	in, err := os.Open(path)
	if err != nil {
		return false, err
	}
	defer in.Close()
	h := blake3.New()
	_, err = io.Copy(h, disk.Within(ctx, in))
	return err == nil && HashOf(h) == hash, err
}
