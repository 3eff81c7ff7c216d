package store

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io/fs"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"

	"golang.org/x/sync/errgroup"
	"golang.org/x/sys/unix"
	"modernc.org/sqlite"
	codes "modernc.org/sqlite/lib"

	"fairway/internal/disk"
)

// Mode says what a store is opened for.
type Mode uint8

const (
	// ReadWrite opens or makes a store, and keeps other processes out.
	ReadWrite Mode = iota
	// ReadOnly looks at a store that exists. A server that starts meanwhile
	// waits for the reader for up to LockWait.
	ReadOnly
)

// LockWait is how long opening a store waits for another process that has it
// open, in milliseconds, before it gives up with ErrLocked. A reader needs far
// less to load all records and close.
const LockWait = 2000

// Limits of SQLite's own.
const (
	pageSize       = 8192  // bytes
	pageCache      = 16384 // KiB of pages in memory
	checkpointSize = 1000  // pages of the write-ahead log, then they go to the main file
)

// longPath, in bytes, is where a path becomes a likely reason for SQLite not to
// open a file. What it can open depends on the links in it, too.
const longPath = 480

// sqliteStore is a Store in one SQLite file with a write-ahead log. One
// connection does everything, so statements are prepared once.
type sqliteStore struct {
	path string
	mode Mode
	db   *sql.DB

	// No other process looks at the store while it is open: which pages its log has, SQLite notes in memory
	// instead of a file. A writer is alone, and so is who reads on a full disk.
	alone bool

	mu   sync.Mutex // guards what follows
	conn *sql.Conn
	stmt statements
	rows []any // scratch space for the arguments of one statement

	large largeBodies
}

// OpenSQLite opens the store in the file path. With ReadOnly a file that does
// not exist is an error that wraps fs.ErrNotExist.
func OpenSQLite(path string, mode Mode) (Store, error) {
	s, err := openSQLite(path, mode, mode == ReadWrite)
	if mode == ReadOnly && errors.Is(err, ErrFull) { // there is no room for what readers share
		s, err = openSQLite(path, mode, true)
	}
	if err != nil {
		return nil, err
	}
	return s, nil
}

func openSQLite(path string, mode Mode, alone bool) (*sqliteStore, error) {
	s := &sqliteStore{path: path, mode: mode, alone: alone}
	if err := s.open(context.Background()); err != nil {
		_ = s.Close()
		return nil, s.explain("open", err)
	}
	return s, nil
}

func (s *sqliteStore) open(ctx context.Context) error {
	_, err := os.Stat(s.path)
	fresh := s.mode == ReadWrite && errors.Is(err, fs.ErrNotExist)
	if s.mode == ReadOnly && err != nil {
		return err
	}
	name, err := s.dataSource(fresh)
	if err != nil {
		return err
	}
	if s.db, err = sql.Open("sqlite", name); err != nil {
		return err
	}
	s.db.SetMaxOpenConns(1)
	if s.conn, err = s.db.Conn(ctx); err != nil {
		return err
	}
	version, err := checkVersion(ctx, s.conn)
	if err != nil {
		return err
	}
	if s.mode == ReadOnly && version == 0 {
		return ErrUnready
	}
	if s.mode == ReadOnly {
		return s.stmt.prepareLoad(ctx, s.conn)
	}
	if err := setUp(ctx, s.conn, version); err != nil {
		return err
	}
	if fresh {
		if err := s.settle(ctx); err != nil {
			return err
		}
	}
	if err := disk.Sync(filepath.Dir(s.path)); err != nil {
		return err
	}
	if err := s.large.load(ctx, s.conn); err != nil {
		return err
	}
	return s.stmt.prepareAll(ctx, s.conn)
}

// settle brings a new store to disk, in which nothing was acknowledged yet: at once, where SQLite
// would wait for the disk seven times one after the other. From then on it waits at each commit.
func (s *sqliteStore) settle(ctx context.Context) error {
	if _, err := s.conn.ExecContext(ctx, "PRAGMA synchronous = full"); err != nil {
		return err
	}
	var files errgroup.Group
	for _, ending := range []string{"", "-wal"} {
		files.Go(func() error { return disk.Sync(s.path + ending) })
	}
	return files.Wait()
}

// dataSource names the file and the settings of the connection. A writer keeps
// its lock for as long as the store is open (locking_mode), and every commit
// waits for the disk (synchronous), but those that make a fresh store.
func (s *sqliteStore) dataSource(fresh bool) (string, error) {
	path, err := filepath.Abs(s.path)
	if err != nil {
		return "", err
	}
	pragmas := []string{fmt.Sprintf("busy_timeout(%d)", LockWait)}
	if s.alone {
		pragmas = append(pragmas, "locking_mode(exclusive)")
	}
	if s.mode == ReadOnly {
		pragmas = append(pragmas, "query_only(1)")
	} else {
		if fresh { // the log is turned on in a transaction, which has a journal too
			pragmas = append(pragmas, "synchronous(off)", "journal_mode(memory)")
		} else {
			pragmas = append(pragmas, "synchronous(full)")
		}
		pragmas = append(pragmas,
			fmt.Sprintf("page_size(%d)", pageSize),
			"journal_mode(wal)",
			fmt.Sprintf("cache_size(-%d)", pageCache),
			fmt.Sprintf("wal_autocheckpoint(%d)", checkpointSize),
			"temp_store(memory)")
	}
	query := url.Values{"_pragma": pragmas, "_txlock": {"immediate"}}
	if s.mode == ReadOnly && unchanging(path) {
		query.Set("immutable", "1")
	}
	return (&url.URL{Scheme: "file", Path: path, RawQuery: query.Encode()}).String(), nil
}

// unchanging reports whether a store, closed in order, is on a file system that
// is mounted read-only, where the files cannot be made by which processes
// agree.
func unchanging(path string) bool {
	_, err := os.Stat(path + "-wal")
	return errors.Is(err, fs.ErrNotExist) && errors.Is(unix.Access(filepath.Dir(path), unix.W_OK), unix.EROFS)
}

func (s *sqliteStore) Close() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.db == nil {
		return nil
	}
	s.stmt.close()
	var err error
	if s.conn != nil {
		err = s.conn.Close()
	}
	err = errors.Join(err, s.db.Close())
	s.db, s.conn = nil, nil
	return s.explain("close", err)
}

// explain wraps what SQLite says in what a caller may decide on.
func (s *sqliteStore) explain(doing string, err error) error {
	if err == nil {
		return nil
	}
	if failure, ok := errors.AsType[*sqlite.Error](err); ok {
		kind := errorKind(failure)
		if errors.Is(kind, ErrFull) && s.atSizeLimit() {
			kind = ErrFileSize
		}
		if failure.Code()&0xff == codes.SQLITE_CANTOPEN && len(s.path) >= longPath {
			kind = fmt.Errorf("%w (it has %d bytes)", ErrPath, len(s.path))
		}
		writes := []int{codes.SQLITE_IOERR, codes.SQLITE_CANTOPEN, codes.SQLITE_READONLY}
		if slices.Contains(writes, failure.Code()&0xff) && s.mode == ReadWrite && s.onReadOnlyDisk() {
			kind = ErrReadOnlyDisk
		}
		if kind != nil {
			return fmt.Errorf("%s %s: %w (%w)", doing, s.path, kind, err)
		}
	}
	if _, ok := errors.AsType[*fs.PathError](err); ok {
		return err
	}
	return fmt.Errorf("%s %s: %w", doing, s.path, err)
}

// walPage is the most that SQLite adds to its log in one write: a page and its header.
const walPage = 4096 + 24

// atSizeLimit reports whether a file of the store cannot grow any more, since no file of this
// process may.
func (s *sqliteStore) atSizeLimit() bool {
	var limit unix.Rlimit
	if err := unix.Getrlimit(unix.RLIMIT_FSIZE, &limit); err != nil {
		return false
	}
	return slices.ContainsFunc([]string{"", "-wal", "-shm"}, func(ending string) bool {
		info, err := os.Stat(s.path + ending)
		return err == nil && uint64(info.Size())+walPage > limit.Cur
	})
}

// onReadOnlyDisk reports whether nothing may be written to the disk: SQLite says of that what it says of a
// full one.
func (s *sqliteStore) onReadOnlyDisk() bool {
	var disk unix.Statfs_t
	return unix.Statfs(filepath.Dir(s.path), &disk) == nil && disk.Flags&unix.ST_RDONLY != 0
}

func errorKind(failure *sqlite.Error) error {
	switch failure.Code() & 0xff {
	case codes.SQLITE_BUSY, codes.SQLITE_LOCKED:
		return ErrLocked
	case codes.SQLITE_CORRUPT, codes.SQLITE_NOTADB:
		return ErrCorrupt
	case codes.SQLITE_FULL:
		return ErrFull
	case codes.SQLITE_IOERR:
		// writing the log on a full disk is reported as an I/O error, and so is
		// making the memory that processes share, which a reader needs too
		if slices.Contains([]int{codes.SQLITE_IOERR_WRITE, codes.SQLITE_IOERR_SHMSIZE}, failure.Code()) ||
			strings.Contains(failure.Error(), "no space") {
			return ErrFull
		}
	}
	return nil
}
