package stage

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"

	"fairway/internal/archive"
	"fairway/internal/beneath"
	"fairway/internal/disk"
	"fairway/internal/wire"
)

// makeCheckpointFolder makes the folder in which the command saves its state, where the attempt
// does not begin with that of the one before.
func (in *Inputs) makeCheckpointFolder(c *wire.OutputFile) error {
	path, err := in.attempt.PathOf(c.GetLfn())
	if err != nil {
		return err
	}
	return os.MkdirAll(filepath.Join(in.attempt.Slot.Folder, path), 0o755)
}

// StoreCheckpoint stores the folder in which an attempt has saved its state, and adds it to the
// result. A folder that is gone or empty is nothing to go on from, and no error. The number is above
// those of the states that were stored while the command ran.
func (ar *Area) StoreCheckpoint(a *Execution, number uint32) error {
	c := &wire.OutputFile{Lfn: a.GetCheckpoint().GetLfn(), Version: number, Ticket: a.GetCheckpoint().GetTicket()}
	path, err := a.PathOf(c.GetLfn())
	if err != nil {
		return err
	}
	switch empty, err := a.emptyFolder(path); {
	case err != nil:
		return fmt.Errorf("%s: %w", c.GetLfn(), err)
	case empty:
		return nil
	}
	out, err := ar.store(a, written{c, c.GetLfn(), path})
	if err != nil {
		return err
	}
	a.Result.Outputs = []*wire.WrittenFile{out}
	a.Result.Usage.BytesWritten += out.GetSize()
	return nil
}

// MarkName is the file in a folder of a checkpoint by which a command says, while it runs, that the
// files which it names are a whole state: {"files": ["a", "b/c"]}. It comes by a rename, and the files
// do not change any more; they go when another state is whole, at the earliest.
const MarkName = "whole.json"

// maxMark bounds that file, in bytes.
const maxMark = 16 << 20

// Mark tells the state which the mark of a checkpoint names now from others; zero: there is none.
func (a *Execution) Mark() (m MarkID) {
	path, err := a.PathOf(a.GetCheckpoint().GetLfn())
	if err != nil {
		return m
	}
	st, err := a.Slot.dir.Status(filepath.Join(path, MarkName))
	if err != nil {
		return m
	}
	return MarkID{st.Ino, st.Mtim.Nano()}
}

// MarkID is the identity of a mark.
type MarkID struct {
	inode   uint64
	written int64
}

// StoreMarked stores the state that the mark of a checkpoint names while the command runs. Each has a
// number of its own, from 1.
func (ar *Area) StoreMarked(a *Execution, number uint32) (*wire.WrittenFile, error) {
	c := a.GetCheckpoint()
	path, err := a.PathOf(c.GetLfn())
	if err != nil {
		return nil, err
	}
	var files []archive.OpenFile
	defer func() {
		for _, f := range files {
			_ = f.File.Close()
		}
	}()
	folder, err := a.Slot.dir.Sub(path)
	if err != nil {
		return nil, unusable(c.GetLfn(), err)
	}
	defer folder.Close()
	if err := openMarked(folder, &files); err != nil {
		return nil, unusable(c.GetLfn(), err)
	}
	f, err := a.newCopy(0o444, func(out *os.File) error { return archive.PackOpen(a.Ctx, out, files) })
	if err != nil {
		return nil, unusable(c.GetLfn(), err)
	}
	defer f.Close()
	w := written{c, c.GetLfn(), path}
	out := &wire.WrittenFile{Lfn: c.GetLfn(), Version: number}
	prefix := cmp.Or(a.GetStorage(), ar.Prefix)
	if err := ar.describe(a, w, f.File, prefix, out); err != nil {
		return nil, err
	}
	return out, ar.put(a, w, disk.Descriptor(f.File), prefix, out)
}

// openMarked opens the mark and then the files that it names. Those of a state that is whole no
// longer may be gone meanwhile: then it is not the mark any more, either.
func openMarked(folder *beneath.Folder, files *[]archive.OpenFile) error {
	open := func(name string) (*os.File, error) {
		f, err := folder.Open(name)
		if err == nil {
			*files = append(*files, archive.OpenFile{Name: name, File: f})
		}
		return f, err
	}
	f, err := open(MarkName)
	if err != nil {
		return err
	}
	text, err := io.ReadAll(io.LimitReader(f, maxMark))
	if err != nil {
		return err
	}
	if _, err := f.Seek(0, io.SeekStart); err != nil {
		return err
	}
	names, err := parseMark(text)
	if err != nil {
		return fmt.Errorf("%s: %w", MarkName, err)
	}
	for _, name := range names {
		if _, err := open(name); err != nil {
			return err
		}
	}
	return nil
}

// parseMark returns the files that a mark names, each once.
func parseMark(text []byte) ([]string, error) {
	var mark struct {
		Files []string `json:"files"`
	}
	if err := json.Unmarshal(text, &mark); err != nil {
		return nil, err
	}
	if len(mark.Files) >= archive.MaxEntries {
		return nil, fmt.Errorf("it names %d files, the limit is %d", len(mark.Files), archive.MaxEntries)
	}
	seen := map[string]bool{MarkName: true}
	for _, name := range mark.Files {
		if name == "." || !fs.ValidPath(name) || seen[name] {
			return nil, fmt.Errorf("it names %.100q, which is no file in the folder, or named twice", name)
		}
		seen[name] = true
	}
	return mark.Files, nil
}

// emptyFolder reports whether nothing is in a folder of the sandbox, or there is none.
func (a *Execution) emptyFolder(path string) (bool, error) {
	folder, err := a.Slot.dir.Sub(path)
	if isMissing(err) || errors.Is(err, fs.ErrNotExist) {
		return true, nil
	}
	if err != nil {
		return false, err
	}
	defer folder.Close()
	return folder.IsEmpty(), nil
}
