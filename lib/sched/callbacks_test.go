package sched

import (
	"context"
	"errors"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// what a callback of a kind does when it is called for the first time.
type deed struct {
	name string
	do   func(s *Scheduler, h *Handle[int, int])
	ends error // of the wait; nil: it goes on until it is cancelled
}

// callbackKinds has act called in each of the callbacks, of kinds whose events never come.
func callbackKinds(act func()) map[string]Kind[int, int] {
	nothing := func([]*Request[int, int]) {}
	nudge := make(chan struct{}, 1)
	unblock := func() {
		select {
		case nudge <- struct{}{}:
		default:
		}
	}
	block := func(limit time.Duration) {
		if limit <= 0 {
			limit = time.Hour
		}
		select {
		case <-nudge:
		case <-time.After(limit):
		}
	}
	return map[string]Kind[int, int]{
		"Poll":       {Poll: func([]*Request[int, int]) { act() }},
		"Group":      {Poll: nothing, Group: func(*Request[int, int], bool) { act() }},
		"left":       {Poll: nothing, Group: func(_ *Request[int, int], joined bool) { ifTrue(!joined, act) }},
		"Arm":        {Poll: nothing, Arm: func() bool { act(); return true }, Block: block, Unblock: unblock},
		"Block":      {Block: func(limit time.Duration) { act(); block(limit) }, Unblock: unblock},
		"Concurrent": {Block: func(limit time.Duration) { act(); block(limit) }, Unblock: unblock, Concurrent: true},
		"Unblock":    {Block: block, Unblock: func() { act(); unblock() }},
		"BlockEach":  {BlockEach: func(ctx context.Context, _ int) (int, error) { act(); <-ctx.Done(); return 0, ctx.Err() }},
	}
}

func ifTrue(ok bool, do func()) {
	if ok {
		do()
	}
}

// deeds are what callbacks may do, and what they do by mistake, as docs/sched.md says.
var deeds = []deed{
	{"closes its handle", func(_ *Scheduler, h *Handle[int, int]) { h.Close() }, ErrClosed},
	{"closes the scheduler", func(s *Scheduler, _ *Handle[int, int]) { s.Close() }, ErrClosed},
	{"shuts the scheduler down", func(s *Scheduler, _ *Handle[int, int]) {
		if err := s.Shutdown(context.Background()); !errors.Is(err, ErrCallback) {
			panic(err)
		}
	}, ErrClosed},
	{"ends its goroutine", func(*Scheduler, *Handle[int, int]) { runtime.Goexit() }, ErrExited},
	{"registers a kind and closes it", func(s *Scheduler, _ *Handle[int, int]) {
		Register(s, Kind[int, int]{Name: "inner", Poll: func([]*Request[int, int]) {}}).Close()
	}, nil},
	{"starts a task", func(s *Scheduler, _ *Handle[int, int]) {
		s.Go(context.Background(), func(*Task) error { return nil })
	}, nil},
	{"prints the scheduler", func(s *Scheduler, h *Handle[int, int]) { _, _ = s.String(), h.Counts() }, nil},
	{"cancels a wait of its kind", func(*Scheduler, *Handle[int, int]) {}, context.Canceled},
}

// Whatever a callback does that it may, the waits of its kind end, and so does the scheduler.
func TestCallbackMayDoWhatTheDocumentationSays(t *testing.T) {
	for _, d := range deeds {
		for callback := range callbackKinds(nil) {
			t.Run(d.name+" in "+callback, func(t *testing.T) { tryDeed(t, d, callback) })
		}
	}
}

func tryDeed(t *testing.T, d deed, callback string) {
	s := New(Config{})
	var h *Handle[int, int]
	var once sync.Once
	acted := make(chan struct{})
	ctx, cancel := context.WithCancel(patient(t))
	defer cancel()
	kind := callbackKinds(func() {
		once.Do(func() {
			defer close(acted)
			ifTrue(errors.Is(d.ends, context.Canceled), cancel)
			d.do(s, h)
		})
	})[callback]
	kind.Name = "acting"
	h = Register(s, kind)
	ended := make(chan error, 2)
	for n := range 2 {
		go func() {
			err := ErrExited // where a callback ends this goroutine
			defer func() { ended <- err }()
			_, err = h.Wait(ctx, n)
		}()
	}
	if callback == "left" || callback == "Unblock" {
		until(t, newTest(t, Config{}), "both wait", func() bool { return members(s, "acting") == 2 || isClosed(acted) })
		cancel()
	}
	<-acted
	if d.ends == nil || errors.Is(d.ends, ErrExited) && callback == "BlockEach" { // which ends its own wait only
		cancel()
	}
	for range 2 {
		err := within(t, ended)
		if !errors.Is(err, d.ends) && !errors.Is(err, context.Canceled) && !errors.Is(err, ErrExited) {
			t.Errorf("a wait ended with %v", err)
		}
	}
	if err := s.Shutdown(patient(t)); err != nil {
		t.Error(err)
	}
}

// within returns what comes, unless that takes longer than anything a test waits for.
func within[T any](t *testing.T, ch <-chan T) (v T) {
	t.Helper()
	select {
	case v = <-ch:
	case <-patient(t).Done():
		t.Fatal("nothing came")
	}
	return v
}

// A callback that ends the goroutine of a task which waits, of one at a checkpoint, or of the
// poller: other kinds and tasks go on.
func TestOtherKindsGoOnAfterACallbackThatEndsItsGoroutine(t *testing.T) {
	s := newTest(t, Config{Slots: 1})
	var armed atomic.Bool
	poll := func([]*Request[int, int]) { ifTrue(armed.Load(), runtime.Goexit) }
	exits := Register(s, Kind[int, int]{Name: "exits", Interval: time.Nanosecond, Eager: -1, Poll: poll})
	errs := make(chan error, 1)
	go func() { _, err := exits.Wait(patient(t), 1); errs <- err }()
	until(t, s, "waits", func() bool { return members(s, "exits") == 1 })
	armed.Store(true)
	if err := within(t, errs); !errors.Is(err, ErrExited) {
		t.Errorf("got %v", err)
	}
	until(t, s, "others are polled", func() bool { return true })
	task := s.Go(patient(t), func(task *Task) error { _, err := exits.Wait(task.Context(), 1); return err })
	if err := task.Wait(patient(t)); !errors.Is(err, ErrExited) {
		t.Errorf("a task that waits then: %v", err)
	}
	again := Register(s, Kind[int, int]{Name: "again", Poll: func([]*Request[int, int]) { runtime.Goexit() }})
	task = s.Go(patient(t), func(task *Task) error { _, err := again.Wait(task.Context(), 1); return err })
	if err := task.Wait(patient(t)); !errors.Is(err, ErrExited) {
		t.Errorf("a task whose own goroutine was ended: %v", err)
	}
	if err := s.Run(patient(t), func(*Task) error { return nil }); err != nil {
		t.Errorf("its slot: %v", err)
	}
}

// A panic in Syscalls ends the waits of its kind, as those of other callbacks do, and leaves the
// table of all kinds alone.
func TestPanicInSyscallsIsContained(t *testing.T) {
	s := newTest(t, Config{})
	h := Register(s, Kind[int, int]{Name: "broken", Syscalls: func() uint64 { panic("boom") }})
	errs := make(chan error, 1)
	go func() { _, err := h.Wait(patient(t), 1); errs <- err }()
	until(t, s, "waits", func() bool { return members(s, "broken") == 1 })
	if !strings.Contains(s.String(), "broken: ") {
		t.Error("the kind is missing")
	}
	var p *PanicError
	if err := within(t, errs); !errors.As(err, &p) || p.Callback != "Syscalls" {
		t.Errorf("got %v", err)
	}
}

// When Close has returned, no callback of the kind runs.
func TestCloseOfAHandleWaitsForItsCallbacks(t *testing.T) {
	for callback := range callbackKinds(nil) {
		s := newTest(t, Config{})
		var inside atomic.Bool
		begun := make(chan struct{})
		var once sync.Once
		kind := callbackKinds(func() {
			inside.Store(true)
			defer inside.Store(false)
			once.Do(func() { close(begun) })
			for range 100 {
				runtime.Gosched()
			}
		})[callback]
		h := Register(s, kind)
		ctx, cancel := context.WithCancel(patient(t))
		go func() { _, _ = h.Wait(ctx, 1) }()
		if callback == "left" || callback == "Unblock" {
			until(t, s, "waits", func() bool { return h.src.members.Load() == 1 })
			go h.Close() // calls both
		}
		<-begun
		h.Close()
		if inside.Load() {
			t.Errorf("%s runs", callback)
		}
		cancel()
	}
}

func TestShutdownDoesNotWaitLongerThanItsContextForACallback(t *testing.T) {
	s := New(Config{})
	polls, release := make(chan struct{}), make(chan struct{})
	h := Register(s, Kind[int, int]{Name: "slow", Poll: func([]*Request[int, int]) { close(polls); <-release }})
	errs := make(chan error, 1)
	go func() { _, err := h.Wait(patient(t), 1); errs <- err }()
	<-polls
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := s.Shutdown(ctx); !errors.Is(err, context.Canceled) || !strings.Contains(err.Error(), "slow") {
		t.Errorf("got %v", err)
	}
	close(release)
	if err := within(t, errs); !errors.Is(err, ErrClosed) {
		t.Errorf("the wait ended with %v", err)
	}
	if err := s.Shutdown(patient(t)); err != nil {
		t.Error(err)
	}
}
