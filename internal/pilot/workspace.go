package pilot

import (
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"

	"fairway/internal/beneath"
	"fairway/internal/disk"
	"fairway/internal/fault"
	"fairway/internal/pilot/process"
	"fairway/internal/pilot/report"
)

// workspace is the pilot's folder in SandboxDir, with a lock that shows that the
// pilot lives. A pilot that starts removes what others have left that do not.
type workspace struct {
	folder string
	all    *beneath.Folder // SandboxDir
	dir    *beneath.Folder // folder, taken before any attempt ran
	lock   *os.File
}

const lockName = "lock"

var (
	folderMade     = fault.New("pilot.folder.made")
	folderUnlocked = fault.New("pilot.folder.unlocked")
)

func claimSandboxes(cfg *Config, log *slog.Logger) (_ *workspace, err error) {
	if err := os.MkdirAll(cfg.SandboxDir, 0o755); err != nil {
		return nil, err
	}
	r := &workspace{folder: filepath.Join(cfg.SandboxDir, cfg.Pilot)}
	if r.all, err = beneath.Open(cfg.SandboxDir); err != nil {
		return nil, err
	}
	if err := cleanBehindAll(r.all, log); err != nil {
		return nil, err
	}
	if err := r.make(cfg.Pilot); err != nil {
		return nil, fmt.Errorf("folder for sandboxes: %w", err)
	}
	if err := os.MkdirAll(cfg.LogDir, 0o755); err != nil { // it may be in the pilot's folder
		return nil, err
	}
	return r, nil
}

// make makes the pilot's folder with its lock. Another pilot may take the folder for one
// that was left, as long as it has no lock.
func (r *workspace) make(pilot string) (err error) {
	for try := range makeTries {
		if err = r.all.Mkdir(pilot, 0o755); err != nil && (try == 0 || !errors.Is(err, fs.ErrExist)) {
			return err
		}
		if err := folderMade.Hit(); err != nil {
			return err
		}
		if r.dir, err = r.all.Sub(pilot); errors.Is(err, fs.ErrNotExist) {
			continue
		} else if err != nil {
			return err
		}
		if r.lock, err = disk.NewLock(filepath.Join(r.folder, lockName), writeOrigin); err == nil {
			return nil
		}
		_ = r.dir.Remove(disk.UnnamedLock(lockName)) // the other one may have it
		_ = r.dir.Close()
		if !errors.Is(err, fs.ErrNotExist) && !errors.Is(err, disk.ErrHeld) {
			return err
		}
	}
	return err
}

// makeTries bounds how often a pilot makes its folder.
const makeTries = 100

// CleanUp removes what pilots that do not live any more have left in a folder for
// sandboxes, and ends what is left of their attempts. Those that live keep theirs.
func CleanUp(sandboxDir string, log *slog.Logger) error {
	all, err := beneath.Open(sandboxDir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	defer all.Close()
	return cleanBehindAll(all, log)
}

func cleanBehindAll(all *beneath.Folder, log *slog.Logger) error {
	pilots, err := all.List(".")
	for _, pilot := range pilots {
		if pilot != KeptFolder && pilot != report.SpoolFolder {
			cleanBehind(all, pilot, log)
		}
	}
	return err
}

// origin tells what a pilot has left from what only looks so, such as a copy of
// its folder while it lives, or processes that got its number after a restart of
// the machine.
type origin struct {
	boot    string // of the machine
	started uint64 // start of the pilot, in clock ticks since then
	inode   uint64 // of the lock file itself
}

func writeOrigin(lock *os.File) error {
	inode, err := inodeOf(lock)
	if err != nil {
		return err
	}
	_, err = fmt.Fprintf(lock, "%s %d %d\n", disk.Boot(), process.StartOf(os.Getpid()), inode)
	return err
}

// readOrigin returns an error if the lock file was not made here and since the
// machine started: then no process is of the pilot that it names.
func readOrigin(lock *os.File) (o origin, err error) {
	if _, err := fmt.Fscanf(lock, "%s %d %d\n", &o.boot, &o.started, &o.inode); err != nil {
		return o, err
	}
	inode, err := inodeOf(lock)
	if err == nil && (o.boot != disk.Boot() || o.started == 0 || o.inode != inode) {
		err = errors.New("it is a copy, or from before the machine started")
	}
	return o, err
}

func inodeOf(f *os.File) (uint64, error) {
	var st unix.Stat_t
	err := unix.Fstat(int(f.Fd()), &st)
	return st.Ino, err
}

// cleanBehind ends the processes that a pilot has left that does not live any
// more, and removes its sandboxes. A folder without a lock is left alone unless it is
// empty, and so is everything that is no folder.
func cleanBehind(all *beneath.Folder, pilot string, log *slog.Logger) {
	folder, err := all.Sub(pilot)
	if err != nil {
		return
	}
	defer folder.Close()
	lock, err := os.OpenFile(folder.Path(lockName), os.O_RDWR|unix.O_NOFOLLOW|unix.O_NONBLOCK, 0)
	if errors.Is(err, fs.ErrNotExist) {
		reclaim(all, folder, pilot)
	}
	if err != nil {
		return
	}
	defer lock.Close()
	if disk.TryLock(lock) != nil {
		return
	}
	if of, err := readOrigin(lock); err == nil {
		process.EndLeft(pilot, of.started, log)
	}
	err = clearWorkspace(all, folder, pilot)
	if errors.Is(err, beneath.ErrOpen) { // the lock is
		_ = lock.Close()
		err = all.Clear(pilot)
	}
	if err != nil {
		log.Warn("what a pilot has left could not be removed", "of", pilot, "error", err)
	}
}

// reclaim removes the folder of a pilot that was killed before it had a lock, or when it
// had removed everything else. A pilot that is just making its folder makes it again.
func reclaim(all, folder *beneath.Folder, pilot string) {
	unnamed, err := os.OpenFile(folder.Path(disk.UnnamedLock(lockName)), os.O_RDWR|unix.O_NOFOLLOW|unix.O_NONBLOCK, 0)
	if err == nil {
		defer unnamed.Close()
		if disk.TryLock(unnamed) != nil {
			return
		}
		_ = folder.Remove(disk.UnnamedLock(lockName))
	}
	_ = all.RemoveFolder(pilot) // fails unless it is empty
}

// clearWorkspace removes the folder of a pilot, and its lock last: without it, what is
// left when this is cut short would belong to nobody.
func clearWorkspace(all, folder *beneath.Folder, pilot string) error {
	names, err := folder.List(".")
	for _, name := range names {
		if name != lockName {
			err = errors.Join(err, folder.Clear(name))
		}
	}
	if err == nil {
		err = folder.Remove(lockName)
	}
	if err == nil || errors.Is(err, fs.ErrNotExist) {
		err = errors.Join(folderUnlocked.Hit(), all.Clear(pilot))
	}
	return err
}

// stand reports whether the folder is still there: somebody may have removed it
// while no server ran, and then nothing can be run or kept any more.
func (r *workspace) stand() bool {
	return standsAt(r.lock, filepath.Join(r.folder, lockName))
}

func (r *workspace) close(log *slog.Logger) {
	name := filepath.Base(r.folder)
	err := clearWorkspace(r.all, r.dir, name)
	_ = r.lock.Close()
	if errors.Is(err, beneath.ErrOpen) { // the lock was
		err = r.all.Clear(name)
	}
	if err != nil {
		log.Warn("sandboxes could not be removed", "error", err)
	}
	_ = r.dir.Close()
	_ = r.all.Close()
}

// standsAt reports whether an open file still has a name.
func standsAt(f *os.File, path string) bool {
	info, err := f.Stat()
	if err != nil {
		return false
	}
	there, err := os.Stat(path)
	return err == nil && os.SameFile(there, info)
}
