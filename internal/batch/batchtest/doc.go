// Package batchtest has what every batch system must pass, and starts real ones to
// pass it on: Slurm with four nodes, Grid Engine, HTCondor, and ARC in front of Slurm, all on this
// machine and in a folder of the test. What it starts it ends, by process.
package batchtest

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"fairway/lib/sched"
)

// Required is the environment variable that has tests fail where a batch system is
// not installed, instead of skipping. It names those that must be there.
const Required = "FAIRWAY_TEST_BATCH"

// Host is what a batch system is started for: a test, or a program that ends on Fatal
// and Skipf and then calls what Cleanup was given, the last first.
type Host interface {
	Name() string
	Failed() bool
	Cleanup(f func())
	Setenv(key, value string)
	Logf(format string, args ...any)
	Fatal(args ...any)
	Fatalf(format string, args ...any)
	Skipf(format string, args ...any)
}

func absent(t Host, system string, err error) {
	if strings.Contains(os.Getenv(Required), system) {
		t.Fatalf("%s cannot be started: %v", system, err)
	}
	t.Skipf("%s is not installed (make test-%s): %v", system, system, err)
}

func installed(programs ...string) error {
	for _, p := range programs {
		if _, err := exec.LookPath(p); err != nil {
			return err
		}
	}
	if os.Geteuid() != 0 {
		return errors.New("it is started as root only")
	}
	return nil
}

// daemons are processes in the foreground, ended at the end of the test.
type daemons struct {
	t       Host
	running []*exec.Cmd
}

func (d *daemons) start(environment []string, name string, arguments ...string) *exec.Cmd {
	cmd := exec.Command(name, arguments...)
	cmd.Env = append(os.Environ(), environment...)
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	if err := cmd.Start(); err != nil {
		d.t.Fatal(err)
	}
	d.running = append(d.running, cmd)
	return cmd
}

// endTime is how long a daemon may take to end in order.
const endTime = 5 * time.Second

// end ends them, the last first.
func (d *daemons) end() {
	for i := len(d.running) - 1; i >= 0; i-- {
		cmd := d.running[i]
		_ = cmd.Process.Signal(syscall.SIGTERM)
		ctx, cancel := context.WithTimeout(context.Background(), endTime)
		context.AfterFunc(ctx, func() { _ = cmd.Process.Kill() })
		_ = cmd.Wait()
		cancel()
	}
}

// startTime is how long a batch system may take until it is ready.
const startTime = 2 * time.Minute

// until repeats a command until its output is what is wanted.
func until(t Host, environment []string, wanted func(output string) bool, argv ...string) {
	ctx, cancel := context.WithTimeout(context.Background(), startTime)
	defer cancel()
	var said string
	status := sched.NewStatus(sched.Default(), sched.StatusConfig[string, string]{
		Name: t.Name(), Every: 50 * time.Millisecond, Failures: 1 << 30, Timeout: startTime,
		Query: func(ctx context.Context, keys []string) (map[string]string, error) {
			cmd := exec.CommandContext(ctx, argv[0], argv[1:]...)
			cmd.Env = append(os.Environ(), environment...)
			out, err := cmd.CombinedOutput()
			said = string(out)
			return map[string]string{keys[0]: said}, err
		},
	})
	_, err := status.Wait(ctx, "ready", func(a sched.Answer[string]) bool { return a.Known && wanted(a.Value) })
	if err != nil {
		t.Fatalf("%s: %v; it says: %s", strings.Join(argv, " "), err, said)
	}
}

func run(t Host, environment []string, input string, argv ...string) string {
	cmd := exec.Command(argv[0], argv[1:]...)
	cmd.Env = append(os.Environ(), environment...)
	cmd.Stdin = strings.NewReader(input)
	var out, said bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &said
	if err := cmd.Run(); err != nil {
		t.Fatalf("%s: %v: %s%s", strings.Join(argv, " "), err, out.String(), said.String())
	}
	return out.String()
}

func write(t Host, path, text string) {
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
}

// freePorts are so many TCP ports in a row that are the caller's until its test ends: nobody
// uses them now, and no other test takes them, in this process or in another.
func freePorts(t Host, n int) int {
	for first := 21000 + os.Getpid()%8000; first < 32000; first += n {
		if claims, err := claim(first, n); err == nil {
			t.Cleanup(func() { release(claims) })
			return first
		}
	}
	t.Fatal("no ports are free")
	return 0
}

// claim takes the ports of a row. A claim is a socket with the number in its name, which
// the kernel gives to one process, and takes back when that ends.
func claim(first, n int) (claims []net.Listener, err error) {
	for port := first; port < first+n; port++ {
		held, err := net.Listen("unix", fmt.Sprintf("@fairway-test-port-%d", port))
		if err != nil {
			release(claims)
			return nil, err
		}
		claims = append(claims, held)
		tried, err := net.Listen("tcp", fmt.Sprintf("127.0.0.1:%d", port))
		if err == nil {
			err = tried.Close()
		}
		if err != nil {
			release(claims)
			return nil, fmt.Errorf("port %d: %w", port, err)
		}
	}
	return claims, nil
}

func release(claims []net.Listener) {
	for _, claim := range claims {
		_ = claim.Close() // nobody has connected
	}
}
