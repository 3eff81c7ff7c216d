package dispatch

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"
)

// class is a requirement class: jobs that need the same. Whether a pilot fits
// is asked of classes, never of jobs.
type class struct {
	index     int
	key       classKey
	needs     Resources
	countable []countable // of pilots
	pools     []poolNeed  // of what is none of pilots
	tools     []string
	groups    []*group         // one for each user and priority that occurred
	lately    *group           // the last of these that was asked for
	onPilot   map[string]int64 // countable, as pilots are told
	// staging tells how long attempts that succeeded read and stored files, in seconds. It is
	// not durable.
	staging average
}

type classKey struct {
	milliCPUs, memory, disk int64
	time                    time.Duration
	countable, tools        string
	site                    string
	wait                    time.Duration // for the preferred site
	host                    string        // must run there: its inputs are only in caches of this host
	pilot                   PilotID       // or only in this pilot's
	avoid                   string        // not on this host while another can
	run                     RunID         // whose limits it draws on; 0: of none
	tasks                   int           // members of a gang; 0: it is none
	apart                   bool          // each of them on a host of its own
}

// inAll is how long an attempt of the class needs a pilot: for its command, as jobs say, and to
// read and store files, as it took before.
func (cl *class) inAll() time.Duration { return cl.key.time + seconds(cl.staging.mean()) }

// bound reports whether jobs of the class run only where their inputs are.
func (k *classKey) bound() bool { return k.host != "" || k.pilot != "" }

type countable struct {
	name string
	n    int64
}

func (js *jobs) classOf(r *run, j *Job) *class {
	k := classKey{
		milliCPUs: j.Needs.MilliCPUs, memory: j.Needs.Memory, disk: j.Needs.Disk, time: j.Needs.Time,
		countable: joinCountable(j.Needs.Countable), site: j.Site,
	}
	if len(j.Tools) > 0 {
		k.tools = strings.Join(slices.Compact(slices.Sorted(slices.Values(j.Tools))), "\n")
	}
	if k.site != "" {
		k.wait = js.waitOf(j.WaitForData)
	}
	if j.Tasks > 1 {
		k.tasks, k.apart = j.Tasks, j.Apart
	}
	for name := range j.Needs.Countable {
		if r.pools[name] != nil {
			k.run = r.ID
		}
	}
	return js.intern(k, j.Needs.Countable)
}

func (js *jobs) waitOf(d time.Duration) time.Duration {
	if d == 0 {
		return js.config.WaitForData
	}
	return max(d, 0)
}

func (js *jobs) intern(k classKey, counts map[string]int64) *class {
	if cl := js.classes[k]; cl != nil {
		return cl
	}
	cl := &class{
		index: len(js.byIndex), key: k,
		needs: Resources{MilliCPUs: k.milliCPUs, Memory: k.memory, Disk: k.disk, Time: k.time, Countable: maps.Clone(counts)},
	}
	js.draw(cl)
	if k.tools != "" {
		cl.tools = strings.Split(k.tools, "\n")
		js.newTools = append(js.newTools, cl.tools...)
	}
	js.byIndex = append(js.byIndex, cl)
	js.classes[k] = cl
	if at := (cacheID{k.host, k.pilot}); at != (cacheID{}) {
		js.bound[at] = append(js.bound[at], cl)
	}
	return cl
}

// draw finds what of the countable needs of a class is of pilots, and what of pools.
func (js *jobs) draw(cl *class) {
	cl.countable, cl.pools, cl.onPilot = nil, nil, cl.needs.Countable
	for _, name := range slices.Sorted(maps.Keys(cl.needs.Countable)) {
		n := cl.needs.Countable[name]
		pools := js.poolsOf(cl.key.run, name)
		for _, p := range pools {
			cl.pools = append(cl.pools, poolNeed{p, n})
		}
		if len(pools) == 0 {
			cl.countable = append(cl.countable, countable{name, n})
		}
	}
	if len(cl.pools) > 0 {
		cl.onPilot = make(map[string]int64, len(cl.countable))
		for _, x := range cl.countable {
			cl.onPilot[x.name] = x.n
		}
	}
}

// onOne is what the class needs of the pilot that runs a job of it.
func (cl *class) onOne() Resources {
	needs := cl.needs
	needs.Countable = cl.onPilot
	return needs
}

// drawAgain is for when limits of runs or of the TaskQueue have changed.
func (js *jobs) drawAgain() {
	for _, cl := range js.byIndex {
		if len(cl.needs.Countable) > 0 {
			js.draw(cl)
		}
	}
}

// variant returns the class of a job after what happened to it.
func (js *jobs) variant(base *class, change func(*classKey)) *class {
	k := base.key
	change(&k)
	if k == base.key {
		return base
	}
	return js.intern(k, base.needs.Countable)
}

// joinCountable returns the same text for the same counts.
func joinCountable(counts map[string]int64) string {
	if len(counts) == 0 {
		return ""
	}
	return fmt.Sprintf("%#v", counts)
}

// policy is the part of jobs that mostly is the same for all of a step.
type policy struct {
	retry      Retry
	wait       time.Duration
	checkpoint string
	once       bool
}

type policyKey struct {
	attempts  int
	backoff   time.Duration
	factor    float64
	exitCodes string
	wait      time.Duration

	checkpoint string
	once       bool
}

func (js *jobs) policyOf(j *Job) *policy {
	k := policyKey{j.Retry.Attempts, j.Retry.Backoff, j.Retry.MemoryFactor, "", j.WaitForData, j.Checkpoint, j.Once}
	if len(j.Retry.ExitCodes) > 0 {
		k.exitCodes = fmt.Sprint(j.Retry.ExitCodes)
	}
	p := js.policies[k]
	if p == nil {
		p = &policy{retry: j.Retry, wait: j.WaitForData, checkpoint: j.Checkpoint, once: j.Once}
		js.policies[k] = p
	}
	return p
}
