package orwl

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
)

// vault is where task 0 keeps the checkpoints of all: in its folder, which is the one that the pilot
// carries on. The other tasks send their parts, by a location for each in which questions and answers
// take turns.
type vault struct {
	folder string
	tasks  int
	server Server
	served chan struct{} // closed when nothing is served any more

	mu    sync.Mutex
	whole manifest
	open  map[int]map[int]partSum // parts of checkpoints that are not whole, by iteration and task
}

// openVault makes the vault of task 0, and serves it to the others.
func (c *Checkpoints) openVault() (*wholePart, Resource, error) {
	g := c.member.gang
	v := &vault{
		folder: g.Folder, tasks: g.Tasks, served: make(chan struct{}), open: make(map[int]map[int]partSum),
	}
	err := os.MkdirAll(v.folder, 0o777)
	if err != nil {
		return nil, nil, err
	}
	if v.whole, err = readManifest(v.folder, v.tasks); err != nil {
		return nil, nil, fmt.Errorf("%s: %w", v.folder, err)
	}
	if err := v.tidy(v.whole.Iteration); err != nil {
		return nil, nil, err
	}
	plan, err := New("plan of checkpoints", pointSize, StartWith(g.Tasks))
	if err != nil {
		return nil, nil, err
	}
	v.server.Add(plan)
	if err := c.serveVault(v); err != nil {
		return nil, nil, err
	}
	if v.whole.Iteration == 0 {
		return nil, plan, nil
	}
	return &wholePart{iteration: v.whole.Iteration, sum: v.whole.Parts[0], open: v.opener(0)}, plan, nil
}

// serveVault has the others reach the vault.
func (c *Checkpoints) serveVault(v *vault) error {
	g := c.member.gang
	if _, err := g.addFence(&v.server, 1); err != nil {
		return err
	}
	for k := 1; k < g.Tasks; k++ {
		l, err := New(talkName(k), 0, StartWith(2))
		if err != nil {
			return err
		}
		v.server.Add(l)
		p := new(Pair)
		if err := Insert(c.ctx, p.Writing(l).At(1)); err != nil {
			return err
		}
		c.tasks.Go(func() { v.attend(c.ctx, k, p) })
	}
	addresses := g.addresses(1)
	if addresses == nil && g.Tasks > 1 {
		return errors.New("the tasks have one port each, and checkpoints need a second one")
	}
	c.vault = v
	if g.Tasks == 1 {
		close(v.served)
		return nil
	}
	listener, err := net.Listen("tcp", addresses[0])
	if err != nil {
		close(v.served)
		return err
	}
	go func() {
		defer close(v.served)
		_ = c.member.group.serve(&v.server, listener)
	}()
	return nil
}

// tidy removes what is left of other checkpoints, and of tasks that were killed.
func (v *vault) tidy(keep int) error {
	entries, err := os.ReadDir(v.folder)
	if err != nil {
		return err
	}
	for _, e := range entries {
		name := e.Name()
		n, err := strconv.Atoi(name)
		if err == nil && e.IsDir() && n != keep || strings.HasPrefix(name, manifestName+temporary) {
			if err := os.RemoveAll(filepath.Join(v.folder, name)); err != nil {
				return err
			}
		}
	}
	return nil
}

// opener opens a part of the last whole checkpoint.
func (v *vault) opener(task int) func() (io.ReadCloser, error) {
	return func() (io.ReadCloser, error) {
		f, err := os.Open(partPath(v.folder, v.whole.Iteration, task))
		if errors.Is(err, os.ErrNotExist) {
			err = fmt.Errorf("%w: %w", errDamaged, err)
		}
		return f, err
	}
}

// storeOwn stores the part of task 0.
func (v *vault) storeOwn(c *Checkpoints, iteration int) error {
	sum, err := writePartFile(c.ctx, v.folder, iteration, 0, c.covered)
	if err != nil {
		return err
	}
	return v.arrived(iteration, 0, sum)
}

// arrived notes that a part is durable. With the last one of a checkpoint that counts, and those
// before are removed.
func (v *vault) arrived(iteration, task int, sum partSum) error {
	v.mu.Lock()
	defer v.mu.Unlock()
	if iteration <= v.whole.Iteration {
		return fmt.Errorf("iteration %d is before that of the last whole checkpoint, %d", iteration, v.whole.Iteration)
	}
	if v.open[iteration] == nil {
		v.open[iteration] = make(map[int]partSum)
	}
	parts := v.open[iteration]
	parts[task] = sum
	if len(parts) < v.tasks {
		return nil
	}
	w := manifest{Tasks: v.tasks, Iteration: iteration}
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
func (v *vault) declare(w manifest) error {
	text, err := json.Marshal(w)
	if err != nil {
		return err
	}
	if err := syncFolder(v.folder); err != nil {
		return err
	}
	return writeDurably(filepath.Join(v.folder, manifestName), func(f io.Writer) error {
		_, err := f.Write(append(text, '\n'))
		return err
	})
}

// forget removes the checkpoints before one that is whole. Who is still writing to one of them is
// behind, and writes in vain.
func (v *vault) forget(whole int) error {
	entries, err := os.ReadDir(v.folder)
	if err != nil {
		return err
	}
	var errs []error
	for _, e := range entries {
		if n, err := strconv.Atoi(e.Name()); err == nil && n < whole && e.IsDir() {
			errs = append(errs, os.RemoveAll(partFolder(v.folder, n)))
			delete(v.open, n)
		}
	}
	return errors.Join(errs...)
}

// incoming is the part that a task is sending.
type incoming struct {
	file      *os.File
	iteration int
	sum       partSum
}

func (i *incoming) drop() {
	if i.file != nil {
		_ = i.file.Close()
	}
	*i = incoming{}
}

// attend answers the questions of a task, until it is gone or ctx ends.
func (v *vault) attend(ctx context.Context, task int, p *Pair) {
	defer p.Cancel()
	var part incoming
	defer part.drop()
	for last := uint64(0); p.Acquire(ctx) == nil; last++ {
		q, err := readMessage(p)
		if err != nil || q.number != last+1 {
			return // the task was lost, so this is what it asked before, or nothing
		}
		a, err := v.answer(task, &part, q)
		if err != nil {
			a = message{kind: refused, data: []byte(err.Error())}
		}
		a.number = q.number
		if writeMessage(p, a) != nil || p.Release() != nil {
			return
		}
	}
}

func (v *vault) answer(task int, part *incoming, q message) (a message, err error) {
	switch q.kind {
	case askState:
		v.mu.Lock()
		defer v.mu.Unlock()
		a.iteration = uint64(v.whole.Iteration)
		if v.whole.Iteration > 0 {
			a.setPart(v.whole.Parts[task])
		}
		return a, nil
	case askPiece:
		return v.piece(task, q.offset)
	case givePiece:
		return a, v.take(task, part, q)
	case gavePart:
		return a, v.complete(task, part, q)
	}
	return a, fmt.Errorf("there is no question %d", q.kind)
}

// piece reads from the part of a task in the checkpoint from which the gang goes on.
func (v *vault) piece(task int, offset uint64) (a message, err error) {
	f, err := v.opener(task)()
	if err != nil {
		return a, err
	}
	defer f.Close()
	a.data = make([]byte, pieceSize)
	n, err := f.(*os.File).ReadAt(a.data, int64(min(offset, 1<<62)))
	a.data = a.data[:n]
	if errors.Is(err, io.EOF) {
		err = nil
	}
	return a, err
}

// take writes a piece of a part behind those before.
func (v *vault) take(task int, part *incoming, q message) error {
	if q.offset == 0 {
		part.drop()
		iteration, err := v.checkIteration(q)
		if err != nil {
			return err
		}
		f, err := createPart(v.folder, iteration, task)
		if err != nil {
			return err
		}
		*part = incoming{file: f, iteration: iteration}
	}
	if part.file == nil || uint64(part.iteration) != q.iteration || uint64(part.sum.Size) != q.offset {
		return fmt.Errorf("a piece at %d of iteration %d comes where none was expected", q.offset, q.iteration)
	}
	if _, err := part.file.Write(q.data); err != nil {
		part.drop()
		return err
	}
	part.sum.add(q.data)
	return nil
}

// complete ends a part that was sent.
func (v *vault) complete(task int, part *incoming, q message) error {
	iteration, err := v.checkIteration(q)
	if err != nil {
		return err
	}
	if part.file == nil || part.iteration != iteration {
		return fmt.Errorf("nothing was sent of iteration %d", iteration)
	}
	sum := part.sum
	err = closePart(part.file, nil)
	*part = incoming{}
	if err == nil && sum != q.part() {
		err = errDamaged
	}
	if err != nil {
		return err
	}
	return v.arrived(iteration, task, sum)
}

// checkIteration refuses parts of checkpoints that are over, or were never planned: iterations are
// numbers that fit a name.
func (v *vault) checkIteration(q message) (int, error) {
	v.mu.Lock()
	defer v.mu.Unlock()
	if q.iteration > 1<<62 || int(q.iteration) <= v.whole.Iteration {
		return 0, fmt.Errorf("a part of iteration %d, where that of the last whole checkpoint is %d", q.iteration,
			v.whole.Iteration)
	}
	return int(q.iteration), nil
}
