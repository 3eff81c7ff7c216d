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

// childWrites requests the lock under a name, and releases it when it has it and
// is told to.
func childWrites(args []string) error {
	_, m, err := childMirror(new(Dialer), args)
	if err != nil {
		return err
	}
	h := Handle{Name: args[2]}
	if err := errors.Join(h.WriteRequest(m), h.Acquire(background)); err != nil {
		return err
	}
	fmt.Println("held")
	bufio.NewReader(os.Stdin).ReadString('\n')
	if err := h.Release(); err != nil {
		return err
	}
	fmt.Println("released")
	bufio.NewReader(os.Stdin).ReadString('\n') // the frame must leave before the connection ends
	return nil
}

// whenWaiting calls a function when somebody begins to wait for it.
type whenWaiting struct {
	context.Context
	then func()
}

func (c whenWaiting) Done() <-chan struct{} {
	c.then()
	return c.Context.Done()
}

// A trace names who waited for whom when the two are tasks of different
// processes: attached to the location for all of them, attached to a mirror for
// those of its process.
func TestTraceAcrossProcesses(t *testing.T) {
	overEach(t, func(t *testing.T, network string, options []Option) {
		l := newLocation(t, "l", 8, options...)
		s, p := served(t, network, l)
		m := mirror(t, p, "l")
		var atOwner, atMirror Trace
		atOwner.Attach(l)
		atMirror.Attach(m)
		c := startChild(t, "write", network, listenerOf(s).Addr().String(), "far")
		c.line(t)
		near := Handle{Name: "near"}
		must(t, near.WriteRequest(m))
		waitFor(t, func() bool { return l.Waiting() == 2 })
		must(t, near.Acquire(whenWaiting{background, func() { c.Tell("") }}))
		must(t, near.Release())
		waitFor(t, func() bool { return l.Waiting() == 0 })
		if w := waitsIn(t, &atMirror, "near"); len(w) != 1 || w[0].Args["released by"] != "far" {
			t.Fatalf("the mirror saw %+v", w)
		}
		for _, task := range []string{"near", "far"} {
			if sum := atOwner.Times()[task]; sum.Requests != 1 || sum.Holding == 0 {
				t.Fatalf("the owner saw %+v of %s", sum, task)
			}
		}
		if _, ok := atMirror.Times()["far"]; ok {
			t.Fatal("a mirror saw a task of another process")
		}
	})
}
