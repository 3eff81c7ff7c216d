package store

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/url"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"fairway/internal/taskqueue"
	"fairway/lib/sched"
)

// CheckAddress refuses what is no address for OpenPostgres, and one with a password, which lists
// of processes would show.
func CheckAddress(address string) error {
	u, err := url.Parse(address)
	if err != nil || u.Scheme != "postgres" && u.Scheme != "postgresql" || u.Host == "" {
		return errors.New("it is no address of a PostgreSQL; write postgres://USER@HOST:PORT/DATABASE")
	}
	if _, given := u.User.Password(); given || u.Query().Has("password") {
		return errors.New("leave the password out, which others would see; give it in PGPASSWORD or ~/.pgpass")
	}
	_, err = pgx.ParseConfig(address)
	return withoutPassword(err)
}

// postgresStore is a Store in a schema of a PostgreSQL database. All records of an Apply go in
// one round trip, which is one transaction.
//
// Who opens it for writing takes the next term, which the database counts. Each transaction
// asserts the term, so that a writer that was believed dead, and has been replaced, changes
// nothing any more, however late it wakes up.
type postgresStore struct {
	config *pgx.ConnConfig
	mode   Mode
	schema string
	where  string // for people: host, database and schema, without a password

	given   context.Context // ends with abandon: then nothing waits for the database any more
	abandon context.CancelFunc

	mu     sync.Mutex // guards what follows, and is held while the database works
	conn   *pgx.Conn  // nil while it is lost
	holder uint32     // the process of PostgreSQL that this writer had the lock by last
	term   int64      // of this writer; 0: it reads only
	closed bool
}

// ReconnectTime is how long a store waits for a PostgreSQL that does not answer, as while it is
// restarted, before Apply and Load fail.
const ReconnectTime = time.Minute

// ErrSuperseded: another writer has opened the store since. What this one was to apply is not
// there, and it must end.
var ErrSuperseded = errors.New("another server has taken the store over; this one may not write any more")

// ErrOwned: the schema holds the records of something else.
var ErrOwned = errors.New("the records there are of the state of another folder; name another schema, as ?schema=NAME")

// writerLock is the advisory lock of the writer, beside the number of its schema; preparing is held
// for a moment by who makes a schema.
const (
	writerLock = 0x46616972
	preparing  = 0x46616972776179
)

// OpenPostgres opens the store in the schema of a database that address names, as
// postgres://user@host:5432/database?schema=fairway; without a schema, fairway. The password may
// stand in PGPASSWORD or ~/.pgpass in place of the address. For writing, the schema is made if it
// is not there, and belongs to the owner from then on; another one is ErrOwned, and another live
// writer is ErrLocked.
func OpenPostgres(ctx context.Context, address string, mode Mode, owner string) (Store, error) {
	s, err := newPostgres(address, mode)
	if err != nil {
		return nil, err
	}
	if err := s.open(ctx, owner); err != nil {
		_ = s.Close()
		return nil, s.explain("open", err)
	}
	return s, nil
}

func newPostgres(address string, mode Mode) (*postgresStore, error) {
	config, err := pgx.ParseConfig(address)
	if err != nil {
		return nil, fmt.Errorf("the address of the store cannot be read; write postgres://user@host:5432/database: %w",
			withoutPassword(err))
	}
	schema := cmp.Or(config.RuntimeParams["schema"], "fairway")
	delete(config.RuntimeParams, "schema")
	config.RuntimeParams["search_path"] = pgx.Identifier{schema}.Sanitize()
	config.RuntimeParams["application_name"] = "fairway"
	config.RuntimeParams["synchronous_commit"] = "on"
	s := &postgresStore{
		config: config, mode: mode, schema: schema,
		where: fmt.Sprintf("schema %s of database %s at %s:%d", schema, config.Database, config.Host, config.Port),
	}
	s.given, s.abandon = context.WithCancel(context.Background())
	return s, nil
}

// withoutPassword is an error that shows no address: pgx quotes what it cannot read.
func withoutPassword(err error) error {
	var parse *pgconn.ParseConfigError
	if errors.As(err, &parse) {
		return errors.New("it is no URL of PostgreSQL")
	}
	return err
}

// makeRecords makes the table of a new store. Keys are compared byte by byte, so they are bytes.
const makeRecords = `CREATE TABLE IF NOT EXISTS record (
	tbl text COLLATE "C" NOT NULL, run bigint NOT NULL, key bytea NOT NULL, body bytea NOT NULL,
	PRIMARY KEY (tbl, run, key))`

func (s *postgresStore) open(ctx context.Context, owner string) (err error) {
	if s.conn, err = pgx.ConnectConfig(ctx, s.config); err != nil {
		return err
	}
	if s.mode == ReadOnly {
		return s.checkReadable(ctx)
	}
	if err := prepare(ctx, s.conn, s.schema, owner); err != nil {
		return err
	}
	if err := s.lock(ctx); err != nil {
		return err
	}
	return s.beginTerm(ctx, `UPDATE store SET term = term + 1 RETURNING version, term`)
}

// prepare makes what a schema needs for terms, where it is not there yet. Others may do so at the
// same time.
func prepare(ctx context.Context, conn *pgx.Conn, schema, owner string) error {
	return pgx.BeginFunc(ctx, conn, func(tx pgx.Tx) error {
		for _, statement := range []string{
			// Of several who make the same at once, PostgreSQL would refuse all but one.
			fmt.Sprintf(`SELECT pg_advisory_xact_lock(%d)`, int64(preparing)),
			"CREATE SCHEMA IF NOT EXISTS " + pgx.Identifier{schema}.Sanitize(),
			`CREATE TABLE IF NOT EXISTS store (one boolean PRIMARY KEY DEFAULT true CHECK (one),
				version int NOT NULL, term bigint NOT NULL, owner text NOT NULL)`,
			`CREATE TABLE IF NOT EXISTS member (name text PRIMARY KEY, term bigint NOT NULL, beat bigint NOT NULL,
				host text NOT NULL, addresses text[] NOT NULL, at timestamptz NOT NULL DEFAULT now())`,
		} {
			if _, err := tx.Exec(ctx, statement); err != nil {
				return err
			}
		}
		if _, err := tx.Exec(ctx, `INSERT INTO store (version, term, owner) VALUES (0, 0, $1) ON CONFLICT DO NOTHING`,
			owner); err != nil {
			return err
		}
		var version int
		var of string
		switch err := tx.QueryRow(ctx, `SELECT version, owner FROM store`).Scan(&version, &of); {
		case err != nil:
			return err
		case of != owner:
			return ErrOwned
		}
		return readable(version)
	})
}

// beginTerm takes a term by a statement that returns the version and the term, or no row where
// another writer came before, and brings the schema up to date. From then on the writer of the term
// before changes nothing any more.
func (s *postgresStore) beginTerm(ctx context.Context, statement string, arguments ...any) error {
	return pgx.BeginFunc(ctx, s.conn, func(tx pgx.Tx) error {
		var version int
		if err := tx.QueryRow(ctx, statement, arguments...).Scan(&version, &s.term); err != nil {
			return err
		}
		if err := readable(version); err != nil {
			return err
		}
		if _, err := tx.Exec(ctx, makeRecords); err != nil {
			return err
		}
		_, err := tx.Exec(ctx, `UPDATE store SET version = $1`, schemaVersion)
		return err
	})
}

func (s *postgresStore) checkReadable(ctx context.Context) error {
	var version int
	err := s.conn.QueryRow(ctx, `SELECT version FROM store`).Scan(&version)
	failure, ok := errors.AsType[*pgconn.PgError](err)
	if ok && failure.Code == undefinedTable || errors.Is(err, pgx.ErrNoRows) {
		return ErrUnready
	}
	switch {
	case err != nil:
		return err
	case version == 0:
		return ErrUnready
	}
	return readable(version)
}

// lock waits for up to LockWait for the lock of the writer, which lasts as long as the connection.
func (s *postgresStore) lock(ctx context.Context) error {
	for waited := time.Duration(0); ; waited += lockPause {
		var got bool
		err := s.conn.QueryRow(ctx, `SELECT pg_try_advisory_lock($1, hashtext(current_schema()))`, writerLock).Scan(&got)
		if err != nil || got {
			s.holder = s.conn.PgConn().PID()
			return err
		}
		if waited >= LockWait*time.Millisecond {
			return ErrLocked
		}
		if err := sched.Default().Sleep(ctx, lockPause); err != nil {
			return err
		}
	}
}

const lockPause = 50 * time.Millisecond

// Apply is part of Store. It is repeated where the connection broke: to apply records twice is
// to apply them once, and nobody else has written meanwhile, or the term says so.
func (s *postgresStore) Apply(ctx context.Context, records []taskqueue.Record) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.mode == ReadOnly {
		return s.explain("write", ErrReadOnly)
	}
	if err := beforeApply.Hit(); err != nil {
		return err
	}
	if err := beforeCommit.Hit(); err != nil {
		return err
	}
	err := s.connected(context.WithoutCancel(ctx), func(ctx context.Context, conn *pgx.Conn) error {
		return conn.SendBatch(ctx, s.batch(records)).Close() // a batch is of one connection
	})
	if err != nil {
		return s.explain("write", err)
	}
	return afterCommit.Hit()
}

// batch is what one Apply does: the records of which the last of each name counts. Without an
// explicit transaction all of a batch is one.
func (s *postgresStore) batch(records []taskqueue.Record) *pgx.Batch {
	last := make(map[name]int, len(records))
	for i := range records {
		last[nameOf(records[i])] = i
	}
	var kept, gone columns
	for i := range records {
		switch r := &records[i]; {
		case last[nameOf(*r)] != i:
		case r.Body == nil:
			gone.add(r)
		default:
			kept.add(r)
		}
	}
	batch := new(pgx.Batch)
	batch.Queue(assertTerm, s.term)
	if len(gone.tables) > 0 {
		batch.Queue(`DELETE FROM record USING unnest($1::text[], $2::bigint[], $3::bytea[]) AS gone (tbl, run, key)
			WHERE record.tbl = gone.tbl AND record.run = gone.run AND record.key = gone.key`, gone.tables, gone.runs, gone.keys)
	}
	if len(kept.tables) > 0 {
		batch.Queue(`INSERT INTO record SELECT * FROM unnest($1::text[], $2::bigint[], $3::bytea[], $4::bytea[])
			ON CONFLICT (tbl, run, key) DO UPDATE SET body = excluded.body`, kept.tables, kept.runs, kept.keys, kept.bodies)
	}
	return batch
}

// assertTerm fails in a transaction of a writer whose term is over, and keeps the next one from
// beginning before the transaction has ended. Division by zero is how one statement of a batch ends all
// of it.
const assertTerm = `SELECT 1 / count(*) FROM (SELECT 1 FROM store WHERE term = $1 FOR SHARE) AS mine`

// columns are records as PostgreSQL takes many at once.
type columns struct {
	tables       []string
	runs         []int64
	keys, bodies [][]byte
}

func (c *columns) add(r *taskqueue.Record) {
	c.tables, c.runs = append(c.tables, r.Table), append(c.runs, int64(r.Run))
	c.keys, c.bodies = append(c.keys, []byte(r.Key)), append(c.bodies, r.Body)
}

// connected does something with the connection. Where that breaks it makes another one, and
// tries again for up to ReconnectTime. The caller holds the mutex.
func (s *postgresStore) connected(ctx context.Context, do func(context.Context, *pgx.Conn) error) error {
	if s.closed {
		return errors.New("the store is closed")
	}
	ctx, cancel := context.WithTimeout(ctx, ReconnectTime)
	defer cancel()
	defer context.AfterFunc(s.given, cancel)()
	for {
		err := s.reconnect(ctx)
		if err == nil {
			err = do(ctx, s.conn)
		}
		if err == nil || !broken(err) {
			return superseded(err)
		}
		if s.conn != nil {
			_ = s.conn.Close(ctx)
			s.conn = nil
		}
		if sched.Default().Sleep(ctx, lockPause) != nil {
			return err
		}
	}
}

// reconnect makes a connection where there is none. A writer takes its lock again, unless another
// one has begun a term. PostgreSQL may not have heard that the line was cut, and hold the lock by
// the connection before: that one is ended.
func (s *postgresStore) reconnect(ctx context.Context) (err error) {
	if s.conn != nil {
		return nil
	}
	if s.conn, err = pgx.ConnectConfig(ctx, s.config); err != nil {
		s.conn = nil
		return err
	}
	if s.mode == ReadOnly {
		return nil
	}
	if err := s.checkTerm(ctx); err != nil {
		return err
	}
	if _, err := s.conn.Exec(ctx, `SELECT pg_terminate_backend(pid) FROM pg_locks
		WHERE locktype = 'advisory' AND classid = $1 AND pid = $2`, uint32(writerLock), s.holder); err != nil {
		return err
	}
	if err := s.lock(ctx); !errors.Is(err, ErrLocked) {
		return err
	}
	return cmp.Or(s.checkTerm(ctx), errLockHeld)
}

// errLockHeld: somebody has the lock, and has not begun a term yet. It is tried again.
var errLockHeld = errors.New("somebody is opening the store")

func (s *postgresStore) checkTerm(ctx context.Context) error {
	var term int64
	if err := s.conn.QueryRow(ctx, `SELECT term FROM store`).Scan(&term); err != nil {
		return err
	}
	if term != s.term {
		return ErrSuperseded
	}
	return nil
}

// Codes of errors of PostgreSQL.
const (
	undefinedTable = "42P01"
	divisionByZero = "22012"
	diskFull       = "53100"
)

func superseded(err error) error {
	if failure, ok := errors.AsType[*pgconn.PgError](err); ok && failure.Code == divisionByZero {
		return ErrSuperseded
	}
	return err
}

// broken reports whether an error is one of the connection, or of a server that starts or stops.
func broken(err error) bool {
	if errors.Is(err, ErrSuperseded) {
		return false
	}
	if errors.Is(err, errLockHeld) {
		return true
	}
	if failure, ok := errors.AsType[*pgconn.PgError](err); ok {
		class := failure.Code[:min(2, len(failure.Code))]
		return class == "57" || class == "08"
	}
	var network net.Error
	var connecting *pgconn.ConnectError
	return errors.As(err, &network) || errors.As(err, &connecting) || errors.Is(err, io.EOF) ||
		errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, net.ErrClosed) || strings.Contains(err.Error(), "conn closed")
}

// eachPart is how many records Each reads at a time.
const eachPart = 1000

// Load is part of Store.
func (s *postgresStore) Load(ctx context.Context, table string) (all []taskqueue.Record, err error) {
	err = s.Each(ctx, table, func(r taskqueue.Record) error {
		all = append(all, r)
		return nil
	})
	return all, err
}

// Each is part of Store.
func (s *postgresStore) Each(ctx context.Context, table string, take func(taskqueue.Record) error) error {
	run, key := int64(-1), []byte{}
	for {
		part, err := s.read(ctx, table, `AND (run, key) > ($2, $3) ORDER BY run, key LIMIT $4`, run, key, eachPart)
		if err != nil {
			return err
		}
		for _, r := range part {
			if err := take(r); err != nil {
				return err
			}
			run, key = int64(r.Run), []byte(r.Key)
		}
		if len(part) < eachPart {
			return nil
		}
	}
}

// LoadPart is part of Store.
func (s *postgresStore) LoadPart(
	ctx context.Context, table string, run taskqueue.RunID, from, below string, most int,
) ([]taskqueue.Record, error) {
	return s.read(ctx, table, `AND run = $2 AND key >= $3 AND key < $4 ORDER BY key LIMIT $5`, int64(run), []byte(from),
		[]byte(below), most)
}

func (s *postgresStore) read(
	ctx context.Context, table, which string, arguments ...any,
) (part []taskqueue.Record, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	arguments = slices.Insert(arguments, 0, any(table))
	err = s.connected(ctx, func(ctx context.Context, conn *pgx.Conn) (err error) {
		batch := new(pgx.Batch)
		if s.mode != ReadOnly { // one that was replaced must not decide by what the next one has changed
			batch.Queue(assertTerm, s.term)
		}
		batch.Queue(`SELECT run, key, body FROM record WHERE tbl = $1 `+which, arguments...)
		results := conn.SendBatch(ctx, batch)
		defer func() { err = errors.Join(err, results.Close()) }()
		if s.mode != ReadOnly {
			if _, err := results.Exec(); err != nil {
				return err
			}
		}
		rows, err := results.Query()
		if err != nil {
			return err
		}
		part, err = pgx.CollectRows(rows, func(row pgx.CollectableRow) (taskqueue.Record, error) {
			var run int64
			var key []byte
			r := taskqueue.Record{Table: table}
			err := row.Scan(&run, &key, &r.Body)
			r.Run, r.Key = taskqueue.RunID(run), string(key)
			return r, err
		})
		return err
	})
	if ended := ctx.Err(); ended != nil {
		return nil, ended
	}
	return part, s.explain("read", err)
}

// Close is part of Store.
func (s *postgresStore) Close() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.closed = true
	s.abandon()
	if s.conn == nil {
		return nil
	}
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
	defer cancel()
	err := s.conn.Close(ctx)
	s.conn = nil
	return s.explain("close", err)
}

// explain wraps what PostgreSQL says in what a caller may decide on.
func (s *postgresStore) explain(doing string, err error) error {
	if err == nil {
		return nil
	}
	if isFull(err) {
		return fmt.Errorf("%s %s: %w (%w)", doing, s.where, ErrFull, err)
	}
	return fmt.Errorf("%s %s: %w", doing, s.where, err)
}

func isFull(err error) bool {
	failure, ok := errors.AsType[*pgconn.PgError](err)
	return ok && failure.Code == diskFull
}
