package checkpoint

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
)

// Vault is where task 0 keeps the checkpoints of all: in its folder, which is the one that the pilot
// carries on.
type Vault struct {
	folder string
	tasks  int

	mu    sync.Mutex
	whole Manifest
	open  map[int]map[int]Sum // parts of checkpoints that are not whole, by iteration and task
}

// OpenVault opens or makes that of so many tasks, and removes what is not whole. It returns the part of
// task 0 in the last whole checkpoint; nil where there is none.
func OpenVault(folder string, tasks int) (*Vault, *Whole, error) {
	v := &Vault{folder: folder, tasks: tasks, open: make(map[int]map[int]Sum)}
	err := os.MkdirAll(v.folder, 0o777)
	if err != nil {
		return nil, nil, err
	}
	if v.whole, err = ReadManifest(v.folder, v.tasks); err != nil {
		return nil, nil, fmt.Errorf("%s: %w", v.folder, err)
	}
	if err := v.tidy(v.whole.Iteration); err != nil || v.whole.Iteration == 0 {
		return v, nil, err
	}
	return v, &Whole{Iteration: v.whole.Iteration, Sum: v.whole.Parts[0], Open: v.opener(0)}, nil
}

// StoreOwn stores the part of task 0.
func (v *Vault) StoreOwn(iteration int, write func(io.Writer) (Sum, error)) error {
	f, err := createPart(v.folder, iteration, 0)
	if err != nil {
		return err
	}
	sum, err := write(f)
	if err := closePart(f, err); err != nil {
		return err
	}
	return v.Arrived(iteration, 0, sum)
}

// tidy removes what is left of other checkpoints, and of tasks that were killed.
func (v *Vault) tidy(keep int) error {
	entries, err := os.ReadDir(v.folder)
	if err != nil {
		return err
	}
	for _, e := range entries {
		name := e.Name()
		n, err := strconv.Atoi(name)
		if err == nil && e.IsDir() && n != keep || strings.HasPrefix(name, ManifestName+temporary) {
			if err := os.RemoveAll(filepath.Join(v.folder, name)); err != nil {
				return err
			}
		}
	}
	return nil
}

// opener opens a part of the last whole checkpoint.
func (v *Vault) opener(task int) func() (io.ReadCloser, error) {
	return func() (io.ReadCloser, error) {
		f, err := os.Open(PartPath(v.folder, v.whole.Iteration, task))
		if errors.Is(err, os.ErrNotExist) {
			err = fmt.Errorf("%w: %w", ErrDamaged, err)
		}
		return f, err
	}
}

// Arrived notes that a part is durable. With the last one of a checkpoint that counts, and those
// before are removed.
func (v *Vault) Arrived(iteration, task int, sum Sum) error {
	v.mu.Lock()
	defer v.mu.Unlock()
	if iteration <= v.whole.Iteration {
		return fmt.Errorf("iteration %d is before that of the last whole checkpoint, %d", iteration, v.whole.Iteration)
	}
	if v.open[iteration] == nil {
		v.open[iteration] = make(map[int]Sum)
	}
	parts := v.open[iteration]
	parts[task] = sum
	if len(parts) < v.tasks {
		return nil
	}
	w := Manifest{Tasks: v.tasks, Iteration: iteration}
	for k := range v.tasks {
		w.Parts = append(w.Parts, parts[k])
		w.Files = append(w.Files, fmt.Sprintf("%d/%d", iteration, k))
	}
	if err := v.declare(w); err != nil {
		return err
	}
	v.whole = w
	return v.forget(iteration)
}

// declare makes a checkpoint the one that counts.
func (v *Vault) declare(w Manifest) error {
	text, err := json.Marshal(w)
	if err != nil {
		return err
	}
	if err := syncFolder(v.folder); err != nil {
		return err
	}
	return WriteDurably(filepath.Join(v.folder, ManifestName), func(f io.Writer) error {
		_, err := f.Write(append(text, '\n'))
		return err
	})
}

// forget removes the checkpoints before one that is whole. Who is still writing to one of them is
// behind, and writes in vain.
func (v *Vault) forget(whole int) error {
	entries, err := os.ReadDir(v.folder)
	if err != nil {
		return err
	}
	var errs []error
	for _, e := range entries {
		if n, err := strconv.Atoi(e.Name()); err == nil && n < whole && e.IsDir() {
			errs = append(errs, os.RemoveAll(PartFolder(v.folder, n)))
			delete(v.open, n)
		}
	}
	return errors.Join(errs...)
}

// Incoming is the part that a task is sending.
type Incoming struct {
	file      *os.File
	iteration int
	sum       Sum
}

// Drop forgets what has come.
func (i *Incoming) Drop() {
	if i.file != nil {
		_ = i.file.Close()
	}
	*i = Incoming{}
}

// Answer answers a question of a task, of which part has come.
func (v *Vault) Answer(task int, part *Incoming, q Message) (a Message, err error) {
	switch q.Kind {
	case AskState:
		v.mu.Lock()
		defer v.mu.Unlock()
		a.Iteration = uint64(v.whole.Iteration)
		if v.whole.Iteration > 0 {
			a.SetPart(v.whole.Parts[task])
		}
		return a, nil
	case AskPiece:
		return v.piece(task, q.Offset)
	case GivePiece:
		return a, v.take(task, part, q)
	case GavePart:
		return a, v.complete(task, part, q)
	}
	return a, fmt.Errorf("there is no question %d", q.Kind)
}

// piece reads from the part of a task in the checkpoint from which the gang goes on.
func (v *Vault) piece(task int, offset uint64) (a Message, err error) {
	f, err := v.opener(task)()
	if err != nil {
		return a, err
	}
	defer f.Close()
	a.Data = make([]byte, PieceSize)
	n, err := f.(*os.File).ReadAt(a.Data, int64(min(offset, 1<<62)))
	a.Data = a.Data[:n]
	if errors.Is(err, io.EOF) {
		err = nil
	}
	return a, err
}

// take writes a piece of a part behind those before.
func (v *Vault) take(task int, part *Incoming, q Message) error {
	if q.Offset == 0 {
		part.Drop()
		iteration, err := v.checkIteration(q)
		if err != nil {
			return err
		}
		f, err := createPart(v.folder, iteration, task)
		if err != nil {
			return err
		}
		*part = Incoming{file: f, iteration: iteration}
	}
	if part.file == nil || uint64(part.iteration) != q.Iteration || uint64(part.sum.Size) != q.Offset {
		return fmt.Errorf("a piece at %d of iteration %d comes where none was expected", q.Offset, q.Iteration)
	}
	if _, err := part.file.Write(q.Data); err != nil {
		part.Drop()
		return err
	}
	part.sum.Add(q.Data)
	return nil
}

// complete ends a part that was sent.
func (v *Vault) complete(task int, part *Incoming, q Message) error {
	iteration, err := v.checkIteration(q)
	if err != nil {
		return err
	}
	if part.file == nil || part.iteration != iteration {
		return fmt.Errorf("nothing was sent of iteration %d", iteration)
	}
	sum := part.sum
	err = closePart(part.file, nil)
	*part = Incoming{}
	if err == nil && sum != q.Part() {
		err = ErrDamaged
	}
	if err != nil {
		return err
	}
	return v.Arrived(iteration, task, sum)
}

// checkIteration refuses parts of checkpoints that are over, or were never planned: iterations are
// numbers that fit a name.
func (v *Vault) checkIteration(q Message) (int, error) {
	v.mu.Lock()
	defer v.mu.Unlock()
	if q.Iteration > 1<<62 || int(q.Iteration) <= v.whole.Iteration {
		return 0, fmt.Errorf("a part of iteration %d, where that of the last whole checkpoint is %d", q.Iteration,
			v.whole.Iteration)
	}
	return int(q.Iteration), nil
}
