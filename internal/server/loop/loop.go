package loop

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"fairway/internal/dispatch"
	"fairway/internal/fault"
	"fairway/internal/flow"
	"fairway/internal/recording"
	"fairway/internal/server/convert"
	"fairway/internal/server/state"
	"fairway/internal/store"
	"fairway/internal/taskqueue"
	"fairway/lib/sched"
)

const (
	// StoreTries is how often in a row the store may fail before the run ends.
	StoreTries = 8
	// StoreBackoff is the pause after the first failure of the store. It doubles
	// with each further one.
	StoreBackoff = 250 * time.Millisecond
	// roundSize bounds the requests that are stepped before the loop looks
	// whether the disk is done.
	roundSize = 128
	// fullGathering is with how many records the loop takes no more requests until the transaction before
	// them is durable: so none takes long, and what waits for one does not grow.
	fullGathering = 5000
)

// Pilots are those that the run has started (package launch). No method blocks.
type Pilots interface {
	// Start has pilots submitted whose launches are durable. None is false from now
	// on, until they have ended.
	Start([]Launch)
	// Withdraw has launches ended.
	Withdraw(launches []string)
	// Here says that dispatch has a pilot of a launch from now on, or has it no more. The
	// launch may have ended before, or may be one that nobody asked for.
	Here(launch Launch, here bool)
	// None reports whether no pilot is there and none will come.
	None() bool
	// Awaited are the launches because of which None is false, by name.
	Awaited() []string
	// Launches are those that are durable and have not ended.
	Launches() []string
}

// Launch is one pilot of a site.
type Launch struct{ Site, Name string }

// Stores are where outputs are stored (package publish). Remove does not block; what was
// done comes back as taskqueue.Removed.
type Stores interface {
	Remove(pfns []string)
}

// Config is what a loop works with. All of it must be given, but Tape.
type Config struct {
	Inbox *Inbox
	Store store.Store
	// Runs are under way when the loop begins.
	Runs []*Run
	// Lasting has the loop go on when no run is under way, until it is told to end. Over
	// is called in the loop, and must not block, when a run has come to its end.
	Lasting bool
	Over    func(*Run)
	// Load makes the cores of the runs from the store, in their order. Revive is what they
	// are told right after, one request after the other: what the store doesn't keep. Both
	// run in the loop.
	Load   func(context.Context, []state.RunOf) (*state.Loaded, error)
	Revive func(*dispatch.Core) ([]*Request, error)
	// Look returns what Revive has to find out first, which may take long: it is run
	// beside the loop, and must not touch the cores. Its context ends when a person ends
	// the loop. nil: nothing.
	Look func(*dispatch.Core) func(context.Context)

	Pilots Pilots
	Stores Stores

	// Crowded is called in the loop when an attempt had no room on a disk, with what it said of it. It must
	// not block. nil: nobody minds.
	Crowded func(said string)

	LeaveTime   time.Duration // that pilots which are to leave may take
	CommitDelay time.Duration // the least time between the starts of two large transactions

	Tape  *recording.Writer // nil: none
	Sched *sched.Scheduler
	Log   *slog.Logger
}

// Loop owns the cores of runs. But for Commit and Changes, everything here belongs
// to the goroutine of Run, and lives as long as that; after Run anybody may read.
type Loop struct {
	Config

	// The cores, loaded from the store and again after it failed; those of a run are in
	// runs, which has them all by number. Their events wait in events, oldest first, until
	// flow has seen them: between two requests there are none.
	Dispatch *dispatch.Core
	nodes    *state.Nodes
	runs     map[taskqueue.RunID]*Run
	events   []taskqueue.Event

	// Runs of which it is to be found out whether they are over; all of them, if all is set.
	touched []*Run
	all     bool

	// Runs whose flow has more to do, the one first that waits for the longest.
	unfinished []*Run

	// Leaving decides when the pilots leave, and when the loop is over. It outlives the cores.
	Leaving *Leaving

	// What stepping has led to. gathering takes in what comes, and is never nil.
	// flying is at the store, nil while none is; nothing of a transaction is let out
	// before flying has landed, and they land in order. failures counts those in a
	// row that did not; unsure are the runs that were begun in these, which may be durable
	// all the same.
	gathering *transaction
	flying    *transaction
	failures  int
	unsure    []*Run

	// How records get to the goroutine of Commit: one transaction at a time. busy is
	// true from then until free says that the next may begin.
	broken    chan error // why the loop cannot go on
	commits   chan []taskqueue.Record
	committed chan error
	free      chan struct{}
	busy      bool

	waker *waker
	*watchers
}

// transaction gathers what stepping leads to until its records are durable: one
// commit, and what may be let out after it.
type transaction struct {
	records []taskqueue.Record
	answers []answer
	start   []Launch
	stop    []string
	publish []taskqueue.StoredFile
	remove  []string
	done    []func(error)

	// Runs that it has the loop begin and forget. They are so when it is stepped; where it is not
	// durable, that is taken back.
	begun, dropped []*Run
}

func (t *transaction) empty() bool {
	return len(t.records)+len(t.answers)+len(t.start)+len(t.stop)+len(t.publish)+len(t.remove)+len(t.done) == 0
}

// lose tells everybody who waits that nothing came of it.
func (t *transaction) lose(err error) {
	for _, done := range t.done {
		done(err)
	}
}

// New makes a loop. Whoever does calls Run and Commit, each in a goroutine.
func New(config Config) *Loop {
	l := &Loop{
		Config:    config,
		runs:      map[taskqueue.RunID]*Run{},
		all:       true,
		Leaving:   newLeaving(),
		gathering: new(transaction),
		broken:    make(chan error, 1),
		commits:   make(chan []taskqueue.Record, 1),
		committed: make(chan error, 1),
		free:      make(chan struct{}, 1),
		waker:     &waker{fired: make(chan struct{}, 1), sched: config.Sched, cancel: func() {}},
		watchers:  &watchers{changed: make(chan struct{})},
	}
	for _, run := range config.Runs {
		l.runs[run.Run] = run
	}
	return l
}

// Run works until the runs have ended, where the loop is not Lasting, or ctx ends. It returns an error if the
// state could not be kept.
func (l *Loop) Run(ctx context.Context) error {
	defer l.close()
	if err := l.reload(ctx); err != nil {
		return err
	}
	for l.Leaving.phase != over {
		if err := l.turn(ctx); err != nil {
			return err
		}
	}
	return nil
}

// turn takes what there is, and starts a commit if the disk is free.
func (l *Loop) turn(ctx context.Context) error {
	news := true
	requests := l.Inbox.requests
	if l.busy && l.full() {
		requests = nil
	}
	select {
	case q := <-l.Inbox.questions:
		l.take(q)
		l.answerQuestions()
		news = false
	case r := <-requests:
		news = l.round(r)
	case <-l.mayGoOn():
		l.takeWaiting()
		l.goOn()
	case err := <-l.broken:
		l.Inbox.why.Store(&err)
		return err
	case err := <-l.committed:
		if err := l.landed(ctx, err); err != nil {
			return err
		}
	case <-l.free:
		l.busy, news = false, false
	case <-l.waker.fired:
		l.waker.reset()
		l.take(&Request{Dispatch: []taskqueue.Input{taskqueue.Tick{}}})
		for _, run := range l.runs {
			if !run.listed && !run.wake.IsZero() && state.Until(run.wake) <= 0 {
				l.take(&Request{Run: run.Run, Flow: []flow.Input{flow.Tick{}}})
			}
		}
	case <-ctx.Done():
		return ctx.Err()
	}
	l.flush()
	l.advance()
	l.Leaving.advance(l)
	l.flush()
	if news {
		l.Notify()
	}
	l.Tape.Flush()
	return nil
}

// Break ends the loop, also in the middle of a run, since its state can be kept no more: Run returns the error.
// Any goroutine may call it.
func (l *Loop) Break(err error) {
	select {
	case l.broken <- err:
	default: // it ends already
	}
}

// touch notes that a run may be over.
func (l *Loop) touch(run *Run) {
	if !run.touched {
		run.touched = true
		l.touched = append(l.touched, run)
	}
}

// advance finds out which runs are over, of those that may be: a turn costs the same however many
// there are. One that is ending waits for what the next turns bring.
func (l *Loop) advance() {
	if l.all {
		l.all = false
		for _, run := range l.runs {
			l.touch(run)
		}
	}
	list := l.touched
	l.touched = nil
	for _, run := range list {
		if run.touched = false; l.runs[run.Run] != run {
			continue
		}
		if run.Ending.advance(l, run); run.Ending.isEnding() {
			l.touch(run)
		}
	}
	if l.touched == nil {
		clear(list)
		l.touched = list[:0]
	}
}

// round takes a request and those that wait behind it. It reports whether one of them
// was more than a question.
func (l *Loop) round(r *Request) (news bool) {
	l.take(r)
	return l.takeWaiting() || !r.asks()
}

// takeWaiting is round for those that wait already.
func (l *Loop) takeWaiting() (news bool) {
	for range roundSize {
		if l.answerQuestions(); l.full() {
			break
		}
		select {
		case r := <-l.Inbox.requests:
			l.take(r)
			news = news || !r.asks()
		default:
			return news
		}
	}
	return news
}

// full reports whether no more is to be gathered.
func (l *Loop) full() bool { return len(l.gathering.records) >= fullGathering }

// answerQuestions answers those that wait now.
func (l *Loop) answerQuestions() {
	for range len(l.Inbox.questions) {
		l.take(<-l.Inbox.questions)
	}
}

// take steps one request. What it leads to is gathered.
func (l *Loop) take(r *Request) {
	run, cores, err := l.about(r)
	if err == nil && r.Prepare != nil {
		err = r.Prepare(cores, r)
	}
	if err != nil {
		r.finish(err)
		return
	}
	switch {
	case run != nil && !r.asks():
		l.touch(run)
	case run == nil && !r.ofPilot:
		l.all = true
	}
	l.gathering.records = append(l.gathering.records, r.Records...)
	l.gathering.publish = append(l.gathering.publish, r.Publish...)
	l.owe(r.Publish)
	var refused error
	for _, in := range r.Dispatch {
		if jobs, ok := in.(taskqueue.Submit); ok {
			refused = errors.Join(refused, l.submit(jobs))
		} else {
			refused = errors.Join(refused, l.stepDispatch(in))
		}
		l.propagate()
	}
	for _, in := range r.Flow {
		refused = errors.Join(refused, l.stepFlow(run, in))
		l.propagate()
	}
	if r.Ask != nil {
		l.Dispatch.At(state.Now(), func() { r.Ask(cores) })
	}
	if r.toEnding != nil {
		l.tell(run, r.toEnding)
	}
	switch {
	case r.add != nil && refused == nil:
		l.gathering.begun = append(l.gathering.begun, run)
	case r.drop && refused == nil:
		l.gathering.dropped = append(l.gathering.dropped, run)
		delete(l.runs, r.Run)
	case r.add != nil:
		delete(l.runs, r.Run)
	}
	if refused != nil {
		r.finish(refused)
		return
	}
	if r.Done != nil {
		l.gathering.done = append(l.gathering.done, r.Done)
	}
}

// about finds the run that a request is about, and the cores that it may look at. A request
// that is about none sees those that all runs share. One that adds a run makes its cores.
func (l *Loop) about(r *Request) (*Run, *state.Cores, error) {
	switch run := l.runs[r.Run]; {
	case r.add != nil && run == nil:
		cores, err := state.Begin(r.add.of(), l.Dispatch, l.nodes)
		if err != nil {
			return nil, nil, err
		}
		r.add.setCores(&cores)
		l.runs[r.Run] = r.add
		return r.add, &r.add.Cores, nil
	case run != nil:
		return run, &run.Cores, nil
	case r.Run != 0:
		return nil, nil, ErrEnded
	}
	return nil, &state.Cores{Dispatch: l.Dispatch, Tally: &state.Tally{Nodes: l.nodes}}, nil
}

// tell tells the Ending of a run; nil is all of them.
func (l *Loop) tell(run *Run, what func(*Ending)) {
	if run != nil {
		what(run.Ending)
		return
	}
	l.all = true
	for _, each := range l.runs {
		what(each.Ending)
	}
}

func (l *Loop) fail(err error) { l.tell(nil, func(e *Ending) { e.fail(err) }) }

func (l *Loop) owe(publish []taskqueue.StoredFile) {
	for _, p := range publish {
		if run := l.runs[p.File.Run]; run != nil {
			run.Ending.owedFiles[p.File] = p
		}
	}
}

// stepDispatch steps dispatch once. An error means that the input was refused. The
// events wait for propagate.
func (l *Loop) stepDispatch(in taskqueue.Input) error {
	at := state.Now()
	effects, err := l.Dispatch.Step(at, in)
	l.Tape.Dispatch(at, in, &effects, err)
	if err != nil {
		return err
	}
	switch in := in.(type) {
	case taskqueue.Published:
		if run := l.runs[in.File.Run]; run != nil {
			run.Ending.published(in.File)
			run.Tally.Published(in.File.LFN)
		}
	case taskqueue.Removed:
		delete(l.Leaving.owedRemovals, in.PFN)
	}
	l.gather(&effects)
	return nil
}

// gather takes over the effects of one step of dispatch, which the next step
// overwrites.
func (l *Loop) gather(e *taskqueue.Effects) {
	t := l.gathering
	t.records = append(t.records, e.Persist...)
	for i := range e.Replies {
		r := &e.Replies[i]
		t.answers = append(t.answers, answer{pilot: r.Pilot, seq: r.Seq, message: convert.AnswerToWire(r.Answer)})
	}
	t.stop = append(t.stop, e.Stop...)
	t.publish = append(t.publish, e.Publish...)
	t.remove = append(t.remove, e.Remove...)
	l.owe(e.Publish)
	for _, pfn := range e.Remove {
		l.Leaving.owedRemovals[pfn] = true
	}
	l.events = append(l.events, e.Events...)
	l.waker.want(byDispatch, e.WakeAt)
	for _, start := range slices.Clone(e.Start) {
		l.nameLaunches(start)
	}
}

// nameLaunches names the pilots that dispatch asks for. Their records are in the
// same transaction, so the names are durable before any is submitted: whatever a
// batch system has under such a name is known after a crash.
func (l *Loop) nameLaunches(start taskqueue.Start) {
	for range start.Count {
		named := Launch{start.Site, fmt.Sprintf("%s-%s.%d", start.Site, epoch(), launched.Add(1))} // unique for ever
		if err := l.stepDispatch(taskqueue.PilotSubmitted{Site: start.Site, Launch: named.Name}); err != nil {
			l.fail(fmt.Errorf("starting a pilot at %s: %w", start.Site, err))
			return
		}
		l.gathering.start = append(l.gathering.start, named)
	}
}

var (
	// epoch tells the launches of this process from those of any other.
	epoch = sync.OnceValue(func() string { return strconv.FormatInt(time.Now().UnixMicro(), 36) })
	// launched counts the launches of this process.
	launched atomic.Int64
)

// SiteOf is the site of a launch by its name, empty where it is no name of one.
func SiteOf(launch string) string {
	return launch[:max(0, strings.LastIndexByte(launch, '-'))]
}

// propagate follows the events through flow and dispatch, oldest first, until both
// rest. That one refuses what the other says is an end of the run: it would come
// again after any restart.
func (l *Loop) propagate() {
	for len(l.events) > 0 {
		event := l.events[0]
		l.events = l.events[1:]
		run := l.runs[max(event.Run, event.Job.Run())]
		var err error
		if run != nil {
			l.touch(run)
			err = l.observe(run, &event)
		} else { // of a pilot, or of results of earlier runs
			l.tell(nil, func(e *Ending) { e.observe(&event) })
		}
		if err = errors.Join(err, l.observePilot(&event)); err != nil {
			l.tell(run, func(e *Ending) { e.fail(err) })
		}
	}
	l.events = l.events[:0]
}

// observe records what is to be known of an event of a run, and tells flow of commits.
func (l *Loop) observe(run *Run, event *taskqueue.Event) error {
	run.Ending.observe(event)
	run.Tally.Observe(event)
	if event.Kind == taskqueue.JobStarted {
		if since := l.Dispatch.ReadySince(event.Job); !since.IsZero() {
			run.Tally.Sums.Waiting += event.At.Sub(since)
		}
	}
	if r := event.Result; r != nil {
		if r.Outcome == taskqueue.OutOfDisk && l.Crowded != nil {
			l.Crowded(r.Message)
		}
		l.gathering.records = append(l.gathering.records, run.Tally.Attempts.Record(event))
	}
	if event.Kind == taskqueue.JobCommitted {
		return l.stepFlow(run, flow.Happened{Event: *event})
	}
	return nil
}

// observePilot records what is to be known of an event of a pilot, whatever it runs.
func (l *Loop) observePilot(event *taskqueue.Event) error {
	switch event.Kind {
	case taskqueue.PilotRegistered:
		l.Pilots.Here(Launch{event.Site, event.Launch}, true)
		l.gathering.records = append(l.gathering.records, l.nodes.Hosts.Record(event.Pilot, event.Host))
		for _, run := range l.runs {
			run.Tally.Observe(event)
		}
		if event.Reason != "" {
			l.Log.Warn("a pilot cannot work; another is tried later", "pilot", event.Pilot, "reason", event.Reason)
		}
	case taskqueue.PilotSilent:
		l.Log.Warn("a pilot is silent; what waits there is given to others", "pilot", event.Pilot, "host", event.Host,
			"site", event.Site)
	case taskqueue.PilotHeard:
		l.Log.Warn("a pilot that was silent is there again", "pilot", event.Pilot, "host", event.Host, "site", event.Site)
	case taskqueue.NodeDoubted:
		l.Log.Warn("jobs fail on a node", "node", event.Host, "reason", event.Reason)
	case taskqueue.ServerAway:
		l.Log.Warn("a server of files is away; jobs wait for it for some minutes", "server", event.Name, "node", event.Host,
			"reason", event.Reason)
	case taskqueue.SourceCut:
		l.Log.Warn("a pilot got nothing from the cache of another, and its node is not offered that one any more; the log "+
			"of the pilot says why", "pilot", event.Pilot, "node", event.Host, "source", event.Name)
	case taskqueue.NodeTrusted:
		l.Log.Warn("a node gets jobs again", "node", event.Host, "reason", event.Reason)
	case taskqueue.PilotGone:
		l.Pilots.Here(Launch{event.Site, event.Launch}, false)
		l.nodes.Gone(event.Pilot)
		for _, run := range l.runs {
			run.Tally.Observe(event)
		}
		records, err := l.nodes.CacheRecords(event.Pilot)
		l.gathering.records = append(l.gathering.records, records...)
		return err
	}
	return nil
}

// stepFlow steps the flow of a run, and gives dispatch the files and jobs that it makes. An
// error means that one of them was refused.
func (l *Loop) stepFlow(run *Run, in flow.Input) error {
	at := state.Now()
	effects, err := run.Flow.Step(at, in)
	l.Tape.Flow(at, in, &effects, err)
	if err != nil {
		return err
	}
	for _, r := range effects.Persist {
		r.Run = run.Run
		l.gathering.records = append(l.gathering.records, r)
	}
	l.list(run)
	if run.wake != effects.WakeAt {
		run.wake = effects.WakeAt
		l.waker.want(byFlow, l.firstWake())
	}
	run.Tally.ObserveFlow(&effects)
	for _, note := range effects.Notes {
		run.Ending.Note(note)
	}
	jobs, err := convert.JobsWithPayload(effects.Submit)
	if err != nil {
		return err
	}
	if len(effects.AddFiles) > 0 {
		err = l.stepDispatch(taskqueue.AddFiles{Run: run.Run, Files: effects.AddFiles})
	}
	if len(jobs) > 0 && err == nil {
		err = l.submit(taskqueue.Submit{Run: run.Run, Jobs: jobs})
	}
	if len(effects.ReadersKnown) > 0 && err == nil {
		err = l.stepDispatch(taskqueue.ReadersKnown{Run: run.Run, LFNs: effects.ReadersKnown})
	}
	if err != nil {
		return fmt.Errorf("the workflow asks for what cannot be done: %w", err)
	}
	return nil
}

// firstWake is when the flow of some run wants a Tick, zero if none does.
func (l *Loop) firstWake() (first time.Time) {
	for _, run := range l.runs {
		if !run.listed && !run.wake.IsZero() && (first.IsZero() || run.wake.Before(first)) {
			first = run.wake
		}
	}
	return first
}

// flush sends what was gathered to the disk, one transaction at a time. What
// needs no disk is let out at once if nothing before it is under way.
func (l *Loop) flush() {
	for l.flying == nil && !l.gathering.empty() {
		next := l.gathering
		if len(next.records) > 0 && l.busy {
			return
		}
		l.gathering = new(transaction)
		if len(next.records) > 0 {
			l.flying, l.busy = next, true
			l.commits <- next.records
			return
		}
		l.letOut(next)
	}
}

// Commit applies transactions, one after the other, until the loop closes. A
// transaction costs much more than a record, so under load they are spaced, and
// each takes in what comes meanwhile.
func (l *Loop) Commit(ctx context.Context) {
	for records := range l.commits {
		next := time.Now().Add(spacing(l.CommitDelay, len(records)))
		l.committed <- l.Store.Apply(ctx, records)
		if l.Sched.WaitUntil(ctx, next) != nil {
			continue // the run ends, and what is left is not held up
		}
		l.free <- struct{}{}
	}
}

const (
	// fullTransaction is how many records a transaction has that is followed by the
	// whole CommitDelay. After a smaller one the next begins sooner, in proportion,
	// so that jobs that wait for each other are not held up.
	fullTransaction = 16
	// largeTransaction is how many records are so many that the next transaction begins sooner again: its
	// cost is that of its records, and more of them would only wait.
	largeTransaction = 64
)

// spacing is the least time from the start of a transaction of so many records to that of the next.
func spacing(delay time.Duration, records int) time.Duration {
	if records > largeTransaction {
		return delay * largeTransaction / time.Duration(records)
	}
	return delay * time.Duration(min(records, fullTransaction)) / fullTransaction
}

// landed lets a transaction out that is durable, or starts anew if it isn't.
func (l *Loop) landed(ctx context.Context, err error) error {
	t := l.flying
	l.flying = nil
	if err == nil {
		l.failures = 0
		l.letOut(t)
		return nil
	}
	l.Log.Error("the store failed; loading the state again", "error", err)
	lost := []*transaction{t, l.gathering}
	for _, t := range lost {
		t.lose(ErrReloaded)
		for _, run := range t.dropped {
			l.runs[run.Run] = run
		}
		l.unsure = append(l.unsure, t.begun...)
	}
	return l.recover(ctx, err)
}

var beforeLetOut = fault.New("server.letout.before")

func (l *Loop) letOut(t *transaction) {
	_ = beforeLetOut.Hit()
	for _, a := range t.answers {
		l.Inbox.held.resolve(a)
	}
	for run, files := range byRun(t.publish) {
		if of := l.runs[run]; of != nil {
			of.Results.Publish(files)
		}
	}
	l.Stores.Remove(t.remove)
	l.Pilots.Start(t.start)
	l.Pilots.Withdraw(t.stop)
	for _, done := range t.done {
		done(nil)
	}
}

func byRun(files []taskqueue.StoredFile) map[taskqueue.RunID][]taskqueue.StoredFile {
	if len(files) == 0 {
		return nil
	}
	parts := map[taskqueue.RunID][]taskqueue.StoredFile{}
	for _, file := range files {
		parts[file.File.Run] = append(parts[file.File.Run], file)
	}
	return parts
}

// recover discards the cores and loads them again from what is durable.
func (l *Loop) recover(ctx context.Context, err error) error {
	l.Inbox.held.fail(ErrReloaded)
	for err != nil {
		l.failures++
		if l.failures > StoreTries {
			return fmt.Errorf("the store failed %d times in a row: %w", StoreTries, err)
		}
		if err := l.Sched.Sleep(ctx, StoreBackoff<<(l.failures-1)); err != nil {
			return err
		}
		err = l.reload(ctx)
	}
	return nil
}

func (l *Loop) reload(ctx context.Context) error {
	runs := l.inOrder()
	loaded, err := l.Load(ctx, convert.Each(runs, (*Run).of))
	if err != nil {
		return err
	}
	l.Dispatch, l.nodes = loaded.Dispatch, loaded.Nodes
	l.unfinished = nil
	for i, run := range runs {
		run.setCores(&loaded.Runs[i])
		l.list(run)
		run.Ending.forgetOwed()
	}
	for _, run := range l.unsure {
		if _, durable := l.Dispatch.Run(run.Run); !durable {
			delete(l.runs, run.Run)
		}
	}
	runs, l.unsure, l.all = l.inOrder(), nil, true
	l.Leaving.forgetOwed()
	l.Tape.Load(loaded.Records, &loaded.Effects)
	l.gathering = new(transaction)
	l.events = nil
	l.gather(&loaded.Effects)
	l.propagate()
	held := l.await(ctx)
	revival, err := l.Revive(l.Dispatch)
	if err != nil {
		l.fail(err)
	}
	for _, r := range revival {
		l.take(r)
	}
	for _, run := range runs {
		run.Ending.repeat(l, run)
	}
	l.Leaving.repeat(l)
	for _, r := range held {
		l.take(r)
	}
	l.flush()
	return nil
}

func (l *Loop) inOrder() []*Run {
	return slices.SortedFunc(maps.Values(l.runs), func(a, b *Run) int { return cmp.Compare(a.Run, b.Run) })
}

// await runs what Look asks for. The loop answers questions meanwhile; requests that
// change something wait until the cores are revived, and are returned. Those who make
// them wait for an answer, so there are few.
func (l *Loop) await(ctx context.Context) (held []*Request) {
	if l.Look == nil {
		return nil
	}
	look := l.Look(l.Dispatch)
	if look == nil {
		return nil
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	looked := make(chan struct{})
	go func() {
		defer close(looked)
		look(ctx)
	}()
	for {
		select {
		case q := <-l.Inbox.questions:
			l.take(q)
		case r := <-l.Inbox.requests:
			if r.changes() {
				held = append(held, r)
			} else {
				l.take(r)
			}
			if l.cutsShort() {
				cancel()
			}
			if !r.asks() {
				l.Notify()
			}
		case <-looked:
			return held
		}
	}
}

// cutsShort reports whether the loop is to end, whatever the cores say.
func (l *Loop) cutsShort() bool {
	if l.Lasting {
		return l.Leaving.asked() > running
	}
	for _, run := range l.runs {
		if !run.Ending.cutsShort() {
			return false
		}
	}
	return true
}

// close ends the loop for everybody who still waits for it.
func (l *Loop) close() {
	close(l.Inbox.ended)
	close(l.commits)
	l.waker.stop()
	for _, t := range []*transaction{l.flying, l.gathering} {
		if t != nil {
			t.lose(l.Inbox.over())
		}
	}
	for {
		select {
		case r := <-l.Inbox.requests:
			r.finish(l.Inbox.over())
		case q := <-l.Inbox.questions:
			q.finish(l.Inbox.over())
		default:
			l.Inbox.held.fail(l.Inbox.over())
			return
		}
	}
}
