package main

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
)

const maxHosts = 32

// network is hosts on a bridge.
type network struct {
	folder string // of this machine and all hosts: who is there, and when
	name   string // by which its links and hosts are known
	subnet string
	hosts  int
	script string // takes jobs, as a batch system does
}

func newNetwork(folder string, hosts, mbit int) (*network, error) {
	number := 1 + rand.N(200)
	n := &network{folder: folder, name: fmt.Sprintf("fws%d", number), subnet: fmt.Sprintf("10.197.%d", number), hosts: hosts, script: filepath.Join(folder, "submit")}
	limit := fmt.Sprintf("root tbf rate %dmbit burst 1mb latency 50ms", mbit)
	commands := []string{
		"ip link add " + n.name + " type bridge",
		"ip addr add " + n.subnet + ".1/24 dev " + n.name,
		"ip link set " + n.name + " up",
		"tc qdisc add dev " + n.name + " " + limit,
	}
	for i := range hosts {
		space, here, there := n.space(i), fmt.Sprintf("%sh%d", n.name, i), fmt.Sprintf("%sn%d", n.name, i)
		commands = append(commands,
			"ip netns add "+space,
			"ip link add "+here+" type veth peer name "+there+" netns "+space,
			"ip link set "+here+" master "+n.name+" up",
			fmt.Sprintf("ip -n %s addr add %s.%d/24 dev %s", space, n.subnet, i+2, there),
			"ip -n "+space+" link set "+there+" up",
			"ip -n "+space+" link set lo up",
			"tc qdisc add dev "+here+" "+limit,
			"ip netns exec "+space+" tc qdisc add dev "+there+" "+limit,
		)
	}
	for _, text := range commands {
		words := strings.Fields(text)
		if out, err := exec.Command(words[0], words[1:]...).CombinedOutput(); err != nil {
			n.close()
			return nil, fmt.Errorf("%s: %w: %s", text, err, out)
		}
	}
	return n, os.WriteFile(n.script, []byte(submitScript), 0o755)
}

func (n *network) space(i int) string { return fmt.Sprintf("%s-%d", n.name, i) }

func (n *network) close() {
	for i := range n.hosts {
		_ = exec.Command("ip", "netns", "del", n.space(i)).Run()
	}
	_ = exec.Command("ip", "link", "del", n.name).Run()
}

// submitScript is a batch system: each job gets the next host, with a /tmp of its own,
// and sees nothing of /root, /home, /work and /srv. FOLDER has a file for each job.
const submitScript = `#!/bin/sh
set -eu
do=$1 folder=$2
case $do in
submit)
	job=$3 name=$4 hosts=$5
	cat >"$folder/$job.script"
	i=0
	until mkdir "$folder/host$i" 2>/dev/null; do
		i=$((i + 1))
		[ "$i" -lt "$hosts" ] || { echo "all hosts are taken" >&2; exit 1; }
	done
	mkdir -p "$folder/host$i/tmp"
	setsid nsenter --net="/run/netns/$name-$i" unshare --mount --uts sh -c '
		hostname "$1"
		mount --bind "$0" /tmp
		for place in /home /root /work /srv; do if [ -d "$place" ]; then mount -t tmpfs none "$place"; fi; done
		cd / && unset TMPDIR && exec sh' "$folder/host$i/tmp" "host$i" <"$folder/$job.script" >"$folder/$job.out" 2>&1 &
	echo $! >"$folder/$job.job"
	;;
status)
	for f in "$folder"/*.job; do
		[ -e "$f" ] || continue
		read -r pid <"$f"
		if kill -0 "$pid" 2>/dev/null; then job=${f##*/}; echo "${job%.job}|$pid|running"; fi
	done
	;;
cancel)
	kill "$3" 2>/dev/null || :
	;;
esac
`

const workflow = `workflow: spread
inputs:
  big: {files: big.dat}
steps:
  gate:
    times: HOSTS
    writes: "gate/{number}"
    needs: {cpus: CPUS}
    command: |
      touch "SEEN/gate-$(hostname)"
      while [ "$(ls SEEN | grep -c gate-)" -lt HOSTS ]; do sleep 0.02; done
      date +%s.%N > "SEEN/began-$(hostname)"
      hostname > "$out"
  use:
    each: "gate/{number}"
    reads: [big.dat]
    writes: "used/{number}"
    needs: {cpus: CPUS}
    command: |
      date +%s.%N > "SEEN/has-$(hostname)"
      while [ "$(ls SEEN | grep -c has-)" -lt HOSTS ]; do sleep 0.02; done
      cksum < big.dat > "$out"
`

const site = `sites:
  hosts:
    system: command
    shares: nothing
    cache: CACHE
    max_pilots: HOSTS
    min_pilots: HOSTS
    poll: 1s
    command:
      private: true
      submit: [SCRIPT, submit, JOBS, "{name}", NAME, "HOSTS"]
      status: [SCRIPT, status, JOBS]
      job: '(?m)^(?P<name>[^|]*)\|(?P<id>\d+)\|(?P<state>\w+)$'
      states: {running: [running]}
      cancel: [SCRIPT, cancel, JOBS, "{id}"]
`

// run is one run on all hosts, and how long the file took to all of them.
func (n *network) run(ctx context.Context, fairway, cache string, mb int) (seconds float64, err error) {
	// What hosts may not see is below /srv.
	hidden, err := os.MkdirTemp("/srv", "fairway-spread")
	if err != nil {
		return 0, err
	}
	defer os.RemoveAll(hidden)
	round, err := os.MkdirTemp(n.folder, "round")
	if err != nil {
		return 0, err
	}
	defer os.RemoveAll(round)
	seen, jobs := filepath.Join(round, "seen"), filepath.Join(round, "jobs")
	words := strings.NewReplacer("HOSTS", strconv.Itoa(n.hosts), "SEEN", seen, "JOBS", jobs, "SCRIPT", n.script, "NAME", n.name, "CACHE", cache,
		"CPUS", strconv.Itoa(runtime.NumCPU())) // a job takes a whole host
	random := make([]byte, 1_000_000)
	source := rand.NewChaCha8([32]byte{1})
	big, err := os.Create(filepath.Join(hidden, "big.dat"))
	if err != nil {
		return 0, err
	}
	for range mb {
		_, _ = source.Read(random) // never fails
		if _, err := big.Write(random); err != nil {
			return 0, err
		}
	}
	err = errors.Join(
		big.Close(), os.Mkdir(seen, 0o777), os.Mkdir(jobs, 0o777),
		os.WriteFile(filepath.Join(hidden, "workflow.yaml"), []byte(words.Replace(workflow)), 0o666),
		os.WriteFile(filepath.Join(hidden, "sites.yaml"), []byte(words.Replace(site)), 0o666),
	)
	if err != nil {
		return 0, err
	}
	cmd := exec.CommandContext(ctx, fairway, "run", "--site", "hosts", "--listen", n.subnet+".1:0")
	cmd.Dir = hidden
	if out, err := cmd.CombinedOutput(); err != nil {
		return 0, fmt.Errorf("%w: %s", err, out)
	}
	began, err := times(seen, "began-*", n.hosts)
	if err != nil {
		return 0, err
	}
	has, err := times(seen, "has-*", n.hosts)
	if err != nil {
		return 0, err
	}
	return slices.Max(has) - slices.Max(began), nil
}

// times are what the files of a pattern say, of which there is one for each host.
func times(folder, pattern string, hosts int) (all []float64, err error) {
	files, err := filepath.Glob(filepath.Join(folder, pattern))
	if err != nil {
		return nil, err
	}
	if len(files) != hosts {
		return nil, fmt.Errorf("%d of %d hosts have left %s", len(files), hosts, pattern)
	}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			return nil, err
		}
		at, err := strconv.ParseFloat(strings.TrimSpace(string(text)), 64)
		if err != nil {
			return nil, err
		}
		all = append(all, at)
	}
	return all, nil
}
