// Package netns has one Linux machine stand for several: hosts that reach each other
// over lines of their own, as far as processes on them can tell. It is for tests and
// benchmarks, and needs root.
//
// Guarantees:
//
//   - A host has its own network namespace, name, machine identity and folder. What else
//     it sees of this machine, the one who adds it decides.
//   - Hosts reach each other, and nothing else: the switch is a namespace too.
//   - What runs on hosts ends with the [T] that they were made for, and so do they.
package netns

import (
	"context"
	"encoding/json"
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

	"golang.org/x/sys/unix"
)

// T is who hosts are made for: a test, or a benchmark that stands in for one.
type T interface {
	TempDir() string
	Cleanup(f func())
	Fatal(args ...any)
	Fatalf(format string, args ...any)
	Skip(args ...any)
}

// Network is what joins hosts.
type Network struct {
	t         T
	prefix    string // of the names of its namespaces
	namespace string // of the switch
	hosts     int
}

// networks counts those that were made, which may be there at the same time.
var networks atomic.Int64

// New makes a network without hosts. It skips where that is not possible.
func New(t T) *Network {
	if os.Geteuid() != 0 {
		t.Skip("network namespaces need root")
	}
	for _, program := range []string{"ip", "tc", "nft", "nsenter", "unshare"} {
		if _, err := exec.LookPath(program); err != nil {
			t.Skip(err)
		}
	}
	prefix := fmt.Sprintf("fairway-%d-%d-", os.Getpid(), networks.Add(1))
	n := &Network{t: t, prefix: prefix, namespace: prefix + "switch"}
	n.addNamespace(n.namespace)
	n.must("ip -n %s link add bridge type bridge", n.namespace)
	n.must("ip -n %s link set bridge up", n.namespace)
	return n
}

func (n *Network) addNamespace(name string) {
	n.must("ip netns add %s", name)
	n.t.Cleanup(func() { n.must("ip netns del %s", name) })
	n.must("ip -n %s link set lo up", name)
}

// must runs a command of plain words.
func (n *Network) must(format string, arguments ...any) {
	words := strings.Fields(fmt.Sprintf(format, arguments...))
	if out, err := exec.Command(words[0], words[1:]...).CombinedOutput(); err != nil {
		n.t.Fatalf("%s: %v\n%s", strings.Join(words, " "), err, out)
	}
}

// Host is a machine of the network.
type Host struct {
	Name    string
	Address string
	Folder  string // what it has of its own

	network   *Network
	namespace string // its network, under /run/netns
	line      string // the other end of its line, in the namespace of the switch
	mounts    []string
	apart     atomic.Bool // its line is cut
	frozen    atomic.Bool
}

// Add joins a further host to the network. Places are what it sees otherwise than this
// machine: by their paths, what is there, as a folder of the host. Its machine identity
// is its own.
func (n *Network) Add(name string, places map[string]string) *Host {
	n.hosts++
	h := &Host{
		Name: name, Address: fmt.Sprintf("10.77.0.%d", n.hosts), Folder: n.t.TempDir(),
		network: n, namespace: n.prefix + name, line: "to-" + name,
	}
	identity := filepath.Join(h.Folder, "machine-id")
	if err := os.WriteFile(identity, fmt.Appendf(nil, "%032x\n", n.hosts), 0o644); err != nil {
		n.t.Fatal(err)
	}
	h.mounts = []string{identity, "/etc/machine-id"}
	for place, folder := range places {
		folder = filepath.Join(h.Folder, folder)
		if err := os.MkdirAll(folder, 0o755); err != nil {
			n.t.Fatal(err)
		}
		h.mounts = append(h.mounts, folder, place)
	}
	n.addNamespace(h.namespace)
	n.must("ip link add eth0 netns %s type veth peer name %s netns %s", h.namespace, h.line, n.namespace)
	n.must("ip -n %s link set %s master bridge up", n.namespace, h.line)
	n.must("ip -n %s addr add %s/24 dev eth0", h.namespace, h.Address)
	n.must("ip -n %s link set eth0 up", h.namespace)
	n.t.Cleanup(h.Kill)
	return h
}

// Namespace is that of its network, for nsenter --net=/run/netns/NAMESPACE.
func (h *Host) Namespace() string { return h.namespace }

// Limit has the line of the host carry so many Mbit/s in each direction, and a megabyte at once
// after a pause.
func (h *Host) Limit(mbit int) { h.limit(mbit, 1000) }

// LimitClosely is Limit with as little at once as the line needs to keep its speed.
func (h *Host) LimitClosely(mbit int) { h.limit(mbit, max(64, mbit/2)) }

func (h *Host) limit(mbit, burst int) {
	for namespace, device := range map[string]string{h.namespace: "eth0", h.network.namespace: h.line} {
		h.network.must("tc -n %s qdisc replace dev %s root tbf rate %dmbit burst %dkb latency 50ms",
			namespace, device, mbit, burst)
	}
}

// enter has a shell see the network, the name and the folders of a host, and then run
// its arguments.
const enter = `set -e; hostname "$1"; shift; while [ "$1" != -- ]; do mount --bind "$1" "$2"; shift 2; done; shift; exec "$@"`

// words are what runs a command on the host.
func (h *Host) words(command ...string) []string {
	return slices.Concat([]string{
		"nsenter", "--net=/run/netns/" + h.namespace, "unshare", "--uts", "--mount", "sh", "-c", enter, "sh", h.Name,
	}, h.mounts, []string{"--"}, command)
}

// Command is one that runs on the host.
func (h *Host) Command(ctx context.Context, words ...string) *exec.Cmd {
	words = h.words(words...)
	return exec.CommandContext(ctx, words[0], words[1:]...)
}

// Inside calls f on a thread that is in the network of the host: what f listens at or
// dials is there. The thread is not used for anything else.
func (h *Host) Inside(f func() error) error {
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

// Away reports whether nobody reaches the host now: its line is cut, or it is
// frozen.
func (h *Host) Away() bool { return h.apart.Load() || h.frozen.Load() }

// Cut breaks the line of the host, or mends it: nobody is told.
func (h *Host) Cut(off bool) {
	h.apart.Store(off)
	state := "up"
	if off {
		state = "down"
	}
	h.network.must("ip -n %s link set %s %s", h.network.namespace, h.line, state)
}

// Lose has the host lose so many of a hundred packets that come to it.
func (h *Host) Lose(percent int) {
	rules := "flush ruleset\n"
	if percent > 0 {
		rules += fmt.Sprintf("table inet t {\n chain in {\n type filter hook input priority 0;\n iifname \"eth0\" numgen "+
			"random mod 100 < %d counter drop\n }\n}\n", percent)
	}
	h.Filter(rules)
}

// Sent is how many bytes have come from the host to the switch.
func (h *Host) Sent() int64 {
	words := []string{"-n", h.network.namespace, "-s", "-j", "link", "show", "dev", h.line}
	out, err := exec.Command("ip", words...).Output()
	var links []struct {
		Stats struct{ Rx struct{ Bytes int64 } } `json:"stats64"`
	}
	if err == nil {
		err = json.Unmarshal(out, &links)
	}
	if err != nil || len(links) != 1 {
		h.network.t.Fatalf("ip %s: %v\n%s", strings.Join(words, " "), err, out)
	}
	return links[0].Stats.Rx.Bytes
}

// Filter loads rules of nftables for the packets of the host.
func (h *Host) Filter(rules string) {
	c := exec.Command("nsenter", "--net=/run/netns/"+h.namespace, "nft", "-f", "-")
	c.Stdin = strings.NewReader(rules)
	if out, err := c.CombinedOutput(); err != nil {
		h.network.t.Fatalf("nft on %s: %v\n%s\n%s", h.Name, err, out, rules)
	}
}

// processes are those that run on the host.
func (h *Host) processes() (pids []int) {
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

// Signal sends a signal to all processes of the host, until it finds no further one: who
// was not stopped yet may have started another.
func (h *Host) Signal(s syscall.Signal) {
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

// Kill ends all processes of the host at once.
func (h *Host) Kill() { h.Signal(syscall.SIGKILL) }

// Freeze has the host stand still, until it is thawed.
func (h *Host) Freeze() {
	h.frozen.Store(true)
	h.Signal(syscall.SIGSTOP)
}

// Thaw has a frozen host go on.
func (h *Host) Thaw() {
	h.Signal(syscall.SIGCONT)
	h.frozen.Store(false)
}

// Commands are the command lines of its processes, for messages.
func (h *Host) Commands() (lines []string) {
	for _, pid := range h.processes() {
		text, _ := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", pid))
		lines = append(lines, fmt.Sprintf("%s: %d %s", h.Name, pid, strings.ReplaceAll(string(text), "\x00", " ")))
	}
	return lines
}
