package sched

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"time"
)

// Defaults of StatusConfig.
const (
	DefaultStatusEvery    = time.Second
	DefaultStatusJitter   = 0.1
	DefaultStatusBatch    = 1000
	DefaultStatusCache    = 10_000
	DefaultStatusTimeout  = time.Minute
	DefaultStatusFailures = 5
)

// StatusConfig describes a remote status call that is slow, or that its owner
// does not want to be made often, such as the one of a batch system.
type StatusConfig[K comparable, V any] struct {
	// Name of the kind.
	Name string
	// Query asks for the status of all keys. Keys may be missing in its answer.
	// At most one query runs at a time.
	Query func(ctx context.Context, keys []K) (map[K]V, error)
	// Every is the least time between the beginnings of two queries. After a
	// query that failed it is twice as long, up to 16 times.
	Every time.Duration
	// Jitter lengthens each such time by a random share up to this one, so that
	// many programs don't ask in step.
	Jitter float64
	// Batch bounds the keys of one query. The keys of further requests take
	// their turn in the next one.
	Batch int
	// Cache bounds the answers that are kept for Get. Beyond, old ones go.
	Cache int
	// Timeout bounds the time of one query.
	Timeout time.Duration
	// Failures is the number of queries in a row that may fail; then all waits
	// end with the last error.
	Failures int
}

// Answer is what a query said about one key.
type Answer[V any] struct {
	Value V
	Known bool      // the query's answer contained the key
	At    time.Time // beginning of the query
}

// Age of the answer.
func (a Answer[V]) Age() time.Duration { return time.Since(a.At) }

type statusQuery[K comparable, V any] struct {
	key   K
	until func(Answer[V]) bool
}

type statusRequest[K comparable, V any] = Request[statusQuery[K, V], Answer[V]]

// Status answers many requests by one query.
type Status[K comparable, V any] struct {
	config StatusConfig[K, V]
	s      *Scheduler
	h      *Handle[statusQuery[K, V], Answer[V]]
	nudged chan struct{}

	mu      sync.Mutex
	waiting []*statusRequest[K, V] // those that have waited longest for a query first
	answers map[K]Answer[V]

	next     time.Time // when the next query may begin; for block only
	failures int
}

// NewStatus makes the status call known to s.
func NewStatus[K comparable, V any](s *Scheduler, c StatusConfig[K, V]) *Status[K, V] {
	c.Name = cmp.Or(c.Name, unnamed)
	c.Every = positive(c.Every, DefaultStatusEvery)
	c.Batch = positive(c.Batch, DefaultStatusBatch)
	c.Cache = positive(c.Cache, DefaultStatusCache)
	c.Timeout = positive(c.Timeout, DefaultStatusTimeout)
	c.Failures = positive(c.Failures, DefaultStatusFailures)
	if c.Jitter <= 0 {
		c.Jitter = DefaultStatusJitter
	}
	st := &Status[K, V]{config: c, s: s, nudged: make(chan struct{}, 1), answers: make(map[K]Answer[V])}
	st.h = Register(s, Kind[statusQuery[K, V], Answer[V]]{
		Name: c.Name, Group: st.group, Block: st.block, Unblock: st.nudge, Concurrent: true, slowBlock: true,
	})
	return st
}

// Wait waits until an answer about key satisfies until, and returns it. The
// queries about key begin after Wait is called; the answer's age is at least the
// time that the query took. until must not block, and is not called when Wait has returned.
func (st *Status[K, V]) Wait(ctx context.Context, key K, until func(Answer[V]) bool) (Answer[V], error) {
	// A query goes on whose waiters have left. It may not call what they have left behind.
	var mu sync.Mutex
	left := false
	answer, err := st.h.Wait(ctx, statusQuery[K, V]{key, func(a Answer[V]) bool {
		mu.Lock()
		defer mu.Unlock()
		return !left && until(a)
	}})
	mu.Lock()
	defer mu.Unlock()
	left = true
	return answer, err
}

// Get returns the last answer about key if it is not older than maxAge, and
// otherwise the next.
func (st *Status[K, V]) Get(ctx context.Context, key K, maxAge time.Duration) (Answer[V], error) {
	st.mu.Lock()
	a, ok := st.answers[key]
	st.mu.Unlock()
	if ok && a.Age() <= maxAge {
		return a, nil
	}
	return st.Wait(ctx, key, func(Answer[V]) bool { return true })
}

func (st *Status[K, V]) group(r *statusRequest[K, V], joined bool) {
	st.mu.Lock()
	defer st.mu.Unlock()
	if joined {
		st.waiting = append(st.waiting, r)
		st.nudge()
		return
	}
	if i := slices.Index(st.waiting, r); i >= 0 {
		st.waiting = slices.Delete(st.waiting, i, i+1)
	}
}

func (st *Status[K, V]) nudge() {
	select {
	case st.nudged <- struct{}{}:
	default:
	}
}

// block waits until a query may begin and makes it, if there is something to
// ask.
func (st *Status[K, V]) block(limit time.Duration) {
	wait := time.Until(st.next)
	if limit > 0 {
		wait = limit
	}
	if wait > 0 {
		timer := time.NewTimer(wait)
		defer timer.Stop()
		select {
		case <-timer.C:
		case <-st.nudged:
			return
		}
	}
	if asked := st.turn(); len(asked) > 0 && !time.Now().Before(st.next) {
		st.ask(asked)
	}
}

// turn takes the requests for the next query, and puts them behind the others.
func (st *Status[K, V]) turn() []*statusRequest[K, V] {
	st.mu.Lock()
	defer st.mu.Unlock()
	keys := make(map[K]bool)
	var asked, rest []*statusRequest[K, V]
	for _, r := range st.waiting {
		if keys[r.Value.key] || len(keys) < st.config.Batch {
			keys[r.Value.key] = true
			asked = append(asked, r)
		} else {
			rest = append(rest, r)
		}
	}
	st.waiting = append(rest, asked...)
	return asked
}

func (st *Status[K, V]) ask(asked []*statusRequest[K, V]) {
	begin := time.Now()
	ctx, cancel := context.WithTimeout(closingContext{context.Background(), st.s.closing}, st.config.Timeout)
	values, err := st.query(ctx, distinct(asked))
	cancel()
	st.pace(begin, err)
	if err != nil {
		if st.failures >= st.config.Failures {
			st.giveUp(fmt.Errorf("status call %s failed %d times: %w", st.config.Name, st.failures, err))
		}
		return
	}
	st.remember(asked, values, begin)
	for _, r := range asked {
		v, ok := values[r.Value.key]
		st.offer(r, Answer[V]{v, ok, begin})
	}
}

// query makes the call; its panic counts as a failure.
func (st *Status[K, V]) query(ctx context.Context, keys []K) (values map[K]V, err error) {
	panicked := try(st.config.Name, "Query", func() { values, err = st.config.Query(ctx, keys) })
	return values, errors.Join(err, panicked)
}

func (st *Status[K, V]) offer(r *statusRequest[K, V], a Answer[V]) {
	accepted := false
	err := try(st.config.Name, "until", func() { accepted = r.Value.until(a) })
	if err != nil || accepted {
		r.Done(a, err)
	}
}

// pace sets when the next query may begin.
func (st *Status[K, V]) pace(begin time.Time, err error) {
	gap := st.config.Every
	st.failures++
	if err == nil {
		st.failures = 0
	}
	gap <<= min(st.failures, 4)
	st.next = begin.Add(gap + time.Duration(rand.Float64()*st.config.Jitter*float64(gap)))
}

func (st *Status[K, V]) giveUp(err error) {
	st.failures = 0
	st.mu.Lock()
	all := slices.Clone(st.waiting)
	st.mu.Unlock()
	for _, r := range all {
		r.Done(Answer[V]{}, err)
	}
}

// remember takes answers for Get, also that a key which was asked for is not known.
func (st *Status[K, V]) remember(asked []*statusRequest[K, V], values map[K]V, at time.Time) {
	st.mu.Lock()
	defer st.mu.Unlock()
	for _, r := range asked {
		st.answers[r.Value.key] = Answer[V]{At: at}
	}
	for k, v := range values {
		st.answers[k] = Answer[V]{v, true, at}
	}
	for k, a := range st.answers {
		if len(st.answers) <= st.config.Cache {
			return
		}
		if a.At != at || len(values)+len(asked) > st.config.Cache {
			delete(st.answers, k)
		}
	}
}

func distinct[K comparable, V any](asked []*statusRequest[K, V]) []K {
	seen := make(map[K]bool)
	var keys []K
	for _, r := range asked {
		if !seen[r.Value.key] {
			seen[r.Value.key] = true
			keys = append(keys, r.Value.key)
		}
	}
	return keys
}

// closingContext ends when a scheduler is closed.
type closingContext struct {
	context.Context
	closing <-chan struct{}
}

func (c closingContext) Done() <-chan struct{} { return c.closing }

func (c closingContext) Err() error {
	if isClosed(c.closing) {
		return context.Canceled
	}
	return nil
}
