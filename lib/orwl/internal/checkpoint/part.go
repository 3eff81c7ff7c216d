package checkpoint

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"os"
	"path/filepath"
	"strconv"
)

// A part of a checkpoint is a line of JSON, which says what locations follow, and then their data.
// Its size and checksum stand elsewhere.

// partHead is the first line of a part.
type partHead struct {
	Locations []partLocation `json:"locations"`
}

type partLocation struct {
	Name string `json:"name"`
	Size int    `json:"size"`
}

// maxPartHead bounds the first line, in bytes.
const maxPartHead = 64 << 20

// Sum tells a part from others.
type Sum struct {
	Size   int64  `json:"size"`
	CRC32C uint32 `json:"crc32c"`
}

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// Add takes further bytes of the part.
func (s *Sum) Add(b []byte) {
	s.Size += int64(len(b))
	s.CRC32C = crc32.Update(s.CRC32C, castagnoli, b)
}

// Whole is the part of a process in the checkpoint from which it goes on.
type Whole struct {
	Iteration int
	Sum       Sum
	Open      func() (io.ReadCloser, error)
}

// Saved is a location whose versions are saved.
type Saved interface {
	LocationName() string
	// Copied is the version that is saved.
	Copied() []byte
	// Restore gives the location so many bytes, which read fills.
	Restore(size int, read func([]byte)) error
}

// WritePart writes what was copied of the locations.
func WritePart[S Saved](ctx context.Context, w io.Writer, all []S) (sum Sum, err error) {
	var head partHead
	for _, v := range all {
		head.Locations = append(head.Locations, partLocation{v.LocationName(), len(v.Copied())})
	}
	line, err := json.Marshal(head)
	if err != nil {
		return sum, err
	}
	pieces := [][]byte{append(line, '\n')}
	for _, v := range all {
		pieces = append(pieces, v.Copied())
	}
	for _, data := range pieces {
		for len(data) > 0 {
			piece := data[:min(len(data), PieceSize)]
			data = data[len(piece):]
			if err := ctx.Err(); err != nil {
				return sum, err
			}
			if _, err := w.Write(piece); err != nil {
				return sum, err
			}
			sum.Add(piece)
		}
	}
	return sum, nil
}

// PieceSize is how much of a part, in bytes, is written or sent at once. Each piece is answered, which takes
// some turns of a processor that other tasks compute on: with 1 MiB a part took twice as long.
const PieceSize = 8 << 20

// ErrDamaged says that a part or the file that names it is not what was written.
var ErrDamaged = errors.New("the checkpoint is damaged: empty the folder of checkpoints to begin anew")

// ReadPart reads a part that has a sum, and must be of these locations.
func ReadPart[S Saved](ctx context.Context, r io.Reader, want Sum, all []S) error {
	var sum Sum
	counted := io.TeeReader(io.LimitReader(r, want.Size), writerFunc(func(b []byte) { sum.Add(b) }))
	in := bufio.NewReaderSize(counted, PieceSize)
	head, err := readPartHead(in)
	if err != nil {
		return err
	}
	if len(head.Locations) != len(all) {
		return fmt.Errorf("it has %d locations, and the program %d", len(head.Locations), len(all))
	}
	total := int64(0)
	for i, l := range head.Locations {
		if name := all[i].LocationName(); l.Name != name {
			return fmt.Errorf("it has a location %q, and the program %q", l.Name, name)
		}
		if l.Size < 0 || int64(l.Size) > want.Size-total {
			return ErrDamaged
		}
		total += int64(l.Size)
	}
	for i, l := range head.Locations {
		if err := ctx.Err(); err != nil {
			return err
		}
		var readErr error
		if err := all[i].Restore(l.Size, func(b []byte) { _, readErr = io.ReadFull(in, b) }); err != nil {
			return err
		}
		if readErr != nil {
			return fmt.Errorf("%w: %w", ErrDamaged, readErr)
		}
	}
	if _, err := in.ReadByte(); err != io.EOF || sum != want {
		return ErrDamaged
	}
	return nil
}

func readPartHead(in *bufio.Reader) (head partHead, err error) {
	var line []byte
	for {
		piece, err := in.ReadSlice('\n')
		line = append(line, piece...)
		if err == nil {
			break
		}
		if !errors.Is(err, bufio.ErrBufferFull) || len(line) > maxPartHead {
			return head, fmt.Errorf("%w: %w", ErrDamaged, err)
		}
	}
	if err := json.Unmarshal(line, &head); err != nil {
		return head, fmt.Errorf("%w: %w", ErrDamaged, err)
	}
	return head, nil
}

type writerFunc func(b []byte)

func (f writerFunc) Write(b []byte) (int, error) {
	f(b)
	return len(b), nil
}

// In the folder of checkpoints there is one folder for each, named by its iteration, with a file for
// each task, and the file that names the last whole one.

// ManifestName is the file that says which checkpoint is whole. It is written last.
const ManifestName = "whole.json"

// Manifest is what it says. A pilot stores the files that it names as soon as it is there.
type Manifest struct {
	Tasks     int      `json:"tasks"`
	Iteration int      `json:"iteration"`
	Parts     []Sum    `json:"parts"`
	Files     []string `json:"files"`
}

// PartFolder is the folder of a checkpoint in that of all.
func PartFolder(folder string, iteration int) string {
	return filepath.Join(folder, strconv.Itoa(iteration))
}

// PartPath is the file of a task in it.
func PartPath(folder string, iteration, task int) string {
	return filepath.Join(PartFolder(folder, iteration), strconv.Itoa(task))
}

// ReadManifest returns the last whole checkpoint, which may be none.
func ReadManifest(folder string, tasks int) (w Manifest, err error) {
	text, err := os.ReadFile(filepath.Join(folder, ManifestName))
	if errors.Is(err, os.ErrNotExist) {
		return Manifest{Tasks: tasks}, nil
	}
	if err != nil {
		return w, err
	}
	err = parseManifest(text, tasks, &w)
	return w, err
}

func parseManifest(text []byte, tasks int, w *Manifest) error {
	if err := json.Unmarshal(text, w); err != nil {
		return fmt.Errorf("%w: %s: %w", ErrDamaged, ManifestName, err)
	}
	if w.Tasks != tasks {
		return fmt.Errorf("the last checkpoint is of %d tasks, and these are %d: empty the folder of checkpoints to begin "+
			"anew", w.Tasks, tasks)
	}
	if w.Iteration <= 0 || len(w.Parts) != tasks {
		return fmt.Errorf("%w: %s: iteration %d with %d parts of %d", ErrDamaged, ManifestName, w.Iteration,
			len(w.Parts), tasks)
	}
	for _, p := range w.Parts {
		if p.Size <= 0 {
			return fmt.Errorf("%w: %s: a part has %d bytes", ErrDamaged, ManifestName, p.Size)
		}
	}
	return nil
}

func createPart(folder string, iteration, task int) (*os.File, error) {
	if err := os.MkdirAll(PartFolder(folder, iteration), 0o777); err != nil {
		return nil, err
	}
	return os.Create(PartPath(folder, iteration, task))
}

// closePart makes a part durable that was written without an error.
func closePart(f *os.File, err error) error {
	if err == nil {
		err = f.Sync()
	}
	if err = errors.Join(err, f.Close()); err != nil {
		return err
	}
	return syncFolder(filepath.Dir(f.Name()))
}
