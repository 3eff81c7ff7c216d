package sim

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"time"

	"fairway/internal/explain"
	"fairway/internal/sim/experiment"
	"fairway/internal/taskqueue"
)

// run is one simulated execution of a workflow. One goroutine owns it, and it
// lives for one repetition.
type run struct {
	engine

	// What is run, and where: set by newRun and not changed after it, except that a
	// workflow file adds jobs to work as data appears.
	exp      *experiment.Experiment
	seed     uint64
	work     *jobGraph
	elements map[string]*element
	sites    []*site
	byName   map[string]*site
	lan      *link                   // between the nodes of a site
	wan      *link                   // between sites
	recorded map[string]RecordedSite // by site; of a replay

	// Random streams, each for one kind of thing, so that no kind moves the draws
	// of another.
	network *rand.Rand
	faults  *rand.Rand
	harm    *rand.Rand // of damage
	outage  *rand.Rand // of lines, hosts, pilots and the server

	// Who submits the jobs and who answers the pilots: made once, when the run begins.
	server  *server // nil for direct submission
	creator *creator
	rivals  rivals
	hold    time.Duration // the longest time that a pilot waits for an answer, or between two questions

	// What went wrong so far: faced only grows; damaged holds what readers find.
	ready   map[taskqueue.AttemptID]bool // tasks of jobs that run together, which were there
	faced   Happened
	damaged damaged
	outages outages

	// What the run observes of itself, and how it ended: after finished, or the
	// first breach in broken, no further event happens.
	measured
	finished bool
	broken   error // the first thing that must not happen
}

// Stuck is the error of a run in which nothing moves any more, or that took
// longer than its limit of virtual time.
type Stuck struct {
	At   time.Duration
	Left int    // jobs that have not ended
	Why  string // what the TaskQueue says of the first of them
}

func (e *Stuck) Error() string {
	return fmt.Sprintf("stuck after %s of virtual time with %d jobs left%s", e.At, e.Left, e.Why)
}

// newRun prepares repetition rep of an experiment.
func newRun(exp *experiment.Experiment, work *jobGraph, rep int) *run {
	r := &run{
		exp: exp, seed: mix(exp.Seed) + uint64(rep), work: work, elements: map[string]*element{}, byName: map[string]*site{},
		ready: map[taskqueue.AttemptID]bool{},
	}
	r.network, r.faults = Stream(r.seed, "network"), Stream(r.seed, "faults")
	r.harm, r.damaged = Stream(r.seed, "harm"), damaged{map[string]string{}, map[string]bool{}}
	r.outage, r.outages = Stream(r.seed, "outages"), outages{
		cut: map[string]time.Duration{}, frozen: map[string]time.Duration{},
	}
	r.lan = newLink(&r.engine, 0, exp.Network.Bandwidth)
	r.wan = newLink(&r.engine, 0, exp.Network.Remote)
	for _, s := range exp.Storage {
		element := newElement(&r.engine, s)
		element.mayFill(&r.engine, Stream(r.seed, "fills", named(s.Name)))
		r.elements[s.Name] = element
	}
	for _, spec := range exp.Sites {
		s := &site{SiteSpec: spec, run: r, element: r.elements[spec.Storage], spaces: map[string]*space{}}
		s.batch = newBatch(s)
		r.sites = append(r.sites, s)
		r.byName[s.Name] = s
	}
	if work.rules != nil {
		work.rules.attach(r)
	}
	r.measured.begin(len(work.jobs))
	return r
}

// execute lets the run happen.
func (r *run) execute() error {
	for _, f := range r.work.files {
		pfn := r.pfnOf(f.lfn)
		r.elementOf(pfn).hold(pfn, f.size)
	}
	if r.exp.Submission == experiment.Direct {
		(&direct{run: r, tries: map[int]int{}, rand: Stream(r.seed, "broker"), places: map[string]string{}}).begin()
	} else {
		r.server = newServer(r)
		r.server.begin()
	}
	for !r.finished && r.broken == nil {
		if r.now > r.exp.Limit || !r.step() {
			return &Stuck{r.now, len(r.work.jobs) - r.done, r.why()}
		}
	}
	r.checkEnded()
	return r.broken
}

// pfnOf is where a file that exists before the run stands.
func (r *run) pfnOf(lfn string) string {
	if home, ok := r.work.homes[lfn]; ok {
		return home
	}
	return r.exp.Storage[0].Name + ":" + lfn
}

// elementOf finds the storage element of a physical name.
func (r *run) elementOf(pfn string) *element {
	name, _, _ := strings.Cut(pfn, ":")
	return r.elements[name]
}

// carry brings a message of a pilot to the server, or back, over a network that may
// lose or repeat it.
func (r *run) carry(p *pilot, deliver func()) {
	if r.outages.cut[p.slot.host] > r.now { // its line carries nothing
		return
	}
	f := &r.exp.Faults
	calm := f.LostUntil > 0 && r.now >= f.LostUntil
	if !calm && f.Lost > 0 && r.faults.Float64() < float64(f.Lost) {
		r.faced[MessageLost]++
		return
	}
	r.after(r.exp.Network.Latency.Draw(r.network), deliver)
	if !calm && f.Repeated > 0 && r.faults.Float64() < float64(f.Repeated) {
		r.faced[MessageRepeated]++
		r.after(2*r.exp.Network.Latency.Draw(r.network)+r.exp.Network.Latency.Draw(r.network), deliver)
	}
}

// why says what the first job that has not ended waits for.
func (r *run) why() string {
	if r.server == nil || r.server.core == nil {
		return ""
	}
	for j := range r.server.core.Jobs(theRun, 0) {
		if j.State < taskqueue.Done {
			e, _ := r.server.core.Explain(j.ID)
			return fmt.Sprintf("; %s is %v: %s", j.Name, j.State, strings.Join(explain.Lines(&e), "; "))
		}
	}
	return ""
}
