package stage

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"sync"
	"syscall"
	"time"

	"fairway/internal/disk"
	"fairway/internal/pilot/report"
	"fairway/internal/wire"
)

// What a job reads of another job's outputs is what was stored, or the attempt does not
// begin: its size and checksum are those that were recorded. A file is read for that
// once by each pilot, and again when its size or time of modification has changed.

// proven knows files of which this pilot has found the checksum right, or has stored
// them itself.
type proven struct {
	mu    sync.Mutex // guards files
	files map[inode]provenState
}

type inode struct{ device, number uint64 }

type provenState struct {
	size     int64
	modified time.Time
	sum      uint32
}

// maxProven bounds the files that a pilot knows; beyond it all are read once more.
const maxProven = 1 << 16

func inodeIn(info fs.FileInfo) (inode, bool) {
	st, ok := info.Sys().(*syscall.Stat_t)
	if !ok {
		return inode{}, false
	}
	return inode{uint64(st.Dev), st.Ino}, true
}

func (p *proven) add(info fs.FileInfo, sum uint32) {
	at, ok := inodeIn(info)
	if !ok {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.files == nil || len(p.files) == maxProven {
		p.files = map[inode]provenState{}
	}
	p.files[at] = provenState{info.Size(), info.ModTime(), sum}
}

// holds trusts no file that may be written to: what is stored is read-only, so
// somebody has changed that, and may have written and put the time back.
func (p *proven) holds(info fs.FileInfo, sum uint32) bool {
	at, ok := inodeIn(info)
	if !ok || info.Mode()&0o222 != 0 {
		return false
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.files[at] == provenState{info.Size(), info.ModTime(), sum}
}

// damagedError says that a file is not what was stored.
type damagedError struct{ why string }

func (e *damagedError) Error() string { return e.why }

// lostError says that the stored file of an input is lost.
type lostError struct{ file *wire.LostFile }

func (e *lostError) Error() string { return e.file.GetWhy() }

// lost names the stored file of an input, and says what is the matter with it.
func (ar *Area) lost(i *input, why string) *wire.LostFile {
	name := "it"
	if i.pfn != "" {
		name = ar.Places.Shown(i.pfn)
	}
	return &wire.LostFile{File: RefToWire(i.Ref), Pfn: i.pfn, Why: report.Clip(name + " " + why)}
}

// madeByJob reports whether the input is an output of a job, whose size and
// checksum are known.
func (i *input) madeByJob() bool { return i.sum != 0 }

func (i *input) wrongSize(size int64) error {
	return &damagedError{fmt.Sprintf("has %d bytes and should have %d", size, i.Size)}
}

// verify makes sure that what stands at a path, of which before tells, is what was
// stored.
func (in *Inputs) verify(i *input, path string) error {
	switch {
	case !i.madeByJob() || in.ar.proven.holds(i.before, i.sum) && i.before.Size() == i.Size:
		return nil
	case i.before.Size() != i.Size:
		return i.wrongSize(i.before.Size())
	}
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	defer f.Close()
	sum, _, err := checksum(in.attempt.Ctx, f)
	if err != nil {
		return err
	}
	if sum != i.sum {
		return &damagedError{fmt.Sprintf("holds other bytes than were stored (checksum %08x instead of %08x)", sum, i.sum)}
	}
	in.ar.proven.add(i.before, sum)
	return nil
}

// ownMode is what a command may do with a copy at least.
func (i *input) ownMode() fs.FileMode {
	if i.access == wire.Access_ACCESS_COPY {
		return 0o600
	}
	return 0o400
}

// owned reports whether the command gets a copy of the input for itself.
func (in *Inputs) owned(i *input) bool {
	return in.attempt.GetPrivate() || i.access == wire.Access_ACCESS_COPY
}

// own puts a copy of its own in the place of an input that is shared.
func (in *Inputs) own(i *input, target string) error {
	from, err := os.Open(target)
	if err != nil {
		return err
	}
	defer from.Close()
	copied := filepath.Join(in.attempt.Slot.Folder, copyName+"input")
	err = disk.CopyTo(in.attempt.Ctx, from, copied, i.before.Mode().Perm()|i.ownMode())
	if err == nil {
		err = os.Rename(copied, target)
	}
	if err != nil {
		_ = os.Remove(copied)
		return err
	}
	i.before, err = os.Stat(target)
	return err
}
