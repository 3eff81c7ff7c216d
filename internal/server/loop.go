package server

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"fairway/internal/dispatch"
	"fairway/internal/flow"
	"fairway/internal/recording"
	"fairway/internal/server/state"
	"fairway/internal/store"
)

const (
	// StoreTries is how often in a row the store may fail before the run ends.
	StoreTries = 8
	// StoreBackoff is the pause after the first failure of the store. It doubles
	// with each further one.
	StoreBackoff = 250 * time.Millisecond
	// roundSize bounds the requests that are stepped before the loop looks
	// whether the disk is done.
	roundSize = 128
)

// loop owns the cores.
type loop struct {
	*inbox
	state.Cores
	store store.Store
	log   *slog.Logger
	out   *outlet
	load  func(context.Context) (*state.Loaded, error)
	end   *ending
	tape  *recording.Writer // nil: none

	pilots   *pilots
	feeds    *feeds
	watchers *watchers
	revival  func(*state.Cores) *request // what the cores are told when they were loaded

	gathering *transaction
	flying    *transaction
	commits   chan []dispatch.Record
	committed chan error
	free      chan struct{} // the next transaction may begin
	busy      bool          // it may not yet
	delay     time.Duration // at most, between the starts of two transactions under load
	events    []dispatch.Event
	waker     *waker
	failures  int
}

// run works until the run has ended or ctx ends. It returns an error if the
// state could not be kept.
func (l *loop) run(ctx context.Context) error {
	defer l.close()
	if err := l.reload(ctx); err != nil {
		return err
	}
	for !l.end.reached() {
		if err := l.turn(ctx); err != nil {
			return err
		}
	}
	return nil
}

// turn takes what there is, and starts a commit if the disk is free.
func (l *loop) turn(ctx context.Context) error {
	select {
	case r := <-l.requests:
		l.round(r)
	case err := <-l.committed:
		if err := l.landed(ctx, err); err != nil {
			return err
		}
	case <-l.free:
		l.busy = false
	case <-l.waker.fired:
		l.waker.reset()
		l.take(&request{dispatch: []dispatch.Input{dispatch.Tick{}}, flow: []flow.Input{flow.Tick{}}})
	case <-ctx.Done():
		return ctx.Err()
	}
	l.flush()
	l.end.look(l)
	l.flush()
	l.watchers.notify()
	l.tape.Flush()
	return nil
}

// round takes a request and those that wait behind it.
func (l *loop) round(r *request) {
	l.take(r)
	for range roundSize {
		select {
		case r := <-l.requests:
			l.take(r)
		default:
			return
		}
	}
}

// flush sends what was gathered to the disk, one transaction at a time. What
// needs no disk is let out at once if nothing before it is under way.
func (l *loop) flush() {
	for l.flying == nil && !l.gathering.empty() {
		next := l.gathering
		if len(next.records) > 0 && l.busy {
			return
		}
		l.gathering = new(transaction)
		if len(next.records) > 0 {
			l.flying, l.busy = next, true
			l.commits <- next.records
			return
		}
		l.letOut(next)
	}
}

func (l *loop) letOut(t *transaction) {
	l.out.letOut(t)
	for _, done := range t.done {
		done(nil)
	}
}

// landed takes note of a transaction that is durable, or isn't.
func (l *loop) landed(ctx context.Context, err error) error {
	t := l.flying
	l.flying = nil
	if err == nil {
		l.failures = 0
		l.letOut(t)
		return nil
	}
	l.log.Error("the store failed; loading the state again", "error", err)
	t.lose(ErrReloaded)
	return l.recover(ctx, err)
}

// recover discards the cores and loads them again from what is durable.
func (l *loop) recover(ctx context.Context, err error) error {
	l.gathering.lose(ErrReloaded)
	l.out.waiters.fail(ErrReloaded)
	for err != nil {
		l.failures++
		if l.failures > StoreTries {
			return fmt.Errorf("the store failed %d times in a row: %w", StoreTries, err)
		}
		if err := l.sched.Sleep(ctx, StoreBackoff<<(l.failures-1)); err != nil {
			return err
		}
		err = l.reload(ctx)
	}
	return nil
}

func (l *loop) reload(ctx context.Context) error {
	loaded, err := l.load(ctx)
	if err != nil {
		return err
	}
	l.Cores = loaded.Cores
	l.tape.Load(loaded.Records, &loaded.Effects)
	l.gathering = new(transaction)
	l.events = nil
	l.end.owed = newObligations()
	l.absorb(&loaded.Effects)
	l.settle()
	l.take(l.revival(&l.Cores))
	l.end.reloaded(l)
	l.flush()
	return nil
}

// close ends the loop for everybody who still waits for it.
func (l *loop) close() {
	close(l.ended)
	close(l.commits)
	l.waker.stop()
	for _, t := range []*transaction{l.flying, l.gathering} {
		if t != nil {
			t.lose(errEnded)
		}
	}
	for {
		select {
		case r := <-l.requests:
			r.finish(errEnded)
		default:
			l.out.waiters.fail(errEnded)
			return
		}
	}
}

// commit applies transactions, one after the other, until the loop closes. A
// transaction costs much more than a record, so under load they are spaced, and
// each takes in what comes meanwhile.
func (l *loop) commit(ctx context.Context) {
	for records := range l.commits {
		next := time.Now().Add(l.pause(len(records)))
		l.committed <- l.store.Apply(ctx, records)
		if l.sched.WaitUntil(ctx, next) != nil {
			continue // the run ends, and what is left is not held up
		}
		l.free <- struct{}{}
	}
}

// fullTransaction is how many records a transaction has that is followed by the
// whole CommitDelay. After a smaller one the next begins sooner, in proportion,
// so that jobs that wait for each other are not held up.
const fullTransaction = 16

func (l *loop) pause(records int) time.Duration {
	return l.delay * time.Duration(min(records, fullTransaction)) / fullTransaction
}

// take steps one request. What it leads to is gathered.
func (l *loop) take(r *request) {
	if r.prepare != nil {
		if err := r.prepare(&l.Cores, r); err != nil {
			r.finish(err)
			return
		}
	}
	l.gathering.records = append(l.gathering.records, r.records...)
	var refused error
	for _, in := range r.dispatch {
		refused = errors.Join(refused, l.stepDispatch(in))
	}
	for _, in := range r.flow {
		refused = errors.Join(refused, l.stepFlow(in))
	}
	if r.ask != nil {
		r.ask(&l.Cores)
	}
	if refused != nil {
		r.finish(refused)
		return
	}
	if r.done != nil {
		l.gathering.done = append(l.gathering.done, r.done)
	}
}

func (r *request) finish(err error) {
	if r.done != nil {
		r.done(err)
	}
}
