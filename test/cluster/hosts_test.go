package cluster

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"fairway/test/netns"
)

// hosts are those of a cluster. All see a scratch folder under the same path, and each
// one of its own there, as nodes do.
type hosts struct {
	network *netns.Network
	scratch string
}

func newHosts(t *testing.T) *hosts {
	t.Helper()
	h := &hosts{network: netns.New(t), scratch: filepath.Join(t.TempDir(), "scratch")}
	if err := os.Mkdir(h.scratch, 0o755); err != nil {
		t.Fatal(err)
	}
	return h
}

func (h *hosts) add(name string) *netns.Host {
	return h.network.Add(name, map[string]string{h.scratch: "scratch"})
}

// command is one that runs on a host.
func (h *hosts) command(on *netns.Host, words ...string) *exec.Cmd {
	c := on.Command(context.Background(), words...)
	c.Env = append(os.Environ(), "TMPDIR="+h.scratch)
	return c
}
