package pilot

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
)

// slot is what one attempt at a time uses: a sandbox, and files for what it
// prints. Slots are used again, since making and removing folders costs more
// than a short job.
type slot struct {
	folder   string
	dir      *os.File // the folder
	out, err logFile
}

// infoFolder, in a sandbox, holds what the pilot tells the command and the
// other way round.
const infoFolder = ".fairway"

// takeSlot returns a slot that no attempt uses.
func (p *pilot) takeSlot() (*slot, error) {
	p.mu.Lock()
	if last := len(p.slots) - 1; last >= 0 {
		s := p.slots[last]
		p.slots = p.slots[:last]
		p.mu.Unlock()
		return s, nil
	}
	p.made++
	folder := filepath.Join(p.remains.folder, strconv.Itoa(p.made))
	p.mu.Unlock()
	s := &slot{folder: folder, out: logFile{folder: p.cfg.LogDir}, err: logFile{folder: p.cfg.LogDir}}
	return s, s.makeFolder()
}

func (s *slot) makeFolder() error {
	if err := os.Mkdir(s.folder, 0o755); err != nil {
		return fmt.Errorf("sandbox: %w", err)
	}
	dir, err := os.Open(s.folder)
	if err != nil {
		return fmt.Errorf("sandbox: %w", err)
	}
	s.dir = dir
	return nil
}

// returnSlot empties the sandbox; a slot that cannot be emptied is given up.
func (p *pilot) returnSlot(s *slot) {
	if err := s.empty(); err != nil {
		p.log.Warn("sandbox given up", "folder", s.folder, "error", err)
		s.close()
		return
	}
	p.mu.Lock()
	p.slots = append(p.slots, s)
	p.mu.Unlock()
}

func (s *slot) close() {
	s.out.close()
	s.err.close()
	if s.dir != nil {
		_ = s.dir.Close()
	}
	_ = removeAll(s.folder)
}

// empty removes what the attempt has left. A folder that the command removed
// or changed is made anew.
func (s *slot) empty() error {
	info, err := s.dir.Stat()
	if err == nil && info.Mode().Perm() == 0o755 && sameFolder(info, s.folder) && s.removeEntries() == nil {
		return nil
	}
	_ = s.dir.Close()
	if err := removeAll(s.folder); err != nil {
		return err
	}
	return s.makeFolder()
}

func (s *slot) removeEntries() error {
	if _, err := s.dir.Seek(0, io.SeekStart); err != nil {
		return err
	}
	names, err := s.dir.Readdirnames(-1)
	for _, name := range names {
		err = errors.Join(err, removeAll(filepath.Join(s.folder, name)))
	}
	return err
}

func sameFolder(info fs.FileInfo, path string) bool {
	there, err := os.Lstat(path)
	return err == nil && os.SameFile(info, there)
}

// removeAll also removes folders that a command has made unreadable.
func removeAll(folder string) error {
	if os.RemoveAll(folder) == nil {
		return nil
	}
	_ = filepath.WalkDir(folder, func(path string, e fs.DirEntry, _ error) error {
		if e != nil && e.IsDir() {
			_ = os.Chmod(path, 0o700)
		}
		return nil
	})
	return os.RemoveAll(folder)
}

// pathOf returns where in the sandbox a job sees a file, relative to it.
func (a *attempt) pathOf(lfn string) (string, error) {
	path := strings.TrimLeft(lfn, "/")
	for _, n := range a.GetPayload().GetNames() {
		if n.GetLfn() == lfn {
			path = n.GetPath()
		}
	}
	if !filepath.IsLocal(path) || path == "." || path == infoFolder || strings.HasPrefix(path, infoFolder+"/") {
		return "", fmt.Errorf("%q is not usable as a name in the sandbox", path)
	}
	return filepath.Clean(path), nil
}
