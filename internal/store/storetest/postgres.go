package storetest

import (
	"fmt"
	"net"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"

	"strconv"
)

// Database is a real PostgreSQL that a test has started, in a folder of its own.
type Database struct {
	t      testing.TB
	folder string
	bin    string
	port   int
	as     *syscall.Credential // it does not run as root
	named  atomic.Int64
}

// Postgres starts a PostgreSQL, which ends with the test. It skips where none is installed.
func Postgres(t testing.TB) *Database {
	t.Helper()
	found, _ := filepath.Glob("/usr/lib/postgresql/*/bin/postgres")
	if len(found) == 0 {
		t.Skip("no PostgreSQL is installed; apt-get install postgresql")
	}
	folder, err := os.MkdirTemp("", "fairway-postgres")
	if err != nil {
		t.Fatal(err)
	}
	d := &Database{t: t, folder: folder, bin: filepath.Dir(found[len(found)-1])}
	if os.Geteuid() == 0 {
		u, err := user.Lookup("postgres")
		if err != nil {
			t.Fatal(err)
		}
		uid, _ := strconv.Atoi(u.Uid) // of the list of users: numbers
		gid, _ := strconv.Atoi(u.Gid)
		d.as = &syscall.Credential{Uid: uint32(uid), Gid: uint32(gid)}
		if err := os.Chown(folder, uid, gid); err != nil {
			t.Fatal(err)
		}
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	d.port = l.Addr().(*net.TCPAddr).Port
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	d.run("initdb", "-D", folder+"/data", "-A", "trust", "-U", "postgres", "--no-sync")
	t.Cleanup(func() { _ = os.RemoveAll(folder) })
	d.Start()
	t.Cleanup(d.Stop)
	return d
}

// Start starts it again after Stop. It does not wait for the disk: the machine does not crash.
func (d *Database) Start() {
	d.t.Helper()
	d.run("pg_ctl", "-D", d.folder+"/data", "-w", "-l", d.folder+"/log", "-o",
		fmt.Sprintf("-p %d -k %s -c listen_addresses=127.0.0.1 -c fsync=off", d.port, d.folder), "start")
}

// Stop ends it as a crash would: nothing is written any more.
func (d *Database) Stop() {
	d.t.Helper()
	d.run("pg_ctl", "-D", d.folder+"/data", "-m", "immediate", "stop")
}

// Host is where it listens, as HOST:PORT.
func (d *Database) Host() string { return fmt.Sprintf("127.0.0.1:%d", d.port) }

// Address is that of a schema which nobody has used.
func (d *Database) Address() string {
	return fmt.Sprintf("postgres://postgres@%s/postgres?schema=s%d", d.Host(), d.named.Add(1))
}

func (d *Database) run(program string, arguments ...string) {
	d.t.Helper()
	cmd := exec.Command(filepath.Join(d.bin, program), arguments...)
	cmd.Dir = d.folder
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: d.as}
	// The server goes on with what pg_ctl leaves it: a pipe would never end.
	said, err := os.Create(filepath.Join(d.folder, "said"))
	if err != nil {
		d.t.Fatal(err)
	}
	defer said.Close()
	cmd.Stdout, cmd.Stderr = said, said
	if err := cmd.Run(); err != nil {
		text, _ := os.ReadFile(said.Name())
		d.t.Fatalf("%s %s: %v\n%s", program, strings.Join(arguments, " "), err, text)
	}
}
