package stage

import (
	"context"
	"fmt"
	"hash"
	"io/fs"
	"os"
	"path/filepath"
	"sync"
	"syscall"
	"time"

	"github.com/zeebo/blake3"

	"fairway/internal/cache"
	"fairway/internal/disk"
	"fairway/internal/pilot/report"
	"fairway/internal/storage"
	"fairway/internal/wire"
	"hash/adler32"
)

// What a job reads of another job's outputs is what was stored, or the attempt does not
// begin: its size and its hash are those that were recorded, or its checksum where no hash
// was. A file is read for that once by each pilot, and again when its size or time of
// modification has changed. Of a large output that stays on the machine where it was made, and
// is only linked there, size and time of modification are recorded and nothing else: nobody may
// write to it, and whoever does changes its time.

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

// holds reports whether a file was found right before and has not changed since. It trusts no
// file that may be written to: what is stored is read-only, so somebody has changed that, and
// may have written and put the time back.
func (p *proven) holds(info fs.FileInfo, sum uint32) bool {
	return info.Mode()&0o222 == 0 && p.unchanged(info, sum)
}

// unchanged is holds for a file that nobody can write to but the jobs that read it, which are found out
// when they end.
func (p *proven) unchanged(info fs.FileInfo, sum uint32) bool {
	at, ok := inodeIn(info)
	if !ok {
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
		name = ar.Roots.Shown(i.pfn)
	}
	return &wire.LostFile{File: RefToWire(i.Ref), Pfn: i.pfn, Why: report.Clip(name + " " + why)}
}

// madeByJob reports whether the input is an output of a job, whose size is known, and its
// checksum or time of modification.
func (i *input) madeByJob() bool { return i.sum != 0 || i.written != 0 }

// unsummed reports whether nothing but size and time of modification proves what an output is.
func (i *input) unsummed() bool { return i.sum == 0 && i.written != 0 && !i.committed }

func (i *input) wrongSize(size int64) error {
	return &damagedError{fmt.Sprintf("has %d bytes and should have %d", size, i.Size)}
}

// verify makes sure that what stands at a path, of which before tells, is what was
// stored.
func (in *Inputs) verify(i *input, path string) error {
	switch {
	case i.known != known{} && !in.ar.identified.unchanged(i.before, i.known.short()):
		return in.ar.compareKnown(in.attempt.Ctx, i, path)
	case !i.madeByJob() || in.ar.proven.holds(i.before, i.sum) && i.before.Size() == i.Size:
		return nil
	case i.before.Size() != i.Size:
		return i.wrongSize(i.before.Size())
	case i.unsummed():
		return in.asStored(i)
	}
	sums := i.newSums(false)
	if err := sums.readFile(in.attempt.Ctx, path); err != nil {
		return err
	}
	if err := sums.check(); err != nil {
		return err
	}
	in.ar.proven.add(i.before, i.sum)
	return nil
}

// asStored makes sure that an output without sums is as it was stored, as far as a pilot can tell
// that sees the file itself.
func (in *Inputs) asStored(i *input) error {
	switch {
	case in.ar.Reach != nil && !in.ar.Reach.exact(i.pfn):
	case storage.Written(i.before.ModTime()) != i.written:
		return &damagedError{"was written to, or replaced, since it was stored"}
	case in.ar.Reach == nil && i.before.Mode()&0o222 != 0:
		return &damagedError{"may have been written to: it is not read-only any more, and has no checksum"}
	}
	return nil
}

// sums are what tells the contents of an input from others, found as these are written
// to it. What is nil is not needed.
type sums struct {
	of      *input
	blake3  *blake3.Hasher
	adler32 hash.Hash32
}

// newSums finds one sum where one is enough: the hash if it stands in the commit, or is to be
// told to others, and the adler32 of an output whose commit has no hash. A hash that another
// pilot has told proves nothing here.
func (i *input) newSums(tell bool) *sums {
	s := &sums{of: i}
	if tell || i.committed {
		s.blake3 = blake3.New()
	}
	if i.sum != 0 && !i.committed {
		s.adler32 = adler32.New()
	}
	return s
}

func (s *sums) Write(p []byte) (int, error) {
	if s.blake3 != nil {
		_, _ = s.blake3.Write(p)
	}
	if s.adler32 != nil {
		_, _ = s.adler32.Write(p)
	}
	return len(p), nil
}

func (s *sums) readFile(ctx context.Context, path string) error {
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	defer f.Close()
	_, err = readInto(ctx, s, f)
	return err
}

// check returns an error if what was written is not what a job has made.
func (s *sums) check() error {
	i := s.of
	switch {
	case !i.madeByJob(), i.unsummed():
	case s.adler32 != nil && s.adler32.Sum32() != i.sum:
		return &damagedError{
			fmt.Sprintf("holds other bytes than were stored (checksum %08x instead of %08x)", s.adler32.Sum32(), i.sum),
		}
	case s.adler32 == nil && cache.HashOf(s.blake3) != i.hash:
		return &damagedError{
			fmt.Sprintf("holds other bytes than were stored (BLAKE3 %x instead of %x)", cache.HashOf(s.blake3), i.hash),
		}
	}
	return nil
}

// prove notes that what stands at a path was found to be the input.
func (ar *Area) prove(i *input, path string) {
	if info, err := os.Stat(path); err == nil && i.madeByJob() {
		ar.proven.add(info, i.sum)
	}
}

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
