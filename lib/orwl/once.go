package orwl

import "context"

// ReadOnce is one reading of r, without a handle of the caller's: it posts the request, waits until it is
// granted, calls f with the data and releases in any case. T is a type without pointers, as with ReadAs;
// f must neither write nor keep the data. The error is that of the request, of the wait, of f or of the
// release. Who can say early that he will read posts a request of a Handle instead.
func ReadOnce[T any](ctx context.Context, r Resource, f func(data []T) error) error {
	var h Handle
	if err := h.ReadRequest(r); err != nil {
		return err
	}
	return DoReading(ctx, &h, f)
}

// WriteOnce is ReadOnce for writing. What f has written counts also where it returns an error.
func WriteOnce[T any](ctx context.Context, r Resource, f func(data []T) error) error {
	var h Handle
	if err := h.WriteRequest(r); err != nil {
		return err
	}
	return Do(ctx, &h, f)
}

// Last is the pair as Do and DoReading take it in the last iteration: its release posts no further
// request, as Finish.
func (p *Pair) Last() Lock { return last{p} }

type last struct{ *Pair }

// Release is part of Lock.
func (l last) Release() error { return l.Finish() }
