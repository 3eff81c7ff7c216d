package batchtest

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

// Hosts is a number of ssh servers on this machine that let the user of a test in.
type Hosts struct {
	// Names of the hosts, each with its own server and key.
	Names []string
	// Options by which ssh reaches them.
	Options []string
	// Folder holds their keys: known_hosts, id, and authorized_keys.
	Folder string

	host Host
	all  []*daemons
	port int
}

// SSH starts ssh servers on ports of this machine. It skips where there is no server
// of ssh.
func SSH(t Host, n int) *Hosts {
	if err := installed("/usr/sbin/sshd", "ssh", "ssh-keygen"); err != nil {
		absent(t, "ssh", err)
	}
	h := &Hosts{Folder: scratch(t, "ssh"), host: t, port: freePorts(t, n)}
	if err := os.Chmod(h.Folder, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.MkdirAll("/run/sshd", 0o755); err != nil {
		t.Fatal(err)
	}
	path := func(name string) string { return filepath.Join(h.Folder, name) }
	run(t, nil, "", "ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", path("id"))
	write(t, path("authorized_keys"), run(t, nil, "", "cat", path("id.pub")))
	var known strings.Builder
	for i := range n {
		key := path(fmt.Sprintf("host-%d", i))
		run(t, nil, "", "ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", key)
		public := strings.Fields(run(t, nil, "", "cat", key+".pub"))
		fmt.Fprintf(&known, "[127.0.0.1]:%d %s %s\n", h.port+i, public[0], public[1])
		h.Names = append(h.Names, fmt.Sprintf("ssh://127.0.0.1:%d", h.port+i))
		write(t, path(fmt.Sprintf("sshd-%d.conf", i)), strings.NewReplacer("$D", h.Folder, "$KEY", key, "$PORT",
			fmt.Sprint(h.port+i)).Replace(sshdSettings))
		h.all = append(h.all, &daemons{t: t})
		h.Start(i)
	}
	write(t, path("known_hosts"), known.String())
	h.Options = []string{"IdentityFile=" + path("id"), "IdentitiesOnly=yes", "UserKnownHostsFile=" + path("known_hosts"),
		"GlobalKnownHostsFile=/dev/null"}
	t.Cleanup(func() {
		for i := range h.all {
			h.Stop(i)
		}
	})
	return h
}

// Process is the number of the process of the server of a host, whose children the
// sessions there are.
func (h *Hosts) Process(i int) int {
	running := h.all[i].running
	return running[len(running)-1].Process.Pid
}

// Start starts the server of a host, and waits until it answers.
func (h *Hosts) Start(i int) {
	h.all[i].start(nil, "/usr/sbin/sshd", "-D", "-e", "-f", filepath.Join(h.Folder, fmt.Sprintf("sshd-%d.conf", i)))
	until(h.host, nil, func(out string) bool { return out != "" }, "ssh-keyscan", "-p", fmt.Sprint(h.port+i), "127.0.0.1")
}

// Stop ends the server of a host, with the connections to it. What was started over
// them goes on.
func (h *Hosts) Stop(i int) {
	for _, server := range h.all[i].running {
		children, _ := exec.Command("pgrep", "-P", fmt.Sprint(server.Process.Pid)).Output() // exit code 1: there are none
		h.all[i].end()
		for _, child := range strings.Fields(string(children)) {
			_ = exec.Command("kill", child).Run() // it may have ended by now
		}
	}
	h.all[i].running = nil
}

const sshdSettings = `ListenAddress 127.0.0.1
Port $PORT
HostKey $KEY
PidFile none
AuthorizedKeysFile $D/authorized_keys
StrictModes no
PasswordAuthentication no
KbdInteractiveAuthentication no
UsePAM no
PermitRootLogin yes
`
