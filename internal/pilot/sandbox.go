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
	info     info
	staged   []*input          // inputs of the last attempt
	kept     map[string]*input // those of them that stay for the next one, by path
}

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
	s := &slot{folder: folder, out: logFile{folder: p.cfg.LogDir}, err: logFile{folder: p.cfg.LogDir}, info: info{folder: folder + ".info"}}
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

// pass readies a slot for the next attempt, or gives it back if there is none.
// A slot that cannot be emptied is given up, and nil is returned.
func (p *pilot) pass(s *slot, next *attempt) *slot {
	if s == nil {
		return nil
	}
	if err := s.empty(next); err != nil {
		p.log.Warn("sandbox given up", "folder", s.folder, "error", err)
		s.close()
		return nil
	}
	if next != nil {
		return s
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.slots = append(p.slots, s)
	return nil
}

// isEmpty says that there is nothing in the sandbox.
func (s *slot) isEmpty() bool {
	if _, err := s.dir.Seek(0, io.SeekStart); err != nil {
		return false
	}
	_, err := s.dir.Readdirnames(1)
	return err == io.EOF
}

func (s *slot) close() {
	s.out.close()
	s.err.close()
	s.info.close()
	if s.dir != nil {
		_ = s.dir.Close()
	}
	_ = removeAll(s.folder)
}

// empty removes what the attempt has left, but for inputs that the next one
// reads too. A folder that the command removed or changed is made anew.
func (s *slot) empty(next *attempt) error {
	s.kept = s.shared(next)
	s.staged = nil
	var folders map[string][]string
	if next != nil {
		folders = foldersFor(next)
	}
	info, err := s.dir.Stat()
	if err == nil && info.Mode().Perm() == 0o755 && sameFolder(info, s.folder) && s.removeEntries(folders) == nil {
		return nil
	}
	s.kept = nil
	_ = s.dir.Close()
	if err := removeAll(s.folder); err != nil {
		return err
	}
	return s.makeFolder()
}

// shared finds the inputs, not in a folder of their own, that are in the
// sandbox and that the next attempt is to find there.
func (s *slot) shared(next *attempt) map[string]*input {
	if next == nil {
		return nil
	}
	kept := map[string]*input{}
	for _, f := range next.GetInputs() {
		wanted := newInput(f)
		path, err := next.pathOf(wanted.LFN)
		if err != nil || strings.Contains(path, "/") {
			continue
		}
		for _, i := range s.staged {
			if i.Ref == wanted.Ref && i.pfn == wanted.pfn && i.path == path && s.untouched(i) {
				kept[path] = i
			}
		}
	}
	return kept
}

// untouched says whether an input is still as it was staged in.
func (s *slot) untouched(i *input) bool {
	if i.before == nil {
		return false
	}
	now, err := os.Lstat(filepath.Join(s.folder, i.path))
	return err == nil && os.SameFile(now, i.before) && sameState(now, i.before)
}

// sameState says whether a file was not written to between two looks.
func sameState(a, b fs.FileInfo) bool { return a.Size() == b.Size() && a.ModTime().Equal(b.ModTime()) }

func (s *slot) removeEntries(folders map[string][]string) error {
	if _, err := s.dir.Seek(0, io.SeekStart); err != nil {
		return err
	}
	names, err := s.dir.Readdirnames(-1)
	for _, name := range names {
		path := filepath.Join(s.folder, name)
		switch {
		case s.kept[name] != nil:
		case folders[name] != nil && emptyFolder(path, folders[name]):
		default:
			err = errors.Join(err, removeAll(path))
		}
	}
	return err
}

// foldersFor are the folders at the top of the sandbox into which an attempt
// writes, each with the folders that it is to hold.
func foldersFor(next *attempt) map[string][]string {
	folders := map[string][]string{}
	for _, o := range next.GetOutputs() {
		path, err := next.pathOf(o.GetLfn())
		if err != nil {
			continue
		}
		switch parts := strings.Split(literalFolder(path), "/"); len(parts) {
		case 1:
		case 2:
			folders[parts[0]] = append(folders[parts[0]], "")
		default:
			folders[parts[0]] = append(folders[parts[0]], parts[1])
		}
	}
	return folders
}

// emptyFolder removes what is in a folder and reports whether it is as if it
// were new. Empty folders in it become those that are wanted, since making
// one where another was just removed is dear on some file systems.
func emptyFolder(path string, wanted []string) bool {
	if !likeNew(path) {
		return false
	}
	entries, err := os.ReadDir(path)
	for _, e := range entries {
		name := filepath.Join(path, e.Name())
		if len(wanted) > 0 && wanted[0] != "" && likeNew(name) && isEmpty(name) && os.Rename(name, filepath.Join(path, wanted[0])) == nil {
			wanted = wanted[1:]
			continue
		}
		err = errors.Join(err, removeAll(name))
	}
	return err == nil
}

func likeNew(folder string) bool {
	info, err := os.Lstat(folder)
	return err == nil && info.IsDir() && info.Mode().Perm() == 0o755
}

func isEmpty(folder string) bool {
	entries, err := os.ReadDir(folder)
	return err == nil && len(entries) == 0
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
	if !filepath.IsLocal(path) || path == "." {
		return "", fmt.Errorf("%q is not usable as a name in the sandbox", path)
	}
	return filepath.Clean(path), nil
}
