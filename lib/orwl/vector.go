package orwl

import (
	"context"
	"errors"
)

// Handles is the vector form of Handle, for a task that holds several locks at
// once.
type Handles []*Handle

// Acquire waits until all requests are granted. When one fails or ctx ends,
// all are withdrawn or released.
func (hs Handles) Acquire(ctx context.Context) error { return acquireAll(ctx, hs) }

// Test reports whether all requests are granted.
func (hs Handles) Test() (bool, error) { return testAll(hs) }

// Release releases all, one after the other: who waits for one of the locations may have it
// before the last is released.
func (hs Handles) Release() error { return forAll(hs, (*Handle).Release) }

// Cancel withdraws or releases all.
func (hs Handles) Cancel() error { return forAll(hs, (*Handle).Cancel) }

// Pairs is the vector form of Pair, for a recurring task with several
// locations (section 2.0.1).
type Pairs []*Pair

// Acquire waits until all current requests are granted. When one fails or ctx
// ends, all are withdrawn or released.
func (ps Pairs) Acquire(ctx context.Context) error { return acquireAll(ctx, ps) }

// Test reports whether all current requests are granted.
func (ps Pairs) Test() (bool, error) { return testAll(ps) }

// Release posts all next requests and only then releases the current ones,
// which keeps the order of the tasks the same in all locations. The current ones are released one
// after the other: who waits for one of them may have it before the last is released. When a next
// request is refused all pairs end.
func (ps Pairs) Release() error {
	for i, p := range ps {
		if err := p.post(); err != nil {
			for _, q := range ps[:i] {
				q.handles[q.current^1].Cancel()
			}
			return errors.Join(err, ps.Cancel())
		}
	}
	return forAll(ps, (*Pair).pass)
}

// Finish releases all without posting further requests.
func (ps Pairs) Finish() error { return forAll(ps, (*Pair).Finish) }

// Cancel ends all pairs.
func (ps Pairs) Cancel() error { return forAll(ps, (*Pair).Cancel) }

type lock interface {
	Acquire(context.Context) error
	Test() (bool, error)
	Cancel() error
}

func acquireAll[L lock](ctx context.Context, locks []L) error {
	for _, l := range locks {
		if err := l.Acquire(ctx); err != nil {
			return errors.Join(err, forAll(locks, L.Cancel))
		}
	}
	return nil
}

func testAll[L lock](locks []L) (bool, error) {
	for _, l := range locks {
		if ok, err := l.Test(); !ok || err != nil {
			return false, err
		}
	}
	return true, nil
}

func forAll[L any](locks []L, do func(L) error) error {
	var errs []error
	for _, l := range locks {
		if err := do(l); err != nil {
			errs = append(errs, err)
		}
	}
	return errors.Join(errs...)
}
