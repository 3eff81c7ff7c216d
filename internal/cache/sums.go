package cache

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"fairway/internal/adler32"
)

// sumsName is the file in Dir in which the pilots of a host keep the checksums of
// what they have brought in: a line for each file, with the sum (8 hexadecimal
// digits) and the name. The last line of a name counts; one that is cut says
// nothing. By them the next pilot finds out whether a file still holds what it held.
const sumsName = ".sums"

// maxSums bounds that file, in bytes. A pilot that starts cuts a longer one down to the
// files that are there; until then nothing is added.
const maxSums = 16 << 20

// readSums returns what is recorded, by the names of files.
func readSums(dir string) map[string]uint32 {
	recorded := map[string]uint32{}
	f, err := os.Open(filepath.Join(dir, sumsName))
	if err != nil {
		return recorded
	}
	defer f.Close()
	text, _ := io.ReadAll(io.LimitReader(f, 2*maxSums)) // what can be read counts
	for line := range strings.Lines(string(text)) {
		digits, name, _ := strings.Cut(strings.TrimSuffix(line, "\n"), " ")
		sum, err := strconv.ParseUint(digits, 16, 32)
		if _, ok := parseName(name); ok && err == nil && len(digits) == 8 {
			recorded[name] = uint32(sum)
		}
	}
	return recorded
}

// recordSum adds a line. If that fails, the next pilot does not know the file.
func (c *Cache) recordSum(name string, sum uint32) {
	f, err := os.OpenFile(filepath.Join(c.cfg.Dir, sumsName), os.O_WRONLY|os.O_CREATE|os.O_APPEND, 0o666)
	if err != nil {
		return
	}
	defer f.Close()
	if info, err := f.Stat(); err == nil && info.Size() < maxSums {
		_, _ = f.WriteString(sumLine(name, sum))
	}
}

func sumLine(name string, sum uint32) string { return fmt.Sprintf("%08x %s\n", sum, name) }

// cutSums leaves nothing but the sums of files that some pilot of the host has, in a file
// that has become long.
func (c *Cache) cutSums(recorded map[string]uint32) {
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
	folders, _ := os.ReadDir(c.cfg.Dir)
	for _, folder := range folders {
		names, _ := os.ReadDir(filepath.Join(c.cfg.Dir, folder.Name())) // none in what is no folder
		for _, n := range names {
			if sum, ok := recorded[n.Name()]; ok {
				text.WriteString(sumLine(n.Name(), sum))
				delete(recorded, n.Name())
			}
		}
	}
	if os.WriteFile(path+".new", []byte(text.String()), 0o666) == nil {
		_ = os.Rename(path+".new", path)
	}
}

// proved makes sure of a file that was taken over, when it is asked for first: it
// holds what its sum says, or goes. It reports whether the file may be used.
func (c *Cache) proved(ctx context.Context, f *File) (bool, error) {
	c.mu.Lock()
	due, sum := f.entry.unproved, f.entry.sum
	c.mu.Unlock()
	if !due {
		return true, nil
	}
	right, err := holds(ctx, f.Path(), sum)
	if err != nil && ctx.Err() != nil {
		f.Release()
		return false, err
	}
	if !right {
		c.Drop(f.entry.Ref)
		f.Release()
		return false, nil
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	f.entry.unproved = false
	return true, nil
}

func holds(ctx context.Context, path string, sum uint32) (bool, error) {
	in, err := os.Open(path)
	if err != nil {
		return false, err
	}
	defer in.Close()
	hash := adler32.New()
	for {
		_, err := io.CopyN(hash, in, 1<<20)
		switch {
		case errors.Is(err, io.EOF):
			return hash.Sum32() == sum, nil
		case err != nil:
			return false, err
		case ctx.Err() != nil:
			return false, ctx.Err()
		}
	}
}
