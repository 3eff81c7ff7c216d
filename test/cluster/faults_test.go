package cluster

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"syscall"
	"time"
)

// kind is one of the things that go wrong. It begins, and returns how it ends, which is
// nothing where it is over at once.
type kind struct {
	name  string
	begin func(c *campaign) (end func())
	first bool // it may begin before the server does, which then meets it when it asks for pilots
	stays bool // it need not end with the run
}

// kinds are all. What they do to, the campaign's source of random numbers decides.
var kinds = []kind{
	{"cut the line of a node", func(c *campaign) func() {
		node := c.node()
		node.Cut(true)
		return func() {
			node.Cut(false)
			c.batch.reached(node)
		}
	}, false, true},
	{"cut the line of the server", func(c *campaign) func() {
		c.login.Cut(true)
		return func() { c.login.Cut(false) }
	}, false, true},
	{"lose packets to a node", func(c *campaign) func() {
		node := c.node()
		node.Lose(10 + c.random.IntN(50))
		return func() { node.Lose(0) }
	}, false, true},
	{"delay what passes", func(c *campaign) func() {
		c.proxy.delay.Store(int64(time.Duration(50+c.random.IntN(700)) * time.Millisecond))
		return func() { c.proxy.delay.Store(0) }
	}, false, false},
	{"kill the server", func(c *campaign) func() {
		c.killServer()
		return nil
	}, false, false},
	{"freeze the server", func(c *campaign) func() {
		server := c.server.cmd.Process
		_ = server.Signal(syscall.SIGSTOP)
		return func() { _ = server.Signal(syscall.SIGCONT) }
	}, false, false},
	{"kill a pilot", func(c *campaign) func() {
		c.batch.toPilot(c.random, syscall.SIGKILL)
		return nil
	}, false, false},
	{"freeze a pilot", func(c *campaign) func() {
		return c.batch.toPilot(c.random, syscall.SIGSTOP)
	}, false, false},
	{"kill a node", func(c *campaign) func() {
		c.node().Kill()
		return nil
	}, false, false},
	{"freeze a node", func(c *campaign) func() {
		node := c.node()
		node.Freeze()
		return func() {
			node.Thaw()
			c.batch.reached(node)
		}
	}, false, false},
	{"restart the batch system", func(c *campaign) func() {
		c.batch.change(func() { c.batch.down = true })
		return func() { c.batch.change(func() { c.batch.down = false }) }
	}, true, false},
	{"refuse submissions", func(c *campaign) func() {
		c.batch.change(func() { c.batch.refuses = true })
		return func() { c.batch.change(func() { c.batch.refuses = false }) }
	}, true, false},
	{"lose the status", func(c *campaign) func() {
		c.batch.change(func() { c.batch.mute = true })
		return func() { c.batch.change(func() { c.batch.mute = false }) }
	}, true, false},
	{"leave jobs out of a list", func(c *campaign) func() {
		c.batch.change(func() { c.batch.hides = 1 })
		return nil
	}, false, false},
	{"forget a job", func(c *campaign) func() {
		c.batch.forget(c.random)
		return nil
	}, false, false},
	{"start jobs twice", func(c *campaign) func() {
		c.batch.change(func() { c.batch.doubles = 1 })
		return nil
	}, true, false},
	{"lose the answer to a submission", func(c *campaign) func() {
		c.batch.change(func() { c.batch.drops = 1 })
		return nil
	}, true, false},
	{"ignore cancellations", func(c *campaign) func() {
		c.batch.change(func() { c.batch.deaf = 2 })
		return nil
	}, false, false},
	{"answer late", func(c *campaign) func() {
		c.batch.change(func() { c.batch.hang = time.Duration(500+c.random.IntN(2500)) * time.Millisecond })
		return nil
	}, true, false},
}

// planned is a fault with the moment when it begins and how long it lasts.
type planned struct {
	kind
	early     bool          // it begins before the server does
	at, lasts time.Duration // after the start of the first pilot; it may be over at once
}

func (p planned) String() string {
	at := fmt.Sprintf("at %.1f s", p.at.Seconds())
	if p.early {
		at = "from the beginning"
	}
	return fmt.Sprintf("%s %s for %.1f s", p.name, at, p.lasts.Seconds())
}

// deck deals kinds so that each comes as often as every other.
type deck struct {
	random *rand.Rand
	left   []kind
}

func (d *deck) deal(n int) (dealt []kind) {
	for len(dealt) < n {
		if len(d.left) == 0 {
			d.left = slices.Clone(kinds)
			d.random.Shuffle(len(d.left), func(i, j int) { d.left[i], d.left[j] = d.left[j], d.left[i] })
		}
		dealt, d.left = append(dealt, d.left[0]), d.left[1:]
	}
	return dealt
}

// plan gives each kind its time. Most faults are short, and some outlast the lease.
func plan(random *rand.Rand, of []kind, within, longest time.Duration) (all []planned) {
	for _, k := range of {
		p := planned{
			kind: k, at: draw(random, within), lasts: time.Duration(float64(longest) * math.Pow(random.Float64(), 3)),
		}
		p.early = k.first && random.IntN(2) == 0
		all = append(all, p)
	}
	return all
}

func draw(random *rand.Rand, most time.Duration) time.Duration {
	return time.Duration(random.Int64N(int64(most)))
}
