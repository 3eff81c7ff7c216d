package orwl

import (
	"context"
	"errors"
	"runtime"
	"testing"
)

// Whatever becomes of the function, the lock is released, and a pair goes on unless its task is gone.
func TestDoAlwaysReleases(t *testing.T) {
	failed := errors.New("failed")
	ends := map[string]struct {
		f    func([]uint64) error
		want error
		over bool
	}{
		"returns": {f: func(d []uint64) error { d[0]++; return nil }},
		"fails":   {f: func(d []uint64) error { d[0]++; return failed }, want: failed},
		"panics":  {f: func(d []uint64) error { d[0]++; panic("boom") }, over: true},
		"exits":   {f: func(d []uint64) error { d[0]++; runtime.Goexit(); return nil }, over: true},
	}
	overEach(t, func(t *testing.T, network string, options []Option) {
		for name, end := range ends {
			l := newLocation(t, "l", 8, options...)
			_, p := served(t, network, l)
			for _, r := range []Resource{l, mirror(t, p, "l")} {
				for _, paired := range []bool{false, true} {
					before := BytesAs[uint64](read(t, r))[0]
					var lock Lock = new(Handle)
					if paired {
						lock = new(Pair)
					}
					must(t, lock.(interface{ WriteRequest(Resource) error }).WriteRequest(r))
					done := make(chan struct{})
					go func() {
						defer close(done)
						defer func() { _ = recover() }()
						if err := Do(background, lock, end.f); !errors.Is(err, end.want) {
							t.Errorf("%s: %v", name, err)
						}
					}()
					<-done
					if paired && !end.over {
						must(t, errors.Join(lock.Acquire(background), lock.Cancel()))
					}
					if now := BytesAs[uint64](read(t, r))[0]; now != before+1 {
						t.Errorf("%s: what was written is gone: %d", name, now)
					}
					waitFor(t, func() bool { return l.Waiting() == 0 })
				}
			}
		}
	})
}

func TestDoRefusesWhatTheRequestDoesNotAllow(t *testing.T) {
	l := newLocation(t, "l", 8)
	var h Handle
	never := func([]uint64) error { t.Error("called"); return nil }
	if err := Do(background, &h, never); !errors.Is(err, ErrNotRequested) {
		t.Errorf("without a request: %v", err)
	}
	must(t, h.ReadRequest(l))
	if err := Do(background, &h, never); !errors.Is(err, ErrReadOnly) {
		t.Errorf("with a read request: %v", err)
	}
	must(t, h.WriteRequest(l))
	var late Handle
	must(t, late.WriteRequest(l))
	ctx, cancel := context.WithCancel(background)
	cancel()
	if err := Do(ctx, &late, never); !errors.Is(err, context.Canceled) {
		t.Errorf("with a context that has ended: %v", err)
	}
	must(t, DoReading(background, &h, func(d []uint64) error { return nil }))
	if l.Waiting() != 0 || l.Version() != 0 {
		t.Errorf("%d requests are left, version %d", l.Waiting(), l.Version())
	}
}
