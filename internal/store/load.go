package store

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"fmt"
	"io"

	"fairway/internal/taskqueue"
)

// pageRecords is how many records Each reads at once.
const pageRecords = 4096

// page is a part of a table. The next page that is read into it overwrites the list.
type page struct {
	records []taskqueue.Record
	row     [3]driver.Value // scratch space
	err     error
}

// Load is part of Store.
func (s *sqliteStore) Load(ctx context.Context, table string) (records []taskqueue.Record, err error) {
	err = s.Each(ctx, table, func(r taskqueue.Record) error {
		records = append(records, r)
		return nil
	})
	return records, err
}

// Each is part of Store. While a page is taken, the next one is read.
func (s *sqliteStore) Each(ctx context.Context, table string, take func(taskqueue.Record) error) error {
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
	query, arguments := s.stmt.first, []driver.Value{table, int64(pageRecords)}
	for p := range free {
		p.err = s.read(ctx, p, query, arguments...)
		whole := len(p.records) == pageRecords && p.err == nil
		if whole {
			last := &p.records[pageRecords-1]
			query, arguments = s.stmt.next, []driver.Value{table, int64(last.Run), last.Key, int64(pageRecords)}
		}
		read <- p
		if !whole {
			return
		}
	}
}

// LoadPart is part of Store.
func (s *sqliteStore) LoadPart(
	ctx context.Context, table string, run taskqueue.RunID, from, below string, most int,
) ([]taskqueue.Record, error) {
	var p page
	err := s.read(ctx, &p, s.stmt.part, table, int64(run), from, below, int64(most))
	return p.records, s.explain("read", err)
}

// read fills a page with what a statement returns, of which the first argument is the
// table. Nothing else uses the connection meanwhile. Rows come from the driver itself:
// package sql would copy each value once more, and lock for each row.
func (s *sqliteStore) read(
	ctx context.Context, p *page, query driver.StmtQueryContext, arguments ...driver.Value,
) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	p.records = p.records[:0]
	if err := ctx.Err(); err != nil {
		return err
	}
	if s.conn == nil {
		return sql.ErrConnDone
	}
	named := make([]driver.NamedValue, len(arguments))
	for i, value := range arguments {
		named[i] = driver.NamedValue{Ordinal: i + 1, Value: value}
	}
	return s.conn.Raw(func(any) error {
		// With a context that can end, the driver would watch it anew for each row.
		rows, err := query.QueryContext(context.WithoutCancel(ctx), named)
		if err != nil {
			return err
		}
		return errors.Join(p.fill(arguments[0].(string), rows), rows.Close())
	})
}

func (p *page) fill(table string, rows driver.Rows) error {
	for {
		switch err := rows.Next(p.row[:]); {
		case errors.Is(err, io.EOF):
			return nil
		case err != nil:
			return err
		}
		run, ok := p.row[0].(int64)
		key, named := p.row[1].(string)
		body, _ := p.row[2].([]byte)
		if text, ok := p.row[2].(string); ok { // as other programs may have written it
			body = []byte(text)
		}
		if body == nil {
			body = []byte{} // a nil Body would delete
		}
		if !ok || !named || int64(taskqueue.RunID(run)) != run {
			return fmt.Errorf("a record of table %s, of run %v with key %v, is none of this program", table, p.row[0], p.row[1])
		}
		p.records = append(p.records, taskqueue.Record{Table: table, Run: taskqueue.RunID(run), Key: key, Body: body})
	}
}
