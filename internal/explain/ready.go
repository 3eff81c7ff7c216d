package explain

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"fairway/internal/quantity"
	"fairway/internal/taskqueue"
)

func (t *text) ready(r *taskqueue.Readiness) {
	switch r.Hold {
	case taskqueue.RunHalted:
		t.say("ready; its run %s, so it is not started: %s", r.Run.Standing(), r.Reason)
	case taskqueue.AllEnds:
		t.say("ready; the run is being ended, and nothing is started any more")
	case taskqueue.PilotsReturn:
		t.say("ready; the pilots known before the restart have %v to report what they run", r.For)
	case taskqueue.KeptForSite:
		t.say("ready; kept for site %s, where it is expected to do better, for up to %v", r.Site, r.For)
	case taskqueue.KeptForPilot:
		t.say("ready; kept for pilot %s, which holds more of its input, for up to %v", r.Pilot, r.For)
	default:
		if r.Gang != nil {
			t.gang(r.Gang, r.Survey)
		} else {
			t.survey(r.Survey)
		}
		if p := r.Prefers; p != nil {
			which := ""
			if !p.Known {
				which = " (which is not known)"
			}
			t.say("prefers site %s%s for another %v", p.Site, which, p.For)
		}
		t.turn(&r.Turn)
	}
}

func (t *text) gang(g *taskqueue.GangRoom, s *taskqueue.Survey) {
	where := "at one site"
	if g.Apart {
		where = "on hosts of one site, one on each"
	}
	t.say("ready; its %d tasks begin together %s: there is room for %d now, and for %d if nothing else ran", g.Tasks,
		where, g.Free, g.Whole)
	switch {
	case g.Gathers && g.In > 0:
		t.say("room is kept for %d of them; all is expected to be free in %v", g.Keeps, g.In.Round(time.Second))
	case g.Gathers:
		t.say("room is kept for %d of them; when the rest is free is not known", g.Keeps)
	case g.Whole >= g.Tasks:
		t.say("no room is kept for it yet: other jobs are before it, or jobs of several tasks have room kept")
	}
	for _, q := range g.Exceeds {
		if q.Running > 0 {
			t.say("%s may have %d jobs running, each task counts as one, and this job has %d: it cannot run", q.Title,
				q.Running, g.Tasks)
		} else {
			t.say("%s may have %g cores, and the tasks of this job need %g: it cannot run", q.Title, cores(q.MilliCPUs),
				cores(q.Needs))
		}
	}
	if s == nil {
		return
	}
	if len(s.Sites) == 0 {
		t.say("no site could start pilots for it%s", forWantOf(s.Short))
	}
	t.pilots(s)
	t.sites(s)
}

func cores(milli int64) float64 { return float64(milli) / 1000 }

func (t *text) survey(s *taskqueue.Survey) {
	fitting := s.Busy + s.Drained.Len()
	switch {
	case s.Free > 0:
		t.say("ready; waiting for a pilot to ask")
		return
	case fitting > 0:
		t.say("ready; all pilots that it fits are busy: %d%s", fitting, forWantOf(s.Occupied))
	case len(s.Sites) > 0:
		t.say("ready; no pilot that is there can run it%s", forWantOf(s.Short))
	case len(s.Short) > 0:
		t.say("no pilot, nor one that a site could start, has what it needs: %s", shortage(s.Short))
	default:
		t.say("no pilot that it fits is registered, and no site is known that could start one")
	}
	if fitting == 0 && lacksPrograms(s.Short) {
		t.say("a program must be in PATH where a pilot starts: the keys `modules` and `setup` of a site can put it there")
	}
	t.pilots(s)
	var short []string
	for _, name := range slices.Sorted(maps.Keys(s.Failing)) {
		short = append(short, fmt.Sprintf("%s %d", name, s.Failing[name]))
	}
	if len(short) > 0 {
		t.say("pilots that have too little of what it needs, of %d: %s", s.Pilots, strings.Join(short, ", "))
	}
	t.sites(s)
}

func (t *text) pilots(s *taskqueue.Survey) {
	for _, name := range s.Drained.First {
		t.say("a pilot is kept free for job %s, which has waited long and needs more", name)
	}
	if s.Bound != "" {
		t.say("must run where its inputs are, which are kept in caches only: %s", s.Bound)
	}
	if s.Avoided > 0 {
		t.say("not again on host %s, while another pilot could run it", s.Avoid)
	}
	for _, why := range s.Doubted.First {
		t.say("%s", why)
	}
	for _, why := range s.Broken.First {
		t.say("a pilot cannot work: %s", why)
	}
	for _, id := range s.Silent.First {
		t.say("pilot %s is silent, and gets nothing until it is heard", id)
	}
	if s.Ending > 0 {
		t.say("pilots that are about to end and take no more jobs: %d", s.Ending)
	}
}

func (t *text) sites(s *taskqueue.Survey) {
	for _, at := range s.Sites {
		var lines []string
		if at.Starting > 0 {
			lines = append(lines, fmt.Sprintf("is starting pilots: %d", at.Starting))
		} else if at.IsFull {
			lines = append(lines, fmt.Sprintf("has as many pilots as it may have: %d", at.Most))
		}
		if at.IsPaused {
			lines = append(lines, fmt.Sprintf("starts none for another %v, since those before could not work: %d", at.Pause,
				at.Failures))
		}
		if len(lines) > 0 {
			t.say("site %s %s", at.Name, strings.Join(lines, ", and "))
		}
	}
}

func (t *text) turn(at *taskqueue.Turn) {
	for _, p := range at.Pools {
		if p.KeptFor != "" {
			t.say("%s is kept for job %s, which was passed over for too long", p.Name, p.KeptFor)
		} else {
			t.say("needs %d %s, and of %d that all jobs together may have %d are in use", p.Needs, p.Name, p.Most, p.Used)
		}
	}
	for i := range at.Shares {
		t.quota(&at.Shares[i])
	}
	if at.Place > 0 {
		t.rank(at)
	}
	if at.Ahead > 0 {
		t.say("jobs of the same user that are ready and go before it: %d", at.Ahead)
	}
}

func (t *text) quota(s *taskqueue.ShareStanding) {
	if s.Held != "" {
		t.say("no further job is started: %s", s.Held)
	}
	q := &s.Limits
	if q.Running > 0 && s.Running >= q.Running {
		t.say("%s may have %d jobs running, and has %d", s.Title, q.Running, s.Running)
	}
	if q.MilliCPUs > 0 && s.CPUs >= q.MilliCPUs {
		t.say("%s may have %g cores, and has %g", s.Title, cores(q.MilliCPUs), cores(s.CPUs))
	}
	if q.Stored > 0 && s.Stored >= q.Stored {
		t.say("%s has stored %s, and may store %s: remove runs, and its jobs go on", s.Title, quantity.Bytes(s.Stored),
			quantity.Bytes(q.Stored))
	}
	for _, site := range slices.Sorted(maps.Keys(q.Sites)) {
		has, most := s.At[site], q.Sites[site]
		if most.Running > 0 && has.Running >= most.Running || most.MilliCPUs > 0 && has.MilliCPUs >= most.MilliCPUs {
			t.say("%s has all that it may have at site %s: jobs %d, cores %g", s.Title, site, has.Running,
				cores(has.MilliCPUs))
		}
	}
}

func (t *text) rank(at *taskqueue.Turn) {
	line := fmt.Sprintf("%s is number %d of %d with ready jobs", at.Shares[0].Title, at.Place, at.Users)
	before := at.Before.First
	if at.Before.More > 0 {
		before = append(slices.Clip(before), fmt.Sprintf("%d more", at.Before.More))
	}
	if len(before) > 0 {
		line += ", behind " + strings.Join(before, ", ")
	}
	t.say("%s", line)
	for i := range at.Shares {
		if s := &at.Shares[i]; s.Siblings > 0 {
			t.say("%s has a share of %.1f %% beside %d more, and %.1f %% of what all these have used: %v of slots", s.Title,
				100*s.Share, s.Siblings, 100*s.Used, s.Usage.Round(time.Second))
		}
	}
}

func forWantOf(s taskqueue.Shortage) string {
	if len(s) == 0 {
		return ""
	}
	return ", for want of " + shortage(s)
}

func lacksPrograms(s taskqueue.Shortage) bool {
	return slices.ContainsFunc(s, func(list []taskqueue.Unmet) bool {
		return slices.ContainsFunc(list, func(n taskqueue.Unmet) bool { return n.Unit == taskqueue.IsProgram })
	})
}

func shortage(s taskqueue.Shortage) string {
	var ways []string
	for _, list := range s {
		var needs []string
		for i := range list {
			needs = append(needs, unmet(&list[i]))
		}
		ways = append(ways, strings.Join(needs, ", "))
	}
	return strings.Join(ways, "; or ")
}

func unmet(n *taskqueue.Unmet) string {
	if n.Unit == taskqueue.IsProgram {
		return "the program " + n.Name
	}
	return fmt.Sprintf("%s (%s needed, %s there)", n.Name, amount(n.Unit, n.Needs), amount(n.Unit, n.Has))
}

func amount(u taskqueue.Unit, n int64) string {
	switch u {
	case taskqueue.InBytes:
		return quantity.Bytes(n)
	case taskqueue.InTime:
		return time.Duration(n).Round(time.Second).String()
	default:
		return strconv.FormatFloat(float64(n)/1000, 'f', -1, 64)
	}
}
