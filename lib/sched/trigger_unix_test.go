//go:build unix

package sched

import (
	"context"
	"errors"
	"os"
	"os/signal"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// mailbox is a kind that is polled when a trigger says so, and otherwise once an hour.
type mailbox struct {
	mu    sync.Mutex
	there map[int]bool
	polls atomic.Int64
	after func() // called after each poll has looked
}

func (m *mailbox) deliver(n int) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.there == nil {
		m.there = make(map[int]bool)
	}
	m.there[n] = true
}

func (m *mailbox) kind(trigger Trigger) Kind[int, int] {
	return Kind[int, int]{Name: "mail", Trigger: trigger, Interval: time.Hour, Poll: func(waiting []*Request[int, int]) {
		m.mu.Lock()
		for _, r := range waiting {
			if m.there[r.Value] && r.Done(r.Value, nil) {
				delete(m.there, r.Value)
			}
		}
		m.mu.Unlock()
		m.polls.Add(1)
		if m.after != nil {
			m.after()
		}
	}}
}

func sendSelf(t *testing.T, sig unix.Signal) {
	t.Helper()
	if err := unix.Kill(os.Getpid(), sig); err != nil {
		t.Error(err)
	}
}

// waitAll waits for n events with a goroutine each, and returns when all wait.
func waitAll(t *testing.T, s *Scheduler, h *Handle[int, int], n int) *sync.WaitGroup {
	var waits sync.WaitGroup
	for k := range n {
		waits.Go(func() {
			if _, err := h.Wait(patient(t), k); err != nil {
				t.Errorf("event %d: %v", k, err)
			}
		})
	}
	until(t, s, "all wait", func() bool { return members(s, "mail") == int32(n) })
	return &waits
}

func TestSignalHasItsKindPolled(t *testing.T) {
	for _, strategy := range []Strategy{Adaptive, BlockOnly} {
		s := newTest(t, Config{})
		var m mailbox
		kind := m.kind(OnSignal(unix.SIGUSR2))
		kind.Strategy = strategy
		h := Register(s, kind)
		sendSelf(t, unix.SIGUSR2) // while nobody waits; would end the process by default
		waits := waitAll(t, s, h, 10)
		for k := range 10 {
			m.deliver(k)
			sendSelf(t, unix.SIGUSR2)
		}
		waits.Wait()
		if polls := m.polls.Load(); polls > 200 {
			t.Errorf("%d polls for 10 signals", polls)
		}
	}
}

// The signal of an event that comes after a poll has looked for it ends the block that follows.
func TestSignalBetweenPollAndBlockIsNotLost(t *testing.T) {
	s := newTest(t, Config{})
	var m mailbox
	looked := 0
	m.after = func() {
		if looked++; looked%2 == 0 { // the poll after the arming
			m.deliver(looked / 2)
			sendSelf(t, unix.SIGUSR2)
		}
	}
	h := Register(s, m.kind(OnSignal(unix.SIGUSR2)))
	if _, err := h.Wait(patient(t), 1); err != nil {
		t.Fatal(err)
	}
}

func TestTaskIsWokenByATrigger(t *testing.T) {
	s := newTest(t, Config{Slots: 1})
	var m mailbox
	h := Register(s, m.kind(OnSignal(unix.SIGUSR2)))
	waiting := s.Go(patient(t), func(task *Task) error { _, err := h.Wait(task.Context(), 1); return err })
	until(t, s, "waits", func() bool { return members(s, "mail") == 1 })
	if err := s.Run(patient(t), func(*Task) error { // without a checkpoint
		m.deliver(1)
		sendSelf(t, unix.SIGUSR2)
		until(t, s, "found", func() bool { return members(s, "mail") == 0 })
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	if err := waiting.Wait(patient(t)); err != nil {
		t.Fatal(err)
	}
}

func TestCloseOfAHandleEndsItsSubscription(t *testing.T) {
	others := make(chan os.Signal, 1)
	signal.Notify(others, unix.SIGUSR2)
	defer signal.Stop(others)
	s := newTest(t, Config{})
	var m mailbox
	trigger := &kept{Trigger: OnSignal(unix.SIGUSR2)}
	Register(s, m.kind(trigger)).Close()
	sendSelf(t, unix.SIGUSR2)
	<-others
	if n := len(trigger.alarm.(*signalAlarm).signals); n > 0 {
		t.Errorf("%d signals after Close", n)
	}
}

// kept is a trigger whose alarm can be looked at.
type kept struct {
	Trigger
	alarm alarm
}

func (k *kept) open(s *Scheduler, fail func(error)) alarm {
	k.alarm = k.Trigger.open(s, fail)
	return k.alarm
}

func TestReadableDescriptorHasItsKindPolled(t *testing.T) {
	var pipe [2]int
	if err := unix.Pipe(pipe[:]); err != nil {
		t.Fatal(err)
	}
	defer unix.Close(pipe[0])
	defer unix.Close(pipe[1])
	if err := unix.SetNonblock(pipe[0], true); err != nil {
		t.Fatal(err)
	}
	s := New(Config{})
	defer s.Close()
	h := Register(s, Kind[int, int]{Name: "mail", Trigger: OnReadable(pipe[0]), Interval: time.Hour,
		Poll: func(waiting []*Request[int, int]) {
			var b [1]byte
			for n, _ := unix.Read(pipe[0], b[:]); n == 1; n, _ = unix.Read(pipe[0], b[:]) {
				for _, r := range waiting {
					if r.Value == int(b[0]) {
						r.Done(r.Value, nil)
					}
				}
			}
		}})
	waits := waitAll(t, s, h, 20)
	for k := range 20 {
		if _, err := unix.Write(pipe[1], []byte{byte(k)}); err != nil {
			t.Fatal(err)
		}
	}
	waits.Wait()
	if c := h.Counts(); c.Polls > 300 {
		t.Errorf("%+v for 20 bytes", c)
	}
}

func TestBadDescriptorOfATriggerEndsItsWaits(t *testing.T) {
	s := newTest(t, Config{})
	var m mailbox
	h := Register(s, m.kind(OnReadable(1<<20)))
	for range 2 {
		if _, err := h.Wait(patient(t), 1); !errors.Is(err, unix.EBADF) {
			t.Errorf("got %v", err)
		}
	}
}

func TestRegisterRefusesATriggerWithoutPoll(t *testing.T) {
	s := newTest(t, Config{})
	defer func() {
		if recover() == nil {
			t.Error("registered")
		}
	}()
	Register(s, Kind[int, int]{Name: "mail", Trigger: OnReadable(0)})
}

// bell is a way to block for a mailbox that counts who has blocked.
type bell struct {
	rung   chan struct{}
	blocks atomic.Int64
}

func (b *bell) ring() {
	select {
	case b.rung <- struct{}{}:
	default:
	}
}

// in has a mailbox that has a trigger block by the bell too.
func (b *bell) in(kind Kind[int, int]) Kind[int, int] {
	b.rung = make(chan struct{}, 1)
	kind.Unblock = b.ring
	kind.Block = func(limit time.Duration) {
		b.blocks.Add(1)
		var timeout <-chan time.Time
		if limit > 0 {
			timeout = time.After(limit)
		}
		select {
		case <-b.rung:
		case <-timeout:
		}
	}
	return kind
}

// eachIn has a mailbox that has a trigger block for each request too.
func (b *bell) eachIn(kind Kind[int, int]) Kind[int, int] {
	b.rung = make(chan struct{}, 1)
	kind.BlockEach = func(ctx context.Context, n int) (int, error) {
		b.blocks.Add(1)
		select {
		case <-b.rung:
			return n, nil
		case <-ctx.Done():
			return 0, ctx.Err()
		}
	}
	return kind
}

var otherMethods = map[string]func(*bell, Kind[int, int]) Kind[int, int]{
	"Block": (*bell).in, "BlockEach": (*bell).eachIn,
}

// Of all the methods that a kind has registered the scheduler listens to its trigger, as that holds no
// thread, until triggers tell of nothing; then it blocks.
func TestListensUntilTriggersAreInVain(t *testing.T) {
	for name, method := range otherMethods {
		t.Run(name, func(t *testing.T) {
			s := newTest(t, Config{})
			var m mailbox
			var b bell
			h := Register(s, method(&b, m.kind(OnSignal(unix.SIGUSR2))))
			waits := waitAll(t, s, h, 10)
			for k := range 10 {
				m.deliver(k)
				sendSelf(t, unix.SIGUSR2)
			}
			waits.Wait()
			if n := b.blocks.Load(); n > 0 {
				t.Fatalf("blocked %d times while the trigger told", n)
			}
			listens := func() bool { h.src.calls.Lock(); defer h.src.calls.Unlock(); return h.src.prefersListening() }
			ctx, stop := context.WithCancel(patient(t))
			vain := make(chan struct{})
			go func() { defer close(vain); _, _ = h.Wait(ctx, 0) }()
			until(t, s, "waits in vain", func() bool { return members(s, "mail") == 1 })
			for listens() {
				polls := m.polls.Load()
				sendSelf(t, unix.SIGUSR2)
				until(t, s, "polled in vain", func() bool { return m.polls.Load() > polls || !listens() })
			}
			stop()
			<-vain
			blocked := waitAll(t, s, h, 1)
			until(t, s, "blocks", func() bool { return b.blocks.Load() > 0 })
			m.deliver(0)
			b.ring()
			blocked.Wait()
		})
	}
}

// Where no thread is free, a kind that has a trigger is not left to polling.
func TestListensWhereNoThreadIsFree(t *testing.T) {
	for name, method := range otherMethods {
		t.Run(name, func(t *testing.T) {
			s := newTest(t, Config{Threads: 1})
			leave := make(chan struct{})
			hog := Register(s, Kind[int, int]{Name: "hog", BlockEach: func(context.Context, int) (int, error) {
				<-leave
				return 0, nil
			}})
			var hogs sync.WaitGroup
			defer hogs.Wait()
			defer close(leave)
			hogs.Go(func() { _, _ = hog.Wait(patient(t), 0) })
			until(t, s, "no thread is free", func() bool { return hog.Counts().Blocks == 1 })
			var m mailbox
			var b bell
			h := Register(s, method(&b, m.kind(OnSignal(unix.SIGUSR2))))
			h.src.adapt.vain = 1 // it would block
			waits := waitAll(t, s, h, 10)
			for k := range 10 {
				m.deliver(k)
				sendSelf(t, unix.SIGUSR2)
			}
			waits.Wait()
			if n := b.blocks.Load(); n > 0 {
				t.Errorf("blocked %d times without a thread", n)
			}
		})
	}
}

func TestTriggersAreGivenAnotherTry(t *testing.T) {
	var a adaptation
	for a.trustsTriggers() {
		a.triggered(false)
	}
	feed(&a, memory-1, time.Millisecond, time.Second)
	if a.trustsTriggers() {
		t.Errorf("trusted after %d events", memory-1)
	}
	feed(&a, 1, time.Millisecond, time.Second)
	if !a.trustsTriggers() {
		t.Errorf("not trusted after %d events", memory)
	}
	a.triggered(false)
	if a.trustsTriggers() {
		t.Error("trusted after one more in vain")
	}
}
