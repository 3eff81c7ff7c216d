package store_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"fairway/internal/store"
	"fairway/internal/store/storetest"
	"fairway/internal/taskqueue"
	"fairway/lib/sched"
)

// shortLease is the lease of the members of these tests: a busy machine keeps it.
const shortLease = 4 * store.MinLease

func join(t *testing.T, address, host string) *store.Member {
	t.Helper()
	return joinFor(t, address, host, shortLease)
}

func joinFor(t *testing.T, address, host string, lease time.Duration) *store.Member {
	t.Helper()
	m, err := store.JoinPostgres(t.Context(), address, "me", store.Reached{Host: host, Addresses: []string{host + ":1"}},
		lease, sched.Default())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(m.Leave)
	return m
}

func await(t *testing.T, m *store.Member) store.Store {
	t.Helper()
	s, err := m.Await(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() })
	return s
}

// beats sends beats of an active member until the function that it returns is called, which gives the
// first error.
func beats(ctx context.Context, m *store.Member) (stop func() error) {
	ctx, cancel := context.WithCancel(ctx)
	ended := make(chan error, 1)
	go func() {
		var err error
		for err == nil && sched.Default().Sleep(ctx, m.BeatTime()) == nil {
			err = m.Beat(context.WithoutCancel(ctx))
		}
		ended <- err
	}()
	return func() error {
		cancel()
		return <-ended
	}
}

func put(s store.Store, body string) error {
	return s.Apply(context.Background(), []taskqueue.Record{{Table: "job", Key: "1", Body: []byte(body)}})
}

func holds(t *testing.T, s store.Store, want string) {
	t.Helper()
	all, err := s.Load(t.Context(), "job")
	if err != nil || len(all) != 1 || string(all[0].Body) != want {
		t.Errorf("%v, %v; want %s", all, err, want)
	}
}

// standsBy reports that a member has not become active in some leases.
func standsBy(t *testing.T, m *store.Member, leases time.Duration) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), leases*shortLease)
	defer cancel()
	if s, err := m.Await(ctx); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("a member that is to stand by has %v, %v", s, err)
	}
}

// An active member that beats stays, and one that stands by knows how it is reached.
func TestOneMemberIsActive(t *testing.T) {
	database := storetest.Postgres(t)
	address := database.Address()
	first, second := join(t, address, "a"), join(t, address, "b")
	s := await(t, first)
	stop := beats(t.Context(), first)
	standsBy(t, second, 2)
	if at, ok := second.Active(); !ok || at.Host != "a" || at.Addresses[0] != "a:1" {
		t.Error("the active member is", at, ok)
	}
	if err := errors.Join(stop(), put(s, "first")); err != nil {
		t.Error(err)
	}
	if others := first.Others(); len(others) != 1 || others[0].Host != "b" {
		t.Error("the others are", others)
	}
	if first.Unclean() || first.Term() == 0 || second.Term() != 0 {
		t.Error(first.Unclean(), first.Term(), second.Term())
	}
}

// One that has ended in order is followed at once, and nobody thinks that it may still write.
func TestAMemberEndsInOrder(t *testing.T) {
	database := storetest.Postgres(t)
	address := database.Address()
	first, second := join(t, address, "a"), join(t, address, "b")
	s := await(t, first)
	if first.Relieved() {
		t.Error("nobody would take its place")
	}
	next := make(chan store.Store, 1)
	go func() { next <- await(t, second) }()
	for !first.Relieved() {
		if err := errors.Join(first.Beat(t.Context()), sched.Default().Sleep(t.Context(), first.BeatTime())); err != nil {
			t.Fatal(err)
		}
	}
	if err := errors.Join(put(s, "first"), s.Close()); err != nil {
		t.Fatal(err)
	}
	first.Leave()
	holds(t, <-next, "first")
	if second.Unclean() {
		t.Error("the member before has ended in order")
	}
}

// One that was killed has no lock any more, and is followed.
func TestAMemberIsKilled(t *testing.T) {
	database := storetest.Postgres(t)
	address := database.Address()
	first, second := join(t, address, "a"), join(t, address, "b")
	s := await(t, first)
	if err := errors.Join(put(s, "first"), s.Close()); err != nil { // as the kernel closes it
		t.Fatal(err)
	}
	holds(t, await(t, second), "first")
	if !second.Unclean() {
		t.Error("the member before has not ended in order")
	}
}

// One that was frozen has its connection and the lock, and beats no more. When it wakes up it neither
// writes nor reads, and cannot become active again but as one that stands by.
func TestAMemberIsFrozen(t *testing.T) {
	database := storetest.Postgres(t)
	address := database.Address()
	first, second := join(t, address, "a"), join(t, address, "b")
	s := await(t, first)
	if err := put(s, "first"); err != nil {
		t.Fatal(err)
	}
	if !first.Current() {
		t.Error("nobody can have taken its place, and it does not know")
	}
	next := await(t, second)
	if first.Current() || !second.Current() {
		t.Errorf("which one is current: the first %v, the second %v", first.Current(), second.Current())
	}
	if err := put(next, "second"); err != nil {
		t.Fatal(err)
	}
	if second.Term() <= first.Term() {
		t.Errorf("the terms are %d and %d", first.Term(), second.Term())
	}
	_, loaded := s.Load(t.Context(), "job")
	for what, err := range map[string]error{
		"write": put(s, "late"), "read": loaded, "assert": first.Assert(t.Context()), "beat": first.Beat(t.Context()),
	} {
		if !errors.Is(err, store.ErrSuperseded) {
			t.Errorf("%s: %v", what, err)
		}
	}
	_ = s.Close()
	stop := beats(t.Context(), second)
	standsBy(t, first, 2)
	if err := stop(); err != nil {
		t.Error(err)
	}
	holds(t, next, "second")
}

// A restart of PostgreSQL within the lease changes nothing.
func TestMembersWhosePostgresIsRestarted(t *testing.T) {
	database := storetest.Postgres(t)
	address := database.Address()
	first, second := joinFor(t, address, "a", time.Minute), joinFor(t, address, "b", time.Minute)
	s := await(t, first)
	if err := first.Beat(t.Context()); err != nil {
		t.Fatal(err)
	}
	stop := beats(t.Context(), first)
	ctx, enough := context.WithCancel(t.Context())
	standing := make(chan struct{})
	go func() {
		defer close(standing)
		if s, err := second.Await(ctx); !errors.Is(err, context.Canceled) {
			t.Errorf("a member that is to stand by has %v, %v", s, err)
		}
	}()
	for range 2 {
		database.Stop()
		database.Start()
		if err := put(s, "on"); err != nil {
			t.Error(err)
		}
	}
	enough()
	<-standing
	if err := stop(); err != nil {
		t.Error(err)
	}
}

// One that does not reach PostgreSQL ends its work before another one may begin.
func TestAMemberIsCutOff(t *testing.T) {
	database := storetest.Postgres(t)
	line := newLine(t, database.Host())
	address := database.Address()
	first := join(t, strings.Replace(address, database.Host(), line.address, 1), "a")
	second := join(t, address, "b")
	s := await(t, first)
	if err := put(s, "first"); err != nil {
		t.Fatal(err)
	}
	line.close()
	ended := make(chan error, 1)
	go func() {
		for {
			if err := first.Beat(context.Background()); err != nil {
				store.Abandon(s)
				ended <- err
				return
			}
			_ = sched.Default().Sleep(context.Background(), first.BeatTime())
		}
	}()
	written := make(chan error, 1)
	go func() { written <- put(s, "late") }()
	next := await(t, second)
	select {
	case err := <-ended:
		if !errors.Is(err, store.ErrLeaseOver) {
			t.Error(err)
		}
	default:
		t.Error("the member that was cut off believes that it is active, and another one is")
	}
	if err := <-written; err == nil {
		t.Error("it has written")
	}
	holds(t, next, "first")
}
