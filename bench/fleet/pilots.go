package main

import (
	"bufio"
	"fmt"
	"os"
	"sync/atomic"

	"fairway/bench/measure/lightpilot"
)

// crowd are the pilots of one process.
type crowd struct {
	dialling chan struct{} // lightpilot.Pilot.Dialling
	working  chan struct{} // closed when jobs may end

	epoch  atomic.Int64 // of servers
	served atomic.Int64 // pilots that a server of this epoch has answered their whole state
	ended  atomic.Int64 // jobs whose report was acknowledged
	last   atomic.Pointer[error]
}

// bePilots is a process of pilots. Lines tell it what to do: "pilot FILE" and "busy
// FILE" start one, the second with the tool that jobs need, "work" lets jobs end, "again" is said before the server is
// killed, and "count" asks for the pilots served since then and the jobs ended.
func bePilots() error {
	c := &crowd{dialling: make(chan struct{}, 64), working: make(chan struct{})}
	in := bufio.NewScanner(os.Stdin)
	for in.Scan() {
		var file string
		switch line := in.Text(); {
		case line == "count":
			fmt.Println(c.served.Load(), c.ended.Load())
			if err := c.last.Load(); err != nil {
				return *err
			}
		case line == "work":
			close(c.working)
		case line == "again":
			c.epoch.Add(1)
			c.served.Store(0)
		case scanned(line, "busy %s", &file):
			go c.pilot(file, []string{tool})
		case scanned(line, "pilot %s", &file):
			go c.pilot(file, nil)
		default:
			return fmt.Errorf("unknown order %q", line)
		}
	}
	return in.Err()
}

func scanned(line, format string, into *string) bool {
	n, _ := fmt.Sscanf(line, format, into)
	return n == 1
}

// pilot serves a launch until it is to leave. Once it has a job it waits until jobs may end.
func (c *crowd) pilot(file string, tools []string) {
	served, asked := int64(-1), int64(0) // epochs
	p := &lightpilot.Pilot{
		Has: pilotHas, Tools: tools, Dialling: c.dialling,
		Asks: func() { asked = c.epoch.Load() },
		Answered: func(full bool) {
			if !full || served == asked {
				return
			}
			served = asked
			if c.epoch.Load() == asked {
				c.served.Add(1)
			}
		},
		Ready: func() { <-c.working },
		Ended: func(jobs int) { c.ended.Add(int64(jobs)) },
	}
	if err := p.Run(file); err != nil {
		c.last.Store(&err)
	}
}
