//go:build linux

package memory

import (
	"errors"
	"testing"

	"golang.org/x/sys/unix"
)

// An owner that sends a file that it can shorten, or that is shorter than it says, is
// no owner.
func TestMemoryThatCanShrinkIsRefused(t *testing.T) {
	plain, err := unix.MemfdCreate("plain", unix.MFD_CLOEXEC|unix.MFD_ALLOW_SEALING)
	must(t, err)
	defer unix.Close(plain)
	must(t, unix.Ftruncate(plain, BlockSize))
	if err := (&File{fd: plain}).holds(BlockSize); !errors.Is(err, errUnsealed) {
		t.Fatal(err)
	}
	sealed, err := NewInFile("sealed", BlockSize)
	must(t, err)
	defer sealed.Close()
	must(t, sealed.File.holds(BlockSize))
	if err := sealed.File.holds(BlockSize + 1); !errors.Is(err, errUnsealed) {
		t.Fatal(err)
	}
}
