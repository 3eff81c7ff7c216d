package store

import (
	"context"
	"database/sql"
	"fmt"
)

// applicationID marks a SQLite file as a store of Fairway ("Fair").
const applicationID = 0x46616972

// schemaVersion is that of the stores that this program writes. It grows when tables change, and when
// records say what earlier programs would pass over (TestRecordsThatChangeHaveAVersion).
const schemaVersion = 13

// readableSince is the oldest version whose tables and records are read as they are: what came
// later changed nothing of them. So archives of runs, which nobody writes to again, stay readable.
const readableSince = 6

// makeTables makes what a new store holds. Without a rowid a record costs one B-tree entry instead of
// two. Large bodies stand apart (large.go).
var makeTables = fmt.Sprintf(`PRAGMA application_id = %d;`, applicationID) +
	`CREATE TABLE record (tbl TEXT NOT NULL, run INTEGER NOT NULL, key TEXT NOT NULL, body BLOB NOT NULL, PRIMARY KEY (tbl, run, key)) WITHOUT ROWID;` +
	`CREATE TABLE large (id INTEGER PRIMARY KEY, tbl TEXT NOT NULL, run INTEGER NOT NULL, key TEXT NOT NULL, body BLOB NOT NULL);`

// checkVersion tells the schema version of a file, and refuses files that are not ours, or that this
// program does not read. An empty file has version 0.
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
	if application != applicationID && (application != 0 || version > 0 || tables > 0) {
		return 0, ErrForeign
	}
	return version, readable(version)
}

// readable refuses a schema version that this program does not read; 0 is that of an empty store.
func readable(version int) error {
	switch {
	case version > schemaVersion:
		return fmt.Errorf("schema version %d, this program knows up to %d: %w", version, schemaVersion, ErrNewer)
	case version > 0 && version < readableSince:
		return fmt.Errorf("schema version %d, this program knows %d and later: %w", version, readableSince, ErrOlder)
	}
	return nil
}

// setUp makes the tables of an empty store, and notes the version of this program, in one transaction.
func setUp(ctx context.Context, conn *sql.Conn, version int) error {
	if version == schemaVersion {
		return nil
	}
	changes := fmt.Sprintf(`PRAGMA user_version = %d`, schemaVersion)
	if version == 0 {
		changes = makeTables + changes
	}
	tx, err := conn.BeginTx(ctx, nil)
	if err != nil {
		return err
	}
	defer func() { _ = tx.Rollback() }()
	if _, err := tx.ExecContext(ctx, changes); err != nil {
		return err
	}
	return tx.Commit()
}
