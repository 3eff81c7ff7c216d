package orwl

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

// partSum tells a part from others.
type partSum struct {
	Size   int64  `json:"size"`
	CRC32C uint32 `json:"crc32c"`
}

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// add takes further bytes of the part.
func (s *partSum) add(b []byte) {
	s.Size += int64(len(b))
	s.CRC32C = crc32.Update(s.CRC32C, castagnoli, b)
}

// wholePart is the part of a process in the checkpoint from which it goes on.
type wholePart struct {
	iteration int
	sum       partSum
	open      func() (io.ReadCloser, error)
}

// writePart writes what was copied of the locations.
func writePart(ctx context.Context, w io.Writer, all []*covered) (sum partSum, err error) {
	var head partHead
	for _, v := range all {
		head.Locations = append(head.Locations, partLocation{v.location.name, len(v.copy)})
	}
	line, err := json.Marshal(head)
	if err != nil {
		return sum, err
	}
	pieces := [][]byte{append(line, '\n')}
	for _, v := range all {
		pieces = append(pieces, v.copy)
	}
	for _, data := range pieces {
		for len(data) > 0 {
			piece := data[:min(len(data), pieceSize)]
			data = data[len(piece):]
			if err := ctx.Err(); err != nil {
				return sum, err
			}
			if _, err := w.Write(piece); err != nil {
				return sum, err
			}
			sum.add(piece)
		}
	}
	return sum, nil
}

// pieceSize is how much of a part, in bytes, is written or sent at once. Each piece is answered, which takes
// some turns of a processor that other tasks compute on: with 1 MiB a part took twice as long.
const pieceSize = 8 << 20

var errDamaged = errors.New("the checkpoint is damaged: empty the folder of checkpoints to begin anew")

// restore gives the locations the versions of a part.
func (c *Checkpoints) restore(ctx context.Context, from *wholePart) error {
	f, err := from.open()
	if err != nil {
		return err
	}
	defer f.Close()
	return readPart(ctx, f, from.sum, c.covered)
}

// readPart reads a part that has a sum, and must be of these locations.
func readPart(ctx context.Context, r io.Reader, want partSum, all []*covered) error {
	var sum partSum
	counted := io.TeeReader(io.LimitReader(r, want.Size), writerFunc(func(b []byte) { sum.add(b) }))
	in := bufio.NewReaderSize(counted, pieceSize)
	head, err := readPartHead(in)
	if err != nil {
		return err
	}
	if len(head.Locations) != len(all) {
		return fmt.Errorf("it has %d locations, and the program %d", len(head.Locations), len(all))
	}
	total := int64(0)
	for i, l := range head.Locations {
		if l.Name != all[i].location.name {
			return fmt.Errorf("it has a location %q, and the program %q", l.Name, all[i].location.name)
		}
		if l.Size < 0 || int64(l.Size) > want.Size-total {
			return errDamaged
		}
		total += int64(l.Size)
	}
	for i, l := range head.Locations {
		if err := ctx.Err(); err != nil {
			return err
		}
		to := all[i].location
		if err := to.memory.Resize(l.Size); err != nil {
			return to.refuse(err)
		}
		var readErr error
		to.Initialize(func(b []byte) { _, readErr = io.ReadFull(in, b) })
		if readErr != nil {
			return fmt.Errorf("%w: %w", errDamaged, readErr)
		}
	}
	if _, err := in.ReadByte(); err != io.EOF || sum != want {
		return errDamaged
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
			return head, fmt.Errorf("%w: %w", errDamaged, err)
		}
	}
	if err := json.Unmarshal(line, &head); err != nil {
		return head, fmt.Errorf("%w: %w", errDamaged, err)
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

// manifestName is the file that says which checkpoint is whole. It is written last.
const manifestName = "whole.json"

// manifest is what it says. A pilot stores the files that it names as soon as it is there.
type manifest struct {
	Tasks     int       `json:"tasks"`
	Iteration int       `json:"iteration"`
	Parts     []partSum `json:"parts"`
	Files     []string  `json:"files"`
}

func partFolder(folder string, iteration int) string {
	return filepath.Join(folder, strconv.Itoa(iteration))
}

func partPath(folder string, iteration, task int) string {
	return filepath.Join(partFolder(folder, iteration), strconv.Itoa(task))
}

// readManifest returns the last whole checkpoint, which may be none.
func readManifest(folder string, tasks int) (w manifest, err error) {
	text, err := os.ReadFile(filepath.Join(folder, manifestName))
	if errors.Is(err, os.ErrNotExist) {
		return manifest{Tasks: tasks}, nil
	}
	if err != nil {
		return w, err
	}
	err = parseManifest(text, tasks, &w)
	return w, err
}

func parseManifest(text []byte, tasks int, w *manifest) error {
	if err := json.Unmarshal(text, w); err != nil {
		return fmt.Errorf("%w: %s: %w", errDamaged, manifestName, err)
	}
	if w.Tasks != tasks {
		return fmt.Errorf("the last checkpoint is of %d tasks, and these are %d: empty the folder of checkpoints to begin "+
			"anew", w.Tasks, tasks)
	}
	if w.Iteration <= 0 || len(w.Parts) != tasks {
		return fmt.Errorf("%w: %s: iteration %d with %d parts of %d", errDamaged, manifestName, w.Iteration,
			len(w.Parts), tasks)
	}
	for _, p := range w.Parts {
		if p.Size <= 0 {
			return fmt.Errorf("%w: %s: a part has %d bytes", errDamaged, manifestName, p.Size)
		}
	}
	return nil
}

// writePartFile writes a part to its file, and makes it durable.
func writePartFile(ctx context.Context, folder string, iteration, task int, all []*covered) (partSum, error) {
	f, err := createPart(folder, iteration, task)
	if err != nil {
		return partSum{}, err
	}
	sum, err := writePart(ctx, f, all)
	return sum, closePart(f, err)
}

func createPart(folder string, iteration, task int) (*os.File, error) {
	if err := os.MkdirAll(partFolder(folder, iteration), 0o777); err != nil {
		return nil, err
	}
	return os.Create(partPath(folder, iteration, task))
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
