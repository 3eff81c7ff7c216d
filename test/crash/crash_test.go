package crash

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"testing"
	"time"

	_ "fairway/internal/cli" // links all fault points of the binary
	"fairway/internal/fault"
)

// fairway is the path of the binary under test.
var fairway string

func TestMain(m *testing.M) {
	folder, err := os.MkdirTemp("", "crash")
	if err != nil {
		panic(err)
	}
	fairway = filepath.Join(folder, "fairway")
	if out, err := exec.Command("go", "build", "-o", fairway, "fairway/cmd/fairway").CombinedOutput(); err != nil {
		fmt.Fprintf(os.Stderr, "building fairway: %v\n%s", err, out)
		os.Exit(1)
	}
	code := m.Run()
	_ = os.RemoveAll(folder)
	os.Exit(code)
}

// seed is printed, and may be given as FAIRWAY_SEED.
func seed(t *testing.T) uint64 {
	text := os.Getenv("FAIRWAY_SEED")
	value, err := strconv.ParseUint(text, 10, 64)
	if text == "" || err != nil {
		value = rand.Uint64()
	}
	t.Logf("FAIRWAY_SEED=%d", value)
	return value
}

// TestKills kills the server, pilots or both until enough kills are done, each
// time starting the workflow again. In the end every result must be, byte for
// byte, that of an undisturbed run, and must have appeared once.
func TestKills(t *testing.T) {
	kills, each := 12, 4
	if os.Getenv("FAIRWAY_SOAK") != "" {
		kills, each = 200, 5
	}
	random := rand.New(rand.NewPCG(seed(t), 0))
	want := undisturbed(t)
	points := fault.Names()
	random.Shuffle(len(points), func(i, j int) { points[i], points[j] = points[j], points[i] })
	for done := 0; done < kills; {
		c := &campaign{t: t, random: random, folder: newWorkflow(t), points: &points}
		c.watcher = watch(t, c.folder, "batches", "gathered")
		done += c.disturb(min(each, kills-done))
		c.conclude(want)
		if t.Failed() {
			return
		}
	}
}

// undisturbed gives the results of a run that nothing happens to.
func undisturbed(t *testing.T) map[string]string {
	t.Helper()
	c := &campaign{t: t, folder: newWorkflow(t)}
	c.watcher = watch(t, c.folder, "batches", "gathered")
	want := c.finish()
	c.checkCounts(want)
	if len(want) < 9 {
		t.Fatalf("the undisturbed run has few results: %v", want)
	}
	return want
}

// campaign is one folder that is disturbed several times.
type campaign struct {
	t       *testing.T
	random  *rand.Rand
	folder  string
	points  *[]string // fault points still to be tried
	watcher *watcher
	story   []string // what was done, for messages
}

// disturb kills up to n times and returns how often it did. It may be fewer,
// since the run may end before.
func (c *campaign) disturb(n int) int {
	done := 0
	for done < n {
		killed, over := c.disturbOnce()
		done += killed
		if over {
			break
		}
	}
	return done
}

func (c *campaign) disturbOnce() (killed int, over bool) {
	if len(*c.points) > 0 && c.random.IntN(2) == 0 {
		return c.killAtPoint()
	}
	a := start(c.t, c.folder)
	if !a.at(c.moment()) {
		return 0, a.wait()
	}
	switch c.random.IntN(4) {
	case 0:
		c.say("kill the server")
		killed = count(a.killServer())
	case 1:
		c.say("kill all pilots, and then the server")
		killed = a.killPilots(c.random, true) + count(a.killServer())
	case 2:
		c.say("kill the server, and then all pilots")
		killed = count(a.killServer()) + a.killPilots(c.random, true)
	default:
		c.say("kill a pilot")
		killed = a.killPilots(c.random, false)
	}
	return killed, a.wait()
}

// killAtPoint lets the first process that reaches a fault point, for a random
// time, be killed there. A point that is not reached stays to be tried.
func (c *campaign) killAtPoint() (killed int, over bool) {
	point := (*c.points)[0]
	*c.points = (*c.points)[1:]
	nth := 1 + c.random.IntN(3)
	c.say(fmt.Sprintf("kill at %s, time %d", point, nth))
	once := filepath.Join(c.t.TempDir(), "once")
	over = start(c.t, c.folder, fmt.Sprintf("FAIRWAY_FAULT=%s:%d:kill", point, nth), "FAIRWAY_FAULT_ONCE="+once).wait()
	if _, err := os.Stat(once); err != nil {
		return 0, over
	}
	return 1, over
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
	a := start(c.t, c.folder)
	if !a.wait() {
		c.t.Fatalf("the run failed after %q:\n%s", c.story, a.output.String())
	}
	return results(c.t, c.folder)
}

// checkCounts: each output once, and the table once for each version.
func (c *campaign) checkCounts(want map[string]string) {
	counts := c.watcher.stop()
	for name := range want {
		most := 1
		if name == "table.txt" {
			most = runs
		}
		if counts[name] < 1 || counts[name] > most {
			c.t.Errorf("%s appeared %d times after %q, at most %d are right", name, counts[name], c.story, most)
		}
		delete(counts, name)
	}
	for name, n := range counts {
		c.t.Errorf("%s appeared %d times after %q and is no result", name, n, c.story)
	}
}

func (c *campaign) moment() time.Duration { return time.Duration(c.random.Int64N(int64(longest))) }

func (c *campaign) say(what string) {
	c.story = append(c.story, what)
	c.t.Log(what)
}

func count(happened bool) int {
	if happened {
		return 1
	}
	return 0
}
