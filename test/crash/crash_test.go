package crash

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"fairway/lib/seed"
	"fairway/test/program"
	"fairway/test/published"
)

// fairway is the path of the binary under test.
var fairway string

func TestMain(m *testing.M) { program.Main(m, &fairway) }

// TestKills kills the server, pilots or both: at every fault point, and at
// random moments until it has killed at as many moments as it wants, each time
// starting the workflow again. In the end every result must be, byte for byte, that of an undisturbed
// run, and each of its versions must have appeared once.
func TestKills(t *testing.T) {
	moments, each := 36, 4
	if os.Getenv("FAIRWAY_SOAK") != "" {
		moments, each = 200, 5
	}
	random := seed.Source(t)
	want := undisturbed(t)
	left := allVisits(t, random)
	for done := 0; done < moments || len(left.left) > 0; {
		c := newCampaign(t, layoutFor(left, random))
		c.random, c.visits = random, left
		done += c.disturb(each)
		c.conclude(want)
		if t.Failed() {
			return
		}
	}
}

// TestStoppedPilot stops (SIGSTOP) a pilot with work in its hands: the others do
// that work when its lease is over, and the run ends without it.
func TestStoppedPilot(t *testing.T) {
	if os.Getenv("FAIRWAY_SOAK") == "" {
		t.Skip("it waits for the lease of a pilot; run it with FAIRWAY_SOAK=1")
	}
	want := undisturbed(t)
	c := newCampaign(t, together)
	c.say("stop a pilot")
	a := c.start("FAIRWAY_FAULT=pilot.command.before:2:pause", "FAIRWAY_FAULT_ONCE="+filepath.Join(t.TempDir(), "once"))
	a.patience = 5 * patience
	if !a.wait() {
		t.Errorf("the run failed:\n%s", a.output.String())
	}
	if left := program.Pilots(c.folder); len(left) > 0 {
		t.Errorf("the run has left the pilots %v", left)
	}
	c.conclude(want)
}

// layoutFor is the one that the next visit needs, or else any.
func layoutFor(left *visits, random *rand.Rand) layout {
	if len(left.left) > 0 {
		return left.left[0].on
	}
	return layouts[random.IntN(len(layouts))]
}

// undisturbed gives the results of a run that nothing happens to, which are the
// same on all layouts.
func undisturbed(t *testing.T) map[string]string {
	t.Helper()
	var want map[string]string
	for _, on := range layouts {
		c := newCampaign(t, on)
		got := c.finish()
		c.checkCounts(got)
		if want == nil {
			want = got
		}
		if len(got) < 9 || !maps.Equal(got, want) {
			t.Fatalf("the undisturbed runs have too few results or different ones: %v and %v", want, got)
		}
	}
	return want
}

// campaign is one folder that is disturbed several times.
type campaign struct {
	t       *testing.T
	random  *rand.Rand
	folder  string
	layout  layout
	visits  *visits
	watcher *published.Watcher
	story   []string // what was done, for messages
}

func newCampaign(t *testing.T, on layout) *campaign {
	t.Helper()
	c := &campaign{t: t, folder: newWorkflow(t, on), layout: on}
	if on != away {
		c.watcher = published.Watch(t, c.folder, "batches", "gathered")
	}
	return c
}

// disturb kills at up to n moments and returns at how many it did. It may be
// fewer, since the run may end before.
func (c *campaign) disturb(n int) int {
	done := 0
	for done < n {
		killed, over := c.disturbOnce(done == 0)
		if killed {
			done++
		}
		if over {
			break
		}
	}
	return done
}

func (c *campaign) disturbOnce(first bool) (killed, over bool) {
	if first && c.visits.urgent() || c.random.IntN(2) == 0 {
		if next, ok := c.visits.take(c.layout); ok {
			return c.killAtPoint(next)
		}
	}
	return c.killAtMoment()
}

// killAtMoment kills whatever it is to kill in one moment, however many
// processes that is.
func (c *campaign) killAtMoment() (killed, over bool) {
	a := c.start()
	if !a.at(c.moment()) {
		return false, a.wait()
	}
	pilots := 0
	switch c.random.IntN(4) {
	case 0:
		c.say("kill the server")
		a.killServer()
	case 1:
		c.say("kill all pilots, and then the server")
		pilots = a.killPilots(c.random, true)
		a.killServer()
	case 2:
		c.say("kill the server, and then all pilots")
		a.killServer()
		pilots = a.killPilots(c.random, true)
	default:
		c.say("kill a pilot")
		pilots = a.killPilots(c.random, false)
	}
	over = a.wait()
	return pilots > 0 || a.killed(), over
}

// killAtPoint lets the first process that reaches a fault point, for a random
// time, be killed there. A point that is not reached stays to be tried.
func (c *campaign) killAtPoint(next visit) (killed, over bool) {
	nth := 1
	if next.misses == 0 {
		nth += c.random.IntN(3)
	}
	c.say(fmt.Sprintf("kill at %s, time %d", next.point, nth))
	once := filepath.Join(c.t.TempDir(), "once")
	a := c.start(fmt.Sprintf("FAIRWAY_FAULT=%s:%d:kill", next.point, nth), "FAIRWAY_FAULT_ONCE="+once)
	over = a.wait()
	if _, err := os.Stat(once); err != nil {
		c.visits.missed(next)
		return false, over
	}
	if in := plan[next.point].in; (in == theServer) != a.killed() {
		c.t.Errorf("%s is a point of the %s, but after %q the server ended so: %v", next.point, in, c.story,
			a.cmd.ProcessState)
	}
	return true, over
}

func (c *campaign) start(environment ...string) *attempt {
	c.t.Helper()
	return start(c.t, c.folder, c.layout, environment...)
}

func (c *campaign) conclude(want map[string]string) {
	got := c.finish()
	if !maps.Equal(got, want) {
		c.t.Errorf("results differ from those of an undisturbed run after %q:\n got %v\nwant %v", c.story, got, want)
	}
	c.checkCounts(want)
}

// finish runs the workflow to its end and returns the results.
func (c *campaign) finish() map[string]string {
	c.t.Helper()
	a := c.start()
	if !a.wait() {
		c.t.Fatalf("the run failed after %q:\n%s", c.story, a.output.String())
	}
	return results(c.t, c.folder)
}

// checkCounts: each output appeared once, and the table once for each version,
// a later one never giving way to one before.
func (c *campaign) checkCounts(want map[string]string) {
	c.t.Helper()
	if c.layout == away { // a step that a watcher of renames does not know exchanges files there
		return
	}
	sizes, wrong := c.watcher.Stop()
	for _, what := range wrong {
		c.t.Errorf("%s, after %q", what, c.story)
	}
	for name := range want {
		versions := 1
		if name == "table.txt" {
			versions = runs // each makes it longer
		}
		if len(sizes[name]) != versions || !slices.IsSorted(sizes[name]) {
			c.t.Errorf("%s appeared with the sizes %v after %q, and has %d versions", name, sizes[name], c.story, versions)
		}
		delete(sizes, name)
	}
	for name, n := range sizes {
		c.t.Errorf("%s appeared with the sizes %v after %q and is no result", name, n, c.story)
	}
}

func (c *campaign) moment() time.Duration { return time.Duration(c.random.Int64N(int64(longest))) }

func (c *campaign) say(what string) {
	c.story = append(c.story, what)
	c.t.Log(what)
}
