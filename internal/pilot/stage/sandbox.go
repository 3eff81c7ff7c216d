package stage

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"fairway/internal/beneath"
	"fairway/internal/logical"
	"fairway/internal/pilot/process"
)

// Slot is what one attempt at a time uses: a sandbox, and files for what it
// prints. Slots are used again, since making and removing folders costs more
// than a short job.
//
// An attempt may do with its sandbox what it likes: move it away, put a link in
// its place or in that of a folder in it, mount something there. So all that is
// looked for and removed after an attempt is found beneath dir.
type Slot struct {
	above    *beneath.Folder // the pilot's folder, where the slot's are
	name     string
	Folder   string          // the sandbox
	dir      *beneath.Folder // the same, opened before the attempt began
	Out, Err *process.Stream
	info     info
	gang     *beneath.Folder   // that of what the attempt is told of its gang; nil: it is of none
	staged   []*input          // inputs of the last attempt
	retained map[string]*input // those of them that stay for the next one, by path
	last     *Execution        // the last attempt
	kept     []string          // empty folders at the top that stay for whoever is next
	bare     bool              // the sandbox was seen empty when no process of its attempt was left, and nothing came in since
}

// TakeSlot returns a slot that no attempt uses, for one that is to.
func (ar *Area) TakeSlot(next *Execution) (*Slot, error) {
	for s := ar.freeSlot(); s != nil; s = ar.freeSlot() {
		if s.suits(next) || ar.emptied(s, next) {
			s.last = next
			return s, nil
		}
	}
	ar.mu.Lock()
	ar.made++
	name := strconv.Itoa(ar.made)
	ar.mu.Unlock()
	folder := filepath.Join(ar.Folder, name)
	s := &Slot{above: ar.Dir, name: name, Folder: folder, last: next}
	s.Out, s.Err = process.NewStream(ar.Sched, ar.LogDir, ar.LogBytes), process.NewStream(ar.Sched, ar.LogDir, ar.LogBytes)
	s.info = info{above: ar.Dir, folder: folder + ".info"}
	return s, s.makeFolder()
}

// freeSlot takes a slot that was given back; nil if there is none.
func (ar *Area) freeSlot() (s *Slot) {
	ar.mu.Lock()
	defer ar.mu.Unlock()
	if last := len(ar.slots) - 1; last >= 0 {
		s, ar.slots = ar.slots[last], ar.slots[:last]
	}
	return s
}

// suits reports whether the folders that stand in the sandbox are such as an attempt would make.
func (s *Slot) suits(next *Execution) bool {
	if len(s.kept) == 0 {
		return true
	}
	wanted := foldersFor(next)
	return !slices.ContainsFunc(s.kept, func(name string) bool { return wanted[name] == nil })
}

func (s *Slot) makeFolder() (err error) {
	if err := s.above.Mkdir(s.name, 0o755); err != nil {
		return fmt.Errorf("sandbox: %w", err)
	}
	if s.dir, err = s.above.Sub(s.name); err != nil {
		return fmt.Errorf("sandbox: %w", err)
	}
	return nil
}

// Own are the folders that belong to the attempt: the sandbox, and that of the files beside it.
func (s *Slot) Own() []string { return []string{s.Folder, s.info.folder} }

// Pass readies a slot for the next attempt, or gives it back if there is none.
// A slot that cannot be emptied is given up, and nil is returned.
func (ar *Area) Pass(s *Slot, next *Execution) *Slot {
	if s == nil || !ar.emptied(s, next) {
		return nil
	}
	if next != nil {
		s.last = next
		return s
	}
	ar.mu.Lock()
	defer ar.mu.Unlock()
	ar.slots = append(ar.slots, s)
	return nil
}

func (ar *Area) emptied(s *Slot, next *Execution) bool {
	err := s.empty(next)
	if err != nil {
		ar.Log.Warn("sandbox given up", "folder", s.Folder, "error", err)
		s.Close()
	}
	return err == nil
}

// Close removes the sandbox.
func (s *Slot) Close() {
	s.closeGang()
	s.Out.Close()
	s.Err.Close()
	s.info.close()
	if s.dir != nil {
		_ = s.dir.Close()
	}
	_ = s.above.Clear(s.name)
}

// empty removes what the attempt has left, but for inputs that the next one
// reads too. Folders at the top stay, empty, for the next attempt or, where that is not known,
// for one like the last: to make and remove folders costs more than a short job. A folder that
// the command removed or changed is made anew.
func (s *Slot) empty(next *Execution) error {
	s.closeGang()
	s.retained = s.shared(next)
	s.staged, s.kept = nil, nil
	var folders map[string][]string
	switch {
	case s.bare:
	case next != nil:
		folders = foldersFor(next)
	case s.last != nil:
		folders = foldersFor(s.last)
		for name := range folders {
			folders[name] = []string{} // who comes next may have others below
		}
	}
	if likeNew(s.dir) && s.dir.Is(s.Folder) && s.removeElements(folders) == nil {
		return nil
	}
	return s.renew()
}

// MoveTo moves the sandbox with all that is in it, and makes a new one.
func (s *Slot) MoveTo(folder *beneath.Folder, name string) error {
	if !s.dir.Is(s.Folder) {
		return errors.New("the command has moved it away")
	}
	if err := s.above.Move(s.name, folder, name); err != nil {
		return err
	}
	return s.renew()
}

// SeenEmpty reports whether an attempt that has ended left the sandbox empty. ended
// says that no process of the attempt can write there any more.
func (s *Slot) SeenEmpty(ended bool) bool {
	empty := s.dir.IsEmpty()
	s.bare = empty && ended
	return empty
}

// renew puts a new folder in the place of the sandbox, whatever stands there. One
// that the command has moved away within the pilot's folder goes with that.
func (s *Slot) renew() error {
	s.retained, s.kept = nil, nil
	_ = s.dir.Close()
	s.dir = nil
	if err := s.above.Clear(s.name); err != nil {
		return err
	}
	return s.makeFolder()
}

func (s *Slot) shared(next *Execution) map[string]*input {
	if next == nil {
		return nil
	}
	kept := map[string]*input{}
	for _, f := range next.GetInputs() {
		wanted := newInput(f)
		path, err := next.PathOf(wanted.LFN)
		if err != nil || strings.Contains(path, "/") {
			continue
		}
		for _, i := range s.staged {
			if i.Ref == wanted.Ref && cmp.Or(i.home, i.pfn) == wanted.pfn && i.path == path && s.untouched(i) {
				kept[path] = i
			}
		}
	}
	return kept
}

func (s *Slot) untouched(i *input) bool {
	if i.before == nil {
		return false
	}
	now, err := s.dir.Lstat(i.path)
	return err == nil && os.SameFile(now, i.before) && sameState(now, i.before)
}

func sameState(a, b fs.FileInfo) bool { return a.Size() == b.Size() && a.ModTime().Equal(b.ModTime()) }

func (s *Slot) removeElements(folders map[string][]string) error {
	if s.bare { // for a short job even to look costs something
		return nil
	}
	names, err := s.dir.List(".")
	for _, name := range names {
		switch {
		case s.retained[name] != nil:
		case folders[name] != nil && emptyFolder(s.dir, name, folders[name]):
			s.kept = append(s.kept, name)
		default:
			err = errors.Join(err, s.dir.Clear(name))
		}
	}
	return err
}

// foldersFor are the folders at the top of the sandbox from which an attempt reads or into which
// it writes, each with the folders that it is to hold.
func foldersFor(next *Execution) map[string][]string {
	folders := map[string][]string{}
	add := func(folder string) {
		if folder == "." {
			return
		}
		top, rest, _ := strings.Cut(folder, "/")
		below, _, _ := strings.Cut(rest, "/")
		all := folders[top]
		if all == nil {
			all = []string{}
		}
		if below != "" && (len(all) == 0 || all[len(all)-1] != below) {
			all = append(all, below)
		}
		folders[top] = all
	}
	for _, f := range next.GetInputs() {
		if path, err := next.PathOf(f.GetFile().GetLfn()); err == nil {
			add(filepath.Dir(path))
		}
	}
	for _, o := range next.GetOutputs() {
		if folder, err := next.folderOf(o); err == nil {
			add(folder)
		}
	}
	for _, f := range next.GetInputs() { // one that is a folder itself is made with all that is in it
		if logical.IsFolder(f.GetFile().GetLfn()) {
			delete(folders, strings.Trim(f.GetFile().GetLfn(), "/"))
		}
	}
	return folders
}

// emptyFolder removes what is in a folder and reports whether it is as if it
// were new. Empty folders in it become those that are wanted, since making
// one where another was just removed is dear on some file systems.
func emptyFolder(in *beneath.Folder, name string, wanted []string) bool {
	folder, err := in.Sub(name)
	if err != nil {
		return false
	}
	defer folder.Close()
	if !likeNew(folder) {
		return false
	}
	names, err := folder.List(".")
	for _, name := range names {
		if len(wanted) > 0 && becomes(folder, name, wanted[0]) {
			wanted = wanted[1:]
			continue
		}
		err = errors.Join(err, folder.Clear(name))
	}
	return err == nil
}

// becomes gives an empty folder another name.
func becomes(in *beneath.Folder, name, wanted string) bool {
	folder, err := in.Sub(name)
	if err != nil {
		return false
	}
	defer folder.Close()
	return likeNew(folder) && folder.IsEmpty() && (name == wanted || in.Move(name, in, wanted) == nil)
}

func likeNew(folder *beneath.Folder) bool {
	st, err := folder.Stat()
	return err == nil && st.Mode&0o777 == 0o755
}
