package process

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync/atomic"
	"syscall"
)

// MemoryBoxes makes a cgroup for each attempt that states how much memory it
// needs, where the pilot may: version 2, or the memory controller of version 1.
// What an attempt goes over is then seen by the kernel, however short it is.
type MemoryBoxes struct {
	folder string // of the pilot, empty where it may not
	v2     bool
}

// MemoryBox is the cgroup of one attempt. A nil one does nothing.
type MemoryBox struct {
	folder string
	dir    *os.File
	v2     bool
}

const cgroupRoot = "/sys/fs/cgroup"

// NewMemoryBoxes makes the group of a pilot. Where it may make none, Open returns nil.
func NewMemoryBoxes(pilot string) *MemoryBoxes {
	data, err := os.ReadFile("/proc/self/cgroup")
	if err != nil {
		return &MemoryBoxes{}
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
	return &MemoryBoxes{}
}

func candidateBoxes(text string) (found []*MemoryBoxes) {
	for line := range strings.Lines(text) {
		fields := strings.SplitN(strings.TrimSpace(line), ":", 3)
		switch {
		case len(fields) < 3:
		case fields[1] == "memory":
			found = append(found, &MemoryBoxes{folder: filepath.Join(cgroupRoot, "memory", fields[2])},
				&MemoryBoxes{folder: filepath.Join(cgroupRoot, "memory")})
		case fields[0] == "0" && fields[1] == "":
			found = append(found, &MemoryBoxes{folder: filepath.Join(cgroupRoot, fields[2]), v2: true})
		}
	}
	return found
}

func (m *MemoryBoxes) limitFile() string {
	if m.v2 {
		return "memory.max"
	}
	return "memory.limit_in_bytes"
}

// Possible reports whether the pilot may make groups.
func (m *MemoryBoxes) Possible() bool { return m.folder != "" }

func (m *MemoryBoxes) works() bool {
	if m.v2 && os.WriteFile(filepath.Join(m.folder, "cgroup.subtree_control"), []byte("+memory"), 0o644) != nil {
		return false
	}
	b := m.Open(0, 1<<30)
	b.Close()
	return b != nil
}

// Open makes a group with a limit, nil where that is not possible.
func (m *MemoryBoxes) Open(attempt uint64, limit int64) *MemoryBox {
	if m.folder == "" {
		return nil
	}
	b := &MemoryBox{folder: filepath.Join(m.folder, strconv.FormatUint(attempt, 10)), v2: m.v2}
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
		b.Close()
		return nil
	}
	return b
}

func (b *MemoryBox) set(name, value string) bool {
	return os.WriteFile(filepath.Join(b.folder, name), []byte(value), 0o644) == nil
}

// Wrap has the process that attr describes start in the group.
func (b *MemoryBox) Wrap(attr *syscall.ProcAttr) *syscall.ProcAttr {
	if b != nil && b.v2 {
		if attr.Sys == nil {
			attr.Sys = &syscall.SysProcAttr{}
		}
		attr.Sys.UseCgroupFD, attr.Sys.CgroupFD = true, int(b.dir.Fd())
	}
	return attr
}

// Command puts the process into a group of version 1, which only a process
// itself can do before it begins: by a shell that then becomes the command.
func (b *MemoryBox) Command(path string, argv []string) (string, []string) {
	if b == nil || b.v2 {
		return path, argv
	}
	const join = `echo $$ > "$0" || exit 126; program=$1; shift 2; exec "$program" "$@"`
	return "/bin/sh", append([]string{"sh", "-c", join, filepath.Join(b.folder, "cgroup.procs"), path}, argv...)
}

// Join puts a process into the group that waits and has started no other yet.
func (b *MemoryBox) Join(pid int) error {
	if b == nil {
		return nil
	}
	return os.WriteFile(filepath.Join(b.folder, "cgroup.procs"), []byte(strconv.Itoa(pid)), 0o644)
}

// Exceeded reports whether the kernel ended a process of the group for memory.
func (b *MemoryBox) Exceeded() bool {
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
		if digits, ok := strings.CutPrefix(line, "oom_kill "); ok {
			count, _ = strconv.Atoi(strings.TrimSpace(digits))
			return count
		}
	}
	return 0
}

// KillsFile is where the kernel counts the processes that it ended for memory, for
// attempts without a group of their own: those of the group of version 2 in which
// the pilot is, or else all of the machine.
func KillsFile() string {
	data, _ := os.ReadFile("/proc/self/cgroup")
	for line := range strings.Lines(string(data)) {
		if group, ok := strings.CutPrefix(strings.TrimSpace(line), "0::/"); ok && group != "" {
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

// Close removes the group.
func (b *MemoryBox) Close() {
	if b == nil {
		return
	}
	if b.dir != nil {
		_ = b.dir.Close()
	}
	_ = os.Remove(b.folder)
}

// Close removes the group of the pilot.
func (m *MemoryBoxes) Close() {
	if m.folder != "" {
		removeGroups(m.folder)
	}
}

func removeGroups(folder string) {
	for _, g := range groupsIn(folder) {
		_ = os.Remove(g)
	}
	_ = os.Remove(folder)
}

// groupsIn are the groups in a group. systemd puts backslashes into names, so they are no
// patterns.
func groupsIn(folder string) (groups []string) {
	found, _ := os.ReadDir(folder)
	for _, f := range found {
		if f.IsDir() {
			groups = append(groups, filepath.Join(folder, f.Name()))
		}
	}
	return groups
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
		count += killGroupsIn(folder)
	}
	return count
}

func killGroupsIn(folder string) (count int) {
	for _, group := range groupsIn(folder) {
		data, _ := os.ReadFile(filepath.Join(group, "cgroup.procs"))
		for field := range strings.FieldsSeq(string(data)) {
			if pid, err := strconv.Atoi(field); err == nil && pid > 0 && syscall.Kill(pid, syscall.SIGKILL) == nil {
				count++
			}
		}
	}
	return count
}

// counterSlack, in KiB, is by how much the kernel's counts of one process's
// memory may differ: it adds up what each processor counts now and then only.
const counterSlack = 8 << 10

// ownPeak is the most memory, in KiB, that this process was seen to have had.
var ownPeak atomic.Int64

// AboveOwn reports whether the most memory of a command, in KiB, is its own. The
// kernel counts that of the pilot for a process that the pilot starts as well,
// from before the program took its place, so that of a command nothing below is
// known. It counts so for the pilot too: what getrusage(2) tells of it may be
// the memory of the server that started it, which no command has taken over.
func AboveOwn(peak int64) bool {
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

// CgroupMemory is the least limit of memory of the cgroups that this process is in,
// versions 1 and 2; false where there is none.
func CgroupMemory() (limit int64, limited bool) {
	text, err := os.ReadFile("/proc/self/cgroup")
	if err != nil {
		return 0, false
	}
	return memoryLimit(cgroupRoot, string(text))
}

// memoryLimit reads limits below root, of groups as /proc/self/cgroup names them, and
// of those above them.
func memoryLimit(root, groups string) (limit int64, limited bool) {
	look := func(path, file string) {
		for {
			text, err := os.ReadFile(filepath.Join(path, file))
			if n, bad := strconv.ParseInt(strings.TrimSpace(string(text)), 10, 64); err == nil && bad == nil && n > 0 &&
				(!limited || n < limit) {
				limit, limited = n, true
			}
			if len(path) <= len(root) {
				return
			}
			path = filepath.Dir(path)
		}
	}
	for line := range strings.Lines(groups) {
		fields := strings.SplitN(strings.TrimSpace(line), ":", 3)
		switch {
		case len(fields) < 3:
		case fields[1] == "memory":
			look(filepath.Join(root, "memory", fields[2]), "memory.limit_in_bytes")
		case fields[0] == "0" && fields[1] == "":
			look(filepath.Join(root, fields[2]), "memory.max")
		}
	}
	return limit, limited
}
