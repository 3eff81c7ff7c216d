//go:build linux

package orwl

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"runtime"
	"runtime/debug"
	"sync/atomic"
	"testing"

	"golang.org/x/sys/unix"

	"fairway/lib/orwl/internal/memory"
	"fairway/lib/orwl/internal/transport"
)

var touched atomic.Uint32 // so that no read is optimized away

// touch reads the first and the last byte of b; a fault fails the test instead of ending
// the process.
func touch(t *testing.T, b []byte) {
	t.Helper()
	defer debug.SetPanicOnFault(debug.SetPanicOnFault(true))
	defer func() {
		if r := recover(); r != nil {
			t.Errorf("touching %d bytes: %v", len(b), r)
		}
	}()
	touched.Store(uint32(b[0]) + uint32(b[len(b)-1]))
}

// A task that has lost its lease may still look at what it has mapped, and write there,
// while the owner makes the location smaller.
func TestShrinkingSparesWhoLostTheLease(t *testing.T) {
	for _, loss := range []Loss{RollBack, Skip} {
		for _, mode := range []Mode{Read, Write} {
			t.Run(fmt.Sprint(loss, mode), func(t *testing.T) {
				l := newLocation(t, "l", 4*memory.BlockSize, Shared(), OnLoss(loss))
				_, p := served(t, "unix", l)
				var lost Handle
				must(t, errors.Join(mirror(t, p, "l").insert(&lost, mode), lost.Acquire(background)))
				b, err := lost.view(mode)
				must(t, err)
				must(t, p.Close())
				resize(t, l, 10)
				touch(t, b)
				resize(t, l, 0)
				touch(t, b)
			})
		}
	}
}

// A process that maps the memory can neither shorten nor lengthen it, and can write to it
// only where writers write in place.
func TestMappedMemoryIsSealed(t *testing.T) {
	for _, loss := range []Loss{RollBack, Skip} {
		l := newLocation(t, "l", 2*memory.BlockSize, Shared(), OnLoss(loss))
		_, p := served(t, "unix", l)
		m := mirror(t, p, "l")
		read(t, m)
		fd, err := m.replica.Memory.File.Export(true)
		must(t, err)
		defer unix.Close(fd)
		for _, size := range []int64{0, memory.BlockSize, 3 * memory.BlockSize} {
			if unix.Ftruncate(fd, size) == nil {
				t.Errorf("%v: the file was given %d bytes", loss, size)
			}
		}
		b, err := unix.Mmap(fd, 0, memory.BlockSize, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED)
		if inPlace := loss == Skip; (err == nil) != inPlace {
			t.Errorf("%v: mapping it for writing: %v", loss, err)
		}
		if err == nil {
			must(t, unix.Munmap(b))
		}
		if read(t, l)[2*memory.BlockSize-1] != 0 {
			t.Error("the location has other data")
		}
	}
}

// Memory that a task has mapped stays until its release, also when nothing else refers to
// the handle any more: that of a mirror as long as the connection lasts.
func TestMappingOutlivesItsHandle(t *testing.T) {
	mappings := map[string]func() []byte{
		"location": func() []byte {
			h := new(Handle)
			must(t, errors.Join(h.WriteRequest(newLocation(t, "l", memory.BlockSize, Shared())), h.Acquire(background)))
			b, err := h.WriteMap()
			must(t, err)
			return b
		},
		"mirror": func() []byte {
			s := new(Server)
			s.Add(newLocation(t, "l", memory.BlockSize, Shared()))
			listener := listen(t, "unix")
			go s.Serve(listener)
			t.Cleanup(s.Close)
			p, err := Dial(background, "unix", listener.Addr().String())
			must(t, err)
			h := new(Handle)
			must(t, errors.Join(h.ReadRequest(mirror(t, p, "l")), h.Acquire(background)))
			b, err := h.ReadMap()
			must(t, err)
			t.Cleanup(func() { p.Close() })
			return b
		},
	}
	for name, mapped := range mappings {
		t.Run(name, func(t *testing.T) {
			b := mapped()
			for range 3 {
				collect(t)
			}
			touch(t, b)
		})
	}
}

// What a handle has mapped that was dropped without a release goes with its connection.
func TestDroppedHandlesOfAMirrorLeaveNothing(t *testing.T) {
	for _, mode := range []Mode{Read, Write} {
		s := new(Server)
		s.Add(newLocation(t, "l", memory.BlockSize, Shared()))
		listener := listen(t, "unix")
		go s.Serve(listener)
		before := descriptors(t)
		for range 10 {
			p, err := Dial(background, "unix", listener.Addr().String())
			must(t, err)
			h := new(Handle)
			must(t, errors.Join(mirror(t, p, "l").insert(h, mode), h.Acquire(background)))
			_, err = h.view(mode)
			must(t, errors.Join(err, p.Close()))
		}
		collect(t)
		waitFor(t, func() bool { runtime.GC(); return descriptors(t) <= before })
		s.Close()
	}
}

// collect has the collector run, and what it runs at the end of objects.
func collect(t *testing.T) {
	t.Helper()
	done := make(chan struct{})
	runtime.AddCleanup(new([16]byte), func(done chan struct{}) { close(done) }, done)
	waitFor(t, func() bool {
		runtime.GC()
		select {
		case <-done:
			return true
		default:
			return false
		}
	})
}

// Opening locations again and again, without reading any of the answers, costs the owner
// no descriptor.
func TestOpeningTakesNoDescriptors(t *testing.T) {
	s := new(Server)
	s.Add(newLocation(t, "l", memory.BlockSize, Shared()))
	h := hostilePeer(t, s, "unix")
	h.send(t, &transport.Frame{Kind: transport.Open, ID: 999, Text: "l", Mode: Write, OK: true})
	h.expect(t, 999, transport.Opened) // what the owner needs for the connection, it has
	before := descriptors(t)
	for id := range uint64(1000) {
		h.send(t, &transport.Frame{Kind: transport.Open, ID: 1000 + id, Text: "l", Mode: Write, OK: true})
	}
	h.expect(t, 1999, transport.Opened)
	if n := descriptors(t); n > before {
		t.Fatalf("%d descriptors more", n-before)
	}
}

// descriptors counts those of this process.
func descriptors(t testing.TB) int {
	t.Helper()
	entries, err := os.ReadDir("/proc/self/fd")
	must(t, err)
	return len(entries) - 1 // that of the folder itself
}

// Who maps the memory for reading cannot change what the owner has.
func TestStrayWriteToSharedMemory(t *testing.T) {
	_, p := served(t, "unix", newLocation(t, "l", 8, Shared()))
	var h Handle
	must(t, errors.Join(h.ReadRequest(mirror(t, p, "l")), h.Acquire(background)))
	b, err := h.ReadMap()
	must(t, err)
	defer func() {
		if recover() == nil {
			t.Fatal("the memory of the owner was written")
		}
	}()
	PanicOnFault()
	b[0] = 1
}

// A task may resize what it has written, write on, and map it again.
func TestDraftIsResized(t *testing.T) {
	l := newLocation(t, "l", 3*memory.BlockSize, Shared())
	_, p := served(t, "unix", l)
	m := mirror(t, p, "l")
	for i, size := range []int{5*memory.BlockSize + 1, 10, 0, 2 * memory.BlockSize} {
		t.Run(fmt.Sprint(size), func(t *testing.T) {
			before := read(t, l)
			var h Handle
			must(t, errors.Join(h.WriteRequest(m), h.Acquire(background)))
			b, err := h.WriteMap()
			must(t, err)
			if len(b) > 0 {
				b[0] = byte(i + 1)
				before[0] = b[0]
			}
			must(t, h.Resize(size))
			want := append(before, make([]byte, size)...)[:size]
			got, err := h.ReadMap()
			must(t, err)
			if !bytes.Equal(got, want) {
				t.Fatal("resizing changed what was there")
			}
			must(t, h.Release())
			if got := read(t, m); !bytes.Equal(got, want) || !bytes.Equal(read(t, l), want) {
				t.Fatal("others see something else")
			}
			write(t, m, func([]byte) {})
		})
	}
}
