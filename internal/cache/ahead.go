package cache

import (
	"fmt"
	"os"
	"path/filepath"
	"time"
)

// aheadPrefix begins the names of files that say of another file in the same folder that it
// was fetched ahead, and that nobody of the host has read it since: when that began, in
// nanoseconds since 1970, and how many it took.
const aheadPrefix = ".ahead-"

func (c *Cache) aheadPath(folder string, ref Ref) string {
	return filepath.Join(folder, fmt.Sprintf("%s%x", aheadPrefix, placeOf(fileName(Item{Ref: ref}))))
}

// MarkAhead notes that a file was fetched before anybody needs it, from began until now. It
// is for those who bring a file in (Fetch), before others can see it. The mark goes with the
// file, and with this cache.
func (c *Cache) MarkAhead(ref Ref, began time.Time) {
	text := fmt.Appendf(nil, "%d %d", began.UnixNano(), time.Since(began))
	c.marksAhead.Store(true)
	_ = os.WriteFile(c.aheadPath(c.folder, ref), text, c.bookMode()) // without it the file counts as any other
}

// TakeAhead reports whether a pilot of the host has fetched a file ahead, and nobody has
// read it since: of all who ask, one is told so, with the time that it took.
func (c *Cache) TakeAhead(ref Ref) (began time.Time, took time.Duration, ok bool) {
	c.mu.Lock()
	var folders []string
	if c.marksAhead.Load() {
		folders = append(folders, c.folder)
	}
	for folder := range c.peers {
		folders = append(folders, folder)
	}
	c.mu.Unlock()
	for _, folder := range folders {
		path := c.aheadPath(folder, ref)
		text, err := os.ReadFile(path)
		if err != nil || os.Remove(path) != nil {
			continue
		}
		var at int64
		if _, err := fmt.Sscanf(string(text), "%d %d", &at, &took); err != nil || took < 0 {
			return time.Time{}, 0, true
		}
		return time.Unix(0, at), took, true
	}
	return time.Time{}, 0, false
}
