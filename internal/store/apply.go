package store

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"fmt"
	"strings"

	"fairway/internal/fault"
	"fairway/internal/taskqueue"
)

var (
	beforeApply  = fault.New("store.apply.before")
	beforeCommit = fault.New("store.commit.before")
	afterCommit  = fault.New("store.commit.after")
)

// rowCounts are the sizes of the prepared multi-row statements, largest first.
// A statement costs about as much as ten of its rows.
var rowCounts = [...]int{64, 8, 1}

// statements are those of one connection, prepared once.
type statements struct {
	first, next, part               driver.StmtQueryContext // that return records
	begin, commit, rollback, remove *sql.Stmt
	addLarge, removeLarge           *sql.Stmt
	upsert                          [len(rowCounts)]*sql.Stmt
}

func (st *statements) prepareLoad(ctx context.Context, conn *sql.Conn) error {
	const read = `SELECT run, key, CASE typeof(body) WHEN 'integer' THEN (SELECT l.body FROM large l WHERE l.id = record.body) ELSE body END FROM record WHERE tbl = ? `
	return conn.Raw(func(at any) error {
		for _, t := range []struct {
			text string
			into *driver.StmtQueryContext
		}{
			{read + `ORDER BY run, key LIMIT ?`, &st.first},
			{read + `AND (run, key) > (?, ?) ORDER BY run, key LIMIT ?`, &st.next},
			{read + `AND run = ? AND key >= ? AND key < ? ORDER BY key LIMIT ?`, &st.part},
		} {
			prepared, err := at.(driver.ConnPrepareContext).PrepareContext(ctx, t.text)
			if err != nil {
				return err
			}
			*t.into = prepared.(driver.StmtQueryContext)
		}
		return nil
	})
}

func (st *statements) prepareAll(ctx context.Context, conn *sql.Conn) error {
	if err := st.prepareLoad(ctx, conn); err != nil {
		return err
	}
	texts := []struct {
		text string
		into **sql.Stmt
	}{
		{`BEGIN IMMEDIATE`, &st.begin},
		{`COMMIT`, &st.commit},
		{`ROLLBACK`, &st.rollback},
		{`DELETE FROM record WHERE tbl = ? AND run = ? AND key = ?`, &st.remove},
		{`INSERT INTO large VALUES (?,?,?,?,?)`, &st.addLarge},
		{`DELETE FROM large WHERE id = ?`, &st.removeLarge},
	}
	for i, rows := range rowCounts {
		texts = append(texts, struct {
			text string
			into **sql.Stmt
		}{upsertText(rows), &st.upsert[i]})
	}
	for _, t := range texts {
		var err error
		if *t.into, err = conn.PrepareContext(ctx, t.text); err != nil {
			return err
		}
	}
	return nil
}

func upsertText(rows int) string {
	return `INSERT INTO record VALUES ` + strings.Repeat(`(?,?,?,?),`, rows-1) +
		`(?,?,?,?) ON CONFLICT DO UPDATE SET body = excluded.body`
}

func (st *statements) close() {
	for _, s := range []driver.StmtQueryContext{st.first, st.next, st.part} {
		if prepared, ok := s.(driver.Stmt); ok {
			_ = prepared.Close()
		}
	}
	for _, s := range append([]*sql.Stmt{st.begin, st.commit, st.rollback, st.remove, st.addLarge, st.removeLarge},
		st.upsert[:]...) {
		if s != nil {
			_ = s.Close()
		}
	}
}

func (s *sqliteStore) Apply(ctx context.Context, records []taskqueue.Record) error {
	if s.mode == ReadOnly {
		return s.explain("write", ErrReadOnly)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.conn == nil {
		return s.explain("write", sql.ErrConnDone)
	}
	if err := ctx.Err(); err != nil {
		return s.explain("write", err)
	}
	if len(records) == 0 {
		return nil
	}
	return s.explain("write", s.transact(context.WithoutCancel(ctx), records))
}

func (s *sqliteStore) transact(ctx context.Context, records []taskqueue.Record) error {
	if err := beforeApply.Hit(); err != nil {
		return err
	}
	if _, err := s.stmt.begin.ExecContext(ctx); err != nil {
		return err
	}
	err := s.write(ctx, latest(records))
	if err == nil {
		err = beforeCommit.Hit()
	}
	if err == nil {
		_, err = s.stmt.commit.ExecContext(ctx)
	}
	if err != nil {
		// SQLite may have rolled back already; what matters is err
		_, _ = s.stmt.rollback.ExecContext(ctx)
		return err
	}
	s.large.committed()
	return afterCommit.Hit()
}

// latest keeps the last record of each name. What is left touches
// each row once, so its order no longer matters.
func latest(records []taskqueue.Record) []taskqueue.Record {
	last := make(map[name]int, len(records))
	for i, r := range records {
		last[nameOf(r)] = i
	}
	if len(last) == len(records) {
		return records
	}
	kept := make([]taskqueue.Record, 0, len(last))
	for i, r := range records {
		if last[nameOf(r)] == i {
			kept = append(kept, r)
		}
	}
	return kept
}

func (s *sqliteStore) write(ctx context.Context, records []taskqueue.Record) error {
	defer func() { clear(s.rows); s.rows = s.rows[:0] }()
	s.large.begin()
	for _, r := range records {
		body, err := s.setApart(ctx, r)
		if err != nil {
			return fmt.Errorf("writing %s %s: %w", r.Table, r.Key, err)
		}
		if r.Body != nil {
			s.rows = append(s.rows, r.Table, int64(r.Run), r.Key, body)
			continue
		}
		if _, err := s.stmt.remove.ExecContext(ctx, r.Table, int64(r.Run), r.Key); err != nil {
			return fmt.Errorf("deleting %s %s: %w", r.Table, r.Key, err)
		}
	}
	rows := s.rows
	for i, count := range rowCounts {
		for n := count * 4; len(rows) >= n; rows = rows[n:] {
			if _, err := s.stmt.upsert[i].ExecContext(ctx, rows[:n]...); err != nil {
				return err
			}
		}
	}
	return nil
}
