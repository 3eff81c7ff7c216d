package disk

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"golang.org/x/sys/unix"
)

// A lock file that has its name is held: whoever finds its lock free may take its owner for
// dead.
func TestNewLockIsHeld(t *testing.T) {
	path := filepath.Join(t.TempDir(), "lock")
	held, err := NewLock(path, func(f *os.File) error {
		if _, err := os.Stat(path); !errors.Is(err, os.ErrNotExist) {
			t.Errorf("it has its name before it is written: %v", err)
		}
		_, err := f.WriteString("mine")
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	other, err := os.OpenFile(path, os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer other.Close()
	if err := TryLock(other); !errors.Is(err, ErrHeld) {
		t.Errorf("the lock was taken twice: %v", err)
	}
	if err := held.Close(); err != nil {
		t.Fatal(err)
	}
	if err := TryLock(other); err != nil {
		t.Errorf("it is not free after its holder: %v", err)
	}
}

func TestNewLockThatIsNotWrittenHasNoName(t *testing.T) {
	path := filepath.Join(t.TempDir(), "lock")
	cause := errors.New("no origin")
	if _, err := NewLock(path, func(*os.File) error { return cause }); !errors.Is(err, cause) {
		t.Errorf("got %v", err)
	}
	if _, err := os.Stat(path); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("it has a name: %v", err)
	}
}

// A process is seen to be stopped whatever the name of its program is.
func TestIsStopped(t *testing.T) {
	sleep, err := exec.LookPath("sleep")
	if err != nil {
		t.Skip(err)
	}
	program := filepath.Join(t.TempDir(), "a) S b")
	if err := os.Symlink(sleep, program); err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(program, "600")
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() { _ = cmd.Process.Kill(); _ = cmd.Wait() }()
	if IsStopped(cmd.Process.Pid) {
		t.Error("it is said to be stopped while it runs")
	}
	if err := cmd.Process.Signal(unix.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	var status unix.WaitStatus
	for {
		if _, err := unix.Wait4(cmd.Process.Pid, &status, unix.WUNTRACED, nil); !errors.Is(err, unix.EINTR) {
			break
		}
	}
	if !status.Stopped() || !IsStopped(cmd.Process.Pid) {
		t.Errorf("it is not said to be stopped: %v", status)
	}
}

// A copy that does not become complete leaves nothing, and what stands in its place already is
// not touched.
func TestCopyToLeavesNoPart(t *testing.T) {
	folder, in := t.TempDir(), create(t, "in")
	if _, err := in.WriteString("data"); err != nil {
		t.Fatal(err)
	}
	target := filepath.Join(folder, "there")
	if err := CopyTo(t.Context(), in, target, 0o400); err != nil {
		t.Fatal(err)
	}
	if err := CopyTo(t.Context(), in, target, 0o400); !errors.Is(err, os.ErrExist) {
		t.Errorf("it was replaced: %v", err)
	}
	if data, err := os.ReadFile(target); err != nil || string(data) != "data" {
		t.Errorf("it holds %q, %v", data, err)
	}
	closed := create(t, "closed")
	_ = closed.Close()
	if err := CopyTo(t.Context(), closed, filepath.Join(folder, "part"), 0o600); err == nil {
		t.Error("a closed file was copied")
	}
	if _, err := os.Stat(filepath.Join(folder, "part")); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("a part is left: %v", err)
	}
}
