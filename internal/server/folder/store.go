package folder

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"

	"fairway/internal/disk"
	"fairway/internal/store"
)

// OpenStore opens the store of a state folder, which is there, for writing. With fence it
// gets other inodes first: what a server still writes that has the former ones open, nobody
// reads. That server must not close them: SQLite would remove the log by its name.
func OpenStore(state string, fence bool) (store.Store, error) {
	address, err := StoreAddress(state)
	if err != nil {
		return nil, err
	}
	if address != "" {
		id, err := readIdentity(state)
		if err != nil {
			return nil, err
		}
		return store.OpenPostgres(context.Background(), address, store.ReadWrite, id.ID)
	}
	if err := ownStore(state, fence); err != nil {
		return nil, fmt.Errorf("giving %s a store of its own: %w", state, err)
	}
	s, err := store.OpenSQLite(filepath.Join(state, StoreFile), store.ReadWrite)
	if errors.Is(err, store.ErrLocked) {
		return nil, fmt.Errorf("%w (somebody looks at it; try again)", err)
	}
	return s, err
}

// OpenRecords opens the store of a state folder to look at it. Where nothing is stored yet the
// error wraps fs.ErrNotExist.
func OpenRecords(ctx context.Context, state string) (store.Store, error) {
	address, err := StoreAddress(state)
	if err != nil {
		return nil, err
	}
	if address != "" {
		return store.OpenPostgres(ctx, address, store.ReadOnly, "")
	}
	return store.OpenSQLite(filepath.Join(state, StoreFile), store.ReadOnly)
}

// StoreAddressName is the name of the file in the state folder with the address of the store,
// where that is in a PostgreSQL.
const StoreAddressName = "store"

// StoreAddress is that of the store of a state folder; empty: it is in the folder.
func StoreAddress(state string) (string, error) {
	text, err := os.ReadFile(filepath.Join(state, StoreAddressName))
	if errors.Is(err, fs.ErrNotExist) {
		return "", nil
	}
	return strings.TrimSpace(string(text)), err
}

// ErrStoreKept: the state has its records somewhere else.
var ErrStoreKept = errors.New("its records are kept somewhere else")

// KeepStoreAt has a state keep its records at an address, from its beginning on. The caller has
// the lock of the state.
func KeepStoreAt(l *Layout, address string) error {
	now, err := StoreAddress(l.State)
	switch {
	case err != nil:
		return err
	case now == address:
		return nil
	case now != "":
		return fmt.Errorf("%w: at %s", ErrStoreKept, now)
	}
	if _, err := os.Lstat(filepath.Join(l.State, StoreFile)); !errors.Is(err, fs.ErrNotExist) {
		return errors.Join(fmt.Errorf("%w: in %s", ErrStoreKept, filepath.Join(l.State, StoreFile)), IgnoreMissing(err))
	}
	return disk.Replace(filepath.Join(l.State, StoreAddressName), []byte(address+"\n"), 0o600)
}

// ownStore copies files of the store that have other names, or all of them for a fence. A copy of the folder by
// hard links gives them such names (cp -al), and what is written here would change
// the store there, past its log. SQLite makes its shared memory again.
func ownStore(state string, fence bool) error {
	for _, name := range []string{StoreFile, StoreFile + "-wal", StoreFile + "-shm"} {
		path := filepath.Join(state, name)
		there, shared, err := namesOf(path)
		switch {
		case err != nil:
			return err
		case !there || !shared && !fence:
		case name == StoreFile+"-shm":
			err = os.Remove(path)
		default:
			err = replaceByCopy(path)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// namesOf reports whether there is a file, and whether it has other names too.
func namesOf(path string) (there, others bool, err error) {
	var st unix.Stat_t
	switch err := unix.Lstat(path, &st); {
	case errors.Is(err, unix.ENOENT):
		return false, false, nil
	case err != nil:
		return false, false, &fs.PathError{Op: "lstat", Path: path, Err: err}
	}
	regular := st.Mode&unix.S_IFMT == unix.S_IFREG
	return regular, regular && st.Nlink > 1, nil
}

func replaceByCopy(path string) error {
	fresh := path + ".new"
	if err := IgnoreMissing(os.Remove(fresh)); err != nil {
		return err
	}
	if err := copyWithTime(path, fresh); err != nil {
		_ = os.Remove(fresh)
		return err
	}
	if err := os.Rename(fresh, path); err != nil {
		return err
	}
	return disk.Sync(filepath.Dir(path))
}

// StoreFile is the name of the store in the state folder.
const StoreFile = "fairway.db"
