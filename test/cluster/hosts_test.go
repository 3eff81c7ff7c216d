package cluster

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"fairway/test/files"
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

// add makes a host that has a program of its own, by which jobs can be sent there: on-NAME.
func (h *hosts) add(t *testing.T, name string) *netns.Host {
	t.Helper()
	host := h.network.Add(name, map[string]string{h.scratch: "scratch"})
	own := files.Write(t, filepath.Join(host.Folder, "scratch/bin/on-"+name), "#!/bin/sh\n")
	if err := os.Chmod(own, 0o755); err != nil {
		t.Fatal(err)
	}
	return host
}

// command is one that runs on a host.
func (h *hosts) command(on *netns.Host, words ...string) *exec.Cmd {
	c := on.Command(context.Background(), words...)
	c.Env = append(os.Environ(), "TMPDIR="+h.scratch, "PATH="+h.scratch+"/bin:"+os.Getenv("PATH"))
	return c
}
