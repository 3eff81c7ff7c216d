package store

import (
	"context"
	"database/sql"

	"fairway/internal/taskqueue"
)

// largeBody is the size, in bytes, above which a body stands in a table of its
// own, and its record holds the number under which it is there.
//
// The keys of a table without a rowid stand in one B-tree with the bodies, and
// SQLite reads the whole of a record that does not fit into its page, to compare
// its key with another. A body of megabytes among many small records would be
// read for nearly every one of them that is written.
const largeBody = 4096

type name struct {
	table, key string
	run        taskqueue.RunID
}

func nameOf(r taskqueue.Record) name { return name{r.Table, r.Key, r.Run} }

// largeBodies knows which records have their body apart.
type largeBodies struct {
	ids  map[name]int64
	last int64 // the highest number

	// What the transaction under way changes; 0: no longer apart.
	pending map[name]int64
	next    int64
}

func (l *largeBodies) load(ctx context.Context, conn *sql.Conn) error {
	l.ids, l.pending = map[name]int64{}, map[name]int64{}
	rows, err := conn.QueryContext(ctx, `SELECT id, tbl, run, key FROM large`)
	if err != nil {
		return err
	}
	defer func() { _ = rows.Close() }()
	for rows.Next() {
		var id int64
		var n name
		if err := rows.Scan(&id, &n.table, &n.run, &n.key); err != nil {
			return err
		}
		l.ids[n], l.last = id, max(l.last, id)
	}
	return rows.Err()
}

// begin starts a transaction, of which the one before was ended or undone.
func (l *largeBodies) begin() {
	clear(l.pending)
	l.next = l.last
}

func (l *largeBodies) committed() {
	for n, id := range l.pending {
		if id == 0 {
			delete(l.ids, n)
		} else {
			l.ids[n] = id
		}
	}
	l.last = l.next
}

// setApart removes the large body that a record had, stores the one that it has,
// and returns what is to stand in the record: the body or its number.
func (s *sqliteStore) setApart(ctx context.Context, r taskqueue.Record) (any, error) {
	n := nameOf(r)
	if id, ok := s.large.ids[n]; ok {
		if _, err := s.stmt.removeLarge.ExecContext(ctx, id); err != nil {
			return nil, err
		}
		s.large.pending[n] = 0
	}
	if len(r.Body) <= largeBody {
		return r.Body, nil
	}
	s.large.next++
	if _, err := s.stmt.addLarge.ExecContext(ctx, s.large.next, r.Table, int64(r.Run), r.Key, r.Body); err != nil {
		return nil, err
	}
	s.large.pending[n] = s.large.next
	return s.large.next, nil
}
