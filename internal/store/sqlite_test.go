package store_test

import (
	"bufio"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"go.uber.org/goleak"
	"golang.org/x/sys/unix"

	"fairway/internal/store"
	"fairway/internal/store/storetest"
	"fairway/internal/taskqueue"
)

func TestMain(m *testing.M) {
	if path := os.Getenv("STORE_TEST_WRITER"); path != "" {
		writeUntilKilled(path)
	}
	goleak.VerifyTestMain(m)
}

func open(folder string) (store.Store, error) {
	return store.OpenSQLite(filepath.Join(folder, "fairway.db"), store.ReadWrite)
}

func TestConformance(t *testing.T) { storetest.Run(t, open) }

func TestSecondWriterIsRefused(t *testing.T) {
	folder := t.TempDir()
	s := must(open(folder))(t)
	defer s.Close()
	if _, err := open(folder); !errors.Is(err, store.ErrLocked) {
		t.Fatalf("got %v, want ErrLocked", err)
	}
}

func TestReadOnly(t *testing.T) {
	path := filepath.Join(t.TempDir(), "fairway.db")
	if _, err := store.OpenSQLite(path, store.ReadOnly); !errors.Is(err, fs.ErrNotExist) {
		t.Fatalf("got %v, want fs.ErrNotExist", err)
	}
	s := must(store.OpenSQLite(path, store.ReadWrite))(t)
	if err := s.Apply(context.Background(), []taskqueue.Record{{Table: "job", Key: "1", Body: []byte("a")}}); err != nil {
		t.Fatal(err)
	}
	s.Close()
	s = must(store.OpenSQLite(path, store.ReadOnly))(t)
	defer s.Close()
	other := must(store.OpenSQLite(path, store.ReadOnly))(t)
	defer other.Close()
	records, err := other.Load(context.Background(), "job")
	if err != nil || len(records) != 1 {
		t.Fatalf("got %v, %v", records, err)
	}
	if err := s.Apply(context.Background(), records); !errors.Is(err, store.ErrReadOnly) {
		t.Fatalf("got %v, want ErrReadOnly", err)
	}
}

func TestReadOnlyFileSystem(t *testing.T) {
	folder := t.TempDir()
	if err := unix.Mount("fairway-test", folder, "tmpfs", 0, "size=4M"); err != nil {
		t.Skip("no file system can be mounted here:", err)
	}
	defer func() {
		if err := unix.Unmount(folder, 0); err != nil {
			t.Error(err)
		}
	}()
	s := must(open(folder))(t)
	if err := s.Apply(context.Background(), []taskqueue.Record{{Table: "job", Key: "1", Body: []byte("a")}}); err != nil {
		t.Fatal(err)
	}
	s.Close()
	if err := unix.Mount("", folder, "", unix.MS_REMOUNT|unix.MS_RDONLY, ""); err != nil {
		t.Fatal(err)
	}
	s = must(store.OpenSQLite(filepath.Join(folder, "fairway.db"), store.ReadOnly))(t)
	defer s.Close()
	if records, err := s.Load(context.Background(), "job"); err != nil || len(records) != 1 {
		t.Fatalf("got %v, %v", records, err)
	}
}

// edit changes the file behind the store's back.
func edit(t *testing.T, path, text string) {
	t.Helper()
	db, err := sql.Open("sqlite", path)
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	if _, err := db.Exec(text); err != nil {
		t.Fatal(err)
	}
}

// A store of which the tables or records were others is refused, whether it is read or written to.
func TestStoresOfOtherFormsAreRefused(t *testing.T) {
	for version, wanted := range map[int]error{5: store.ErrOlder, 1000: store.ErrNewer} {
		folder := t.TempDir()
		must(open(folder))(t).Close()
		edit(t, filepath.Join(folder, "fairway.db"), fmt.Sprintf("PRAGMA user_version = %d", version))
		for _, mode := range []store.Mode{store.ReadOnly, store.ReadWrite} {
			if _, err := store.OpenSQLite(filepath.Join(folder, "fairway.db"), mode); !errors.Is(err, wanted) {
				t.Errorf("version %d, mode %d: %v, not %v", version, mode, err, wanted)
			}
		}
	}
}

// TestLargeBodyIsNotReadForOtherRecords counts the bytes that writing small
// records reads, beside a record whose body is larger than what SQLite keeps in
// memory.
func TestLargeBodyIsNotReadForOtherRecords(t *testing.T) {
	const large, small = 32 << 20, 500
	s := must(open(t.TempDir()))(t)
	defer s.Close()
	apply := func(table, key string, body []byte) {
		t.Helper()
		if err := s.Apply(context.Background(), []taskqueue.Record{{Table: table, Key: key, Body: body}}); err != nil {
			t.Fatal(err)
		}
	}
	for i := range small { // so that the tree has more than one page
		apply("before", strconv.Itoa(i), make([]byte, 500))
	}
	apply("commit", "1", make([]byte, large))
	before := bytesRead(t)
	for i := range small {
		apply("published", strconv.Itoa(i), make([]byte, 500))
	}
	if read := bytesRead(t) - before; read > large {
		t.Fatalf("writing %d small records read %d bytes", small, read)
	}
}

// bytesRead is what this process has read so far, from wherever.
func bytesRead(t *testing.T) int64 {
	t.Helper()
	text, err := os.ReadFile("/proc/self/io")
	if err != nil {
		t.Fatal(err)
	}
	var n int64
	if _, err := fmt.Sscanf(string(text), "rchar: %d", &n); err != nil {
		t.Fatal(err)
	}
	return n
}

func TestNewerSchemaIsRefused(t *testing.T) {
	folder := t.TempDir()
	must(open(folder))(t).Close()
	edit(t, filepath.Join(folder, "fairway.db"), `PRAGMA user_version = 1000`)
	if _, err := open(folder); !errors.Is(err, store.ErrNewer) {
		t.Fatalf("got %v, want ErrNewer", err)
	}
}

func TestForeignFileIsRefused(t *testing.T) {
	folder := t.TempDir()
	edit(t, filepath.Join(folder, "fairway.db"), `CREATE TABLE recipes (name TEXT)`)
	if _, err := open(folder); !errors.Is(err, store.ErrForeign) {
		t.Fatalf("got %v, want ErrForeign", err)
	}
}

func TestDamagedFileIsToldSo(t *testing.T) {
	folder := t.TempDir()
	path := filepath.Join(folder, "fairway.db")
	if err := os.WriteFile(path, []byte(strings.Repeat("no database ", 1000)), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := open(folder); !errors.Is(err, store.ErrCorrupt) {
		t.Fatalf("got %v, want ErrCorrupt", err)
	}
}

// TestFullDisk fills a small tmpfs: the transaction that does not fit is
// refused, those before it stay, and the store can be used again when there is room.
func TestFullDisk(t *testing.T) {
	folder := t.TempDir()
	if err := unix.Mount("tmpfs", folder, "tmpfs", 0, "size=1m"); err != nil {
		t.Skipf("mounting a tmpfs needs privilege: %v", err)
	}
	defer func() { _ = unix.Unmount(folder, unix.MNT_DETACH) }()
	s := must(open(folder))(t)
	defer s.Close()
	small := []taskqueue.Record{{Table: "job", Key: "0", Body: []byte("small")}}
	if err := s.Apply(context.Background(), small); err != nil {
		t.Fatal(err)
	}
	large := []taskqueue.Record{
		{Table: "job", Key: "1", Body: make([]byte, 600<<10)},
		{Table: "job", Key: "2", Body: make([]byte, 600<<10)},
	}
	if err := s.Apply(context.Background(), large); !errors.Is(err, store.ErrFull) {
		t.Fatalf("got %v, want ErrFull", err)
	}
	records, err := s.Load(context.Background(), "job")
	if err != nil || len(records) != 1 {
		t.Fatalf("after the refusal: %d records, %v", len(records), err)
	}
	if err := unix.Mount("tmpfs", folder, "tmpfs", unix.MS_REMOUNT, "size=16m"); err != nil {
		t.Fatal(err)
	}
	if err := s.Apply(context.Background(), large); err != nil {
		t.Fatalf("with room again: %v", err)
	}
}

// A limit for the size of files is not told as a full disk.
func TestLimitOfFileSizeIsToldSo(t *testing.T) {
	signal.Ignore(unix.SIGXFSZ)
	defer signal.Reset(unix.SIGXFSZ)
	var before unix.Rlimit
	if err := unix.Getrlimit(unix.RLIMIT_FSIZE, &before); err != nil {
		t.Fatal(err)
	}
	s := must(open(t.TempDir()))(t)
	defer s.Close()
	low := before
	low.Cur = 64 << 10
	if err := unix.Setrlimit(unix.RLIMIT_FSIZE, &low); err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := unix.Setrlimit(unix.RLIMIT_FSIZE, &before); err != nil {
			t.Fatal(err)
		}
	}()
	var err error
	for i := 0; i < 1000 && err == nil; i++ {
		err = s.Apply(t.Context(), []taskqueue.Record{{Table: "job", Key: strconv.Itoa(i), Body: make([]byte, 1000)}})
	}
	if !errors.Is(err, store.ErrFileSize) || errors.Is(err, store.ErrFull) {
		t.Errorf("got %v", err)
	}
}

// Where no byte is free, what was acknowledged can still be read, by one after the other: of a store that was
// closed, and of one whose writer was killed and left a log.
func TestReadersOnFullDisk(t *testing.T) {
	disk := t.TempDir()
	if err := unix.Mount("tmpfs", disk, "tmpfs", 0, "size=2m"); err != nil {
		t.Skipf("mounting a tmpfs needs privilege: %v", err)
	}
	defer func() { _ = unix.Unmount(disk, unix.MNT_DETACH) }()
	closed, killed := filepath.Join(disk, "closed"), filepath.Join(disk, "killed")
	if err := errors.Join(os.Mkdir(closed, 0o700), os.Mkdir(killed, 0o700)); err != nil {
		t.Fatal(err)
	}
	s := must(open(closed))(t)
	record := []taskqueue.Record{{Table: "job", Key: "1", Body: []byte("acknowledged")}}
	err := s.Apply(t.Context(), record)
	for _, name := range []string{"fairway.db", "fairway.db-wal"} {
		body, failed := os.ReadFile(filepath.Join(closed, name))
		err = errors.Join(err, failed, os.WriteFile(filepath.Join(killed, name), body, 0o600))
	}
	if err = errors.Join(err, s.Close()); err != nil {
		t.Fatal(err)
	}
	err = os.WriteFile(filepath.Join(disk, "filler"), make([]byte, 4<<20), 0o600)
	if !errors.Is(err, unix.ENOSPC) {
		t.Fatalf("filling the disk: %v", err)
	}
	for _, folder := range []string{closed, killed, closed, killed} {
		s, err := store.OpenSQLite(filepath.Join(folder, "fairway.db"), store.ReadOnly)
		if err != nil {
			t.Fatal(err)
		}
		got, err := s.Load(t.Context(), "job")
		if err = errors.Join(err, s.Close()); err != nil || len(got) != 1 || string(got[0].Body) != "acknowledged" {
			t.Errorf("%s: read %v, %v", folder, got, err)
		}
	}
}

// writeUntilKilled applies transactions of two records that must agree, and
// prints the number of each one that is durable.
func writeUntilKilled(path string) {
	s, err := store.OpenSQLite(path, store.ReadWrite)
	if err != nil {
		fmt.Println(err)
		os.Exit(1)
	}
	for i := 1; ; i++ {
		body := []byte(strconv.Itoa(i))
		err := s.Apply(context.Background(), []taskqueue.Record{
			{Table: "a", Key: "n", Body: body},
			{Table: "b", Key: "n", Body: body},
			{Table: "all", Key: fmt.Sprintf("%08d", i), Body: make([]byte, 3000)},
		})
		if err != nil {
			fmt.Println(err)
			os.Exit(1)
		}
		fmt.Println(i)
	}
}

// TestKilledWriter kills a process that writes, many times over.
func TestKilledWriter(t *testing.T) {
	path := filepath.Join(t.TempDir(), "fairway.db")
	for round := range 10 {
		acknowledged := writeAndKill(t, path, 20+37*round)
		s := must(store.OpenSQLite(path, store.ReadWrite))(t)
		a, b := number(t, s, "a"), number(t, s, "b")
		if a != b || a < acknowledged {
			t.Fatalf("round %d: tables hold %d and %d, acknowledged were %d", round, a, b, acknowledged)
		}
		s.Close()
	}
}

func writeAndKill(t *testing.T, path string, after int) (acknowledged int) {
	t.Helper()
	writer := exec.Command(os.Args[0])
	writer.Env = append(os.Environ(), "STORE_TEST_WRITER="+path)
	out, err := writer.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := writer.Start(); err != nil {
		t.Fatal(err)
	}
	lines := bufio.NewScanner(out)
	for lines.Scan() {
		n, err := strconv.Atoi(lines.Text())
		if err != nil {
			t.Fatal(lines.Text())
		}
		acknowledged = n
		if n == after {
			if err := writer.Process.Kill(); err != nil {
				t.Fatal(err)
			}
		}
	}
	_ = writer.Wait()
	return acknowledged
}

func number(t *testing.T, s store.Store, table string) int {
	t.Helper()
	records, err := s.Load(context.Background(), table)
	if err != nil || len(records) != 1 {
		t.Fatalf("loading %s: %d records, %v", table, len(records), err)
	}
	n, err := strconv.Atoi(string(records[0].Body))
	if err != nil {
		t.Fatal(err)
	}
	return n
}

func must(s store.Store, err error) func(testing.TB) store.Store {
	return func(t testing.TB) store.Store {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		return s
	}
}

// BenchmarkApply measures the time per record for transactions of several
// sizes, as a server makes them: four tables, bodies of 240 bytes.
func BenchmarkApply(b *testing.B) {
	for _, size := range []int{4, 16, 64, 256} {
		b.Run(fmt.Sprint(size), func(b *testing.B) {
			s := must(open(b.TempDir()))(b)
			defer s.Close()
			body := make([]byte, 240)
			records := make([]taskqueue.Record, size)
			for n := 0; b.Loop(); n++ {
				for i := range records {
					records[i] = taskqueue.Record{Table: "t" + strconv.Itoa(i%4), Key: fmt.Sprintf("%010d", n*size+i), Body: body}
				}
				if err := s.Apply(context.Background(), records); err != nil {
					b.Fatal(err)
				}
			}
			b.ReportMetric(float64(b.Elapsed().Microseconds())/float64(b.N*size), "us/record")
		})
	}
}

// Who looks while a store is being made is told so, and may look again.
func TestEmptyStoreIsNotReady(t *testing.T) {
	path := filepath.Join(t.TempDir(), "fairway.db")
	if err := os.WriteFile(path, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := store.OpenSQLite(path, store.ReadOnly); !errors.Is(err, store.ErrUnready) ||
		!errors.Is(err, fs.ErrNotExist) {
		t.Errorf("got %v", err)
	}
}

func TestPathsThatAreTooLongAreTold(t *testing.T) {
	folder := t.TempDir()
	for len(folder) < 3800 {
		folder = filepath.Join(folder, strings.Repeat("long", 25))
	}
	if err := os.MkdirAll(folder, 0o700); err != nil {
		t.Fatal(err)
	}
	s, err := open(folder)
	if err == nil {
		err = s.Close()
	} else if errors.Is(err, store.ErrPath) && strings.Contains(err.Error(), "--dir") {
		err = nil
	}
	if err != nil {
		t.Error(err)
	}
}
