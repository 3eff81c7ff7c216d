package server

import (
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"fairway/internal/access"
	"fairway/internal/batch"
	"fairway/internal/pilot"
	"fairway/internal/server/folder"
	"fairway/internal/server/launch"
	"fairway/internal/storage/storagetest"
	"fairway/internal/taskqueue"
	"fairway/test/files"
)

// namespace makes a network namespace that is connected with this machine by a link of
// 1 Gbit/s, and returns its name and the address of this machine there.
func namespace(t *testing.T) (name, address string) {
	t.Helper()
	if os.Getuid() != 0 {
		t.Skip("a network namespace needs root")
	}
	number := os.Getpid() % 60_000
	name = fmt.Sprintf("fw%d", number)
	here, there := name+"h", name+"n"
	subnet := fmt.Sprintf("10.%d.%d.", 200+number/250%50, number%250)
	command := func(words ...string) error {
		out, err := exec.Command(words[0], words[1:]...).CombinedOutput()
		if err != nil {
			err = fmt.Errorf("%v: %w: %s", words, err, out)
		}
		return err
	}
	if err := command("ip", "netns", "add", name); err != nil {
		t.Skip(err)
	}
	t.Cleanup(func() { _ = command("ip", "netns", "del", name) })
	for _, words := range []string{
		"ip link add " + here + " type veth peer name " + there + " netns " + name,
		"ip addr add " + subnet + "1/24 dev " + here,
		"ip link set " + here + " up",
		"ip -n " + name + " addr add " + subnet + "2/24 dev " + there,
		"ip -n " + name + " link set " + there + " up",
	} {
		if err := command(strings.Fields(words)...); err != nil {
			t.Skip(err)
		}
	}
	for _, words := range []string{"tc qdisc add dev " + here, "ip netns exec " + name + " tc qdisc add dev " + there} {
		if err := command(strings.Fields(words + " root tbf rate 1gbit burst 1mb latency 50ms")...); err != nil {
			t.Log("the link is as fast as it can be:", err)
		}
	}
	return name, subnet + "1"
}

// apart are pilots in a namespace that do not see a folder: for them it is empty. They store
// at a place; an empty one is the folder of the state.
func apart(t *testing.T, namespace, hidden, place string) Site {
	t.Helper()
	node := t.TempDir()
	return Site{
		Site: taskqueue.Site{Name: "cluster", MaxPilots: 2, Pilot: taskqueue.Resources{MilliCPUs: 1000, Memory: 1 << 30, Disk: 1 << 30}},
		System: func(folders folder.Layout, way func(string, any) (launch.Way, error)) (batch.System, error) {
			return batch.NewLocal(batch.LocalConfig{
				State: folders.ID, LogDir: node,
				Command: []string{"nsenter", "--net=/run/netns/" + namespace, "unshare", "--mount", "sh", "-c", `mount -t tmpfs none "$0" && exec "$@"`, hidden, os.Args[0]},
				Environment: func(name string) ([]string, error) {
					at, err := way(name, pilot.Config{
						MilliCPUs: 1000, Memory: 1 << 30, Disk: 1 << 30,
						SandboxDir: node + "/sandbox", LogDir: folders.Logs, Cache: pilot.CacheConfig{
							Mode: pilot.CacheHost, Dir: node + "/cache",
						},
						Storage: folders.StorageAt(place), Element: folders.Storage, Workflow: folders.Workflow,
					})
					if err != nil {
						return nil, err
					}
					c, err := access.ReadConnection(at.File)
					if err != nil {
						return nil, err
					}
					copied := filepath.Join(node, name+".connect")
					return []string{connectVariable + "=" + copied}, c.Write(copied)
				},
			})
		},
	}
}

// Two machines that have no folder in common and reach each other at one port only
// make the same bytes as one: inputs from beside the workflow and from outside of it,
// programs, outputs by name and by pattern, logs.
func TestApartThereAreTheSameBytes(t *testing.T) {
	name, address := namespace(t)
	workflow := `
workflow: apart
inputs:
  parts: {files: "in/{name}.bin", as: "in/{name}.bin"}
  tool: {files: "bin/sum", as: "sum"}
steps:
  split:
    each: "in/{name}.bin"
    reads: sum
    writes: "pieces/{name}.{piece}"
    command: |
      mkdir -p pieces
      echo "split $name" >&2
      split -b 400000 -a 1 "in/$name.bin" "pieces/$name."
  count:
    each: "pieces/{name}.{piece}"
    reads: sum
    writes: "sums/{name}.{piece}"
    command: ./sum "pieces/$name.$piece" > "sums/$name.$piece"
  all:
    merge: "sums/{name}.{piece}"
    writes: all.txt
    command: cat $in > all.txt
`
	texts := map[string]string{"bin/sum": "#!/bin/sh\nset -e\nsha256sum < \"$1\"\n"}
	for i := range 3 {
		texts[fmt.Sprintf("in/%c.bin", 'a'+i)] = storagetest.Contents(1_000_000 + i)
	}
	results := func(root string, change func(*testRun)) map[string]string {
		if err := os.Chmod(filepath.Join(root, "bin/sum"), 0o755); err != nil {
			t.Fatal(err)
		}
		r := newRun(t, root, workflow, nil)
		r.config.System = nil
		change(r)
		r.mustSucceed()
		found := files.Below(t, filepath.Join(root, folder.ResultsFolder))
		logs, _ := filepath.Glob(filepath.Join(root, ".fairway/logs/*/*.err"))
		printed := ""
		for _, log := range logs {
			printed += files.Read(t, log)
		}
		for _, part := range []string{"split a\n", "split b\n", "split c\n"} {
			if !strings.Contains(printed, part) {
				t.Errorf("%q is in no log", part)
			}
		}
		return found
	}
	together := results(files.Folder(t, texts), func(r *testRun) {
		r.config.Listen, r.config.Sites = "127.0.0.1:0", []Site{farPilots(func(access.Connection) {})}
	})
	root := files.Folder(t, texts)
	separate := results(root, func(r *testRun) {
		r.config.Listen, r.config.Sites = net.JoinHostPort(address, "0"), []Site{apart(t, name, root, "")}
	})
	if strings.Count(together["all.txt"], "\n") != 9 || len(separate) != len(together) { // a checksum of each piece
		t.Errorf("together %v, apart %v", together, separate)
	}
	for name, text := range together {
		if separate[name] != text {
			t.Errorf("%s has other bytes apart: %d and %d", name, len(separate[name]), len(text))
		}
	}
}
