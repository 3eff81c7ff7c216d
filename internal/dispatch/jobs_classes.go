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
	countable []countable
	tools     []string
	groups    []*group // one for each priority that occurred
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

func (js *jobs) classOf(j *Job) *class {
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
	for _, name := range slices.Sorted(maps.Keys(counts)) {
		cl.countable = append(cl.countable, countable{name, counts[name]})
	}
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
}

type policyKey struct {
	attempts  int
	backoff   time.Duration
	factor    float64
	exitCodes string
	wait      time.Duration

	checkpoint string
}

func (js *jobs) policyOf(j *Job) *policy {
	k := policyKey{j.Retry.Attempts, j.Retry.Backoff, j.Retry.MemoryFactor, "", j.WaitForData, j.Checkpoint}
	if len(j.Retry.ExitCodes) > 0 {
		k.exitCodes = fmt.Sprint(j.Retry.ExitCodes)
	}
	p := js.policies[k]
	if p == nil {
		p = &policy{retry: j.Retry, wait: j.WaitForData, checkpoint: j.Checkpoint}
		js.policies[k] = p
	}
	return p
}
