package sched

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"sync"
	"time"
)

// Trigger tells that an event of a kind may have come, though not whose it is: Poll finds that
// out. (Section 3.2 of the paper, which describes it for signals and leaves it to be implemented.)
// It is made by [OnSignal], [OnReadable] or, on Linux, OnEventfd, and belongs to one kind.
type Trigger interface {
	// open begins to listen. fail ends the waits of the kind where that is not possible.
	open(s *Scheduler, fail func(error)) alarm
}

// alarm is a trigger that is listened to: one of the ways in which its kind blocks.
type alarm interface {
	block(limit time.Duration)
	unblock()
	close()
}

// OnSignal is a trigger by any of the given signals. From Register until its Close, or that of the
// scheduler, they don't have their default effect. Signals that come together are one.
func OnSignal(signals ...os.Signal) Trigger { return signalTrigger(signals) }

// OnReadable is a trigger by a descriptor that becomes readable, as that of a completion channel.
// Poll must take away what makes it readable; until it has, it is called again and again. The
// descriptor must stay open until Close has returned, of the handle or of the scheduler. Where it
// can't be waited for, all waits of the kind end with the error.
func OnReadable(fd int) Trigger { return descriptorTrigger{fd: fd, take: func(int) {}} }

// listenTo is the way to block by an alarm. Arm is there so that a request is polled for after it
// has joined, as its event may have come with an earlier signal.
func listenTo(a alarm) way {
	return way{arm: func() bool { return true }, block: a.block, unblock: a.unblock, concurrent: true}
}

type signalTrigger []os.Signal

func (t signalTrigger) open(*Scheduler, func(error)) alarm {
	a := &signalAlarm{signals: make(chan os.Signal, 1), wake: make(chan struct{}, 1)}
	signal.Notify(a.signals, t...)
	return a
}

// signalAlarm keeps one signal while nobody blocks, and so ends the next block at once.
type signalAlarm struct {
	signals chan os.Signal
	wake    chan struct{}
}

func (a *signalAlarm) block(limit time.Duration) {
	var timeout <-chan time.Time
	if limit > 0 {
		timer := time.NewTimer(limit)
		defer timer.Stop()
		timeout = timer.C
	}
	select {
	case <-a.signals:
	case <-a.wake:
	case <-timeout:
	}
}

func (a *signalAlarm) unblock() {
	select {
	case a.wake <- struct{}{}:
	default:
	}
}

func (a *signalAlarm) close() { signal.Stop(a.signals) }

type descriptorTrigger struct {
	fd   int
	take func(fd int) // takes away what made it readable
}

func (t descriptorTrigger) open(s *Scheduler, fail func(error)) alarm {
	return &descriptorAlarm{descriptorTrigger: t, s: s, fail: fail}
}

// descriptorAlarm waits for its descriptor with the others of the scheduler.
type descriptorAlarm struct {
	descriptorTrigger
	s    *Scheduler
	fail func(error)

	mu     sync.Mutex
	cancel context.CancelFunc // of the block that runs
	woken  bool               // the next block is to return at once
}

func (a *descriptorAlarm) block(limit time.Duration) {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	if !a.enter(cancel) {
		return
	}
	defer a.enter(nil)
	if limit > 0 {
		defer time.AfterFunc(limit, cancel).Stop()
	}
	_, err := a.s.waitFD(ctx, FD{Num: a.fd, Want: Readable})
	switch {
	case err == nil:
		a.take(a.fd)
	case ctx.Err() == nil:
		a.fail(fmt.Errorf("listen to a trigger: %w", err))
	}
}

// enter has unblock call cancel from now on. It reports false if unblock has been called.
func (a *descriptorAlarm) enter(cancel context.CancelFunc) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	if cancel != nil && a.woken {
		a.woken = false
		return false
	}
	a.cancel = cancel
	return true
}

func (a *descriptorAlarm) unblock() {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.cancel == nil {
		a.woken = true
		return
	}
	a.cancel()
}

func (a *descriptorAlarm) close() {}
