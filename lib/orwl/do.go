package orwl

import "context"

// Lock is a request that can be waited for and used: a *Handle or a *Pair.
type Lock interface {
	Mappable
	Acquire(ctx context.Context) error
	Release() error
	Cancel() error
}

// Do waits until a write request is granted, calls f with the data, and releases in any case:
//
//	h.WriteRequest(l)
//	err := orwl.Do(ctx, &h, func(t []float64) error { t[0] = 20; return nil })
//
// T is a type without pointers, as with WriteAs; f must not keep the data. The error is that of the
// wait, of f or of the release, and what f has written counts also where it is that of f. A Pair
// goes on with its next request. Where f panics or ends its goroutine, a Pair ends, so that nobody
// waits for its task.
func Do[T any](ctx context.Context, l Lock, f func(data []T) error) error {
	return do(ctx, l, WriteAs[T], f)
}

// DoReading is Do for reading, with a request of either mode. f must not write.
func DoReading[T any](ctx context.Context, l Lock, f func(data []T) error) error {
	return do(ctx, l, ReadAs[T], f)
}

func do[T any](ctx context.Context, l Lock, mapAs func(Mappable) ([]T, error), f func([]T) error) (err error) {
	if err := l.Acquire(ctx); err != nil {
		return err
	}
	over := l.Cancel
	defer func() {
		if released := over(); err == nil {
			err = released
		}
	}()
	data, err := mapAs(l)
	if err == nil {
		err = f(data)
	}
	over = l.Release
	return err
}
