package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"

	"fairway/bench/measure"
	"fairway/test/netns"
)

const maxHosts = 32

// cluster is a server and hosts that share nothing with it, behind lines of one speed.
type cluster struct {
	bench   *measure.Host
	network *netns.Network
	server  *netns.Host
	hosts   []*netns.Host
}

func newCluster(bench *measure.Host, hosts, mbit int) *cluster {
	c := &cluster{bench: bench, network: netns.New(bench)}
	c.server = c.network.Add("server", nil)
	c.server.Limit(mbit)
	for i := range hosts {
		h := c.network.Add(fmt.Sprintf("host%d", i), netns.Apart())
		h.Limit(mbit)
		c.hosts = append(c.hosts, h)
	}
	return c
}

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
      until set -- SEEN/gate-*; [ $# = HOSTS ]; do sleep 0.05; done
      cut -d " " -f 14,15 /proc/$PPID/stat > "SEEN/before-$(hostname)"
      date +%s.%N > "SEEN/began-$(hostname)"
      hostname > "$out"
  use:
    each: "gate/{number}"
    reads: [big.dat]
    writes: "used/{number}"
    needs: {cpus: CPUS}
    command: |
      date +%s.%N > "SEEN/has-$(hostname)"
      until set -- SEEN/has-*; [ $# = HOSTS ]; do sleep 0.05; done
      cut -d " " -f 14,15 /proc/$PPID/stat > "SEEN/after-$(hostname)"
      cksum < big.dat > "$out"
`

const site = `sites:
  hosts:
    shares: nothing
    cache: CACHE
    SYSTEM
`

// spread is how long a file took to all hosts, and what processor time they used for it.
type spread struct{ seconds, cpu float64 }

// run is one run on all hosts. Its processor time is that of the pilots.
func (c *cluster) run(ctx context.Context, fairway, cache string, mb int) (s spread, err error) {
	// What hosts may not see is below /srv.
	hidden, err := os.MkdirTemp("/srv", "fairway-spread")
	if err != nil {
		return s, err
	}
	defer os.RemoveAll(hidden)
	seen := c.bench.TempDir()
	if err := os.Chmod(seen, 0o777); err != nil {
		return s, err
	}
	_, system := c.network.Batch(c.hosts, 1)
	words := strings.NewReplacer("HOSTS", strconv.Itoa(len(c.hosts)), "SEEN", seen, "CACHE", cache, "SYSTEM", system,
		"CPUS", strconv.Itoa(runtime.NumCPU())) // a job takes a whole host
	err = errors.Join(
		writeBig(filepath.Join(hidden, "big.dat"), mb),
		os.WriteFile(filepath.Join(hidden, "workflow.yaml"), []byte(words.Replace(workflow)), 0o666),
		os.WriteFile(filepath.Join(hidden, "sites.yaml"), []byte(words.Replace(site)), 0o666),
	)
	if err != nil {
		return s, err
	}
	cmd := c.server.Command(ctx, fairway, "-C", hidden, "run", "--site", "hosts", "--listen", c.server.Address+":0")
	if out, err := cmd.CombinedOutput(); err != nil {
		return s, fmt.Errorf("%w: %s", err, out)
	}
	return c.told(seen)
}

// writeBig writes a file of so many MB, the same every time.
func writeBig(path string, mb int) error {
	big, err := os.Create(path)
	if err != nil {
		return err
	}
	_, err = io.CopyN(big, rand.NewChaCha8([32]byte{1}), int64(mb)*1_000_000)
	return errors.Join(err, big.Close())
}

// told is what the hosts have left in a folder.
func (c *cluster) told(seen string) (s spread, err error) {
	var told [4][]float64
	for i, what := range []string{"began", "has", "before", "after"} {
		if told[i], err = numbers(seen, what+"-*", len(c.hosts)); err != nil {
			return s, err
		}
	}
	s.seconds = slices.Max(told[1]) - slices.Max(told[0])
	for i := range told[2] {
		s.cpu += (told[3][i] - told[2][i]) / ticks
	}
	return s, nil
}

// ticks are those of /proc in a second.
const ticks = 100

// numbers are what the files of a pattern say, of which there is one for each host. Several
// in a file are added.
func numbers(folder, pattern string, hosts int) (all []float64, err error) {
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
		sum := 0.0
		for _, word := range strings.Fields(string(text)) {
			n, err := strconv.ParseFloat(word, 64)
			if err != nil {
				return nil, err
			}
			sum += n
		}
		all = append(all, sum)
	}
	return all, nil
}
