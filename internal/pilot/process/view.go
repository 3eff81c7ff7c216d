package process

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"
)

// View is what a command sees of the file system besides all that is hidden from nobody. Paths
// are absolute. In the place of a hidden folder is an empty one, into which nobody may write, and in
// that of a file /dev/null. What is shown stands where it always stands,
// also in a hidden folder. What is not there is neither hidden nor shown.
type View struct {
	Hidden []string
	Shown  []string
}

// A command with a view is started by the program of the pilot itself, under this name, in a
// mount namespace of its own, and in a user namespace: so the command has no right to any
// process outside, such as to read the environment of the pilot, and cannot take back what was
// mounted. The program makes the view, gives up what it may do, and becomes the command.
const viewName = "fairway: making a view"

// viewFile is the descriptor from which the program reads what it is to do.
const viewFile = 3

// viewFailed is the exit code of a command that got no view; its standard error says why.
const viewFailed = 126

// viewed is what the program is told.
type viewed struct {
	View
	Dir  string
	Path string
	Argv []string
}

// Command is how a command with a view is started in a folder: the program with its arguments,
// and what is added to attr. closeAfter is called when the process is started, or could not be.
func (v *View) Command(path string, argv []string, attr *syscall.ProcAttr) (program string, arguments []string, closeAfter func(), err error) {
	fd, err := unix.MemfdCreate("view", unix.MFD_CLOEXEC)
	if err != nil {
		return "", nil, nil, fmt.Errorf("telling of the view: %w", err)
	}
	file := os.NewFile(uintptr(fd), "view")
	closeAfter = func() { _ = file.Close() }
	err = json.NewEncoder(file).Encode(viewed{*v, attr.Dir, path, argv})
	if err == nil {
		_, err = file.Seek(0, io.SeekStart)
	}
	if err != nil {
		closeAfter()
		return "", nil, nil, fmt.Errorf("telling of the view: %w", err)
	}
	attr.Files = append(attr.Files, file.Fd())
	if attr.Sys == nil {
		attr.Sys = &syscall.SysProcAttr{}
	}
	attr.Sys.Cloneflags |= unix.CLONE_NEWNS | unix.CLONE_NEWUSER
	uids := syscall.SysProcIDMap{ContainerID: os.Geteuid(), HostID: os.Geteuid(), Size: 1}
	gids := syscall.SysProcIDMap{ContainerID: os.Getegid(), HostID: os.Getegid(), Size: 1}
	if os.Geteuid() == 0 && Unrestricted() { // files of others stay theirs
		all := syscall.SysProcIDMap{Size: 1<<31 - 1}
		uids, gids, attr.Sys.GidMappingsEnableSetgroups = all, all, true
	}
	attr.Sys.UidMappings, attr.Sys.GidMappings = []syscall.SysProcIDMap{uids}, []syscall.SysProcIDMap{gids}
	attr.Sys.AmbientCaps = []uintptr{unix.CAP_SYS_ADMIN, unix.CAP_SETPCAP} // which who is not root would lose
	return "/proc/self/exe", []string{viewName}, closeAfter, nil
}

// ViewsPossible returns an error, which says what to change, if a command cannot have a view
// on this node.
func ViewsPossible() error {
	attr := &syscall.ProcAttr{Dir: "/", Env: os.Environ()}
	read, write, err := os.Pipe()
	if err != nil {
		return err
	}
	defer read.Close()
	attr.Files = []uintptr{write.Fd(), write.Fd(), write.Fd()}
	// Something is hidden and shown again, as for a command.
	view := View{Hidden: []string{os.TempDir()}}
	path, argv, done, err := view.Command("/proc/self/exe", []string{viewName + " is possible"}, attr)
	if err != nil {
		_ = write.Close()
		return err
	}
	pid, err := syscall.ForkExec(path, argv, attr)
	done()
	_ = write.Close()
	if err != nil {
		return fmt.Errorf("%w: this node lets nobody make user namespaces (%w): have its administrator set user.max_user_namespaces, and kernel.unprivileged_userns_clone or kernel.apparmor_restrict_unprivileged_userns where there are such, or leave sandbox: strict out", errNoView, err)
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
	case len(os.Args) == 1 && os.Args[0] == viewName+" is possible":
		os.Exit(0)
	case len(os.Args) == 1 && os.Args[0] == viewName:
		runtime.LockOSThread() // rights are those of a thread
		fmt.Fprintln(os.Stderr, "fairway: the view of the job could not be made:", becomeViewed())
		os.Exit(viewFailed)
	}
}

// becomeViewed does not return unless something fails.
func becomeViewed() error {
	var v viewed
	file := os.NewFile(viewFile, "view")
	if err := json.NewDecoder(file).Decode(&v); err != nil {
		return err
	}
	if err := errors.Join(file.Close(), v.mount(), giveUpRights()); err != nil {
		return err
	}
	// The folder that this process came with is the one beneath what was mounted.
	if err := os.Chdir(v.Dir); err != nil {
		return err
	}
	return fmt.Errorf("start %s: %w", v.Path, syscall.Exec(v.Path, v.Argv, os.Environ()))
}

// mount hides and shows.
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
		if err := unix.Mount("", path, "", unix.MS_REMOUNT|unix.MS_BIND|unix.MS_RDONLY|unix.MS_NOSUID|unix.MS_NODEV, ""); err != nil {
			return fmt.Errorf("hide %s: %w", path, err)
		}
	}
	return nil
}

// existing are those of some paths that there are, as they are without links, and without those
// that stand in others of them.
func existing(paths []string) (found []string, err error) {
	for _, path := range paths {
		real, err := filepath.EvalSymlinks(path)
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

func isBeneath(path, folder string) bool {
	return strings.HasPrefix(path, strings.TrimSuffix(folder, "/")+"/")
}

// placesOf are the names by which a path leads into what is hidden: as it is written, and as it is
// without links in the folders above it.
func placesOf(path string, hidden []string) (places []string) {
	names := []string{filepath.Clean(path)}
	if above, err := filepath.EvalSymlinks(filepath.Dir(path)); err == nil {
		names = append(names, filepath.Join(above, filepath.Base(path)))
	}
	for _, name := range names {
		if slices.ContainsFunc(hidden, func(above string) bool { return isBeneath(name, above) }) && !slices.Contains(places, name) {
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

// makePlace makes what something that is shown is mounted on, in what is empty.
func makePlace(path string, folder bool) error {
	above := path
	if !folder {
		above = filepath.Dir(path)
	}
	if err := os.MkdirAll(above, 0o755); err != nil || folder {
		return err
	}
	file, err := os.OpenFile(path, os.O_CREATE, 0o644)
	if err != nil {
		return err
	}
	return file.Close()
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
