package memory

import (
	"errors"
	"math"
	"os"
	"slices"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

// mappings counts what this process has mapped of memory of a name.
func mappings(t *testing.T, name string) (n int) {
	t.Helper()
	maps, err := os.ReadFile("/proc/self/maps")
	must(t, err)
	return strings.Count(string(maps), "memfd:"+name+" ")
}

func isOpen(fd int) bool {
	_, err := unix.FcntlInt(uintptr(fd), unix.F_GETFD, 0)
	return err == nil
}

// Memory that is given up is mapped no more, and its descriptor is closed.
func TestMemoryIsGivenBack(t *testing.T) {
	const name = "given-back"
	m, err := NewInFile(name, 3*BlockSize)
	must(t, err)
	copy(m.Bytes, "text")
	var st unix.Stat_t
	must(t, unix.Fstat(m.File.fd, &st))
	if st.Mode&0o777 != 0o600 || mappings(t, name) != 1 {
		t.Errorf("memory has the mode %o, and %d mappings", st.Mode&0o777, mappings(t, name))
	}
	var d Draft
	must(t, d.Begin(&m, 1))
	if mappings(t, name) != 2 {
		t.Errorf("with a draft there are %d mappings", mappings(t, name))
	}
	must(t, d.Resize(2*BlockSize))
	if mappings(t, name) != 1 || string(d.Bytes[:4]) != "text" || d.file != nil {
		t.Errorf("after its resize there are %d mappings", mappings(t, name))
	}
	if got := d.Changes(m.Bytes, 2); !slices.Equal(got, []Extent{{0, 2 * BlockSize}}) {
		t.Errorf("of a draft that was resized changed %v", got)
	}
	must(t, d.Resize(0))
	if got := d.Changes(m.Bytes, 3); got != nil {
		t.Errorf("of a draft of nothing changed %v", got)
	}
	must(t, d.Resize(1))
	if got := d.Changes(m.Bytes, 4); !slices.Equal(got, []Extent{{0, 1}}) {
		t.Errorf("of a draft of a byte changed %v", got)
	}
	must(t, d.Begin(&m, 5))
	d.Close()
	if mappings(t, name) != 1 || d.Bytes != nil || d.file != nil {
		t.Errorf("after its end there are %d mappings", mappings(t, name))
	}
	d.Close()

	old := m.File.fd
	must(t, m.Resize(5*BlockSize))
	if mappings(t, name) != 1 || string(m.Bytes[:4]) != "text" || len(m.Bytes) != 5*BlockSize {
		t.Errorf("after a resize there are %d mappings", mappings(t, name))
	}
	if isOpen(old) && old != m.File.fd {
		t.Error("the memory before is open")
	}
	m.Close()
	if mappings(t, name) != 0 || isOpen(m.File.fd) {
		t.Error("memory is not given back")
	}
}

// A draft in place says nothing of what changed, as its writer has written it already.
func TestDraftsInPlace(t *testing.T) {
	m := sharedMemory(t, BlockSize)
	d := Draft{InPlace: true}
	must(t, d.Begin(m, 1))
	d.Bytes[0] = 7
	if m.Bytes[0] != 7 || d.Changes(m.Bytes, 2) != nil {
		t.Error("a draft in place is another memory")
	}
}

// Memory is taken only from a descriptor that keeps its size, and given by one of its own.
func TestMemoryThatMayShrinkIsRefused(t *testing.T) {
	made := func(flags int) int {
		fd, err := unix.MemfdCreate("made", flags|unix.MFD_CLOEXEC)
		must(t, err)
		must(t, unix.Ftruncate(fd, 10))
		return fd
	}
	for name, fd := range map[string]int{"with seals to come": made(unix.MFD_ALLOW_SEALING), "without seals": made(0)} {
		if _, err := Receive(fd, 10, true); !errors.Is(err, errUnsealed) || isOpen(fd) {
			t.Errorf("memory %s: %v, open %t", name, err, isOpen(fd))
		}
	}
	m := sharedMemory(t, 10)
	for size, ok := range map[int]bool{0: true, 9: true, 10: true, 11: false} {
		fd, err := m.File.Export(false)
		must(t, err)
		got, err := Receive(fd, size, false)
		if (err == nil) != ok || isOpen(fd) != ok || len(got.Bytes) != size && ok {
			t.Errorf("%d of 10 bytes: %v", size, err)
		}
		if ok {
			got.Close()
		}
	}
	fd, err := m.File.Export(false)
	must(t, err)
	if _, err := Receive(fd, 10, true); err == nil || isOpen(fd) {
		t.Errorf("memory that is only to be read is mapped to be written: %v", err)
	}
	for _, writable := range []bool{true, false} {
		if fd, err := (&File{fd: -1}).Export(writable); err == nil || fd != -1 {
			t.Errorf("a descriptor of no memory is %d", fd)
		}
	}
}

func TestSizesThatCannotBe(t *testing.T) {
	for size, ok := range map[int]bool{
		-1: false, 0: true, 1: true, largeSize - 1: true, largeSize: true, math.MaxInt: false,
	} {
		if err := checkSize(size); (err == nil) != ok {
			t.Errorf("%d bytes: %v", size, err)
		}
	}
	if err := askForMemory(math.MaxInt - 1<<20); !errors.Is(err, errMemory) {
		t.Errorf("more than there are addresses: %v", err)
	}
	if b, err := aligned(0); b != nil || err != nil {
		t.Errorf("nothing is %v, %v", b, err)
	}
	for size := 1; size < 20; size++ {
		if b, err := aligned(size); len(b) != size || err != nil {
			t.Errorf("%d bytes are %d, %v", size, len(b), err)
		}
	}
	if _, err := NewInFile("none", -1); err == nil {
		t.Error("memory of -1 bytes is made")
	}
	if err := (&File{fd: -1}).resize(1); err == nil || !strings.Contains(err.Error(), "ftruncate") {
		t.Error(err)
	}
	fd, err := unix.MemfdCreate("never sealed", unix.MFD_CLOEXEC)
	must(t, err)
	defer unix.Close(fd)
	if err := (&File{fd: fd}).resize(1); err == nil || !strings.Contains(err.Error(), "sealing") {
		t.Errorf("memory that cannot be sealed: %v", err)
	}
	for n, want := range map[int]int{0: 0, 1: 4096, 4095: 4096, 4096: 4096, 4097: 8192} {
		if got := roundUp(n, 4096); got != want {
			t.Errorf("%d in whole pages is %d", n, got)
		}
	}
}
