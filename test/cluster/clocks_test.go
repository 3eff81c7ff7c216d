package cluster

import (
	"encoding/json"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"fairway/lib/seed"
	"fairway/test/program"
)

// clocks are those of the processes of a campaign, by the names of these. Any goroutine may
// call the methods. A nil pointer stands for the clock of the machine.
type clocks struct {
	t      *testing.T
	folder string

	mu     sync.Mutex // guards what follows
	random *rand.Rand
	names  []string
	all    map[string]*program.Clock
}

func newClocks(t *testing.T, seed uint64) *clocks {
	return &clocks{t: t, folder: t.TempDir(), random: rand.New(rand.NewPCG(seed, 0)), all: map[string]*program.Clock{}}
}

// of is what the environment of a process holds to have its clock, which is wrong from the
// beginning.
func (c *clocks) of(name string) []string {
	if c == nil {
		return nil
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.all[name] == nil {
		c.all[name] = program.NewClock(c.t, filepath.Join(c.folder, fmt.Sprint(len(c.names))))
		c.names = append(c.names, name)
		c.turn(name)
	}
	return []string{c.all[name].Variable()}
}

// turn has a clock show another time, between 1970 and 2100. c.mu is held.
func (c *clocks) turn(name string) {
	day := 24 * time.Hour
	unit := []time.Duration{time.Minute, time.Hour, day, 365 * day}[c.random.IntN(4)]
	ahead := time.Duration((c.random.Float64()*2 - 1) * 50 * float64(unit)).Round(time.Second)
	c.t.Logf("the clock of %s is now %v ahead", name, ahead)
	c.all[name].Turn(ahead)
}

// turnOne turns the clock of a process alone.
func (c *clocks) turnOne() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.turn(c.names[c.random.IntN(len(c.names))])
}

// turning is a fault only where processes have clocks of their own.
var turning = kind{"turn a clock", func(c *campaign) func() {
	c.checkCaches()
	c.clocks.turnOne()
	return c.clocks.turnOne
}, false, false}

// asking has a person, who has a clock too, ask how long jobs have run until now.
var asking = kind{"ask for the jobs", func(c *campaign) func() {
	told := string(c.ask("jobs", "--state", "running"))
	for line := range strings.Lines(told) {
		if strings.Contains(line, " min") {
			c.t.Errorf("this is no time that a job has run: %s", line)
		}
	}
	return nil
}, false, false}

// cacheSpace is what a pilot has for its cache, in bytes: the inputs of a job, and not all of
// the files of the workflow.
const cacheSpace = 400_000

// TestClocks has each process go by a wall clock of its own, which is wrong, and jumps by up to
// fifty years while jobs run, files are read from pilot to pilot, caches make room and servers
// follow each other. In every second campaign processes are also frozen, for longer than the
// lease.
func TestClocks(t *testing.T) {
	if os.Getenv("FAIRWAY_SOAK") == "" {
		t.Skip("it compiles the standard library anew: FAIRWAY_SOAK=1")
	}
	turnable, err := program.BuildTurnable(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	random := seed.Source(t)
	set := setting{program: turnable, lines: 3000, moment: 1, turned: true, site: []string{
		"cache: global", fmt.Sprintf("cache_space: %dB", cacheSpace),
	}}
	want := set.undisturbed(t)
	var remote, evicted atomic.Int64
	t.Run("campaigns", func(t *testing.T) {
		for i := range 8 {
			own, frozen := rand.New(rand.NewPCG(random.Uint64(), 0)), i%2 == 1
			faults := clockFaults(own, frozen)
			t.Run(fmt.Sprint(i), func(t *testing.T) {
				t.Parallel()
				c := newCampaign(t, own, set)
				c.disturb(faults, want)
				c.checkTimes()
				if !frozen {
					c.checkNobodyWasLost()
				}
				for _, node := range c.caches() {
					remote.Add(node.RemoteHits)
					evicted.Add(node.EvictedFiles)
				}
			})
		}
	})
	t.Logf("%d files came from other hosts, and %d were evicted", remote.Load(), evicted.Load())
	if remote.Load() == 0 || evicted.Load() == 0 {
		t.Error("no file came from another host, or none was evicted")
	}
}

func clockFaults(random *rand.Rand, frozen bool) []planned {
	all := slices.Repeat([]kind{turning}, 16)
	if !frozen { // a frozen server does not answer
		all = append(all, asking, asking, asking, asking)
	}
	for _, k := range kinds {
		if k.name == "kill the server" || frozen && strings.HasPrefix(k.name, "freeze") {
			all = append(all, k)
		}
	}
	faults := plan(random, all, 12*time.Second, held)
	for i := range faults {
		if faults[i].name == "freeze a pilot" {
			faults[i].lasts = held + 2*lease
		}
	}
	return faults
}

// checkCaches looks how much the caches of the nodes hold. What is being read from elsewhere
// has its place already.
func (c *campaign) checkCaches() {
	for _, node := range c.nodes {
		held := int64(0)
		_ = filepath.WalkDir(node.Folder, func(path string, d fs.DirEntry, err error) error {
			if err != nil || !d.Type().IsRegular() || !strings.Contains(path, "/cache/") {
				return nil // what is gone holds nothing
			}
			if info, err := d.Info(); err == nil {
				held += info.Size()
			}
			return nil
		})
		if held > slots*cacheSpace {
			c.t.Errorf("the caches of %s hold %d bytes", node.Name, held)
		}
	}
}

// checkTimes looks whether people are told times that cannot be.
func (c *campaign) checkTimes() {
	c.t.Helper()
	whole := time.Since(c.since)
	for _, job := range c.jobs() {
		if ran := job.Ended.Sub(job.Started); ran < 0 || ran > whole {
			c.t.Errorf("%s is said to have run for %v", job.Name, ran)
		}
	}
}

// checkNobodyWasLost: no lease ends because of a clock, so no pilot takes the place of another.
func (c *campaign) checkNobodyWasLost() {
	c.t.Helper()
	if c.batch.submits > maxPilots {
		c.t.Errorf("%d pilots were started, and %d would do", c.batch.submits, maxPilots)
	}
}

type jobTold struct {
	Name           string
	State          string
	Started, Ended time.Time
}

// jobs are those of the run, as a person is told.
func (c *campaign) jobs() []jobTold {
	var told struct{ Jobs []jobTold }
	if err := json.Unmarshal(c.ask("jobs", "--json"), &told); err != nil {
		c.t.Fatal(err)
	}
	return told.Jobs
}

type nodeTold struct {
	RemoteHits   int64 `json:"remote_hits"`
	EvictedFiles int64 `json:"evicted_files"`
}

// caches are those of the nodes, as a person is told.
func (c *campaign) caches() []nodeTold {
	var told struct{ Nodes []nodeTold }
	if err := json.Unmarshal(c.ask("cache", "--json"), &told); err != nil {
		c.t.Fatal(err)
	}
	return told.Nodes
}
