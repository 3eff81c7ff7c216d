package store

import (
	"context"
	"database/sql"
	"fmt"
)

// applicationID marks a SQLite file as a store of Fairway ("Fair").
const applicationID = 0x46616972

// migrations brings a store from schema version i to i+1; the version of a
// file is its user_version. Entries are only ever added: also one that changes nothing, where records say
// what earlier programs would pass over (TestRecordsThatChangeHaveAVersion).
var migrations = []string{
	// 1: bodies by table and key. Without a rowid a record costs one B-tree
	// entry instead of two.
	`CREATE TABLE record (tbl TEXT NOT NULL, key TEXT NOT NULL, body BLOB NOT NULL, PRIMARY KEY (tbl, key)) WITHOUT ROWID`,
	// 2: the mark by which Fairway knows its own files.
	fmt.Sprintf(`PRAGMA application_id = %d`, applicationID),
	// 3: nothing to change; earlier programs do not look for results in commits.
	`SELECT 1`,
	// 4: nothing to change; earlier programs do not know the tags of copies, nor
	// with which incarnation a submission began.
	`SELECT 1`,
	// 5: large bodies apart (large.go).
	`CREATE TABLE large (id INTEGER PRIMARY KEY, tbl TEXT NOT NULL, key TEXT NOT NULL, body BLOB NOT NULL);` +
		fmt.Sprintf(`INSERT INTO large (tbl, key, body) SELECT tbl, key, body FROM record WHERE length(body) > %d;`, largeBody) +
		`UPDATE record SET body = large.id FROM large WHERE large.tbl = record.tbl AND large.key = record.key`,
	// 6: records bear their run. What there was belongs to run 1, which did what the
	// record of the server says.
	`CREATE TABLE borne (tbl TEXT NOT NULL, run INTEGER NOT NULL, key TEXT NOT NULL, body BLOB NOT NULL, PRIMARY KEY (tbl, run, key)) WITHOUT ROWID;` +
		`INSERT INTO borne SELECT tbl, tbl IN ` + ofRuns + `, key, body FROM record;` +
		`DROP TABLE record; ALTER TABLE borne RENAME TO record;` +
		`CREATE TABLE apart (id INTEGER PRIMARY KEY, tbl TEXT NOT NULL, run INTEGER NOT NULL, key TEXT NOT NULL, body BLOB NOT NULL);` +
		`INSERT INTO apart SELECT id, tbl, tbl IN ` + ofRuns + `, key, body FROM large;` +
		`DROP TABLE large; ALTER TABLE apart RENAME TO large;` +
		`INSERT INTO record SELECT 'run', 1, 'run', CAST('{"v":1}' AS BLOB) FROM record WHERE tbl = 'server_run' OR tbl = 'job' LIMIT 1;` +
		`UPDATE record SET body = CAST(json_set(CAST(body AS TEXT), '$.r', 1) AS BLOB) WHERE tbl = 'meta' AND EXISTS (SELECT 1 FROM record WHERE tbl = 'run')`,
	// 7: nothing to change; earlier programs do not know what decides a submission with a key, nor that the
	// files of an input may come in pieces.
	`SELECT 1`,
	// 8: nothing to change; earlier programs do not know the priority of a submission.
	`SELECT 1`,
	// 9: nothing to change; earlier programs do not know that records of a run may be left which is retired.
	`SELECT 1`,
	// 10: nothing to change; earlier programs do not know priorities that were changed.
	`SELECT 1`,
	// 11: nothing to change; earlier programs do not know the placement of a job.
	`SELECT 1`,
}

// readableSince is the oldest version whose records are read as they are: what came later changed nothing of
// them. So archives of runs, which nobody writes to again, stay readable.
const readableSince = 6

// ofRuns are the tables whose records belong to one run.
const ofRuns = `('file', 'job', 'commit', 'fate', 'published', 'flow_run', 'flow_log', 'server_run', 'server_input', 'server_attempt')`

// checkVersion tells the schema version of a file, and refuses files that are
// not ours or from the future. An empty file has version 0.
func checkVersion(ctx context.Context, conn *sql.Conn) (int, error) {
	var version, application, tables int
	for _, question := range []struct {
		query string
		into  *int
	}{
		{`PRAGMA user_version`, &version},
		{`PRAGMA application_id`, &application},
		{`SELECT count(*) FROM sqlite_schema`, &tables},
	} {
		if err := conn.QueryRowContext(ctx, question.query).Scan(question.into); err != nil {
			return 0, err
		}
	}
	switch {
	case application != applicationID && (application != 0 || version > 1 || version == 0 && tables > 0):
		return 0, ErrForeign
	case version > len(migrations):
		return 0, fmt.Errorf("schema version %d, this program knows up to %d: %w", version, len(migrations), ErrNewer)
	}
	return version, nil
}

// migrate brings the schema up to date, all in one transaction.
func migrate(ctx context.Context, conn *sql.Conn, version int) error {
	if version == len(migrations) {
		return nil
	}
	tx, err := conn.BeginTx(ctx, nil)
	if err != nil {
		return err
	}
	defer func() { _ = tx.Rollback() }()
	for i := version; i < len(migrations); i++ {
		if _, err := tx.ExecContext(ctx, migrations[i]); err != nil {
			return fmt.Errorf("migrating from schema version %d: %w", i, err)
		}
	}
	if _, err := tx.ExecContext(ctx, fmt.Sprintf(`PRAGMA user_version = %d`, len(migrations))); err != nil {
		return err
	}
	return tx.Commit()
}
