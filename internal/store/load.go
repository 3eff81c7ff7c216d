package store

import (
	"context"
	"database/sql"
	"slices"

	"fairway/internal/dispatch"
)

// pageRecords is how many records Each reads at once.
const pageRecords = 4096

// page is a part of a table. Its bodies stand in one piece of memory, which the next
// page that is read into it overwrites.
type page struct {
	records []dispatch.Record
	ends    []int // of the bodies
	bodies  []byte
	err     error
}

// Load is part of Store.
func (s *sqliteStore) Load(ctx context.Context, table string) (records []dispatch.Record, err error) {
	err = s.Each(ctx, table, func(r dispatch.Record) error {
		r.Body = append(make([]byte, 0, len(r.Body)), r.Body...) // a nil Body would delete
		records = append(records, r)
		return nil
	})
	return records, err
}

// Each is part of Store. While a page is taken, the next one is read.
func (s *sqliteStore) Each(ctx context.Context, table string, take func(dispatch.Record) error) error {
	const few = 2 // one that is taken, one that is read
	read, free := make(chan *page, few), make(chan *page, few)
	for range few {
		free <- new(page)
	}
	done := make(chan struct{})
	defer func() { close(free); <-done }()
	go func() {
		defer close(done)
		defer close(read)
		s.pages(ctx, table, free, read)
	}()
	for p := range read {
		for i := range p.records {
			if err := take(p.records[i]); err != nil {
				return err
			}
		}
		if p.err != nil {
			return s.explain("read", p.err)
		}
		free <- p
	}
	return nil
}

// pages reads a table page by page. The last page has fewer records than there is room
// for, or an error.
func (s *sqliteStore) pages(ctx context.Context, table string, free <-chan *page, read chan<- *page) {
	query, arguments := s.stmt.first, []any{table, pageRecords}
	for p := range free {
		p.err = s.reading(func() error {
			rows, err := query.QueryContext(ctx, arguments...)
			if err != nil {
				return err
			}
			return p.fill(table, rows)
		})
		whole := len(p.records) == pageRecords && p.err == nil
		if whole {
			last := &p.records[pageRecords-1]
			query, arguments = s.stmt.next, []any{table, int64(last.Run), last.Key, pageRecords}
		}
		read <- p
		if !whole {
			return
		}
	}
}

// reading has nothing else use the connection.
func (s *sqliteStore) reading(read func() error) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.conn == nil {
		return sql.ErrConnDone
	}
	return read()
}

// LoadPart is part of Store.
func (s *sqliteStore) LoadPart(ctx context.Context, table string, run dispatch.RunID, from, below string, most int) ([]dispatch.Record, error) {
	var p page
	err := s.reading(func() error {
		rows, err := s.stmt.part.QueryContext(ctx, table, int64(run), from, below, most)
		if err != nil {
			return err
		}
		return p.fill(table, rows)
	})
	return p.records, s.explain("read", err)
}

// fill takes over what a statement returns.
func (p *page) fill(table string, rows *sql.Rows) error {
	defer func() { _ = rows.Close() }()
	p.records, p.ends, p.bodies = p.records[:0], p.ends[:0], p.bodies[:0]
	var body sql.RawBytes
	for rows.Next() {
		r := dispatch.Record{Table: table}
		if err := rows.Scan(&r.Run, &r.Key, &body); err != nil {
			return err
		}
		p.bodies = append(p.bodies, body...)
		p.records, p.ends = append(p.records, r), append(p.ends, len(p.bodies))
	}
	begin := 0
	p.bodies = slices.Grow(p.bodies, 1) // a nil Body would delete
	for i, end := range p.ends {
		p.records[i].Body = p.bodies[begin:end:end]
		begin = end
	}
	return rows.Err()
}
