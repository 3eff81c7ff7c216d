package orwl

import (
	"context"
	"sync"
	"testing"
)

// FuzzCancelAgainstGrant has two tasks request, insert, cancel and release at the same
// locations at once, one half of them by way of a connection. Whatever comes first, no
// request is lost and none is left.
func FuzzCancelAgainstGrant(f *testing.F) {
	f.Add([]byte{0x01, 0x12, 0x43, 0x81, 0x22}, []byte{0x01, 0x11, 0x02})
	f.Add([]byte{0x05, 0x15, 0x0d, 0x25, 0x07}, []byte{0x0d, 0x05, 0x1d, 0x03, 0x35})
	a, b := newLocation(f, "a", 8), newLocation(f, "b", 8)
	s := new(Server)
	s.Add(a, b)
	p := dialled(f, s, listen(f, "tcp"), new(Dialer))
	resources := []Resource{a, mirror(f, p, "a"), b, mirror(f, p, "b")}
	f.Fuzz(func(t *testing.T, first, second []byte) {
		var both sync.WaitGroup
		for _, ops := range [][]byte{first, second} {
			both.Go(func() { cancelAgainstGrant(t, resources, ops) })
		}
		both.Wait()
		write(t, a, func(b []byte) { b[0]++ })
		write(t, b, func(b []byte) { b[0]++ })
		waitFor(t, func() bool { return a.Waiting()+b.Waiting() == 0 })
	})
}

// cancelAgainstGrant does what the bytes say: the low bits choose the operation, the
// high ones the handle.
func cancelAgainstGrant(t *testing.T, resources []Resource, ops []byte) {
	handles := make([]Handle, 4)
	ended, end := context.WithCancel(background)
	end()
	for _, op := range ops {
		h, r, mode := &handles[op>>4%4], resources[op>>1%4], Mode(op&1)
		var err error
		switch {
		case !h.pending && h.state == idle && op&8 == 0:
			err = h.request(r, mode)
		case !h.pending && h.state == idle:
			insertUntil(resources, h, handles[:], op)
		case op&6 == 0:
			err = h.Cancel()
		case op&6 == 2:
			h.Acquire(ended)
		case granted(t, h):
			err = h.Release()
		}
		if err != nil {
			t.Error(err)
		}
	}
	for i := range handles {
		if err := handles[i].Cancel(); err != nil {
			t.Error(err)
		}
	}
}

// insertUntil inserts two requests at mirrors and gives up at once, or when another
// goroutine says so.
func insertUntil(resources []Resource, h *Handle, handles []Handle, op byte) {
	ctx, cancel := context.WithCancel(background)
	defer cancel()
	if op&4 == 0 {
		cancel()
	} else {
		go cancel()
	}
	other := &handles[(op>>4+1)%4]
	if other.pending || other.state != idle {
		return
	}
	Insert(ctx, h.Writing(resources[1]), other.Writing(resources[3])) // it may be too late for it
}
