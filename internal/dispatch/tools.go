package dispatch

import (
	"hash/fnv"
	"slices"
	"strings"

	"fairway/internal/taskqueue"
)

// toolSearch is the programs that pilots look for where they are: those that jobs have named since the
// Core was loaded, and those that it was asked to look for. A pilot that has not looked for one that
// it is not known to have is told in an answer, and describes itself again.
type toolSearch struct {
	names  []string        // in the order of their coming
	known  map[string]bool // of names
	round  uint64          // grows when all are to be looked for once more
	number uint64          // tells names and round from others; 0: there are none
}

// MaxLooks bounds the programs that pilots look for. Jobs that name more wait for pilots that tell of
// them by themselves.
const MaxLooks = 1000

// lookFor has pilots look for programs, and for all once more where one of them was not found at a
// site: somebody may have installed it.
func (c *Core) lookFor(names []string) {
	l := &c.tools
	again := false
	for _, name := range names {
		for _, s := range c.fleet.monitor.sites {
			if s.without[name] {
				delete(s.without, name)
				again = true
			}
		}
		if !l.known[name] && len(l.names) < MaxLooks {
			if l.known == nil {
				l.known = make(map[string]bool)
			}
			l.known[name] = true
			l.names = append(l.names, name)
			again = true
		}
	}
	if !again {
		return
	}
	l.round++
	h := fnv.New64a()
	_, _ = h.Write([]byte(strings.Join(l.names, "\n")))
	l.number = max(1, h.Sum64()+l.round)
	c.fleet.monitor.changed = true
	for _, p := range c.fleet.inOrder() {
		if p.mustLook(l) {
			c.fleet.mustAnswer(p)
		}
	}
}

// lookForNew has pilots look for programs that jobs have named for the first time.
func (c *Core) lookForNew() {
	if names := c.jobs.newTools; len(names) > 0 {
		c.jobs.newTools = nil
		c.lookFor(names)
	}
}

// mustLook reports whether there is a program that the pilot has not looked for.
func (p *pilot) mustLook(l *toolSearch) bool {
	return p.talk.lookedFor != l.number && slices.ContainsFunc(l.names,
		func(name string) bool { return !p.shape.tools[name] })
}

// lookedFor takes note of what a pilot has found, and so what its site has.
func (c *Core) lookedFor(p *pilot, number uint64) {
	s := c.fleet.monitor.site(p.info.Site)
	if p.talk.lookedFor == number || number != c.tools.number {
		return
	}
	p.talk.lookedFor = number
	if s == nil || !s.FindsTools {
		return
	}
	c.fleet.monitor.changed = true
	for _, name := range c.tools.names {
		switch {
		case p.shape.tools[name]:
			s.tools[name] = true
			delete(s.without, name)
		case !s.tools[name]:
			s.without[name] = true
		}
	}
}

// lacks says what pilots of the site are missing for a class.
func (s *site) lacks(cl *class) []taskqueue.Unmet {
	has := s.Pilot
	if has.MilliCPUs == 0 {
		has.MilliCPUs = cl.key.milliCPUs
	}
	list := lacks(cl, has, s.tools)
	if !s.FindsTools {
		return list
	}
	return slices.DeleteFunc(list, func(n taskqueue.Unmet) bool {
		return n.Unit == taskqueue.IsProgram && !s.without[n.Name]
	})
}

// Looking reports whether a pilot that is heard is still to look for programs.
func (c *Core) Looking() bool {
	return slices.ContainsFunc(c.fleet.inOrder(), func(p *pilot) bool {
		return p.lease.silent == 0 && p.willing() && p.mustLook(&c.tools)
	})
}

// Missing are those of some programs that no site has, as far as its pilots have looked.
func (c *Core) Missing(names []string) (missing []string) {
	sites := c.fleet.monitor.sites
	for _, name := range names {
		lacking := func(s *site) bool { return s.without[name] || !s.FindsTools && !s.tools[name] }
		if len(sites) > 0 && !slices.ContainsFunc(sites, func(s *site) bool { return !lacking(s) }) {
			missing = append(missing, name)
		}
	}
	return missing
}
