//go:build linux

package orwl

import (
	"errors"
	"fmt"
	"os"
	"runtime"
	"runtime/debug"
	"sync/atomic"
	"testing"

	"golang.org/x/sys/unix"
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
				l := newLocation(t, "l", 4*blockSize, Shared(), OnLoss(loss))
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
		l := newLocation(t, "l", 2*blockSize, Shared(), OnLoss(loss))
		_, p := served(t, "unix", l)
		m := mirror(t, p, "l")
		read(t, m)
		fd := m.replica.memory.file.fd
		for _, size := range []int64{0, blockSize, 3 * blockSize} {
			if unix.Ftruncate(fd, size) == nil {
				t.Errorf("%v: the file was given %d bytes", loss, size)
			}
		}
		b, err := unix.Mmap(fd, 0, blockSize, readWrite, unix.MAP_SHARED)
		if inPlace := loss == Skip; (err == nil) != inPlace {
			t.Errorf("%v: mapping it for writing: %v", loss, err)
		}
		if err == nil {
			must(t, unix.Munmap(b))
		}
		if read(t, l)[2*blockSize-1] != 0 {
			t.Error("the location has other data")
		}
	}
}

// An owner that sends a file that it can shorten, or that is shorter than it says, is
// no owner.
func TestMemoryThatCanShrinkIsRefused(t *testing.T) {
	plain, err := unix.MemfdCreate("plain", unix.MFD_CLOEXEC|unix.MFD_ALLOW_SEALING)
	must(t, err)
	defer unix.Close(plain)
	must(t, unix.Ftruncate(plain, blockSize))
	if err := (&memoryFile{fd: plain}).holds(blockSize); !errors.Is(err, errFrame) {
		t.Fatal(err)
	}
	sealed, err := newMemory("sealed", blockSize)
	must(t, err)
	defer sealed.close()
	must(t, sealed.file.holds(blockSize))
	if err := sealed.file.holds(blockSize + 1); !errors.Is(err, errFrame) {
		t.Fatal(err)
	}
}

// Memory that a task has mapped stays until its release, also when nothing else refers to
// the handle any more.
func TestMappingOutlivesItsHandle(t *testing.T) {
	mappings := map[string]func() []byte{
		"location": func() []byte {
			h := new(Handle)
			must(t, errors.Join(h.WriteRequest(newLocation(t, "l", blockSize, Shared())), h.Acquire(background)))
			b, err := h.WriteMap()
			must(t, err)
			return b
		},
		"mirror": func() []byte {
			s := new(Server)
			s.Add(newLocation(t, "l", blockSize, Shared()))
			listener := listen(t, "unix")
			go s.Serve(listener)
			defer s.Close()
			p, err := Dial(background, "unix", listener.Addr().String())
			must(t, err)
			h := new(Handle)
			must(t, errors.Join(h.ReadRequest(mirror(t, p, "l")), h.Acquire(background)))
			b, err := h.ReadMap()
			must(t, errors.Join(err, p.Close()))
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
	s.Add(newLocation(t, "l", blockSize, Shared()))
	h := hostilePeer(t, s, "unix")
	h.send(t, &frame{kind: frameOpen, id: 999, text: "l", mode: Write, ok: true})
	h.expect(t, 999, frameOpened) // what the owner needs for the connection, it has
	before := descriptors(t)
	for id := range uint64(1000) {
		h.send(t, &frame{kind: frameOpen, id: 1000 + id, text: "l", mode: Write, ok: true})
	}
	h.expect(t, 1999, frameOpened)
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
