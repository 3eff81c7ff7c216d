package dispatch

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"fairway/internal/dispatch/estimate"
	"fairway/internal/dispatch/pools"
	"fairway/internal/dispatch/room"
	"fairway/internal/quantity"
	"fairway/internal/taskqueue"
)

// maxClasses bounds the requirement classes of a Core. Jobs that need something else yet are
// refused then, until runs are retired. What happens to jobs may make more.
const maxClasses = 1 << 18

// spareClasses is how many classes stay that nothing uses any more, with what is known of them: jobs
// of later runs mostly need the same as those before.
const spareClasses = 10_000

// class is a requirement class: jobs that need the same. Whether a pilot fits
// is asked of classes, never of jobs. It lives as long as it is used, and while there are
// few.
type class struct {
	index   int // no other class has it
	key     classKey
	users   int // jobs that need it now, jobs that were submitted with it, and attempts
	needs   taskqueue.Resources
	takes   room.Needs        // what a job of it takes of its pilot
	pools   pools.Needs[*job] // of what is none of pilots
	tools   []string
	groups  []*group         // one for each user and priority that occurred
	lately  *group           // the last of these that was asked for
	onPilot map[string]int64 // countable, as pilots are told
	// shareOnPilot is that of a GPU, as pilots are told.
	shareOnPilot int64
	// staging tells how long attempts that succeeded read and stored files, in seconds. It is
	// not durable.
	staging estimate.Mean
}

type classKey struct {
	milliCPUs, memory, disk int64
	time                    time.Duration
	countable, tools        string
	gpuShare                int64
	site                    string
	wait                    time.Duration       // for the preferred site
	host                    string              // must run there: its inputs are only in caches of this host
	pilot                   taskqueue.PilotID   // or only in this pilot's
	avoid                   string              // not on this host while another can
	run                     taskqueue.RunID     // whose limits it draws on; 0: of none
	tasks                   int                 // members of a gang; 0: it is none
	apart                   bool                // each of them on a host of its own
	placement               taskqueue.Placement // by which they go to pilots' caches
}

// inAll is how long an attempt of the class needs a pilot: for its command, as jobs say, and to
// read and store files, as it took before.
func (cl *class) inAll() time.Duration { return cl.key.time + estimate.Seconds(cl.staging.Value()) }

// bound reports whether jobs of the class run only where their inputs are.
func (k *classKey) bound() bool { return k.host != "" || k.pilot != "" }

func (js *jobs) classOf(r *run, j *taskqueue.Job) *class {
	return js.intern(js.keyOf(r, j), j.Needs.Countable)
}

func (js *jobs) keyOf(r *run, j *taskqueue.Job) classKey {
	k := classKey{
		milliCPUs: j.Needs.MilliCPUs, memory: j.Needs.Memory, disk: j.Needs.Disk, time: j.Needs.Time,
		countable: joinCountable(j.Needs.Countable), gpuShare: j.Needs.GPUShare, site: j.Site,
		placement: j.Placement,
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
	if j.Needs.GPUShare > 0 && r.pools[quantity.GPU] != nil {
		k.run = r.ID
	}
	return k
}

// checkClasses refuses jobs of more classes than there may be.
func (js *jobs) checkClasses(r *run, jobs []taskqueue.Job) error {
	if len(js.classes)+len(jobs) <= js.mostClasses {
		return nil
	}
	fresh := make(map[classKey]bool)
	for i := range jobs {
		if k := js.keyOf(r, &jobs[i]); js.classes[k] == nil {
			fresh[k] = true
		}
	}
	if len(js.classes)+len(fresh) > js.mostClasses {
		return refuse("dispatch: jobs need %d different things, and %d are possible (maxClasses): round what they need",
			len(js.classes)+len(fresh), js.mostClasses)
	}
	return nil
}

// needsNow has the job need what another class says.
func (j *job) needsNow(cl *class) {
	cl.users++
	if j.class != nil {
		j.class.users--
	}
	j.class = cl
}

// asSubmitted has the job begin with a class.
func (j *job) asSubmitted(cl *class) {
	cl.users++
	if j.original != nil {
		j.original.users--
	}
	j.original = cl
}

// dropUnused takes out the classes that nothing uses any more, if there are more than kept, and
// returns their indexes.
func (js *jobs) dropUnused(kept int) (indexes []int) {
	if len(js.classes) <= kept {
		return nil
	}
	for i, cl := range js.byIndex {
		if cl == nil || cl.users > 0 {
			continue
		}
		delete(js.classes, cl.key)
		if at := (cacheID{cl.key.host, cl.key.pilot}); at != (cacheID{}) {
			rest := slices.DeleteFunc(js.bound[at], func(x *class) bool { return x == cl })
			if js.bound[at] = rest; len(rest) == 0 {
				delete(js.bound, at)
			}
		}
		for _, g := range cl.groups {
			delete(g.share.Own.groups, groupKey{cl, g.priority})
		}
		js.byIndex[i] = nil
		js.spare = append(js.spare, i)
		indexes = append(indexes, i)
	}
	return indexes
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
	if len(js.spare) == 0 {
		js.spare = append(js.spare, len(js.byIndex))
		js.byIndex = append(js.byIndex, nil)
	}
	cl := &class{
		index: pop(&js.spare), key: k,
		needs: taskqueue.Resources{
			MilliCPUs: k.milliCPUs, Memory: k.memory, Disk: k.disk, Time: k.time, Countable: maps.Clone(counts),
			GPUShare: k.gpuShare,
		},
		takes: room.Needs{MilliCPUs: k.milliCPUs, Memory: k.memory, Disk: k.disk},
	}
	js.drawOnPools(cl)
	if k.tools != "" {
		cl.tools = strings.Split(k.tools, "\n")
		js.newTools = append(js.newTools, cl.tools...)
	}
	js.byIndex[cl.index] = cl
	js.classes[k] = cl
	js.avoids = js.avoids || k.avoid != ""
	if at := (cacheID{k.host, k.pilot}); at != (cacheID{}) {
		js.bound[at] = append(js.bound[at], cl)
	}
	return cl
}

// drawOnPools finds what of the countable needs of a class is of pilots, and what of pools. A share of a
// GPU counts in a pool as one.
func (js *jobs) drawOnPools(cl *class) {
	cl.takes.Countable, cl.pools = nil, nil
	cl.onPilot, cl.shareOnPilot = cl.needs.Countable, cl.needs.GPUShare
	for _, need := range room.CountableOf(&cl.needs) {
		drawsOn := js.poolsOf(cl.key.run, need.Name)
		for _, p := range drawsOn {
			cl.pools = append(cl.pools, pools.Need[*job]{Pool: p, N: (need.N + quantity.WholeGPU - 1) / quantity.WholeGPU})
		}
		if len(drawsOn) == 0 {
			cl.takes.Countable = append(cl.takes.Countable, need)
		}
	}
	if len(cl.pools) > 0 {
		cl.onPilot, cl.shareOnPilot = make(map[string]int64, len(cl.takes.Countable)), 0
		for _, x := range cl.takes.Countable {
			if x.N < quantity.WholeGPU {
				cl.shareOnPilot += x.N
			} else {
				cl.onPilot[x.Name] = x.N / quantity.WholeGPU
			}
		}
	}
}

// needsCountable reports whether a job needs countable things.
func needsCountable(r *taskqueue.Resources) bool { return len(r.Countable) > 0 || r.GPUShare > 0 }

// needsOfPilot is what the class needs of the pilot that runs a job of it.
func (cl *class) needsOfPilot() taskqueue.Resources {
	needs := cl.needs
	needs.Countable, needs.GPUShare = cl.onPilot, cl.shareOnPilot
	return needs
}

// drawOnPoolsAgain is for when limits of runs or of the TaskQueue have changed.
func (js *jobs) drawOnPoolsAgain() {
	for _, cl := range js.byIndex {
		if cl != nil && needsCountable(&cl.needs) {
			js.drawOnPools(cl)
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
	retry      taskqueue.Retry
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

func (js *jobs) policyOf(j *taskqueue.Job) *policy {
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
