//go:build unix

package orwl

import (
	"bufio"
	"errors"
	"fmt"
	"net"
	"os"
	"strings"
	"syscall"
	"testing"
	"time"

	"fairway/lib/orwl/internal/memory"
	"fairway/lib/seed"
	"fairway/lib/subprocess"
)

// childVariable makes this test binary a process of a test: its role and its
// arguments, separated by spaces.
const childVariable = "ORWL_TEST_CHILD"

func init() {
	if text := os.Getenv(childVariable); text != "" {
		args := strings.Fields(text)
		if err := childRoles[args[0]](args[1:]); err != nil {
			fmt.Fprintln(os.Stderr, "child:", err)
			os.Exit(1)
		}
		os.Exit(0)
	}
}

var childRoles = map[string]func(args []string) error{
	"count":    childCounts,
	"few":      childServesFew,
	"hold":     childHolds,
	"impostor": childTakesAddress,
	"insert":   childInserts,
	"serve":    childServes,
	"work":     childWorks,
	"write":    childWrites,
}

type childProcess struct{ *subprocess.Child }

func startChild(t *testing.T, args ...string) childProcess {
	t.Helper()
	cmd := subprocess.Self()
	cmd.Env = append(os.Environ(), childVariable+"="+strings.Join(args, " "))
	c, err := subprocess.Start(cmd)
	must(t, err)
	t.Cleanup(c.Kill)
	return childProcess{c}
}

// line waits for the next line that the child prints.
func (c childProcess) line(t *testing.T) string {
	t.Helper()
	line, err := c.Hear()
	must(t, err)
	return line
}

// childMirror opens the location "l" of the process at a network and address.
func childMirror(d *Dialer, args []string) (*Peer, *Mirror, error) {
	p, err := d.Dial(background, args[0], args[1])
	if err != nil {
		return nil, nil, err
	}
	m, err := p.Mirror(background, "l")
	return p, m, err
}

// childCounts increments all counters of a location until it is killed.
func childCounts(args []string) error {
	_, m, err := childMirror(new(Dialer), args)
	if err != nil {
		return err
	}
	var pair Pair
	if err := pair.WriteRequest(m); err != nil {
		return err
	}
	for i := 0; ; i++ {
		if err := pair.Acquire(background); err != nil {
			return err
		}
		counts, err := WriteAs[uint64](&pair)
		if err != nil {
			return err
		}
		for k := range counts {
			counts[k]++
		}
		if err := pair.Release(); err != nil {
			return err
		}
		if i == 20 {
			fmt.Println("counting")
		}
	}
}

// Processes are killed at random moments. The others go on, and no half of a
// write is visible.
func TestProcessesKilledAtRandom(t *testing.T) {
	overEach(t, func(t *testing.T, network string, options []Option) {
		rng := seed.Source(t)
		l := newLocation(t, "l", 4*memory.BlockSize, options...)
		s := new(Server)
		s.Add(l)
		listener := listen(t, network)
		go s.Serve(listener)
		t.Cleanup(s.Close)
		for range rounds(4) {
			a := startChild(t, "count", network, listener.Addr().String())
			b := startChild(t, "count", network, listener.Addr().String())
			a.line(t)
			b.line(t)
			before := l.Version()
			until := before + uint64(rng.IntN(40))
			waitFor(t, func() bool { return l.Version() >= until })
			a.Kill()
			after := l.Version()
			waitFor(t, func() bool { return l.Version() > after+5 }) // b goes on
			b.Kill()
			checkCounts(t, read(t, l))
		}
		waitFor(t, func() bool { return l.Waiting() == 0 })
	})
}

// childHolds takes the lock and says so. When it is told to go on it writes, as
// a process does that was stopped in the middle of its writing, and gives the lock
// back.
func childHolds(args []string) error {
	p, m, err := childMirror(&Dialer{Lease: time.Second, Once: true}, args)
	if err != nil {
		return err
	}
	var h Handle
	if err := errors.Join(h.WriteRequest(m), h.Acquire(background)); err != nil {
		return err
	}
	b, err := h.WriteMap()
	if err != nil {
		return err
	}
	b[0] = 66
	fmt.Println("held")
	bufio.NewReader(os.Stdin).ReadString('\n')
	for i := range b {
		b[i] = 77
	}
	<-p.Done()
	fmt.Println(errors.Is(h.Release(), ErrLeaseLost))
	return nil
}

// A process that is stopped loses its lease. What it writes when it goes on is
// seen by nobody, neither what it writes back nor what it writes into shared memory.
func TestStoppedHolder(t *testing.T) {
	overEach(t, func(t *testing.T, network string, options []Option) {
		for loss, want := range map[Loss]byte{RollBack: 0, Skip: 66} {
			if options == nil {
				want = 0
			}
			t.Run(fmt.Sprint(loss), func(t *testing.T) {
				stopHolder(t, network, want, append([]Option{OnLoss(loss)}, options...))
			})
		}
	})
}

// stopHolder stops a holder that has written 66 to the first byte. The next one is to
// see want there.
func stopHolder(t *testing.T, network string, want byte, options []Option) {
	l := newLocation(t, "l", 8, options...)
	s, p := served(t, network, l)
	m := mirror(t, p, "l")
	read(t, m)
	c := startChild(t, "hold", network, listenerOf(s).Addr().String())
	c.line(t)
	must(t, c.Process().Signal(syscall.SIGSTOP))
	write(t, l, func(b []byte) { b[1] = 1 })
	must(t, c.Process().Signal(syscall.SIGCONT))
	must(t, c.Tell(""))
	if c.line(t) != "true" {
		t.Fatal("the late release was accepted")
	}
	for _, r := range []Resource{l, m} {
		if b := read(t, r); b[0] != want || b[1] != 1 || b[2] != 0 {
			t.Fatalf("%T: a late write is visible: %v", r, b)
		}
	}
	write(t, m, func(b []byte) { b[2] = 2 })
	if b := read(t, l); b[2] != 2 {
		t.Fatalf("a mirror does not follow to the new memory: %v", b)
	}
}

func listenerOf(s *Server) net.Listener {
	s.mu.Lock()
	defer s.mu.Unlock()
	for l := range s.listeners {
		return l
	}
	return nil
}

// childServes owns a location.
func childServes(args []string) error {
	l, err := New(args[0], 8)
	if err != nil {
		return err
	}
	s := new(Server)
	s.Add(l)
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	fmt.Println(listener.Addr())
	return s.Serve(listener)
}

// childInserts inserts its requests in two locations with two owners again and
// again: both are granted, or neither.
func childInserts(args []string) error {
	var mirrors []Resource
	for i, name := range []string{"x", "y"} {
		p, err := Dial(background, "tcp", args[i])
		if err != nil {
			return err
		}
		m, err := p.Mirror(background, name)
		if err != nil {
			return err
		}
		mirrors = append(mirrors, m)
	}
	for i := 0; ; i++ {
		if err := insertBoth(background, mirrors); err != nil {
			return err
		}
		if i == 3 {
			fmt.Println("inserting")
		}
	}
}

// Tasks of several processes insert in two locations with different owners.
// There is no deadlock, and one that is killed while it inserts leaves nothing.
func TestInsertAcrossProcesses(t *testing.T) {
	rng := seed.Source(t)
	x, y := startChild(t, "serve", "x"), startChild(t, "serve", "y")
	addresses := []string{x.line(t), y.line(t)}
	var mirrors []Resource
	for i, name := range []string{"x", "y"} {
		p, err := Dial(background, "tcp", addresses[i])
		must(t, err)
		t.Cleanup(func() { p.Close() })
		mirrors = append(mirrors, mirror(t, p, name))
	}
	for range rounds(5) {
		a := startChild(t, "insert", addresses[0], addresses[1])
		b := startChild(t, "insert", addresses[0], addresses[1])
		a.line(t)
		b.line(t)
		for range rng.IntN(50) {
			must(t, insertBoth(background, mirrors))
		}
		a.Kill()
		for range 20 {
			must(t, insertBoth(background, mirrors))
		}
		b.Kill()
		must(t, insertBoth(background, mirrors))
	}
}
