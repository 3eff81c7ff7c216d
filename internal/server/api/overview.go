package api

import (
	"context"
	"maps"
	"slices"
	"time"

	"fairway/internal/dispatch"
	"fairway/internal/rights"
	"fairway/internal/server/listen"
	"fairway/internal/server/state"
	"fairway/internal/taskqueue"
	"fairway/internal/wire"
)

// What follows is for pages. Each method asks the loop for moments only, however many jobs there
// are.

// Page names the run that a page is about; 0: the one of the folder.
type Page uint32

// GetRun makes it a request.
func (p Page) GetRun() uint32 { return uint32(p) }

// IsLasting reports whether the server takes workflows.
func (s *Service) IsLasting() bool { return s.server != nil }

// Number is that of a run, also where 0 names it.
func (s *Service) Number(ctx context.Context, run Page) (Page, error) {
	a, err := s.of(ctx, run)
	if err != nil {
		return 0, err
	}
	return Page(a.run.ID()), nil
}

// Answers returns nil if the server answers questions. Anybody may ask.
func (s *Service) Answers(ctx context.Context) error {
	if s.server != nil {
		return rpcError(s.server.QueryFleet(ctx, func(*dispatch.Core) {}))
	}
	a, err := s.find(ctx, 0)
	if err != nil {
		return err
	}
	return a.lookAt(ctx, func(*state.Cores) error { return nil })
}

// Sites tells how the pilots of all sites stand, and why some are not there yet.
func (s *Service) Sites(ctx context.Context) (sites []taskqueue.SiteView, waiting []string, err error) {
	if err := listen.Permit(ctx, rights.Watch); err != nil {
		return nil, nil, err
	}
	fleet := Fleet(s.server)
	if s.server == nil {
		a, err := s.find(ctx, 0)
		if err != nil {
			return nil, nil, err
		}
		if a.control == nil {
			return nil, nil, errNotRunning
		}
		fleet = fleetOf{a}
	}
	err = fleet.QueryFleet(ctx, func(core *dispatch.Core) { sites = core.Sites() })
	return sites, fleet.PilotsWaiting(), rpcError(err)
}

// Overview is how a run stands, as its first page tells.
type Overview struct {
	Report   *wire.ProgressReport
	Run      taskqueue.RunID
	Live     bool // a server runs it
	Finished bool // all jobs are known
	// AtLeast is how long the rest of the steps takes of which jobs have ended; 0: nothing is known.
	AtLeast time.Duration
	Now     time.Time
	Began   time.Time // of the first attempt; zero: none has ended
	Open    []string  // inputs that may get more files, or jobs
	// Parameters of the workflow, with their values; nil where only those are recorded that were set.
	Parameters map[string]string
	Sites      []taskqueue.SiteView
	Waiting    []string // why pilots are not there yet, one sentence each
}

// Overview tells how a run stands.
func (s *Service) Overview(ctx context.Context, run Page) (*Overview, error) {
	a, err := s.of(ctx, run)
	if err != nil {
		return nil, err
	}
	o := &Overview{Live: a.control != nil}
	if o.Report, err = Progress(ctx, a.run); err != nil {
		return nil, rpcError(err)
	}
	err = a.run.QueryAll(ctx, func(c *state.Cores) {
		o.Run, o.Finished, o.Now, o.Began = c.Run, c.Tally.Finished, state.Now(), c.Tally.Timeline.Begin
		o.AtLeast = c.Tally.LeftAtLeast(c)
		if o.Sites = c.Dispatch.Sites(); c.Flow == nil {
			return
		}
		o.Parameters = map[string]string{}
		for _, p := range c.Flow.Workflow().Parameters {
			o.Parameters[p.Name] = p.Value
		}
		for _, in := range c.Flow.Inputs() {
			if in.IsOpen() && !c.Flow.Closed(in.Name) {
				o.Open = append(o.Open, in.Name)
			}
		}
	})
	if a.control != nil {
		o.Waiting = a.control.PilotsWaiting()
	}
	return o, rpcError(err)
}

// Changes tells when something of a run may look different: a channel that is closed then. It is
// nil where nothing will.
func (s *Service) Changes(ctx context.Context, run Page) (<-chan struct{}, error) {
	a, err := s.of(ctx, run)
	if err != nil {
		return nil, err
	}
	return a.run.Changes(), nil
}

// StepGraph are the steps of a run, and for each the places of those whose files it takes.
type StepGraph struct {
	Steps  []*wire.StepProgress
	Before [][]int
}

// Bounds of what is looked at for a StepGraph where the workflow does not tell it.
const (
	graphJobs   = 4096 // the first of the run
	graphSample = 8    // of a step
)

// Graph tells which step takes files of which. Where no workflow says so, the first jobs do.
func (s *Service) Graph(ctx context.Context, run Page) (*StepGraph, error) {
	a, err := s.of(ctx, run)
	if err != nil {
		return nil, err
	}
	g := &StepGraph{}
	err = a.run.QueryAll(ctx, func(c *state.Cores) {
		g.Steps = c.Tally.Steps(c)
		at := map[string]int{}
		for i, step := range g.Steps {
			at[step.GetStep()] = i
		}
		before := make([]map[int]bool, len(g.Steps))
		for i := range before {
			before[i] = map[int]bool{}
		}
		if c.Flow != nil {
			names := c.Flow.Workflow().StepNames()
			for i, others := range c.Flow.Workflow().Before() {
				for _, other := range others {
					before[at[names[i]]][at[names[other]]] = true
				}
			}
		}
		sampleBefore(c, at, before)
		for i := range before {
			delete(before[i], i)
			g.Before = append(g.Before, slices.Sorted(maps.Keys(before[i])))
		}
	})
	return g, rpcError(err)
}

// sampleBefore takes in what some jobs of steps read of which nothing is known.
func sampleBefore(c *state.Cores, at map[string]int, before []map[int]bool) {
	unknown := make([]bool, len(before))
	for i := range before {
		unknown[i] = len(before[i]) == 0
	}
	looked := map[string]int{}
	n := 0
	for job := range c.Dispatch.Jobs(c.Run, 0) {
		if n++; n > graphJobs {
			break
		}
		i, ok := at[job.Step]
		if !ok || !unknown[i] || looked[job.Step] == graphSample {
			continue
		}
		looked[job.Step]++
		detail, _ := c.Dispatch.Detail(job.ID)
		for _, file := range detail.Reads {
			if writer, ok := c.Dispatch.Job(file.Writer); ok {
				before[i][at[writer.Step]] = true
			}
		}
	}
}

// Slots tell what the pilots of a run did.
type Slots struct {
	Begin    time.Time
	Width    time.Duration // of a bin
	All      state.Lane
	Lanes    []SlotLane // those that were asked for
	Pilots   int        // how many lanes there are
	Attempts int64      // that have ended
	Present  []float32  // pilots that were there in each bin, of those with a lane
	Now      time.Time
}

// SlotLane is what one pilot did.
type SlotLane struct {
	Pilot, Host string
	Here        bool // it is registered
	state.Lane
	Spans []SlotSpan // empty unless all of its attempts are known
}

// SlotSpan is an attempt of a lane.
type SlotSpan struct {
	state.Span
	Name string
}

// Slots tells what pilots did, those from one on in the order of their hosts and names.
func (s *Service) Slots(ctx context.Context, run Page, from, most int) (*Slots, error) {
	a, err := s.of(ctx, run)
	if err != nil {
		return nil, err
	}
	var slots *Slots
	err = a.run.QueryAll(ctx, func(c *state.Cores) { slots = slotsOf(c, from, most) })
	return slots, rpcError(err)
}

func runningNow(c *state.Cores) map[taskqueue.PilotID][]SlotSpan {
	now := map[taskqueue.PilotID][]SlotSpan{}
	for id, since := range c.Tally.Started {
		job, ok := c.Dispatch.Job(id)
		if !ok || len(job.Attempts) == 0 {
			continue
		}
		a := job.Attempts[len(job.Attempts)-1]
		span := state.Span{Job: id, Attempt: a.Attempt, Pilot: a.Pilot, StageIn: since, Start: since}
		now[a.Pilot] = append(now[a.Pilot], SlotSpan{span, job.Name})
	}
	return now
}

func slotsOf(c *state.Cores, from, most int) *Slots {
	t := &c.Tally.Timeline
	live, at := runningNow(c), state.Now()
	first := at
	for _, spans := range live {
		for _, span := range spans {
			if span.Start.Before(first) {
				first = span.Start
			}
		}
	}
	if len(live) > 0 {
		t.Reach(first, at)
	}
	slots := &Slots{
		Begin: t.Begin, Width: t.Width, All: t.All.Clone(), Pilots: len(t.Lanes), Attempts: c.Tally.Sums.Attempts(),
		Now: at,
	}
	for _, spans := range live {
		for _, span := range spans {
			t.AddRunning(&slots.All, span.Start, at)
		}
	}
	here := map[taskqueue.PilotID]bool{}
	for _, p := range c.Dispatch.Pilots() {
		here[p.Pilot] = true
	}
	slots.Present = presence(t, here, slots.Now)
	names := slices.SortedFunc(maps.Keys(t.Lanes), func(a, b taskqueue.PilotID) int {
		if la, lb := t.Lanes[a], t.Lanes[b]; !la.From.Equal(lb.From) {
			return la.From.Compare(lb.From)
		}
		return slices.Compare([]string{string(a)}, []string{string(b)})
	})
	from = min(max(from, 0), len(names))
	names = names[from:min(from+most, len(names))]
	spans := map[taskqueue.PilotID][]SlotSpan{}
	if whole := slots.Attempts <= int64(len(t.Spans)); whole {
		for _, span := range t.Spans {
			if slices.Contains(names, span.Pilot) {
				job, _ := c.Dispatch.Job(span.Job)
				spans[span.Pilot] = append(spans[span.Pilot], SlotSpan{span, job.Name})
			}
		}
	}
	for _, name := range names {
		lane := t.Lanes[name].Clone()
		for _, span := range live[name] {
			t.AddRunning(&lane, span.Start, at)
		}
		slots.Lanes = append(slots.Lanes, SlotLane{
			Pilot: string(name), Host: c.Tally.Hosts[name], Here: here[name], Lane: lane,
			Spans: append(spans[name], live[name]...),
		})
	}
	return slots
}

// End is when a lane ends: when its pilot left, as far as is known.
func (l *SlotLane) End(now time.Time) time.Time { return endOf(&l.Lane, l.Here, now) }

func endOf(l *state.Lane, here bool, now time.Time) time.Time {
	switch {
	case !l.Until.IsZero():
		return l.Until
	case here:
		return now
	}
	return l.Last
}

// presence is how many pilots were there in each bin up to now, or to when the last left.
func presence(t *state.Timeline, here map[taskqueue.PilotID]bool, now time.Time) []float32 {
	if t.Begin.IsZero() {
		return nil
	}
	change := make([]float32, state.TimelineBins+1)
	bins := 0
	for name, l := range t.Lanes {
		if l.From.IsZero() {
			continue
		}
		from := min(max(int(l.From.Sub(t.Begin)/t.Width), 0), state.TimelineBins)
		to := min(max(int(endOf(l, here[name], now).Sub(t.Begin)/t.Width)+1, from), state.TimelineBins)
		change[from]++
		change[to]--
		bins = max(bins, to)
	}
	for i := 1; i < bins; i++ {
		change[i] += change[i-1]
	}
	return change[:bins]
}

// Flow are bytes that went from one place to another.
type Flow struct {
	From, To string
	Bytes    int64
}

// Places of a Flow that are no sites.
const (
	PlaceStorage = "storage elements"
	PlaceOwn     = "its own caches"
	PlaceOthers  = "caches of other hosts"
)

// Flows tells how many bytes the attempts of a run that have ended have read and written, by site;
// by host where the site of one is not known any more.
func (s *Service) Flows(ctx context.Context, run Page) (flows []Flow, err error) {
	a, err := s.of(ctx, run)
	if err != nil {
		return nil, err
	}
	err = a.run.QueryAll(ctx, func(c *state.Cores) {
		sites := map[string]string{}
		for _, p := range c.Dispatch.Pilots() {
			sites[p.Info.Host] = p.Info.Site
		}
		of := func(host string) string {
			if site := sites[host]; site != "" {
				return "site " + site
			}
			return "host " + host
		}
		sums := map[[2]string]int64{}
		for host, reads := range c.Tally.ReadsAt {
			sums[[2]string{PlaceStorage, of(host)}] += reads.Staged
			sums[[2]string{PlaceOwn, of(host)}] += reads.Cached - reads.BytesRemote
			sums[[2]string{PlaceOthers, of(host)}] += reads.BytesRemote
		}
		for host, n := range c.Tally.WrittenAt {
			sums[[2]string{of(host), PlaceStorage}] += n
		}
		for way, n := range sums {
			if n > 0 {
				flows = append(flows, Flow{way[0], way[1], n})
			}
		}
	})
	slices.SortFunc(flows, func(a, b Flow) int {
		return slices.Compare([]string{a.To, a.From}, []string{b.To, b.From})
	})
	return flows, rpcError(err)
}
