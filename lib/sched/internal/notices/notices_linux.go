package notices

import (
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

const inotifyMask = unix.IN_CREATE | unix.IN_MOVED_TO | unix.IN_MOVED_FROM | unix.IN_DELETE |
	unix.IN_MODIFY | unix.IN_CLOSE_WRITE | unix.IN_ATTRIB | unix.IN_DELETE_SELF | unix.IN_MOVE_SELF | unix.IN_ONLYDIR

// inotify tells of changes in folders.
type inotify struct {
	log          *slog.Logger
	fd, wakefd   int
	folders      map[int32]string
	descriptors  map[string]int32
	limitReached sync.Once
}

// New returns what tells of changes here; log hears where that is nothing, or no more.
func New(log *slog.Logger) (Notifier, error) {
	fd, err := unix.InotifyInit1(unix.IN_CLOEXEC | unix.IN_NONBLOCK)
	if err != nil {
		log.Info("sched: no inotify here; files are polled for", "error", err)
		return None(), nil
	}
	wakefd, err := unix.Eventfd(0, unix.EFD_CLOEXEC|unix.EFD_NONBLOCK)
	if err != nil {
		unix.Close(fd)
		return nil, fmt.Errorf("eventfd: %w", err)
	}
	return &inotify{
		log: log, fd: fd, wakefd: wakefd,
		folders: make(map[int32]string), descriptors: make(map[string]int32),
	}, nil
}

func (n *inotify) Close() {
	unix.Close(n.fd)
	unix.Close(n.wakefd)
}

// nudge is added to the event counter, which is readable then.
var nudge = [8]byte{1}

func (n *inotify) Nudge() { _, _ = unix.Write(n.wakefd, nudge[:]) }

// watch also watches remote file systems, for the changes made here.
// A folder that is reached by two paths is watched for the first only, as it
// has but one watch.
func (n *inotify) Watch(folder string) bool {
	if linkedFolder(folder) {
		return false
	}
	wd, err := unix.InotifyAddWatch(n.fd, folder, inotifyMask)
	if err != nil {
		if err == unix.ENOSPC {
			n.limitReached.Do(func() {
				n.log.Warn("sched: limit of inotify watches reached; further files are polled for", "limit",
					"fs.inotify.max_user_watches")
			})
		}
		return false
	}
	if first, ok := n.folders[int32(wd)]; ok && first != folder {
		return false
	}
	if before, ok := n.descriptors[folder]; ok && before != int32(wd) {
		n.Unwatch(folder) // another folder stood there
	}
	n.folders[int32(wd)], n.descriptors[folder] = folder, int32(wd)
	return !remoteFileSystem(folder)
}

// linkedFolder reports whether folder is reached through a link, which may come
// to point elsewhere without a notice.
func linkedFolder(folder string) bool {
	real, err := filepath.EvalSymlinks(folder)
	return err != nil || real != folder
}

func (n *inotify) Unwatch(folder string) {
	wd, ok := n.descriptors[folder]
	if !ok {
		return
	}
	_, _ = unix.InotifyRmWatch(n.fd, uint32(wd))
	n.forget(wd)
}

func (n *inotify) forget(wd int32) {
	if n.descriptors[n.folders[wd]] == wd {
		delete(n.descriptors, n.folders[wd])
	}
	delete(n.folders, wd)
}

func (n *inotify) Wait(limit time.Duration, changed func(folder, name string)) {
	fds := []unix.PollFd{{Fd: int32(n.fd), Events: unix.POLLIN}, {Fd: int32(n.wakefd), Events: unix.POLLIN}}
	if _, err := unix.Poll(fds, milliseconds(limit)); err != nil {
		return
	}
	var buf [8192]byte
	if fds[1].Revents != 0 {
		_, _ = unix.Read(n.wakefd, buf[:len(nudge)])
	}
	if fds[0].Revents == 0 {
		return
	}
	if size, err := unix.Read(n.fd, buf[:]); err == nil {
		n.parse(buf[:size], changed)
	}
}

// milliseconds is a limit as poll takes it: rounded up, and -1 for none.
func milliseconds(limit time.Duration) int {
	if limit < 0 {
		return -1
	}
	return int((limit + time.Millisecond - 1) / time.Millisecond)
}

func (n *inotify) parse(buf []byte, changed func(folder, name string)) {
	for len(buf) >= unix.SizeofInotifyEvent {
		ev := (*unix.InotifyEvent)(unsafe.Pointer(&buf[0]))
		end := unix.SizeofInotifyEvent + int(ev.Len)
		name := strings.TrimRight(string(buf[unix.SizeofInotifyEvent:end]), "\x00")
		buf = buf[end:]
		n.pass(ev, name, changed)
	}
}

// pass calls changed for what a notice is about.
func (n *inotify) pass(ev *unix.InotifyEvent, name string, changed func(folder, name string)) {
	folder, ok := n.folders[ev.Wd]
	switch {
	case ev.Mask&unix.IN_Q_OVERFLOW != 0:
		changed("", "")
	case !ok:
	case ev.Mask&(unix.IN_DELETE_SELF|unix.IN_MOVE_SELF|unix.IN_IGNORED|unix.IN_UNMOUNT) != 0:
		n.Unwatch(folder)
		changed(folder, "")
	case name != "":
		changed(folder, name)
	}
}

// TellsOfChanges reports whether the system gives notice of entries that come, go or are written in a
// folder.
func TellsOfChanges(folder string) bool { return !linkedFolder(folder) && !remoteFileSystem(folder) }

// remoteTypes are file systems on which other hosts, or the kernel itself, make
// changes unnoticed here.
var remoteTypes = map[int64]bool{
	unix.NFS_SUPER_MAGIC: true, unix.SMB_SUPER_MAGIC: true, unix.CIFS_SUPER_MAGIC: true,
	unix.SMB2_SUPER_MAGIC: true, unix.CEPH_SUPER_MAGIC: true, unix.AFS_SUPER_MAGIC: true,
	unix.CODA_SUPER_MAGIC: true, unix.V9FS_MAGIC: true, unix.FUSE_SUPER_MAGIC: true,
	unix.OCFS2_SUPER_MAGIC: true,
	0x0bd00bd0:             true, // Lustre
	0x47504653:             true, // GPFS
	0x19830326:             true, // BeeGFS
	0x01161970:             true, // GFS2
	unix.PROC_SUPER_MAGIC:  true, unix.SYSFS_MAGIC: true, unix.DEBUGFS_MAGIC: true, unix.TRACEFS_MAGIC: true,
	unix.CGROUP_SUPER_MAGIC: true, unix.CGROUP2_SUPER_MAGIC: true,
}

func remoteFileSystem(folder string) bool {
	var st unix.Statfs_t
	if err := unix.Statfs(folder, &st); err != nil {
		return !os.IsNotExist(err)
	}
	return remoteTypes[int64(st.Type)]
}
