// Package view gives a command a view of the file system of its own: what of it is hidden, and
// what is shown all the same.
//
// A command with a view is started by the program of the pilot itself, under another name, in a
// mount namespace of its own, and in a user namespace: so the command has no right to any process
// outside, such as to read the environment of the pilot, and cannot take back what was mounted.
// The program makes the view, gives up what it may do, and becomes the command. That needs no
// rights, where the kernel lets users make user namespaces.
//
// It imports nothing of Fairway and little else, so that it comes before the rest of the program
// when that starts: a job waits for it.
package view

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"runtime"
	"slices"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"
)

// View is what a command sees of the file system besides all that is hidden from nobody. Paths
// are absolute, and clean as filepath.Clean has it. In the place of a hidden folder is an empty
// one, into which nobody may write, and in that of a file /dev/null. What is shown stands where
// it always stands, also in a hidden folder. What is not there is neither hidden nor shown.
type View struct {
	Hidden []string
	Shown  []string
}

const (
	name        = "fairway: making a view" // of the program of the pilot, when it makes one
	nameOfTrial = "fairway: with a view"
	file        = 3   // the descriptor from which it reads what it is to do
	failed      = 126 // the exit code of a command that got no view; its standard error says why
)

// viewed is what the program is told.
type viewed struct {
	View
	Dir  string
	Path string
	Argv []string
}

// Command is how a command with a view is started in a folder: the program with its arguments,
// and what is added to attr. closeAfter is called when the process is started, or could not be.
func (v *View) Command(
	path string, argv []string, attr *syscall.ProcAttr,
) (program string, arguments []string, closeAfter func(), err error) {
	fd, err := unix.MemfdCreate("view", unix.MFD_CLOEXEC)
	if err != nil {
		return "", nil, nil, fmt.Errorf("telling of the view: %w", err)
	}
	told := os.NewFile(uintptr(fd), "view")
	closeAfter = func() { _ = told.Close() }
	err = json.NewEncoder(told).Encode(viewed{*v, attr.Dir, path, argv})
	if err == nil {
		_, err = told.Seek(0, io.SeekStart)
	}
	if err != nil {
		closeAfter()
		return "", nil, nil, fmt.Errorf("telling of the view: %w", err)
	}
	attr.Files = append(attr.Files, told.Fd())
	if attr.Sys == nil {
		attr.Sys = &syscall.SysProcAttr{}
	}
	attr.Sys.Cloneflags |= unix.CLONE_NEWNS | unix.CLONE_NEWUSER
	attr.Sys.UidMappings = []syscall.SysProcIDMap{{ContainerID: os.Geteuid(), HostID: os.Geteuid(), Size: 1}}
	attr.Sys.GidMappings = []syscall.SysProcIDMap{{ContainerID: os.Getegid(), HostID: os.Getegid(), Size: 1}}
	if hasRights(unix.CAP_SETUID, unix.CAP_SETGID) { // files of others stay theirs
		attr.Sys.UidMappings, attr.Sys.GidMappings = known("/proc/self/uid_map"), known("/proc/self/gid_map")
		attr.Sys.GidMappingsEnableSetgroups = true
	}
	attr.Sys.AmbientCaps = []uintptr{unix.CAP_SYS_ADMIN, unix.CAP_SETPCAP} // which who is not root would lose
	return "/proc/self/exe", []string{name}, closeAfter, nil
}

// hasRights reports whether this process has capabilities.
func hasRights(rights ...int) bool {
	header := unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}
	var data [2]unix.CapUserData
	if unix.Capget(&header, &data[0]) != nil {
		return false
	}
	return !slices.ContainsFunc(rights, func(right int) bool { return data[0].Effective&(1<<right) == 0 })
}

// known are the numbers of all users, or groups, that there are here, each as it is.
func known(path string) (all []syscall.SysProcIDMap) {
	text, _ := os.ReadFile(path)
	for line := range strings.Lines(string(text)) {
		var first, outside, count int
		if n, _ := fmt.Sscan(line, &first, &outside, &count); n == 3 {
			all = append(all, syscall.SysProcIDMap{ContainerID: first, HostID: first, Size: min(count, 1<<31-1)})
		}
	}
	return all
}

// Possible returns an error, which says what to change, if a command cannot have a view
// on this node.
func Possible() error {
	attr := &syscall.ProcAttr{Dir: "/", Env: os.Environ()}
	read, write, err := os.Pipe()
	if err != nil {
		return err
	}
	defer read.Close()
	attr.Files = []uintptr{write.Fd(), write.Fd(), write.Fd()}
	// Something is hidden and shown again, as for a command.
	trial := View{Hidden: []string{os.TempDir()}}
	path, argv, done, err := trial.Command("/proc/self/exe", []string{nameOfTrial}, attr)
	if err != nil {
		_ = write.Close()
		return err
	}
	pid, err := syscall.ForkExec(path, argv, attr)
	done()
	_ = write.Close()
	if err != nil {
		return fmt.Errorf("%w: this node lets nobody make user namespaces (%w): have its administrator set "+
			"user.max_user_namespaces, and kernel.unprivileged_userns_clone or kernel.apparmor_restrict_unprivileged_userns "+
			"where there are such, or leave sandbox: strict out", errNoView, err)
	}
	said, _ := io.ReadAll(io.LimitReader(read, 4096))
	var status syscall.WaitStatus
	for {
		if _, err = syscall.Wait4(pid, &status, 0, nil); !errors.Is(err, syscall.EINTR) {
			break
		}
	}
	if err == nil && status.ExitStatus() != 0 {
		err = errors.New(strings.TrimSpace(string(said)))
	}
	if err != nil {
		return fmt.Errorf("%w: %w: use another node, or leave sandbox: strict out", errNoView, err)
	}
	return nil
}

var errNoView = errors.New("a job can have no view of its own here (sandbox: strict)")

// init is the program that makes a view. It comes first, before what else the program of the
// pilot does when it starts.
func init() {
	switch {
	case len(os.Args) == 1 && os.Args[0] == nameOfTrial:
		os.Exit(0)
	case len(os.Args) == 1 && os.Args[0] == name:
		runtime.LockOSThread() // rights are those of a thread
		fmt.Fprintln(os.Stderr, "fairway: the view of the job could not be made:", becomeViewed())
		os.Exit(failed)
	}
}

// becomeViewed does not return unless something fails.
func becomeViewed() error {
	var v viewed
	told := os.NewFile(file, "view")
	if err := json.NewDecoder(told).Decode(&v); err != nil {
		return err
	}
	if err := errors.Join(told.Close(), v.mount(), giveUpRights()); err != nil {
		return err
	}
	// The folder that this process came with is the one beneath what was mounted.
	if err := os.Chdir(v.Dir); err != nil {
		return err
	}
	return fmt.Errorf("start %s: %w", v.Path, syscall.Exec(v.Path, v.Argv, os.Environ()))
}

func (v *View) mount() error {
	if err := unix.Mount("", "/", "", unix.MS_REC|unix.MS_PRIVATE, ""); err != nil {
		return fmt.Errorf("separate the mounts: %w", err)
	}
	hidden, err := existing(v.Hidden)
	if err != nil {
		return err
	}
	type opened struct {
		places []string
		fd     int
		folder bool
	}
	var shown []opened // before they are hidden
	for _, path := range v.Shown {
		places := placesOf(path, hidden)
		if len(places) == 0 {
			continue
		}
		var st unix.Stat_t
		fd, err := unix.Open(path, unix.O_PATH|unix.O_CLOEXEC, 0)
		if errors.Is(err, unix.ENOENT) {
			continue
		}
		if err == nil {
			err = unix.Fstat(fd, &st)
		}
		if err != nil {
			return fmt.Errorf("show %s: %w", path, err)
		}
		shown = append(shown, opened{places, fd, st.Mode&unix.S_IFMT == unix.S_IFDIR})
	}
	var empty []string // folders that were mounted
	for _, path := range hidden {
		folder, err := hide(path)
		if err != nil {
			return fmt.Errorf("hide %s: %w", path, err)
		}
		if folder {
			empty = append(empty, path)
		}
	}
	for _, s := range shown {
		for _, place := range s.places {
			err := makePlace(place, s.folder)
			if err == nil {
				err = unix.Mount(fmt.Sprintf("/proc/self/fd/%d", s.fd), place, "", unix.MS_BIND|unix.MS_REC, "")
			}
			if err != nil {
				return fmt.Errorf("show %s: %w", place, err)
			}
		}
		_ = unix.Close(s.fd)
	}
	for _, path := range empty {
		if err := unix.Mount(
			"", path, "", unix.MS_REMOUNT|unix.MS_BIND|unix.MS_RDONLY|unix.MS_NOSUID|unix.MS_NODEV, "",
		); err != nil {
			return fmt.Errorf("hide %s: %w", path, err)
		}
	}
	return nil
}

// existing are those of some paths that there are, as they are without links, and without those
// that stand in others of them.
func existing(paths []string) (found []string, err error) {
	for _, path := range paths {
		real, err := realPath(path)
		switch {
		case errors.Is(err, fs.ErrNotExist), errors.Is(err, fs.ErrPermission): // nobody sees it anyway
			continue
		case err != nil:
			return nil, fmt.Errorf("hide %s: %w", path, err)
		}
		found = append(found, real)
	}
	slices.Sort(found)
	var outer []string
	for _, path := range found {
		if !slices.ContainsFunc(outer, func(above string) bool { return path == above || isBeneath(path, above) }) {
			outer = append(outer, path)
		}
	}
	return outer, nil
}

// split parts an absolute path, as filepath does: that package comes late in a program that starts.
func split(path string) (folder, base string) {
	at := strings.LastIndexByte(path, '/')
	return path[:max(at, 1)], path[at+1:]
}

// realPath is a path without links, as the kernel has it.
func realPath(path string) (string, error) {
	fd, err := unix.Open(path, unix.O_PATH|unix.O_CLOEXEC, 0)
	if err != nil {
		return "", err
	}
	defer unix.Close(fd)
	return os.Readlink(fmt.Sprintf("/proc/self/fd/%d", fd))
}

func isBeneath(path, folder string) bool {
	return strings.HasPrefix(path, strings.TrimSuffix(folder, "/")+"/")
}

// placesOf are the names by which a path leads into what is hidden: as it is written, and as it is
// without links in the folders above it.
func placesOf(path string, hidden []string) (places []string) {
	names := []string{path}
	folder, base := split(path)
	if above, err := realPath(folder); err == nil {
		names = append(names, strings.TrimSuffix(above, "/")+"/"+base)
	}
	for _, name := range names {
		if slices.ContainsFunc(hidden, func(above string) bool { return isBeneath(name, above) }) &&
			!slices.Contains(places, name) {
			places = append(places, name)
		}
	}
	return places
}

// hide puts an empty folder in the place of one, or /dev/null in that of a file.
func hide(path string) (folder bool, err error) {
	info, err := os.Lstat(path)
	switch {
	case err != nil:
		return false, err
	case info.IsDir():
		return true, unix.Mount("fairway", path, "tmpfs", unix.MS_NOSUID|unix.MS_NODEV, "mode=755,size=1m")
	}
	return false, unix.Mount(os.DevNull, path, "", unix.MS_BIND, "")
}

func makePlace(path string, folder bool) error {
	above := path
	if !folder {
		above, _ = split(path)
	}
	if err := os.MkdirAll(above, 0o755); err != nil || folder {
		return err
	}
	place, err := os.OpenFile(path, os.O_CREATE, 0o644)
	if err != nil {
		return err
	}
	return place.Close()
}

// giveUpRights takes from this thread, and what it becomes, the right to change what is mounted,
// and for root that to write where permissions forbid it.
func giveUpRights() error {
	if err := unix.Prctl(unix.PR_CAP_AMBIENT, unix.PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0); err != nil {
		return fmt.Errorf("give up rights: %w", err)
	}
	for _, right := range []uintptr{unix.CAP_SYS_ADMIN, unix.CAP_DAC_OVERRIDE} {
		if err := unix.Prctl(unix.PR_CAPBSET_DROP, right, 0, 0, 0); err != nil {
			return fmt.Errorf("give up rights: %w", err)
		}
	}
	header := unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}
	var data [2]unix.CapUserData
	if err := unix.Capget(&header, &data[0]); err != nil {
		return err
	}
	data[0].Inheritable, data[1].Inheritable = 0, 0
	return unix.Capset(&header, &data[0])
}
