package pilot

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync/atomic"
	"syscall"
)

// memoryBoxes makes a cgroup for each attempt that states how much memory it
// needs, where the pilot may: version 2, or the memory controller of version 1.
// What an attempt goes over is then seen by the kernel, however short it is.
type memoryBoxes struct {
	folder string // of the pilot, empty where it may not
	v2     bool
}

// memoryBox is the cgroup of one attempt. A nil one does nothing.
type memoryBox struct {
	folder string
	dir    *os.File
	v2     bool
}

const cgroupRoot = "/sys/fs/cgroup"

func newMemoryBoxes(pilot string) *memoryBoxes {
	data, err := os.ReadFile("/proc/self/cgroup")
	if err != nil {
		return &memoryBoxes{}
	}
	for _, b := range candidateBoxes(string(data)) {
		b.folder = filepath.Join(b.folder, "fairway-"+pilot)
		if os.Mkdir(b.folder, 0o755) != nil {
			continue
		}
		if b.works() {
			return b
		}
		_ = os.Remove(b.folder)
	}
	return &memoryBoxes{}
}

// candidateBoxes reads /proc/self/cgroup.
func candidateBoxes(text string) (found []*memoryBoxes) {
	for line := range strings.Lines(text) {
		fields := strings.SplitN(strings.TrimSpace(line), ":", 3)
		switch {
		case len(fields) < 3:
		case fields[1] == "memory":
			found = append(found, &memoryBoxes{folder: filepath.Join(cgroupRoot, "memory", fields[2])},
				&memoryBoxes{folder: filepath.Join(cgroupRoot, "memory")})
		case fields[0] == "0" && fields[1] == "":
			found = append(found, &memoryBoxes{folder: filepath.Join(cgroupRoot, fields[2]), v2: true})
		}
	}
	return found
}

func (m *memoryBoxes) limitFile() string {
	if m.v2 {
		return "memory.max"
	}
	return "memory.limit_in_bytes"
}

// works reports whether limits can be set in the groups of this folder.
func (m *memoryBoxes) works() bool {
	if m.v2 && os.WriteFile(filepath.Join(m.folder, "cgroup.subtree_control"), []byte("+memory"), 0o644) != nil {
		return false
	}
	b := m.open(0, 1<<30)
	b.close()
	return b != nil
}

// open makes a group with a limit, nil where that is not possible.
func (m *memoryBoxes) open(attempt uint64, limit int64) *memoryBox {
	if m.folder == "" {
		return nil
	}
	b := &memoryBox{folder: filepath.Join(m.folder, strconv.FormatUint(attempt, 10)), v2: m.v2}
	if os.Mkdir(b.folder, 0o755) != nil {
		return nil
	}
	ok := b.set(m.limitFile(), strconv.FormatInt(limit, 10))
	if m.v2 {
		_ = b.set("memory.swap.max", "0")
		_ = b.set("memory.oom.group", "1")
	}
	var err error
	if b.dir, err = os.Open(b.folder); err != nil || !ok {
		b.close()
		return nil
	}
	return b
}

func (b *memoryBox) set(name, value string) bool {
	return os.WriteFile(filepath.Join(b.folder, name), []byte(value), 0o644) == nil
}

// wrap has the process that attr describes start in the group.
func (b *memoryBox) wrap(attr *syscall.ProcAttr) *syscall.ProcAttr {
	if b != nil && b.v2 {
		attr.Sys = &syscall.SysProcAttr{UseCgroupFD: true, CgroupFD: int(b.dir.Fd())}
	}
	return attr
}

// command puts the process into a group of version 1, which only a process
// itself can do before it begins: by a shell that then becomes the command.
func (b *memoryBox) command(path string, argv []string) (string, []string) {
	if b == nil || b.v2 {
		return path, argv
	}
	const join = `echo $$ > "$0" || exit 126; program=$1; shift 2; exec "$program" "$@"`
	return "/bin/sh", append([]string{"sh", "-c", join, filepath.Join(b.folder, "cgroup.procs"), path}, argv...)
}

// exceeded reports whether the kernel ended a process of the group for memory.
func (b *memoryBox) exceeded() bool {
	if b == nil {
		return false
	}
	name := "memory.oom_control"
	if b.v2 {
		name = "memory.events"
	}
	return oomKills(filepath.Join(b.folder, name)) > 0
}

// oomKills is how many processes the kernel says to have ended for memory.
func oomKills(file string) (count int) {
	data, _ := os.ReadFile(file)
	for line := range strings.Lines(string(data)) {
		if digits, found := strings.CutPrefix(line, "oom_kill "); found {
			count, _ = strconv.Atoi(strings.TrimSpace(digits))
			return count
		}
	}
	return 0
}

// killsFile is where the kernel counts the processes that it ended for memory, for
// attempts without a group of their own: those of the group of version 2 in which
// the pilot is, or else all of the machine.
func killsFile() string {
	data, _ := os.ReadFile("/proc/self/cgroup")
	for line := range strings.Lines(string(data)) {
		if group, found := strings.CutPrefix(strings.TrimSpace(line), "0::/"); found && group != "" {
			if path := filepath.Join(cgroupRoot, group, "memory.events"); readable(path) {
				return path
			}
		}
	}
	return "/proc/vmstat"
}

func readable(path string) bool {
	f, err := os.Open(path)
	if err != nil {
		return false
	}
	return f.Close() == nil
}

func (b *memoryBox) close() {
	if b == nil {
		return
	}
	if b.dir != nil {
		_ = b.dir.Close()
	}
	_ = os.Remove(b.folder)
}

func (m *memoryBoxes) close() {
	if m.folder != "" {
		removeGroups(m.folder)
	}
}

// removeGroups removes a group and those in it, as far as they are empty.
func removeGroups(folder string) {
	groups, _ := filepath.Glob(filepath.Join(folder, "*", "cgroup.procs"))
	for _, g := range groups {
		_ = os.Remove(filepath.Dir(g))
	}
	_ = os.Remove(folder)
}

// groupsOf are the groups in which a pilot may have put its attempts.
func groupsOf(pilot string) (folders []string) {
	data, _ := os.ReadFile("/proc/self/cgroup")
	for _, b := range candidateBoxes(string(data)) {
		folders = append(folders, filepath.Join(b.folder, "fairway-"+pilot))
	}
	return folders
}

// killGroupsOf kills what is left in the groups of a pilot that is gone, and says
// how many processes that were. No process leaves a group by itself but as root.
func killGroupsOf(pilot string) (count int) {
	for _, folder := range groupsOf(pilot) {
		lists, _ := filepath.Glob(filepath.Join(folder, "*", "cgroup.procs"))
		for _, list := range lists {
			data, _ := os.ReadFile(list)
			for field := range strings.FieldsSeq(string(data)) {
				if pid, err := strconv.Atoi(field); err == nil && pid > 0 && syscall.Kill(pid, syscall.SIGKILL) == nil {
					count++
				}
			}
		}
	}
	return count
}

func removeGroupsOf(pilot string) {
	for _, folder := range groupsOf(pilot) {
		removeGroups(folder)
	}
}

// counterSlack, in KiB, is by how much the kernel's counts of one process's
// memory may differ: it adds up what each processor counts now and then only.
const counterSlack = 8 << 10

// ownPeak is the most memory, in KiB, that this process was seen to have had.
var ownPeak atomic.Int64

// aboveOwn reports whether the most memory of a command, in KiB, is its own. The
// kernel counts that of the pilot for a process that the pilot starts as well,
// from before the program took its place, so that of a command nothing below is
// known. It counts so for the pilot too: what getrusage(2) tells of it may be
// the memory of the server that started it, which no command has taken over.
func aboveOwn(peak int64) bool {
	var own syscall.Rusage
	_ = syscall.Getrusage(syscall.RUSAGE_SELF, &own)
	switch {
	case peak > own.Maxrss:
		return true
	case peak <= ownPeak.Load()+counterSlack:
		return false
	}
	seen := highWater()
	ownPeak.Store(seen)
	return seen > 0 && peak > seen+counterSlack
}

// highWater is the most memory, in KiB, that this process had since its program
// began, 0 where the kernel does not tell.
func highWater() (kib int64) {
	data, _ := os.ReadFile("/proc/self/status")
	for line := range strings.Lines(string(data)) {
		if n, _ := fmt.Sscanf(line, "VmHWM: %d kB", &kib); n == 1 {
			return kib
		}
	}
	return 0
}
