package pilot

import (
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"
)

// remains is the pilot's folder in SandboxDir, with a lock that shows that the
// pilot lives. A pilot that starts removes what others have left that do not.
type remains struct {
	folder string
	lock   *os.File
}

const lockName = "lock"

// claimSandboxes makes the pilot's folder and cleans up behind others.
func claimSandboxes(cfg *Config, t *tree, log *slog.Logger) (*remains, error) {
	if err := errors.Join(os.MkdirAll(cfg.SandboxDir, 0o755), os.MkdirAll(cfg.LogDir, 0o755)); err != nil {
		return nil, err
	}
	others, err := os.ReadDir(cfg.SandboxDir)
	if err != nil {
		return nil, err
	}
	for _, o := range others {
		cleanBehind(filepath.Join(cfg.SandboxDir, o.Name()), o.Name(), log)
	}
	r := &remains{folder: filepath.Join(cfg.SandboxDir, cfg.Pilot)}
	if err := os.Mkdir(r.folder, 0o755); err != nil {
		return nil, fmt.Errorf("folder for sandboxes: %w", err)
	}
	if r.lock, err = newLock(filepath.Join(r.folder, lockName)); err != nil {
		return nil, fmt.Errorf("lock of the folder for sandboxes: %w", err)
	}
	return r, nil
}

// newLock makes a lock file that is held from when it has its name on: one that
// is not held is taken to be of a pilot that is gone.
func newLock(path string) (*os.File, error) {
	f, err := os.Create(path + ".new")
	if err != nil {
		return nil, err
	}
	err = unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB)
	if err == nil {
		err = os.Rename(f.Name(), path)
	}
	if err != nil {
		_ = f.Close()
		return nil, err
	}
	return f, nil
}

// cleanBehind ends the processes that a pilot has left that does not live any
// more, and removes its sandboxes. A folder without a lock is one that a pilot
// is just making; it is left alone.
func cleanBehind(folder, pilot string, log *slog.Logger) {
	lock, err := os.OpenFile(filepath.Join(folder, lockName), os.O_RDWR, 0)
	if err != nil {
		return
	}
	defer lock.Close()
	if unix.Flock(int(lock.Fd()), unix.LOCK_EX|unix.LOCK_NB) != nil {
		return
	}
	for range maxSweeps {
		left := leftBy(folder, pilot)
		if len(left) == 0 {
			break
		}
		log.Info("ending processes that a pilot has left", "of", pilot, "count", len(left))
		for _, pid := range left {
			_ = unix.Kill(pid, unix.SIGKILL)
		}
	}
	removeBoxesOf(pilot)
	_ = removeAll(folder)
}

// leftBy finds the processes that are marked by a pilot, or work in a folder
// of it.
func leftBy(folder, pilot string) (found []int) {
	for _, pid := range pids() {
		if pid == os.Getpid() {
			continue
		}
		mark, _ := markOf(pid, PilotVariable)
		works, _ := os.Readlink(fmt.Sprintf("/proc/%d/cwd", pid))
		if fields := statOf(pid); len(fields) == 0 || fields[0] == "Z" || fields[0] == "X" {
			continue
		}
		if mark == pilot || strings.HasPrefix(works, folder+"/") {
			found = append(found, pid)
		}
	}
	return found
}

// stand says whether the folder is still there: somebody may have removed it
// while no server ran, and then nothing can be run or kept any more.
func (r *remains) stand() bool {
	info, err := r.lock.Stat()
	return err == nil && sameFile(filepath.Join(r.folder, lockName), info)
}

func (r *remains) close() {
	_ = removeAll(r.folder)
	_ = r.lock.Close()
}
