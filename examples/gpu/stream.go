package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"fairway/examples/llk23/sweep"
	"fairway/lib/orwl"
)

// stream sweeps a matrix that is in the memory of the host on a device that holds a few blocks of it.
//
// Each block is a location, and so is each buffer of the device. Three tasks go through all blocks:
// one loads a block into a buffer, one has the kernel compute it, one stores it. Each of them posted
// its requests before the first begins, and posts the next one with each release: while the kernel
// computes in one buffer, the next block is on its way into another, and the last one on its way out.
// That a block is loaded after its northern and western neighbours were stored, and before the others
// are, is the order of the requests, and nothing else.
type stream struct {
	n, rows, columns, iterations int

	device  device
	matrix  []float64            // the constant elements around all blocks
	order   []int                // blocks, by diagonals: neighbours in it seldom wait for each other
	blocks  []*block             // by number
	buffers []*buffer            // of the device
	spent   [roles]time.Duration // that each task was busy
}

// block is a part of the matrix without what is around it.
type block struct {
	top, left, rows, columns int
	elements                 *orwl.Location // in row order
	loads                    orwl.Pairs     // of itself, and of the neighbours that there are
	around                   [4]*orwl.Pair  // those of loads in the north, west, east, south; nil where there is none
	own                      *orwl.Pair     // of loads
	stores                   orwl.Pair
}

// buffer is memory of the device. Its location says which block it holds.
type buffer struct {
	holds *orwl.Location
	uses  [roles]orwl.Pair
}

// What is done with a block, one after the other.
const (
	load = iota
	compute
	store
	roles
)

func newStream(n, rows, columns, iterations, buffers int) (*stream, error) {
	s := &stream{n: n, rows: rows, columns: columns, iterations: iterations, matrix: sweep.Matrix(n).Data}
	if n-2 < rows || n-2 < columns || rows < 1 || columns < 1 || buffers < 1 || iterations < 1 {
		return nil, fmt.Errorf("a matrix of %d rows has no %d x %d blocks for %d buffers in %d iterations",
			n, rows, columns, buffers, iterations)
	}
	for b := range rows * columns {
		row, column := b/columns, b%columns
		top, bottom := 1+(n-2)*row/rows, 1+(n-2)*(row+1)/rows
		left, right := 1+(n-2)*column/columns, 1+(n-2)*(column+1)/columns
		k := &block{top: top, left: left, rows: bottom - top, columns: right - left}
		var err error
		if k.elements, err = orwl.New(fmt.Sprintf("block %d,%d", row, column), 8*k.rows*k.columns); err != nil {
			return nil, err
		}
		k.elements.Initialize(func(bytes []byte) {
			for i, data := 0, orwl.BytesAs[float64](bytes); i < len(data); i++ {
				data[i] = s.matrix[(top+i/k.columns)*n+left+i%k.columns]
			}
		})
		s.blocks = append(s.blocks, k)
	}
	for diagonal := range rows + columns - 1 {
		for row := max(0, diagonal-columns+1); row <= min(diagonal, rows-1); row++ {
			s.order = append(s.order, row*columns+diagonal-row)
		}
	}
	for i := range buffers {
		l, err := orwl.New(fmt.Sprint("buffer ", i), 8)
		if err != nil {
			return nil, err
		}
		s.buffers = append(s.buffers, &buffer{holds: l})
	}
	return s, nil
}

// size is that of the largest block with what is around it, in elements.
func (s *stream) size() (most int) {
	for _, k := range s.blocks {
		most = max(most, (k.rows+2)*(k.columns+2))
	}
	return most
}

// insert posts the first requests, in the order of a program without tasks: it is the only one who
// inserts, so no other order can come of it.
func (s *stream) insert(ctx context.Context) error {
	for i := range s.buffers {
		u := s.buffers[i]
		for _, p := range []orwl.Posting{
			u.uses[load].Writing(u.holds), u.uses[compute].Writing(u.holds), u.uses[store].Reading(u.holds),
		} {
			if err := orwl.Insert(ctx, p); err != nil {
				return err
			}
		}
	}
	for _, b := range s.order {
		k := s.blocks[b]
		k.own = new(orwl.Pair)
		k.loads = orwl.Pairs{k.own}
		postings := []orwl.Posting{k.own.Reading(k.elements)}
		for way, there := range s.neighbours(b) {
			if there >= 0 {
				k.around[way] = new(orwl.Pair)
				postings = append(postings, k.around[way].Reading(s.blocks[there].elements))
				k.loads = append(k.loads, k.around[way])
			}
		}
		if err := errors.Join(orwl.Insert(ctx, postings...), orwl.Insert(ctx, k.stores.Writing(k.elements))); err != nil {
			return err
		}
	}
	return nil
}

// neighbours are the blocks in the north, west, east and south of one, or -1.
func (s *stream) neighbours(b int) [4]int {
	all := [4]int{b - s.columns, b - 1, b + 1, b + s.columns}
	column := b % s.columns
	for way, there := range [4]bool{b >= s.columns, column > 0, column+1 < s.columns, b+s.columns < len(s.blocks)} {
		if !there {
			all[way] = -1
		}
	}
	return all
}

// run runs the three tasks to the end, and returns how long all took.
func (s *stream) run(ctx context.Context) (time.Duration, error) {
	for b := range s.blocks {
		if err := s.device.Keep(b, s.factors(b)); err != nil {
			return 0, err
		}
	}
	if err := s.insert(ctx); err != nil {
		return 0, err
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	var errs [roles]error
	var running sync.WaitGroup
	begun := time.Now()
	for role, step := range []func(context.Context, int, *buffer, int) error{s.load, s.compute, s.store} {
		running.Go(func() {
			if errs[role] = s.all(ctx, step); errs[role] != nil {
				cancel() // the others wait for what this one has not done
			}
		})
	}
	running.Wait()
	return time.Since(begun), errors.Join(errs[:]...)
}

// all does the step of a task for all blocks in all iterations.
func (s *stream) all(ctx context.Context, step func(ctx context.Context, b int, u *buffer, i int) error) error {
	for n := range s.iterations * len(s.order) {
		i := n % len(s.buffers)
		if err := step(ctx, s.order[n%len(s.order)], s.buffers[i], i); err != nil {
			return err
		}
	}
	return nil
}

func (s *stream) load(ctx context.Context, b int, u *buffer, i int) error {
	k := s.blocks[b]
	pairs := append(orwl.Pairs{&u.uses[load]}, k.loads...)
	if err := pairs.Acquire(ctx); err != nil {
		return err
	}
	begun := time.Now()
	field, err := s.gather(b)
	if err == nil {
		err = s.device.Load(i, field)
	}
	if err == nil {
		err = u.mark(b)
	}
	s.spent[load] += time.Since(begun)
	return errors.Join(err, pairs.Release())
}

func (s *stream) compute(ctx context.Context, b int, u *buffer, i int) error {
	k, own := s.blocks[b], &u.uses[compute]
	if err := own.Acquire(ctx); err != nil {
		return err
	}
	begun := time.Now()
	err := u.check(own, b)
	if err == nil {
		err = s.device.Sweep(i, b, k.rows, k.columns)
	}
	s.spent[compute] += time.Since(begun)
	return errors.Join(err, own.Release())
}

func (s *stream) store(ctx context.Context, b int, u *buffer, i int) error {
	k := s.blocks[b]
	pairs := orwl.Pairs{&u.uses[store], &k.stores}
	if err := pairs.Acquire(ctx); err != nil {
		return err
	}
	begun := time.Now()
	field := make([]float64, (k.rows+2)*(k.columns+2))
	elements, err := orwl.WriteAs[float64](&k.stores)
	if err == nil {
		err = u.check(&u.uses[store], b)
	}
	if err == nil {
		err = s.device.Store(i, field)
	}
	if err == nil {
		for row := range k.rows {
			copy(elements[row*k.columns:(row+1)*k.columns], field[(row+1)*(k.columns+2)+1:])
		}
	}
	s.spent[store] += time.Since(begun)
	return errors.Join(err, pairs.Release())
}

// mark notes which block a buffer holds, and check makes sure of it.
func (u *buffer) mark(b int) error {
	data, err := orwl.WriteAs[int64](&u.uses[load])
	if err == nil {
		data[0] = int64(b)
	}
	return err
}

func (u *buffer) check(by *orwl.Pair, b int) error {
	data, err := orwl.ReadAs[int64](by)
	if err == nil && data[0] != int64(b) {
		err = fmt.Errorf("a buffer holds block %d in place of %d", data[0], b)
	}
	return err
}

// gather is a block with what is around it, as its locations have it now.
func (s *stream) gather(b int) ([]float64, error) {
	k := s.blocks[b]
	stride := k.columns + 2
	field := make([]float64, (k.rows+2)*stride)
	for row := range k.rows + 2 { // the constant elements, where there are some
		copy(field[row*stride:(row+1)*stride], s.matrix[(k.top-1+row)*s.n+k.left-1:])
	}
	own, err := orwl.ReadAs[float64](k.own)
	if err != nil {
		return nil, err
	}
	for row := range k.rows {
		copy(field[(row+1)*stride+1:], own[row*k.columns:(row+1)*k.columns])
	}
	for way, there := range s.neighbours(b) {
		if there < 0 {
			continue
		}
		data, err := orwl.ReadAs[float64](k.around[way])
		if err != nil {
			return nil, err
		}
		other := s.blocks[there]
		switch way {
		case 0:
			copy(field[1:1+k.columns], data[(other.rows-1)*other.columns:])
		case 3:
			copy(field[(k.rows+1)*stride+1:(k.rows+1)*stride+1+k.columns], data)
		default:
			to, from := 0, other.columns-1
			if way == 2 {
				to, from = k.columns+1, 0
			}
			for row := range k.rows {
				field[(row+1)*stride+to] = data[row*other.columns+from]
			}
		}
	}
	return field, nil
}

// factors are the coefficients of a block, in row order.
func (s *stream) factors(b int) (all []sweep.Coefficients) {
	k := s.blocks[b]
	whole := sweep.Matrix(s.n).Factors
	for row := range k.rows {
		at := (k.top+row)*s.n + k.left
		all = append(all, whole[at:at+k.columns]...)
	}
	return all
}

// result is the matrix, when all tasks have ended.
func (s *stream) result(ctx context.Context) ([]float64, error) {
	for i := range s.blocks { // what tasks have posted for an iteration that is none stands before all else
		if err := errors.Join(s.blocks[i].loads.Cancel(), s.blocks[i].stores.Cancel()); err != nil {
			return nil, err
		}
	}
	matrix := slices.Clone(s.matrix)
	for i := range s.blocks {
		k := s.blocks[i]
		var h orwl.Handle
		if err := h.ReadRequest(k.elements); err != nil {
			return nil, err
		}
		if err := orwl.DoReading(ctx, &h, func(data []float64) error {
			for row := range k.rows {
				copy(matrix[(k.top+row)*s.n+k.left:], data[row*k.columns:(row+1)*k.columns])
			}
			return nil
		}); err != nil {
			return nil, err
		}
	}
	return matrix, nil
}
