package dispatch

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"
	"time"

	"fairway/internal/taskqueue"
	"fairway/lib/seed"
)

func twoUsers(a, b int64) taskqueue.Shares {
	return taskqueue.Shares{Of: []taskqueue.Share{
		{Name: "ann", User: true, Weight: a}, {Name: "bob", User: true, Weight: b},
	}}
}

// Users of weights 3 and 1 with more work than there are slots get 3 : 1 within 5 % over 1,000
// jobs: with work that has come just now, and with a backlog of hours, of several priorities, and
// with input in caches.
func TestSharesHold(t *testing.T) {
	for _, c := range []struct {
		name       string
		backlog    time.Duration
		priorities int
		files      int
		crash      bool
	}{
		{"plain", 0, 1, 0, false},
		{"backlog", 5 * time.Hour, 1, 0, false},
		{"priorities", 5 * time.Hour, 5, 0, false},
		{"caches", 0, 3, 12, false},
		{"caches and a backlog", 5 * time.Hour, 3, 12, false},
		{"restarts", 0, 1, 0, true},
	} {
		t.Run(c.name, func(t *testing.T) {
			first := seed.Of(t)
			m := marketOf(t, first, twoUsers(3, 1), taskqueue.Config{})
			ann, bob := m.user(t, "ann", c.files), m.user(t, "bob", c.files)
			for range 20 {
				m.must(t, m.submit(ann, 100, c.priorities, taskqueue.Resources{}))
				m.must(t, m.submit(bob, 100, c.priorities, taskqueue.Resources{}))
				m.now = m.now.Add(c.backlog / 20)
			}
			for range 8 {
				m.must(t, m.addPilot(2))
			}
			if c.crash {
				for i := range 10 {
					m.after(time.Duration(i)*90*time.Second, m.crash)
				}
			}
			m.must(t, m.until(m.now.Add(24*time.Hour), func() bool { return m.ended >= 1000 }))
			anns, bobs := m.had(ann), m.had(bob)
			if ratio := anns.Seconds() / bobs.Seconds(); math.Abs(ratio/3-1) > 0.05 {
				t.Errorf("FAIRWAY_SEED=%d: %v and %v of slots in %d jobs: %.3f : 1", first, anns, bobs, m.ended, ratio)
			}
		})
	}
}

func marketOf(t *testing.T, seed uint64, shares taskqueue.Shares, config taskqueue.Config) *market {
	t.Helper()
	m, err := newMarket(seed, shares, config)
	if err != nil {
		t.Fatal(err)
	}
	return m
}

func (m *market) must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatalf("after %v: %v", m.now.Sub(epoch), err)
	}
}

func (m *market) user(t *testing.T, name string, files int) *user {
	t.Helper()
	u, err := m.addUser(taskqueue.Account{User: name}, files, int64(5*time.Second))
	m.must(t, err)
	return u
}

// The first job of one who comes new is given out before all others but as many as may overtake it
// because of their input.
func TestNewcomerIsNext(t *testing.T) {
	first := seed.Of(t)
	for i := range uint64(3) {
		shares := taskqueue.Shares{Of: []taskqueue.Share{{Name: "new", User: true, Weight: 1}}}
		m := marketOf(t, first+i, shares, taskqueue.Config{})
		old := []*user{m.user(t, "ann", 10), m.user(t, "bob", 10)}
		for _, u := range old {
			m.must(t, m.submit(u, 2000, 3, taskqueue.Resources{}))
		}
		m.now = m.now.Add(3 * time.Hour)
		for range 8 {
			m.must(t, m.addPilot(2))
		}
		m.must(t, m.until(m.now.Add(20*time.Minute), func() bool { return false }))
		u := m.user(t, "new", 10)
		m.must(t, m.submit(u, 1, 1, taskqueue.Resources{}))
		others, came := 0, m.now
		m.started = func(by *user, _ taskqueue.Assignment, _ *trader) error {
			if by != u && u.last.IsZero() {
				others++
			}
			return nil
		}
		m.must(t, m.until(m.now.Add(time.Hour), func() bool { return !u.last.IsZero() }))
		if longest := 35 * time.Second; others > 0 || u.last.Sub(came) > longest {
			t.Errorf("FAIRWAY_SEED=%d: it begins after %v, longest job %v, and after %d others", first+i, u.last.Sub(came),
				longest, others)
		}
	}
}

// With random groups, users, weights, arrivals, priorities, needs, input and crashes, whoever has
// ready jobs takes turns by rank, at each step, and every job ends.
func TestNobodyStarves(t *testing.T) {
	first := seed.Of(t)
	for i := range uint64(4) {
		if err := randomMarket(first + i); err != nil {
			t.Errorf("FAIRWAY_SEED=%d: %v", first+i, err)
		}
	}
}

func randomMarket(seed uint64) error {
	rng := rand.New(rand.NewPCG(seed, 9))
	shares := taskqueue.Shares{HalfLife: time.Duration(1+rng.IntN(120)) * time.Minute}
	var accounts []taskqueue.Account
	for g := range 1 + rng.IntN(4) {
		group := taskqueue.Share{Name: fmt.Sprint("g", g), Weight: 1 + rng.Int64N(5)}
		for u := range 1 + rng.IntN(3) {
			name := fmt.Sprint("u", u)
			if rng.IntN(3) > 0 {
				group.Of = append(group.Of, taskqueue.Share{Name: name, User: true, Weight: 1 + rng.Int64N(5)})
			}
			accounts = append(accounts, taskqueue.Account{Group: group.Name, User: name})
		}
		shares.Of = append(shares.Of, group)
	}
	accounts = append(accounts, taskqueue.Account{User: "alone"})
	m, err := newMarket(seed, shares, taskqueue.Config{MaxPassOver: time.Duration(1+rng.IntN(20)) * time.Minute})
	if err != nil {
		return err
	}
	var users []*user
	for _, a := range accounts {
		u, err := m.addUser(a, rng.IntN(3)*4, int64(5*time.Second))
		if err != nil {
			return err
		}
		users = append(users, u)
		for range 1 + rng.IntN(8) {
			n, needs := 1+rng.IntN(30), taskqueue.Resources{MilliCPUs: 1000 * (1 + rng.Int64N(4))}
			m.after(time.Duration(rng.Int64N(int64(time.Hour))), func() error { return m.submit(u, n, 4, needs) })
		}
	}
	for range 2 + rng.IntN(4) {
		if err := m.addPilot(4); err != nil {
			return err
		}
	}
	for range rng.IntN(4) {
		m.after(time.Duration(rng.Int64N(int64(2*time.Hour))), m.crash)
	}
	if err := m.until(m.now.Add(100*time.Hour), func() bool { return false }); err != nil {
		return err
	}
	for _, u := range users {
		if u.done != u.jobs {
			return fmt.Errorf("%v: %d of %d jobs were done", u.Account, u.done, u.jobs)
		}
	}
	return nil
}

// Usage counts half after a half-life, and survives a restart.
func TestUsageDecaysAndIsDurable(t *testing.T) {
	m := marketOf(t, seed.Of(t), taskqueue.Shares{HalfLife: time.Hour}, taskqueue.Config{})
	ann := m.user(t, "ann", 0)
	m.must(t, m.addPilot(1))
	m.must(t, m.submit(ann, 20, 1, taskqueue.Resources{}))
	m.must(t, m.until(m.now.Add(time.Hour), func() bool { return ann.done == 20 }))
	usage := func() time.Duration { return m.core.Shares()[0].Usage }
	used := usage()
	if got := ann.got; used > got || used < got*8/10 {
		t.Errorf("%v of slots count as %v", got, used)
	}
	m.must(t, m.until(m.now.Add(time.Minute), func() bool { return false }))
	m.now = m.now.Add(59 * time.Minute)
	m.must(t, m.step(taskqueue.Tick{}))
	if half := usage(); math.Abs(half.Seconds()/used.Seconds()-0.5) > 1e-6 {
		t.Errorf("%v count as %v after an hour", used, half)
	}
	before := usage()
	m.must(t, m.crash())
	if after := usage(); math.Abs(after.Seconds()/before.Seconds()-1) > 1e-6 {
		t.Errorf("%v count as %v after a restart", before, after)
	}
	if said := m.core.SharesSaid(); said.HalfLife != time.Hour {
		t.Errorf("the half-life is %v after a restart", said.HalfLife)
	}
}

// A user never has more than a quota says, and all of it while there is work.
func TestQuotasAndLimitsHold(t *testing.T) {
	first := seed.Of(t)
	for i := range uint64(3) {
		shares := taskqueue.Shares{
			Limits: map[string]int64{"licence": 3},
			Of: []taskqueue.Share{
				{Name: "ann", User: true, Weight: 9, Limits: taskqueue.Quota{Running: 3}},
				{Name: "bob", User: true, Weight: 9,
					Limits: taskqueue.Quota{Sites: map[string]taskqueue.SiteQuota{"here": {MilliCPUs: 4000}}}},
			},
		}
		m := marketOf(t, first+i, shares, taskqueue.Config{})
		ann, bob, cid := m.user(t, "ann", 3), m.user(t, "bob", 0), m.user(t, "cid", 0)
		for range 4 {
			m.must(t, m.addPilot(4))
		}
		most := map[*user]int{}
		licences, mostLicences := int64(0), int64(0)
		m.started = func(u *user, a taskqueue.Assignment, _ *trader) error {
			if len(a.Needs.Countable) > 0 {
				return fmt.Errorf("a pilot is to have %v", a.Needs.Countable)
			}
			now := map[*user]int{}
			for _, at := range m.core.fleet.attempts {
				now[m.users[at.job.id.Run()]]++
			}
			most[u] = max(most[u], now[u])
			licences = m.core.shares.pools["licence"].Used()
			mostLicences = max(mostLicences, licences)
			return nil
		}
		for _, u := range []*user{ann, bob, cid} {
			m.must(t, m.submit(u, 60, 2, taskqueue.Resources{}))
			m.must(t, m.submit(u, 10, 2, taskqueue.Resources{Countable: map[string]int64{"licence": 1}}))
			m.must(t, m.submit(u, 2, 1, taskqueue.Resources{Countable: map[string]int64{"licence": 3}}))
		}
		m.must(t, m.until(m.now.Add(50*time.Hour), func() bool { return false }))
		if most[ann] != 3 || most[bob] != 4 || most[cid] < 9 || mostLicences != 3 {
			t.Errorf("FAIRWAY_SEED=%d: at most %d, %d and %d jobs ran, and %d licences were in use", first+i,
				most[ann], most[bob], most[cid], mostLicences)
		}
		for _, u := range []*user{ann, bob, cid} {
			if u.done != u.jobs {
				t.Errorf("FAIRWAY_SEED=%d: %d of %d jobs of %v were done", first+i, u.done, u.jobs, u.Account)
			}
		}
		if p := m.core.shares.pools["licence"]; p.Used() != 0 {
			t.Errorf("%d licences were not given back", p.Used())
		}
	}
}

// A user who has stored what a quota allows starts nothing more, until something is removed.
func TestNothingStartsBeyondWhatMayBeStored(t *testing.T) {
	shares := taskqueue.Shares{Of: []taskqueue.Share{
		{Name: "ann", User: true, Weight: 1, Limits: taskqueue.Quota{Stored: 10 * outputSize}},
	}}
	m := marketOf(t, seed.Of(t), shares, taskqueue.Config{})
	ann := m.user(t, "ann", 0)
	m.must(t, m.step(taskqueue.SetKept{Account: taskqueue.Account{User: "ann"}, Bytes: 4 * outputSize}))
	m.must(t, m.submit(ann, 20, 1, taskqueue.Resources{}))
	m.must(t, m.addPilot(1))
	m.must(t, m.until(m.now.Add(time.Hour), func() bool { return false }))
	if ann.done != 6 {
		t.Errorf("%d jobs were done", ann.done)
	}
	m.must(t, m.step(taskqueue.SetKept{Account: taskqueue.Account{User: "ann"}, Bytes: 0}))
	m.must(t, m.until(m.now.Add(time.Hour), func() bool { return false }))
	if ann.done != 10 {
		t.Errorf("%d jobs were done", ann.done)
	}
}
