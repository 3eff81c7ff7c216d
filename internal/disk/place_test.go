package disk

import (
	"bytes"
	"context"
	"errors"
	"os"
	"path/filepath"
	"syscall"
	"testing"
)

func create(t *testing.T, name string) *os.File {
	t.Helper()
	f, err := os.Create(filepath.Join(t.TempDir(), name))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { f.Close() })
	return f
}

func TestCopyKeepsHoles(t *testing.T) {
	const size = 1 << 30
	in, out := create(t, "in"), create(t, "out")
	want := bytes.Repeat([]byte("data"), 1<<20)
	if _, err := in.WriteAt(want, size/2); err != nil {
		t.Fatal(err)
	}
	if err := in.Truncate(size); err != nil {
		t.Fatal(err)
	}
	if err := Copy(t.Context(), out, in); err != nil {
		t.Fatal(err)
	}
	got := make([]byte, len(want))
	if _, err := out.ReadAt(got, size/2); err != nil || !bytes.Equal(got, want) {
		t.Error("other contents:", err)
	}
	info, err := out.Stat()
	if err != nil || info.Size() != size {
		t.Error(info, err)
	}
	if blocks := info.Sys().(*syscall.Stat_t).Blocks * 512; blocks > size/2 {
		t.Errorf("it takes %d bytes of disk", blocks)
	}
}

func TestCopyEndsWithItsContext(t *testing.T) {
	in, out := create(t, "in"), create(t, "out")
	if _, err := in.WriteString("text"); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	err := Copy(ctx, out, in)
	if info, _ := out.Stat(); err == nil && info.Size() == 4 {
		t.Skip("the file system shares blocks")
	}
	if !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
}

func TestLinkIsOfTheFileThatIsOpen(t *testing.T) {
	f := create(t, "file")
	if err := os.Rename(f.Name(), f.Name()+".away"); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(f.Name(), nil, 0o644); err != nil {
		t.Fatal(err)
	}
	target := filepath.Join(t.TempDir(), "link")
	if err := errors.Join(Link(f, target), f.Sync()); err != nil {
		t.Fatal(err)
	}
	own, _ := f.Stat()
	if there, err := os.Stat(target); err != nil || !os.SameFile(own, there) {
		t.Error(err)
	}
	if err := Link(f, target); !errors.Is(err, os.ErrExist) {
		t.Error(err)
	}
}
