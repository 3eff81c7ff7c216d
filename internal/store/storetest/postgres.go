package storetest

import (
	"fmt"
	"net"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"strconv"
	"strings"
	"sync/atomic"
	"syscall"
)

// Host is who starts a PostgreSQL: a test, or another program that stands in for one.
type Host interface {
	Cleanup(f func())
	Fatal(args ...any)
	Fatalf(format string, args ...any)
	Skip(args ...any)
}

// Database is a real PostgreSQL that a test has started, in a folder of its own.
type Database struct {
	t        Host
	folder   string
	bin      string
	port     int
	as       *syscall.Credential // it does not run as root
	settings string              // words of its command line
	named    atomic.Int64
}

// Postgres starts a PostgreSQL, which ends with the test. It skips where none is installed. It does
// not wait for the disk: the machine does not crash.
func Postgres(t Host) *Database { return postgres(t, "-c fsync=off") }

// DurablePostgres starts one that waits for the disk, as those do that keep records.
func DurablePostgres(t Host) *Database { return postgres(t, "-c fsync=on") }

// PostgresIn starts one in a folder that is there, such as a small disk. It takes little room.
func PostgresIn(t Host, folder string) *Database {
	return postgresIn(t, "-c fsync=off -c max_wal_size=64MB -c min_wal_size=32MB", folder)
}

func postgres(t Host, settings string) *Database {
	folder, err := os.MkdirTemp("", "fairway-postgres")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(folder) })
	return postgresIn(t, settings, folder)
}

func postgresIn(t Host, settings, folder string) *Database {
	found, _ := filepath.Glob("/usr/lib/postgresql/*/bin/postgres")
	if len(found) == 0 {
		t.Skip("no PostgreSQL is installed; apt-get install postgresql")
	}
	d := &Database{t: t, folder: folder, bin: filepath.Dir(found[len(found)-1]), settings: settings}
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
	d.Start()
	t.Cleanup(d.Stop)
	return d
}

// Start starts it again after Stop.
func (d *Database) Start() {
	d.run("pg_ctl", "-D", d.folder+"/data", "-w", "-l", d.folder+"/log", "-o",
		fmt.Sprintf("-p %d -k %s -c listen_addresses=127.0.0.1 %s", d.port, d.folder, d.settings), "start")
}

// Running reports whether it runs: it may have ended by itself, as where its disk is full.
func (d *Database) Running() bool {
	cmd := exec.Command(filepath.Join(d.bin, "pg_ctl"), "-D", d.folder+"/data", "status")
	cmd.Dir = d.folder
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: d.as}
	return cmd.Run() == nil
}

// Stop ends it as a crash would: nothing is written any more.
func (d *Database) Stop() {
	d.run("pg_ctl", "-D", d.folder+"/data", "-m", "immediate", "stop")
}

// Host is where it listens, as HOST:PORT.
func (d *Database) Host() string { return fmt.Sprintf("127.0.0.1:%d", d.port) }

// Address is that of a schema which nobody has used.
func (d *Database) Address() string {
	return fmt.Sprintf("postgres://postgres@%s/postgres?schema=s%d", d.Host(), d.named.Add(1))
}

func (d *Database) run(program string, arguments ...string) {
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

// Process is the number of the process that all others of it belong to; 0 if it does not run.
func (d *Database) Process() int {
	text, _ := os.ReadFile(d.folder + "/data/postmaster.pid")
	line, _, _ := strings.Cut(string(text), "\n")
	pid, _ := strconv.Atoi(line)
	return pid
}
