package active

import (
	"context"
	"errors"
	"time"

	"fairway/internal/server/term"
	"fairway/internal/store"
	"fairway/internal/taskqueue"
	"fairway/lib/sched"
)

// Seat is what the active server of a state has, and no other. Any goroutine may call it. An error of
// which IsReplaced is true says that another server has it, or may have.
type Seat interface {
	// Beat says that this server lives. It comes every BeatTime.
	Beat(ctx context.Context) error
	BeatTime() time.Duration
	// Assert returns nil if this server has the seat at a moment of the call. It is for what is done
	// outside of the store.
	Assert(ctx context.Context) error
	// MayWrite is Assert before each change of the store, where the store does not assert it by itself.
	MayWrite() error
	// Current reports whether this server may still say what it knows. It asks nobody.
	Current() bool
	// Unclean reports whether the server before may still run: it has not ended in order.
	Unclean() bool
}

// IsReplaced reports whether a server has ended because another one is active, or may be.
func IsReplaced(err error) bool {
	return errors.Is(err, store.ErrSuperseded) || errors.Is(err, store.ErrLeaseOver) || errors.Is(err, term.ErrFollowed)
}

// ByTerm is the seat of a server with a term.
func ByTerm(t *term.Term) Seat { return byTerm{t} }

type byTerm struct{ *term.Term }

func (s byTerm) Beat(context.Context) error   { return s.Term.Beat() }
func (byTerm) BeatTime() time.Duration        { return term.BeatTime }
func (s byTerm) Assert(context.Context) error { return s.Good() }
func (s byTerm) MayWrite() error              { return s.Good() }
func (byTerm) Current() bool                  { return true } // who follows waits for silence, and asks the lock
func (s byTerm) Unclean() bool                { return s.Term.Unclean }

type byDatabase struct{ *store.Member }

func (byDatabase) MayWrite() error { return nil } // each transaction asserts its term

// Role is this server as the active one of its state. Without a Seat no other can be. Lost hears that
// it is replaced.
type Role struct {
	Seat  Seat
	Sched *sched.Scheduler
	Lost  func(why error)
}

// Beating sends beats until end is called: to load all runs, or to look at all inputs, may take
// minutes. The context ends when this server is replaced.
func (r Role) Beating(ctx context.Context) (_ context.Context, end func()) {
	if r.Seat == nil {
		return ctx, func() {}
	}
	ctx, cancel := context.WithCancel(ctx)
	sending, stop := context.WithCancel(ctx)
	beating := make(chan struct{})
	go func() {
		defer close(beating)
		for r.Sched.Sleep(sending, r.Seat.BeatTime()) == nil {
			if r.see(r.Seat.Beat(context.WithoutCancel(sending))) {
				cancel()
				return
			}
		}
	}()
	return ctx, func() {
		stop()
		<-beating
	}
}

// Keep sends beats until ctx ends or this server is replaced, and calls each after each of them.
func (r Role) Keep(ctx context.Context, each func()) {
	for ctx.Err() == nil {
		if err := r.Seat.Beat(ctx); IsReplaced(err) {
			if ctx.Err() == nil {
				r.Lost(err)
			}
			return
		}
		each()
		_ = r.Sched.Sleep(ctx, r.Seat.BeatTime())
	}
}

// Assert returns an error if another server may be active. It is for what is done outside of the store.
// While nobody can tell it waits, and the server ends when that lasts for long.
func (r Role) Assert(ctx context.Context) error {
	for r.Seat != nil {
		if err := r.Seat.Assert(ctx); err == nil || r.see(err) || ctx.Err() != nil {
			return err
		}
		if err := r.Sched.Sleep(ctx, r.Seat.BeatTime()); err != nil {
			return err
		}
	}
	return nil
}

// see reports whether an error says that this server is replaced, which Lost hears then.
func (r Role) see(err error) bool {
	replaced := IsReplaced(err)
	if replaced {
		r.Lost(err)
	}
	return replaced
}

// Store is a store that this server changes only while it is the active one, and which tells when it
// is no more.
func (r Role) Store(s store.Store) store.Store { return guarded{s, r} }

type guarded struct {
	store.Store
	role Role
}

// Apply is part of store.Store.
func (g guarded) Apply(ctx context.Context, records []taskqueue.Record) (err error) {
	if g.role.Seat != nil {
		err = g.role.Seat.MayWrite()
	}
	if err == nil {
		err = g.Store.Apply(ctx, records)
	}
	g.role.see(err)
	return err
}

// Load is part of store.Store.
func (g guarded) Load(ctx context.Context, table string) ([]taskqueue.Record, error) {
	all, err := g.Store.Load(ctx, table)
	g.role.see(err)
	return all, err
}

// Each is part of store.Store.
func (g guarded) Each(ctx context.Context, table string, take func(taskqueue.Record) error) error {
	err := g.Store.Each(ctx, table, take)
	g.role.see(err)
	return err
}

// LoadPart is part of store.Store.
func (g guarded) LoadPart(
	ctx context.Context, table string, run taskqueue.RunID, from, below string, most int,
) ([]taskqueue.Record, error) {
	part, err := g.Store.LoadPart(ctx, table, run, from, below, most)
	g.role.see(err)
	return part, err
}
