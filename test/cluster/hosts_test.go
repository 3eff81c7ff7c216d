package cluster

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"
)

// host is a machine of the cluster, as far as processes on it can tell.
type host struct {
	t         *testing.T
	name      string
	address   string
	namespace string // its network, under /run/netns
	folder    string // what it has of its own
	shared    string // where it sees the folder scratch of its own, as all nodes do
	wire      string // the other end of its line, in the namespace of the switch
	network   *network
	apart     atomic.Bool // its line is cut
	frozen    atomic.Bool
}

// away says that nobody reaches the host now.
func (h *host) away() bool { return h.apart.Load() || h.frozen.Load() }

// network is what joins hosts.
type network struct {
	t         *testing.T
	prefix    string // of the names of its namespaces
	namespace string // of the switch
	hosts     []*host
	shared    string
}

// networks counts those that were made, which may be there at the same time.
var networks atomic.Int64

// newNetwork makes a switch. It skips where that is not possible.
func newNetwork(t *testing.T) *network {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Skip("network namespaces need root")
	}
	for _, program := range []string{"ip", "nft", "nsenter", "unshare"} {
		if _, err := exec.LookPath(program); err != nil {
			t.Skip(err)
		}
	}
	prefix := fmt.Sprintf("fairway-%d-%d-", os.Getpid(), networks.Add(1))
	n := &network{t: t, prefix: prefix, namespace: prefix + "switch", shared: filepath.Join(t.TempDir(), "scratch")}
	if err := os.Mkdir(n.shared, 0o755); err != nil {
		t.Fatal(err)
	}
	n.addNamespace(n.namespace)
	n.must("ip -n %s link add bridge type bridge", n.namespace)
	n.must("ip -n %s link set bridge up", n.namespace)
	return n
}

func (n *network) addNamespace(name string) {
	n.t.Helper()
	n.must("ip netns add %s", name)
	n.t.Cleanup(func() { n.must("ip netns del %s", name) })
	n.must("ip -n %s link set lo up", name)
}

// must runs a command of plain words.
func (n *network) must(format string, arguments ...any) {
	n.t.Helper()
	words := strings.Fields(fmt.Sprintf(format, arguments...))
	if out, err := exec.Command(words[0], words[1:]...).CombinedOutput(); err != nil {
		n.t.Fatalf("%s: %v\n%s", strings.Join(words, " "), err, out)
	}
}

// add joins a further host to the network.
func (n *network) add(name string) *host {
	n.t.Helper()
	number := len(n.hosts) + 1
	h := &host{
		t: n.t, name: name, address: fmt.Sprintf("10.77.0.%d", number), namespace: n.prefix + name,
		folder: n.t.TempDir(), shared: n.shared, wire: "to-" + name, network: n,
	}
	for file, text := range map[string]string{"machine-id": fmt.Sprintf("%032x\n", number), "scratch/.keep": ""} {
		path := filepath.Join(h.folder, file)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			n.t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			n.t.Fatal(err)
		}
	}
	n.addNamespace(h.namespace)
	n.must("ip link add eth0 netns %s type veth peer name %s netns %s", h.namespace, h.wire, n.namespace)
	n.must("ip -n %s link set %s master bridge up", n.namespace, h.wire)
	n.must("ip -n %s addr add %s/24 dev eth0", h.namespace, h.address)
	n.must("ip -n %s link set eth0 up", h.namespace)
	n.hosts = append(n.hosts, h)
	n.t.Cleanup(func() { h.kill() })
	return h
}

// enter has a shell see the network, the names and the folders of a host, and then run
// its arguments.
const enter = `hostname "$1" && mount --bind "$2/machine-id" /etc/machine-id && mount --bind "$2/scratch" "$3" && shift 3 && exec "$@"`

// command is one that runs on the host.
func (h *host) command(ctx context.Context, words ...string) *exec.Cmd {
	c := exec.CommandContext(ctx, "nsenter", append([]string{
		"--net=/run/netns/" + h.namespace, "unshare", "--uts", "--mount",
		"sh", "-c", enter, "sh", h.name, h.folder, h.shared,
	}, words...)...)
	c.Env = append(os.Environ(), "TMPDIR="+h.shared)
	return c
}

// cut breaks the line of the host, or mends it: nobody is told.
func (h *host) cut(off bool) {
	h.apart.Store(off)
	state := "up"
	if off {
		state = "down"
	}
	h.network.must("ip -n %s link set %s %s", h.network.namespace, h.wire, state)
}

// lose has the host lose so many of a hundred packets that come to it.
func (h *host) lose(percent int) {
	rules := "flush ruleset\n"
	if percent > 0 {
		rules += fmt.Sprintf("table inet t {\n chain in {\n type filter hook input priority 0;\n iifname \"eth0\" numgen random mod 100 < %d counter drop\n }\n}\n", percent)
	}
	h.filter(rules)
}

// filter loads rules for the packets of the host.
func (h *host) filter(rules string) {
	c := exec.Command("nsenter", "--net=/run/netns/"+h.namespace, "nft", "-f", "-")
	c.Stdin = strings.NewReader(rules)
	if out, err := c.CombinedOutput(); err != nil {
		h.t.Errorf("nft on %s: %v\n%s\n%s", h.name, err, out, rules)
	}
}

// processes are those that run on the host.
func (h *host) processes() (pids []int) {
	var own unix.Stat_t
	if err := unix.Stat("/run/netns/"+h.namespace, &own); err != nil {
		return nil
	}
	of, _ := filepath.Glob("/proc/[0-9]*/ns/net")
	for _, file := range of {
		var its unix.Stat_t
		if unix.Stat(file, &its) != nil || its.Ino != own.Ino || its.Dev != own.Dev {
			continue
		}
		if pid, err := strconv.Atoi(strings.Split(file, "/")[2]); err == nil && pid != os.Getpid() {
			pids = append(pids, pid)
		}
	}
	return pids
}

// each sends a signal to all processes of the host, until it finds no further one: who
// was not stopped yet may have started another.
func (h *host) each(s syscall.Signal) {
	seen := map[int]bool{}
	for {
		pids := slices.DeleteFunc(h.processes(), func(pid int) bool { return seen[pid] })
		if len(pids) == 0 {
			return
		}
		for _, pid := range pids {
			seen[pid] = true
			_ = syscall.Kill(pid, s)
		}
	}
}

func (h *host) kill() { h.each(syscall.SIGKILL) }

// freeze has the host stand still, until it is thawed.
func (h *host) freeze() {
	h.frozen.Store(true)
	h.each(syscall.SIGSTOP)
}

func (h *host) thaw() {
	h.each(syscall.SIGCONT)
	h.frozen.Store(false)
}

// commands are the command lines of its processes, for messages.
func (h *host) commands() (lines []string) {
	for _, pid := range h.processes() {
		text, _ := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", pid))
		lines = append(lines, fmt.Sprintf("%s: %d %s", h.name, pid, strings.ReplaceAll(string(text), "\x00", " ")))
	}
	return lines
}

// inside calls f on a thread that is in the network of the host: what f listens at or
// dials is there. The thread is not used for anything else.
func (h *host) inside(f func() error) error {
	done := make(chan error)
	go func() {
		runtime.LockOSThread() // and it ends with the goroutine
		space, err := os.Open("/run/netns/" + h.namespace)
		if err == nil {
			err = unix.Setns(int(space.Fd()), unix.CLONE_NEWNET)
			_ = space.Close()
		}
		if err == nil {
			err = f()
		}
		done <- err
	}()
	return <-done
}
