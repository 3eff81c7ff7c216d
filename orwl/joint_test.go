//go:build unix

package orwl

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"os"
	"testing"
)

// gated serves a gate for a number of tasks and two locations at an address.
func gated(t *testing.T, tasks int) (address string, gate *JointGate, locs []*Location) {
	t.Helper()
	at, err := NewGateLocation("gate", tasks)
	must(t, err)
	locs = []*Location{newLocation(t, "a", 8, Gated()), newLocation(t, "b", 8, Gated())}
	s := new(Server)
	s.Add(at)
	s.Add(locs...)
	listener := listen(t, "tcp")
	go s.Serve(listener)
	t.Cleanup(s.Close)
	return listener.Addr().String(), JoinGate(at, tasks), locs
}

// guest is this process as another one that comes to a gate.
func guest(t *testing.T, address string) *Peer {
	t.Helper()
	p, err := Dial(background, "tcp", address)
	must(t, err)
	t.Cleanup(func() { p.Close() })
	return p
}

// childJoins comes to a gate with one task when it is told to. It holds its
// requests, in the given order of locations, until it is told to release.
func childJoins(args []string) error {
	in := bufio.NewReader(os.Stdin)
	p, err := Dial(background, "tcp", args[0])
	if err != nil {
		return err
	}
	var m []*Mirror
	for _, name := range append([]string{"gate"}, args[1:]...) {
		r, err := p.Mirror(background, name)
		if err != nil {
			return err
		}
		m = append(m, r)
	}
	gate := JoinGate(m[0], 2)
	first, second := new(Handle), new(Handle)
	in.ReadString('\n')
	if err := gate.Insert(background, "child", first.Writing(m[1]).At(0), second.Reading(m[2]).At(1)); err != nil {
		return err
	}
	fmt.Println("inserted")
	if err := gate.Wait(background); err != nil {
		var deadlock *DeadlockError
		fmt.Println("deadlock", errors.As(err, &deadlock))
		return nil
	}
	if err := (Handles{first, second}).Acquire(background); err != nil {
		return err
	}
	fmt.Println("granted")
	in.ReadString('\n')
	return Handles{first, second}.Release()
}

// A task of this process and one of another start together, in the order of their
// ranks.
func TestJointGateHoldsBack(t *testing.T) {
	address, gate, locs := gated(t, 2)
	c := startChild(t, "join", address, "a", "b")
	var a, b Handle
	must(t, gate.Insert(background, "parent", a.Writing(locs[0]).At(2), b.Reading(locs[1]).At(2)))
	ctx, cancel := context.WithCancel(background)
	cancel()
	if err := a.Acquire(ctx); !errors.Is(err, context.Canceled) {
		t.Fatalf("granted before all have come: %v", err)
	}
	must(t, Insert(background, a.Writing(locs[0]).At(2)))
	must(t, c.Tell(""))
	must(t, gate.Wait(background))
	if got := c.line(t); got != "inserted" {
		t.Fatal(got)
	}
	must(t, b.Acquire(background))
	if got := c.line(t); got != "granted" {
		t.Fatal(got)
	}
	if granted(t, &a) {
		t.Fatal("ranks do not make the order")
	}
	must(t, c.Tell(""))
	must(t, Handles{&a, &b}.Acquire(background))
	must(t, Handles{&a, &b}.Release())
}

func TestJointGateRefusesDeadlock(t *testing.T) {
	address, gate, locs := gated(t, 2)
	c := startChild(t, "join", address, "a", "b")
	var a, b Handle
	must(t, gate.Insert(background, "parent", b.Writing(locs[1]).At(0), a.Reading(locs[0]).At(1)))
	must(t, c.Tell(""))
	var deadlock *DeadlockError
	if err := gate.Wait(background); !errors.As(err, &deadlock) || len(deadlock.Cycle) != 2 {
		t.Fatalf("got %v", err)
	}
	c.line(t)
	if got := c.line(t); got != "deadlock true" {
		t.Fatal(got)
	}
	waitFor(t, func() bool { return postponed(locs[0])+postponed(locs[1]) == 0 })
}

// A process that dies between its insertion and the start is missed.
func TestJointGateMissesTheDead(t *testing.T) {
	address, gate, locs := gated(t, 2)
	p := guest(t, address)
	other := JoinGate(mirror(t, p, "gate"), 2)
	var a, b Handle
	must(t, other.Insert(background, "other", b.Writing(mirror(t, p, "a"))))
	must(t, gate.Insert(background, "here", a.Writing(locs[0])))
	must(t, p.Close())
	if err := gate.Wait(background); !errors.Is(err, ErrAbsentTask) {
		t.Fatal(err)
	}
}

// So is one that dies before the last one has come, by one here and by one in
// another process.
func TestJointGateMissesTheEarlyDead(t *testing.T) {
	address, gate, locs := gated(t, 3)
	p, survivor := guest(t, address), guest(t, address)
	there := JoinGate(mirror(t, survivor, "gate"), 3)
	var a, b, c Handle
	must(t, JoinGate(mirror(t, p, "gate"), 3).Insert(background, "lost", b.Writing(mirror(t, p, "a"))))
	must(t, there.Insert(background, "there", c.Writing(mirror(t, survivor, "a"))))
	must(t, p.Close())
	if err := there.Wait(background); !errors.Is(err, ErrAbsentTask) {
		t.Fatal(err)
	}
	if err := gate.Insert(background, "here", a.Writing(locs[0])); !errors.Is(err, ErrAbsentTask) {
		t.Fatal(err)
	}
	waitFor(t, func() bool { return postponed(locs[0]) == 0 })
}
