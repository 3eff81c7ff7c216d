package store

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5"

	"fairway/lib/sched"
)

// Member is a server of a state whose records are in a PostgreSQL and which may have several servers:
// one is active, the others stand by.
//
// Each member has a row there, in which it counts its beats. The active one is the member whose row
// bears the term of the store. One that stands by begins the next term when
//
//   - no row bears the term, and nobody has the lock of the writer: the active one has ended in order,
//   - nobody has had the lock for [freeBeats] beats in which the row did not change: the active one was
//     killed,
//   - or the row has not changed for a lease: the active one was frozen, or is cut off.
//
// Whom the others believe to be dead does not matter for what is written: each transaction asserts its
// term. The lease has a member that is cut off from the database say nothing any more when another one
// may have taken its place: it counts from the moment before it sent its last beat, the others from the
// moment when they saw that. No two clocks are compared.
//
// Any goroutine may call the methods.
type Member struct {
	postgres *postgresStore // how to connect; it is never opened
	owner    string
	address  string
	name     string
	lease    time.Duration
	sched    *sched.Scheduler

	mu      sync.Mutex // guards what follows, and is held while the database works
	self    Reached
	conn    *pgx.Conn // nil while it is lost
	term    int64     // 0: it stands by
	unclean bool
	seen    assembly
	heard   map[string]hearing // of each other member, by its name

	contact atomic.Pointer[contact] // written with the mutex held
}

// contact is what a member knows of the database without asking it.
type contact struct {
	good time.Time // when the last beat was sent that has arrived
	lost bool      // the one after it has failed
}

// hearing is the last beat of a member, and when it was seen first.
type hearing struct {
	beat int64
	at   time.Time
}

// Reached is how a member is reached: the name of its host, for people, and its addresses, HOST:PORT.
type Reached struct {
	Host      string
	Addresses []string
}

// LeaseBeats is how many beats a member sends in a lease.
const LeaseBeats = 10

// freeBeats is for how many beats nobody must have had the lock.
const freeBeats = 3

// MinLease is the shortest lease. In a shorter one a busy machine would look like a dead one.
const MinLease = time.Second

// patience is how long a member that stands by waits for the database at a time, however short the lease: the
// machine may be busy.
const patience = 10 * time.Second

// ErrLeaseOver: the database was not reached for a lease, so another member may be active by now.
var ErrLeaseOver = errors.New("the database of the store was not reached for longer than the lease")

// JoinPostgres makes this process a member. It stands by until Await. The address and the owner are
// those of OpenPostgres, and so are the errors; the schema is made if it is not there.
func JoinPostgres(
	ctx context.Context, address, owner string, self Reached, lease time.Duration, s *sched.Scheduler,
) (*Member, error) {
	postgres, err := newPostgres(address, ReadWrite)
	if err != nil {
		return nil, err
	}
	m := &Member{postgres: postgres, owner: owner, address: address, name: rand.Text(), lease: lease, sched: s, self: self,
		heard: map[string]hearing{}}
	m.contact.Store(new(contact))
	if m.conn, err = m.connect(ctx); err == nil {
		err = prepare(ctx, m.conn, postgres.schema, owner)
	}
	if err != nil {
		m.Leave()
		return nil, postgres.explain("open", err)
	}
	return m, nil
}

func (m *Member) connect(ctx context.Context) (*pgx.Conn, error) {
	config := m.postgres.config.Copy()
	config.RuntimeParams["synchronous_commit"] = "off" // a beat that a crash loses was heard
	return pgx.ConnectConfig(ctx, config)
}

// BeatTime is how often a member sends a beat.
func (m *Member) BeatTime() time.Duration { return m.lease / LeaseBeats }

// Lease is how long an active member may be silent.
func (m *Member) Lease() time.Duration { return m.lease }

// Term is the term of this member; 0: it stands by.
func (m *Member) Term() uint64 {
	m.mu.Lock()
	defer m.mu.Unlock()
	return uint64(m.term)
}

// Unclean reports whether the active member before may still run: it has not ended in order.
func (m *Member) Unclean() bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.unclean
}

// SetAddresses says how this member is reached, from the next beat on.
func (m *Member) SetAddresses(addresses []string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.self.Addresses = addresses
}

// Others are the other members as they were seen last: the active one first, then by their names.
func (m *Member) Others() []Reached {
	m.mu.Lock()
	defer m.mu.Unlock()
	return slices.Clone(m.seen.others)
}

// Relieved reports whether another member is there that would become active if this one ended.
func (m *Member) Relieved() bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, h := range m.heard {
		// The first beat that is seen of one may be its last.
		if !h.at.IsZero() && time.Since(h.at) < m.lease {
			return true
		}
	}
	return false
}

// Active is the active member as it was seen last, unless it is this one; false: there is none.
func (m *Member) Active() (r Reached, ok bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.term != 0 || m.seen.active.name == "" {
		return Reached{}, false
	}
	return m.seen.others[0], true
}

// assembly is what a member sees of the others in one look.
type assembly struct {
	term   int64 // of the store
	active beating
	held   bool // somebody has the lock of the writer
	others []Reached
}

// beating is the row of the active member: its name and its beats; empty: there is none.
type beating struct {
	name string
	beat int64
}

// forgotten removes the rows of members that have ended without a word, by the clock of the database
// alone.
const forgotten = `DELETE FROM member WHERE at < now() - interval '1 hour' AND name <> $1`

// look sends a beat and looks at the others. The caller holds the mutex.
func (m *Member) look(ctx context.Context) (now assembly, err error) {
	err = m.connected(ctx, func(ctx context.Context) (err error) {
		now, err = m.exchange(ctx)
		return err
	})
	return now, err
}

// connected does something with the connection, and makes one if there is none. The caller holds the
// mutex.
func (m *Member) connected(ctx context.Context, do func(context.Context) error) (err error) {
	limit := m.lease / 4
	if m.term == 0 {
		limit = max(limit, patience) // nobody relies on this member
	}
	calling := ctx
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	defer func() {
		if err != nil && calling.Err() == nil {
			m.contact.Store(&contact{m.contact.Load().good, true})
		}
	}()
	if m.conn == nil {
		if m.conn, err = m.connect(ctx); err != nil {
			m.conn = nil
			return err
		}
	}
	if err = do(ctx); err != nil && (broken(err) || m.conn.IsClosed()) {
		_ = m.conn.Close(context.WithoutCancel(ctx))
		m.conn = nil
	}
	return err
}

func (m *Member) exchange(ctx context.Context) (now assembly, err error) {
	sent := time.Now()
	batch := new(pgx.Batch)
	batch.Queue(`INSERT INTO member (name, term, beat, host, addresses) VALUES ($1, $2, 1, $3, $4) ON CONFLICT (name)
		DO UPDATE SET term = $2, beat = member.beat + 1, host = $3, addresses = $4, at = now()`,
		m.name, m.term, m.self.Host, append([]string{}, m.self.Addresses...))
	batch.Queue(forgotten, m.name)
	batch.Queue(`SELECT term, EXISTS (SELECT FROM pg_locks WHERE locktype = 'advisory' AND classid = $1 AND
		database = (SELECT oid FROM pg_database WHERE datname = current_database()) AND granted AND
		objid::bigint = (hashtext(current_schema())::bigint & x'ffffffff'::bigint)) FROM store`, uint32(writerLock))
	batch.Queue(`SELECT member.name, member.term = store.term AND store.term > 0, beat, host, addresses FROM member, store
		WHERE name <> $1 ORDER BY member.term DESC, name`, m.name)
	results := m.conn.SendBatch(ctx, batch)
	defer func() { err = errors.Join(err, results.Close()) }()
	for range 2 {
		if _, err := results.Exec(); err != nil {
			return now, err
		}
	}
	if err := results.QueryRow().Scan(&now.term, &now.held); err != nil {
		return now, err
	}
	rows, err := results.Query()
	if err != nil {
		return now, err
	}
	var name string
	var active bool
	var beat int64
	var r Reached
	_, err = pgx.ForEachRow(rows, []any{&name, &active, &beat, &r.Host, &r.Addresses}, func() error {
		if active {
			now.active = beating{name, beat}
		}
		now.others = append(now.others, Reached{r.Host, slices.Clone(r.Addresses)})
		if before, known := m.heard[name]; !known {
			m.heard[name] = hearing{beat: beat}
		} else if before.beat != beat {
			m.heard[name] = hearing{beat, sent}
		}
		return nil
	})
	if err == nil {
		m.seen = now
		m.contact.Store(&contact{good: sent})
	}
	return now, err
}

// Await stands by until this member is the active one, and returns the store, which is the member's
// until it is closed. While the database does not answer it waits on.
func (m *Member) Await(ctx context.Context) (Store, error) {
	var last assembly
	var since time.Time // the last change of what was seen
	free := 0           // beats for which nobody has had the lock
	for {
		m.mu.Lock()
		m.term = 0
		now, err := m.look(ctx)
		m.mu.Unlock()
		switch {
		case ctx.Err() != nil:
			return nil, ctx.Err()
		case err != nil && !passes(err):
			return nil, m.postgres.explain("stand by for", err)
		case err != nil:
			since, free = time.Time{}, 0 // the active one may not have reached it either
		default:
			if since.IsZero() || now.term != last.term || now.active != last.active {
				since, free = time.Now(), 0
			}
			if free++; now.held {
				free = 0
			}
			last = now
		}
		if err == nil && m.mayTake(now, free, time.Since(since)) {
			s, err := m.take(ctx, now)
			if err == nil {
				return s, nil
			}
			if !passes(err) && !errors.Is(err, pgx.ErrNoRows) && ctx.Err() == nil {
				return nil, m.postgres.explain("take over", err)
			}
		}
		if err := m.sched.Sleep(ctx, m.BeatTime()); err != nil {
			return nil, err
		}
	}
}

// mayTake reports whether the next term may begin.
func (m *Member) mayTake(now assembly, free int, unchanged time.Duration) bool {
	if now.active.name == "" {
		return !now.held
	}
	return free >= freeBeats || unchanged > m.lease
}

// passes reports whether an error is one that waiting may mend.
func passes(err error) bool {
	return broken(err) || errors.Is(err, context.DeadlineExceeded) || isFull(err) || errors.Is(err, ErrLocked)
}

// take begins the next term, unless another member has, or the active one lives after all: the error is
// pgx.ErrNoRows then.
func (m *Member) take(ctx context.Context, seen assembly) (_ Store, err error) {
	ctx, cancel := context.WithTimeout(ctx, max(m.lease, patience))
	defer cancel()
	s, err := newPostgres(m.address, ReadWrite)
	if err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			_ = s.Close()
		}
	}()
	sent := time.Now()
	if s.conn, err = pgx.ConnectConfig(ctx, s.config); err != nil {
		return nil, err
	}
	// What another writer has begun is done when the row is free, and what it begins later fails.
	// The row of this member bears the term in the same moment.
	err = s.beginTerm(ctx, `WITH taken AS (UPDATE store SET term = term + 1 WHERE term = $1 AND
			NOT EXISTS (SELECT FROM member WHERE name = $2 AND beat <> $3) RETURNING version, term),
		mine AS (UPDATE member SET term = taken.term FROM taken WHERE name = $4)
		SELECT version, term FROM taken`, seen.term, seen.active.name, seen.active.beat, m.name)
	if err != nil {
		return nil, err
	}
	for {
		// It may be frozen, and its connection with it. It would not have the lock for long: with the next
		// thing that it does it learns that its term is over.
		if _, err := s.conn.Exec(ctx, `SELECT pg_terminate_backend(pid) FROM pg_locks WHERE locktype = 'advisory' AND
			classid = $1 AND objid::bigint = (hashtext(current_schema())::bigint & x'ffffffff'::bigint) AND
			database = (SELECT oid FROM pg_database WHERE datname = current_database()) AND pid <> pg_backend_pid()`,
			uint32(writerLock)); err != nil {
			return nil, err
		}
		if err := s.lock(ctx); err == nil {
			break
		} else if !errors.Is(err, ErrLocked) {
			return nil, err
		}
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	m.term, m.unclean = s.term, seen.active.name != ""
	m.contact.Store(&contact{good: sent})
	return s, nil
}

// Beat sends a beat of the active member. The error is ErrSuperseded where another one has begun a
// term, and ErrLeaseOver where one may have.
func (m *Member) Beat(ctx context.Context) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	now, err := m.look(ctx)
	switch {
	case err == nil && now.term != m.term:
		return ErrSuperseded
	case err != nil && time.Since(m.contact.Load().good) > m.lease*6/10: // the next look may take until the lease is over
		return fmt.Errorf("%w (%w)", ErrLeaseOver, err)
	}
	return nil
}

// Current reports whether no other member can have taken the place of this active one by a lease that is over: what
// it knew when it was asked is no older than that. It asks nobody, and does not wait. A member that was frozen learns
// of it so before it has said anything. While the database is not reached, others may find the lock of the writer free,
// and it is current for as long as they look.
func (m *Member) Current() bool {
	last := m.contact.Load()
	limit := m.lease
	if last.lost {
		limit = freeBeats * m.BeatTime()
	}
	return time.Since(last.good) <= limit
}

// Assert returns nil if this member is the active one at a moment of the call. It is for what is done
// outside of the database.
func (m *Member) Assert(ctx context.Context) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	var term int64
	err := m.connected(ctx, func(ctx context.Context) error {
		return m.conn.QueryRow(ctx, `SELECT term FROM store`).Scan(&term)
	})
	if err == nil && (m.term == 0 || term != m.term) {
		return ErrSuperseded
	}
	return m.postgres.explain("ask", err)
}

// Leave ends the membership. An active one has closed its store before, and others begin the next term
// at once.
func (m *Member) Leave() {
	m.mu.Lock()
	defer m.mu.Unlock()
	ctx, cancel := context.WithTimeout(context.Background(), MinLease)
	defer cancel()
	if m.conn != nil {
		_, _ = m.conn.Exec(ctx, `DELETE FROM member WHERE name = $1`, m.name) // else it is believed dead in time
		_ = m.conn.Close(ctx)
		m.conn = nil
	}
	m.postgres.abandon()
}

// Abandon has nothing wait any more for a database that a store is in: what is under way fails. It
// is for a server that may write no more.
func Abandon(s Store) {
	if p, ok := s.(*postgresStore); ok {
		p.abandon()
	}
}

// TermOf is the term of a store in a PostgreSQL that was opened for writing; 0: stores of its kind have
// none.
func TermOf(s Store) uint64 {
	if p, ok := s.(*postgresStore); ok {
		return uint64(p.term)
	}
	return 0
}
