package orwl

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
)

// Pipeline runs stages of which each reads what the one before has written, all at the same time: one
// stage more than there are locations. In each round the first stage writes the first location, the
// next reads that and writes the second, and the last reads the last one. stage gets nil for what its
// stage has not, and is called for each stage and each round from 0, by one goroutine for a stage. The
// result is that of one round after the other.
//
// As in Ring and Stencil, T is a type without pointers, the functions must not keep data, and an error
// ends all tasks before their next rounds; what they had written counts. The locations must have no requests
// yet, and may be mirrors.
func Pipeline[T any, R Resource](
	ctx context.Context, rounds int, locations []R, stage func(stage, round int, in, out []T) error,
) error {
	if len(locations) == 0 {
		return errors.New("a pipeline without locations has no two stages")
	}
	tasks := make([]shaped, len(locations)+1)
	for i := range tasks {
		var in, out Pair
		t := &tasks[i]
		if i > 0 {
			t.add(&in, in.Reading(locations[i-1]).At(i))
		}
		if i < len(locations) {
			t.add(&out, out.Writing(locations[i]).At(i))
		}
		t.round = func(ctx context.Context, n int, last bool) error {
			return t.hold(ctx, t.pairs, last, func() error {
				read, err := maybe(i > 0, &in, ReadAs[T])
				if err != nil {
					return err
				}
				written, err := maybe(i < len(locations), &out, WriteAs[T])
				if err != nil {
					return err
				}
				return stage(i, n, read, written)
			})
		}
	}
	return runShaped(ctx, "stage", rounds, tasks)
}

func maybe[T any](there bool, p *Pair, mapAs func(Mappable) ([]T, error)) ([]T, error) {
	if !there {
		return nil, nil
	}
	return mapAs(p)
}

// Ring runs a task for each location, which updates it from itself and the next one, the last from the
// first. The tasks compute at the same time, and the result is that of one task after the other, round
// after round. See Pipeline for what holds of all shapes.
func Ring[T any, R Resource](
	ctx context.Context, rounds int, locations []R, update func(task int, own, next []T) error,
) error {
	if len(locations) < 2 {
		return fmt.Errorf("a ring of %d locations has no neighbours", len(locations))
	}
	tasks := make([]shaped, len(locations))
	for i := range tasks {
		var own, next Pair
		t := &tasks[i]
		t.add(&own, own.Writing(locations[i]).At(i))
		t.add(&next, next.Reading(locations[(i+1)%len(locations)]).At(i))
		t.round = func(ctx context.Context, _ int, last bool) error {
			return t.hold(ctx, t.pairs, last, func() error {
				o, err := WriteAs[T](&own)
				if err != nil {
					return err
				}
				n, err := ReadAs[T](&next)
				if err != nil {
					return err
				}
				return update(i, o, n)
			})
		}
	}
	return runShaped(ctx, "task", rounds, tasks)
}

// Stencil runs a task for each location, which updates it from itself and from what its neighbours had
// in the round before: all tasks see the same round, as if there were two copies of everything.
// neighbours names the locations that a task reads, by number; around has copies of their data, in this
// order. A task gives back what it has read before it writes. See Pipeline for what holds of all shapes.
func Stencil[T any, R Resource](
	ctx context.Context, rounds int, locations []R, neighbours func(task int) []int,
	update func(task int, own []T, around [][]T) error,
) error {
	tasks := make([]shaped, len(locations))
	for i := range tasks {
		named := neighbours(i)
		reads, around := make(Pairs, len(named)), make([][]T, len(named))
		t := &tasks[i]
		for k, n := range named {
			if n < 0 || n >= len(locations) || n == i {
				return fmt.Errorf("task %d of a stencil of %d locations has a neighbour %d", i, len(locations), n)
			}
			reads[k] = new(Pair)
			t.add(reads[k], reads[k].Reading(locations[n]).In(0).At(0))
		}
		own := new(Pair)
		t.add(own, own.Writing(locations[i]).In(1).At(1))
		t.round = func(ctx context.Context, _ int, last bool) error {
			err := t.hold(ctx, reads, last, func() error {
				for k, p := range reads {
					data, err := ReadAs[T](p)
					if err != nil {
						return err
					}
					around[k] = append(around[k][:0], data...)
				}
				return nil
			})
			if err != nil {
				return err
			}
			return t.hold(ctx, Pairs{own}, last, func() error {
				data, err := WriteAs[T](own)
				if err != nil {
					return err
				}
				return update(i, data, around)
			})
		}
	}
	return runShaped(ctx, "task", rounds, tasks)
}

// shaped is a task of a shape.
type shaped struct {
	pairs    Pairs
	postings []Posting
	round    func(ctx context.Context, n int, last bool) error
}

func (t *shaped) add(p *Pair, posting Posting) {
	t.pairs, t.postings = append(t.pairs, p), append(t.postings, posting)
}

// hold does something with pairs. Where it fails, they end.
func (t *shaped) hold(ctx context.Context, pairs Pairs, last bool, f func() error) error {
	if err := pairs.Acquire(ctx); err != nil {
		return err
	}
	if err := f(); err != nil {
		return err
	}
	if last {
		return pairs.Finish()
	}
	return pairs.Release()
}

// runShaped inserts the requests of all tasks, and runs them for some rounds. The error is that of the
// task that failed, not those of the others that ended for it.
func runShaped(ctx context.Context, kind string, rounds int, tasks []shaped) error {
	if rounds <= 0 || len(tasks) == 0 {
		return nil
	}
	gate := NewGate(len(tasks))
	for i := range tasks {
		if err := gate.Insert(ctx, fmt.Sprint(kind, " ", i), tasks[i].postings...); err != nil {
			return err
		}
	}
	if err := gate.Wait(ctx); err != nil {
		return err
	}
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	var all sync.WaitGroup
	var failed atomic.Bool
	for i := range tasks {
		all.Go(func() {
			ended := false
			defer func() { // also where a function of the caller's panics or ends the goroutine
				if !ended {
					failed.Store(true)
					cancel(fmt.Errorf("%s %d has ended", kind, i))
					_ = tasks[i].pairs.Cancel() // whoever waits for this task hears why from ctx
				}
			}()
			for n := range rounds {
				if ctx.Err() != nil { // nobody waits for who has ended, so a wait does not tell
					return
				}
				if err := tasks[i].round(ctx, n, n == rounds-1); err != nil {
					cancel(fmt.Errorf("%s %d: %w", kind, i, err))
					return
				}
			}
			ended = true
		})
	}
	all.Wait()
	if failed.Load() {
		return context.Cause(ctx)
	}
	return nil
}
