package cluster

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"fairway/internal/pilot"
	"fairway/lib/sched"
	"fairway/lib/seed"
	"fairway/test/files"
	"fairway/test/netns"
	"fairway/test/program"
	"fairway/test/published"
)

// fairway is the path of the binary under test.
var fairway string

func TestMain(m *testing.M) {
	if socket := os.Getenv(mockSocket); socket != "" {
		os.Exit(askMock(socket))
	}
	program.Main(m, &fairway)
}

const (
	nodes     = 4
	slots     = 2 // jobs of the batch system on a node
	maxPilots = 3
	port      = 7000
	lease     = 6 * time.Second
	// held is how long the server may hold an answer, after which the lease begins.
	held = 25 * time.Second
	// patience is how long one campaign may take before it counts as hung.
	patience = 5 * time.Minute

	runs  = 3 // files that are there, each of them rewrites the table
	parts = 4 // that each is split into
)

// TestFaults has a workflow run on a cluster in which things go wrong, drawn from a seed:
// a third of all kinds in a run, and every kind as often as every other.
func TestFaults(t *testing.T) {
	count, within, longest := 3, 6*time.Second, 8*time.Second
	if os.Getenv("FAIRWAY_SOAK") != "" {
		count, within, longest = 50, 9*time.Second, 45*time.Second
	}
	random := seed.Source(t)
	cards := deck{random: random}
	set := setting{program: fairway, lines: 8, moment: 0.3}
	want := set.undisturbed(t)
	for i := range count {
		own := rand.New(rand.NewPCG(random.Uint64(), 0))
		faults := plan(own, cards.deal((len(kinds)+2)/3), within, longest)
		t.Run(fmt.Sprint(i), func(t *testing.T) {
			t.Parallel()
			newCampaign(t, own, set).disturb(faults, want)
		})
	}
}

// setting is what campaigns have in common.
type setting struct {
	program string
	lines   int      // of each part
	moment  float64  // seconds that a job takes
	site    []string // what the site is told besides
	turned  bool     // each process has a clock of its own
}

// campaign is a run of the workflow on a cluster of its own.
type campaign struct {
	t *testing.T
	setting
	clocks  *clocks // nil where all go by that of the machine
	random  *rand.Rand
	folder  string
	hosts   *hosts
	login   *netns.Host
	nodes   []*netns.Host
	batch   *mock
	proxy   *proxy
	server  *server
	watcher *published.Watcher
	since   time.Time // of its beginning, for messages
	events  []event   // in the order of their times
}

func newCampaign(t *testing.T, random *rand.Rand, set setting) *campaign {
	t.Helper()
	c := &campaign{t: t, setting: set, random: random, since: time.Now(), folder: set.newWorkflow(t), hosts: newHosts(t)}
	c.login = c.hosts.add(t, "login")
	for i := range nodes {
		c.nodes = append(c.nodes, c.hosts.add(t, fmt.Sprintf("n%d", i+1)))
	}
	c.batch = newMock(t, c.hosts, c.nodes, slots, maxPilots)
	if set.turned {
		c.clocks = newClocks(t, random.Uint64())
		c.batch.clocks = c.clocks
	}
	c.proxy = newProxy(t, c.login, port)
	files.Write(t, filepath.Join(c.folder, "sites.yaml"),
		"sites:\n"+c.batch.site("cluster", slices.Concat([]string{"lease: " + lease.String()}, set.site)...))
	c.watcher = published.Watch(t, c.folder, "batches", "gathered")
	return c
}

// newWorkflow makes a folder with the workflow and its inputs.
func (s *setting) newWorkflow(t *testing.T) string {
	t.Helper()
	folder := t.TempDir()
	text, err := os.ReadFile("testdata/workflow.yaml")
	if err != nil {
		t.Fatal(err)
	}
	files.Write(t, filepath.Join(folder, "workflow.yaml"), string(text))
	files.Write(t, filepath.Join(folder, "table.txt"), "1\n")
	for run := 1; run <= runs; run++ {
		var numbers strings.Builder
		for line := range parts * s.lines {
			fmt.Fprintln(&numbers, run*1000+line)
		}
		files.Write(t, filepath.Join(folder, "runs", fmt.Sprintf("run%d.txt", run)), numbers.String())
	}
	return folder
}

// undisturbed gives the results of a run on this machine that nothing happens to.
func (s *setting) undisturbed(t *testing.T) map[string]string {
	t.Helper()
	folder := s.newWorkflow(t)
	if out, err := exec.Command(s.program, "-C", folder, "run", "--pilots", "2", "--set",
		fmt.Sprint("lines=", s.lines)).CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	return results(t, folder)
}

func results(t *testing.T, folder string) map[string]string {
	t.Helper()
	all := files.Below(t, filepath.Join(folder, "results"))
	if len(all) == 0 {
		t.Fatal("no results in", folder)
	}
	return all
}

// server is one start of `fairway run`.
type server struct {
	cmd    *exec.Cmd
	output bytes.Buffer
	ended  chan struct{}
	killed bool
}

func (c *campaign) startServer() {
	c.t.Helper()
	s := &server{ended: make(chan struct{})}
	s.cmd = c.hosts.command(c.login, c.program, "-C", c.folder, "run", "--site", "cluster",
		"--listen", fmt.Sprintf("%s:%d", c.login.Address, port), "--set", fmt.Sprint("moment=", c.moment), "--set",
		fmt.Sprint("lines=", c.lines))
	s.cmd.Env = append(s.cmd.Env, c.clocks.of("server")...)
	s.cmd.Stdout, s.cmd.Stderr = &s.output, &s.output
	s.cmd.WaitDelay = time.Second
	if err := s.cmd.Start(); err != nil {
		c.t.Fatal(err)
	}
	go func() {
		_ = s.cmd.Wait()
		close(s.ended)
	}()
	c.server = s
}

func (c *campaign) killServer() {
	c.server.killed = true
	_ = c.server.cmd.Process.Kill()
}

func (c *campaign) node() *netns.Host { return c.nodes[c.random.IntN(len(c.nodes))] }

// event is the beginning or the end of a fault.
type event struct {
	at   time.Time
	what string
	do   func()
	ends *planned // nil where it begins one
}

// disturb runs the workflow to its end under faults, and checks everything.
func (c *campaign) disturb(faults []planned, want map[string]string) {
	c.t.Helper()
	c.t.Log(faults)
	for _, f := range faults {
		if f.early {
			c.begin(f)
		}
	}
	c.startServer()
	defer c.killServer()
	deadline := time.Now().Add(patience)
	for !c.until(c.batch.begun, c.next(deadline)) {
		if !c.happen() {
			c.t.Fatalf("no pilot was started:\n%s", c.story())
		}
	}
	for _, f := range faults {
		if !f.early {
			c.add(event{at: time.Now().Add(f.at), what: f.name, do: func() { c.begin(f) }})
		}
	}
	for !c.runsUntil(c.next(deadline)) {
		if !c.happen() {
			c.t.Fatalf("the run hung:\n%s", c.story())
		}
	}
	c.t.Logf("%.1f s: the run has ended", time.Since(c.since).Seconds())
	for _, e := range c.events {
		if e.ends != nil && !e.ends.stays {
			e.do()
		}
	}
	c.batch.behave()
	c.check(want)
}

// begin has a fault happen, and plans its end.
func (c *campaign) begin(f planned) {
	if end := f.kind.begin(c); end != nil {
		c.add(event{at: time.Now().Add(f.lasts), what: "end: " + f.name, do: end, ends: &f})
	}
}

func (c *campaign) add(e event) {
	c.events = append(c.events, e)
	slices.SortStableFunc(c.events, func(a, b event) int { return a.at.Compare(b.at) })
}

// next is when the next event is due, or else the deadline.
func (c *campaign) next(deadline time.Time) time.Time {
	if len(c.events) > 0 && c.events[0].at.Before(deadline) {
		return c.events[0].at
	}
	return deadline
}

// happen has the next event happen; false if there is none that is due.
func (c *campaign) happen() bool {
	if len(c.events) == 0 || time.Now().Before(c.events[0].at) {
		return false
	}
	e := c.events[0]
	c.events = c.events[1:]
	c.t.Logf("%.1f s: %s", time.Since(c.since).Seconds(), e.what)
	e.do()
	return true
}

// until waits for a signal; false if a moment comes before.
func (c *campaign) until(signal <-chan struct{}, moment time.Time) bool {
	ctx, cancel := context.WithDeadline(context.Background(), moment)
	defer cancel()
	_, err := sched.Receive(ctx, sched.Default(), signal)
	return errors.Is(err, sched.ErrChannelClosed)
}

// runsUntil starts the server again each time that it was killed, until a moment; true
// if the run has ended before.
func (c *campaign) runsUntil(moment time.Time) bool {
	for c.until(c.server.ended, moment) {
		switch {
		case c.server.cmd.ProcessState.Success():
			return true
		case !c.server.killed:
			c.t.Fatalf("the run failed: %v\n%s", c.server.cmd.ProcessState, c.story())
		}
		c.startServer()
	}
	return false
}

// check looks whether all is as it must be after the end of a run.
func (c *campaign) check(want map[string]string) {
	c.t.Helper()
	if got := results(c.t, c.folder); !maps.Equal(got, want) {
		c.t.Errorf("the results differ from those of a run on one machine:\n got %v\nwant %v", got, want)
	}
	c.checkPublished(want)
	c.checkStore()
	c.checkEnded()
	c.checkBatch()
	if c.t.Failed() {
		c.t.Log(c.story())
	}
}

// checkBatch asks the batch system whether it was given more than it may have.
func (c *campaign) checkBatch() {
	c.t.Helper()
	c.batch.mu.Lock()
	defer c.batch.mu.Unlock()
	for _, what := range c.batch.wrong {
		c.t.Error(what)
	}
	if c.batch.most == 0 {
		c.t.Error("the batch system has had no pilot")
	}
	c.t.Logf("at most %d pilots of %d, in %d submissions; %v", c.batch.most, c.batch.limit, c.batch.submits,
		c.batch.happened)
}

// checkPublished: each output appeared once, and the table once for each version, a later
// one never giving way to one before.
func (c *campaign) checkPublished(want map[string]string) {
	c.t.Helper()
	sizes, wrong := c.watcher.Stop()
	for _, what := range wrong {
		c.t.Error(what)
	}
	for name := range want {
		versions := 1
		if name == "table.txt" {
			versions = runs // each makes it longer
		}
		if len(sizes[name]) != versions || !slices.IsSorted(sizes[name]) {
			c.t.Errorf("%s appeared with the sizes %v, and has %d versions", name, sizes[name], versions)
		}
		delete(sizes, name)
	}
	for name, n := range sizes {
		c.t.Errorf("%s appeared with the sizes %v and is no result", name, n)
	}
}

// checkStore asks the store for its jobs, all of which must be done, and for the record
// of the run, which has each of them once.
func (c *campaign) checkStore() {
	c.t.Helper()
	var jobs struct {
		Total   int
		ByState map[string]int `json:"by_state"`
	}
	if err := json.Unmarshal(c.ask("jobs", "--json"), &jobs); err != nil {
		c.t.Fatal(err)
	}
	var record struct {
		Workflow struct {
			Execution struct{ Tasks []struct{ ID string } }
		}
	}
	if err := json.Unmarshal(c.ask("export"), &record); err != nil {
		c.t.Fatal(err)
	}
	committed := map[string]int{}
	for _, task := range record.Workflow.Execution.Tasks {
		committed[task.ID]++
	}
	if jobs.Total == 0 || jobs.ByState["done"] != jobs.Total || len(committed) != jobs.Total {
		c.t.Errorf("of %d jobs %v, and the record has %d", jobs.Total, jobs.ByState, len(committed))
	}
	for id, n := range committed {
		if n != 1 {
			c.t.Errorf("%s stands in the record %d times", id, n)
		}
	}
}

// ask is what fairway prints about the run.
func (c *campaign) ask(arguments ...string) []byte {
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
	defer cancel()
	command := exec.CommandContext(ctx, c.program, append([]string{"-C", c.folder}, arguments...)...)
	command.Env = append(os.Environ(), c.clocks.of("person")...)
	out, _ := command.Output()
	return out
}

// checkEnded: when the lease has passed, nothing runs on the nodes any more, however
// they were cut off. What a job or pilot needs to end comes on top.
func (c *campaign) checkEnded() {
	c.t.Helper()
	const slack = 20 * time.Second // for a machine with other work
	limit := held + lease + pilot.DefaultGrace + pilot.FarewellTimeout + slack
	ctx, cancel := context.WithTimeout(context.Background(), limit)
	defer cancel()
	begun := time.Now()
	left := sched.NewStatus(sched.Default(), sched.StatusConfig[string, []string]{
		Name: "processes of " + c.t.Name(), Every: 200 * time.Millisecond,
		Query: func(_ context.Context, keys []string) (map[string][]string, error) {
			var all []string
			for _, node := range c.nodes {
				all = append(all, node.Commands()...)
			}
			return map[string][]string{keys[0]: all}, nil
		},
	})
	if answer, err := left.Wait(
		ctx, "nodes", func(a sched.Answer[[]string]) bool { return a.Known && len(a.Value) == 0 },
	); err != nil {
		c.t.Errorf("%.0f s after the end of the run these still run:\n%s", time.Since(begun).Seconds(),
			strings.Join(answer.Value, "\n"))
		for _, node := range c.nodes {
			node.Signal(syscall.SIGQUIT) // and say where they are
		}
		return
	}
	c.t.Logf("%.1f s after the end of the run nothing runs any more", time.Since(begun).Seconds())
}

// story is all that can be told of a campaign that failed.
func (c *campaign) story() string {
	var b strings.Builder
	fmt.Fprintf(&b, "== fairway run:\n%s\n", c.server.output.String())
	c.batch.mu.Lock()
	fmt.Fprintf(&b, "== jobs of the batch system:\n%s\n", c.batch.lines())
	c.batch.mu.Unlock()
	fmt.Fprintf(&b, "== fairway jobs:\n%s\n%s\n", c.ask("jobs"), c.ask("explain", "total"))
	logs, _ := filepath.Glob(filepath.Join(c.folder, ".fairway/pilots/*/*.log"))
	for _, log := range logs {
		text, _ := os.ReadFile(log)
		fmt.Fprintf(&b, "== %s\n%s\n", filepath.Base(log), text)
	}
	for _, node := range c.nodes {
		fmt.Fprintln(&b, strings.Join(node.Commands(), "\n"))
	}
	return b.String()
}
