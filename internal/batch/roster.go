package batch

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"time"

	"fairway/lib/sched"
)

// Defaults of a RosterConfig, and limits.
const (
	// DefaultEvery is RosterConfig.Every.
	DefaultEvery = 5 * time.Second
	// UnseenTime is how long the answers of a batch system may leave out a launch
	// that was submitted and that none has named yet. Then it counts as gone.
	UnseenTime = time.Minute
	// MissedAnswers is how many answers in a row must leave out a launch that an earlier
	// one named, until it counts as gone, or one whose submission failed, until it counts
	// as not taken.
	MissedAnswers = 2
	// MinPause and MaxPause bound the time between a submission that was refused
	// and the next. It doubles with each refusal in a row.
	MinPause = time.Second
	MaxPause = 2 * time.Minute
	// CallTime bounds one call of a batch system.
	CallTime = time.Minute
)

// RosterConfig describes the pilots of one site.
type RosterConfig struct {
	Site   string // for messages
	Job    string // what a launch is, for messages. Default: "pilot"
	System System
	// MaxPilots is how many pilots the batch system may have at most, as far as its
	// own answers tell. Further ones wait here.
	MaxPilots int
	// Every is the least time between two questions for the status: DefaultEvery.
	// After one that failed it is longer, up to 16 times.
	Every time.Duration
	// Ended is told once of each launch that was started or adopted, when the batch
	// system no longer has it. It may block, and must not call the Roster.
	Ended func(End)
	// Withdrawn is told of each launch when the batch system has taken the order to end
	// it, unless it is in doubt whether there is one. Its end may be known much later. It is
	// called again when the order is repeated, and may block. Default: nobody is told.
	Withdrawn func(launch string)
	// Elsewhere says of a launch that the System tells of, and that this Roster does not
	// know, that it is another Roster's: two sites of one batch system. Default: none is.
	Elsewhere func(launch string) bool
	// Never is told, once, that the batch system could never start a launch as it is asked
	// for: it refuses one in such words, or MissedAnswers answers in a row give such a reason.
	// It is not called once a launch of this Roster has run, nor for a Notifier, and must
	// not block. Nil: it may become possible, and is tried again.
	Never func(reason string)
	// Tell gets a sentence for a person when the batch system refuses something and
	// had not refused it in the same words before. It must not block. Default: it is logged.
	Tell func(string)
	// Sched waits. Default: sched.Default().
	Sched *sched.Scheduler
	// Log takes what the batch system says. Default: slog.Default().
	Log *slog.Logger
}

// Roster has the pilots of one site started and withdrawn.
//
// What it does holds under these faults:
//
//   - A submission that failed counts as one that was taken, until MissedAnswers lists of
//     the batch system tell. Then it is repeated under the same name, if it is not there.
//   - A launch that the batch system has and nobody wants is withdrawn; so is one of
//     which it has two jobs. One of another Roster is left alone.
//   - No launch is submitted while the batch system has MaxPilots jobs, those that nobody
//     wants included. A launch counts until an answer shows that it is gone, however
//     long there is none.
type Roster struct {
	cfg    RosterConfig
	status *sched.Status[string, map[string]Status] // nil for a Notifier
	ctx    context.Context
	cancel context.CancelFunc
	group  sync.WaitGroup
	work   chan struct{} // holds one if there is something to do
	asking chan struct{} // holds one if there is something to ask about

	mu        sync.Mutex // guards what follows
	launches  map[string]*launch
	waiting   []string       // to be submitted, in this order
	strangers map[string]int // jobs of launches that the batch system had and nobody wants, at the last answer
	surveyed  bool           // there was an answer, so strangers is known; a Notifier has none
	unwanted  map[string]bool
	started   int       // calls of Start
	doubtful  bool      // a Notifier is to be asked about launches whose ends it may have told before
	endings   []End     // to be told
	possible  bool      // a launch has run, or Never was told
	lastTold  string    // the last sentence
	refusal   error     // of the last submission, until one is taken
	retryAt   time.Time // when that is tried again
	silence   error     // why the last question for the status had no answer
}

// launch is one that was started or adopted and is not known to be gone.
type launch struct {
	number    int       // of Start, by which those that wait are ordered
	asked     bool      // it was submitted, or may have been
	flying    bool      // it is being submitted
	doubtful  bool      // its submission failed: the next answers tell whether it was taken
	at        time.Time // of that
	seen      bool      // an answer has named it
	missed    int       // answers in a row that left it out
	never     int       // answers in a row that said that it can never start
	withdrawn bool
	status    Status
}

// NewRoster returns a Roster without launches, and begins its work.
func NewRoster(cfg RosterConfig) *Roster {
	cfg.Job = cmp.Or(cfg.Job, "pilot")
	cfg.Every = cmp.Or(cfg.Every, DefaultEvery)
	cfg.Log = cmp.Or(cfg.Log, slog.Default())
	cfg.Sched = cmp.Or(cfg.Sched, sched.Default())
	if cfg.Elsewhere == nil {
		cfg.Elsewhere = func(string) bool { return false }
	}
	if cfg.Withdrawn == nil {
		cfg.Withdrawn = func(string) {}
	}
	if cfg.Tell == nil {
		cfg.Tell = func(text string) { cfg.Log.Warn(text) }
	}
	r := &Roster{
		cfg: cfg, work: make(chan struct{}, 1), asking: make(chan struct{}, 1),
		launches: map[string]*launch{}, strangers: map[string]int{}, unwanted: map[string]bool{},
	}
	r.ctx, r.cancel = context.WithCancel(context.Background())
	if notifier, ok := cfg.System.(Notifier); ok {
		r.surveyed = true
		r.group.Go(func() { r.listen(notifier) })
	} else {
		r.status = sched.NewStatus(cfg.Sched, sched.StatusConfig[string, map[string]Status]{
			Name: "batch system of " + cfg.Site, Every: cfg.Every, Timeout: CallTime, Query: r.query,
		})
		r.group.Go(r.watch)
	}
	r.group.Go(r.toil)
	return r
}

// Start has a pilot submitted under a name that is durable. It doesn't wait. Of a
// launch that is known already it does nothing.
func (r *Roster) Start(name string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.launches[name] == nil {
		r.started++
		r.launches[name] = &launch{number: r.started}
		r.waiting = append(r.waiting, name)
		nudge(r.asking)
		nudge(r.work)
	}
}

// Adopt takes over launches that an earlier process may have submitted. The batch
// system decides which of them there are. A Notifier does that at once, and those
// that it doesn't have are returned instead of told. What it has and nobody wants is
// withdrawn.
func (r *Roster) Adopt(ctx context.Context, names []string) (gone []End, err error) {
	at := time.Now()
	r.mu.Lock()
	for _, name := range names {
		if r.launches[name] == nil {
			r.launches[name] = &launch{asked: true, at: at}
		}
	}
	r.mu.Unlock()
	nudge(r.asking)
	if r.status != nil {
		return nil, nil
	}
	found, err := r.cfg.System.Status(ctx)
	if err != nil {
		return nil, err
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.compare(found, at)
	gone, r.endings = r.endings, nil
	return gone, nil
}

// Expect takes over a launch that a pilot says it is of, and that the Roster doesn't
// have: it had ended before the pilot was heard, or an earlier process wanted it no
// more. It doesn't wait. The batch system decides, as with Adopt, and the end is told.
func (r *Roster) Expect(name string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.launches[name] != nil {
		return
	}
	r.launches[name] = &launch{asked: true, at: time.Now(), seen: r.strangers[name] > 0}
	delete(r.strangers, name)
	delete(r.unwanted, name)
	r.doubtful = true
	nudge(r.asking)
	nudge(r.work)
}

// Withdraw has pilots ended. They are Ended when the batch system no longer has
// them.
func (r *Roster) Withdraw(names ...string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, name := range names {
		l := r.launches[name]
		switch {
		case l == nil:
		case l.asked:
			l.withdrawn, r.unwanted[name] = true, true
		default:
			r.end(name, "was withdrawn before it was submitted")
		}
	}
	nudge(r.work)
}

// Status is what the batch system last said of a launch, with false if it said
// nothing yet.
func (r *Roster) Status(name string) (Status, bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if l := r.launches[name]; l != nil && l.seen {
		return l.status, true
	}
	return Status{}, false
}

// Notified reports whether the batch system tells of ends by itself, so that they are
// known at once.
func (r *Roster) Notified() bool { return r.status == nil }

// Close withdraws the pilots that are left, and ends the work. Of their ends
// nothing is told any more. It waits for them only if the System is a Notifier.
func (r *Roster) Close() error { return r.stop(true) }

// Leave ends the work of the Roster, and leaves its launches to a later one. A Notifier
// ends them all the same.
func (r *Roster) Leave() error { return r.stop(false) }

func (r *Roster) stop(withdraw bool) error {
	r.mu.Lock()
	var left []string
	for name, l := range r.launches {
		if l.asked {
			left = append(left, name)
		}
	}
	r.waiting = nil
	r.mu.Unlock()
	r.cancel()
	if notifier, ok := r.cfg.System.(Notifier); ok {
		err := notifier.Close()
		r.group.Wait()
		return err
	}
	r.group.Wait()
	if len(left) == 0 || !withdraw {
		return nil
	}
	ctx, cancel := context.WithTimeout(context.Background(), CallTime)
	defer cancel()
	return r.cfg.System.Withdraw(ctx, left...)
}

func nudge(c chan struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}

// end forgets a launch, and has its end told. r.mu is held.
func (r *Roster) end(name, reason string) {
	delete(r.launches, name)
	delete(r.unwanted, name)
	r.waiting = slices.DeleteFunc(r.waiting, func(w string) bool { return w == name })
	r.endings = append(r.endings, End{name, reason})
	nudge(r.work)
}

func (r *Roster) listen(notifier Notifier) {
	for end := range notifier.Ended() {
		r.mu.Lock()
		delete(r.strangers, end.Launch)
		if r.launches[end.Launch] != nil {
			r.end(end.Launch, end.Reason)
		}
		nudge(r.work)
		r.mu.Unlock()
	}
}

func (r *Roster) watch() {
	for {
		if _, err := sched.Receive(r.ctx, r.cfg.Sched, r.asking); err != nil {
			return
		}
		for more := true; more; more = r.curious() {
			answer, err := r.status.Wait(r.ctx, r.cfg.Site, func(sched.Answer[map[string]Status]) bool { return true })
			if r.ctx.Err() != nil {
				return
			}
			if err != nil {
				r.warn(fmt.Sprintf("the batch system of %s does not say which jobs it has: %v", r.cfg.Site, err))
				continue
			}
			r.mu.Lock()
			r.compare(answer.Value, answer.At)
			r.mu.Unlock()
		}
	}
}

func (r *Roster) query(ctx context.Context, sites []string) (map[string]map[string]Status, error) {
	found, err := r.cfg.System.Status(ctx)
	r.mu.Lock()
	r.silence = err
	r.mu.Unlock()
	if err != nil {
		return nil, err
	}
	return map[string]map[string]Status{sites[0]: found}, nil
}

func (r *Roster) curious() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return !r.surveyed || r.submitted() > 0
}

// submitted counts what the batch system may have. r.mu is held.
func (r *Roster) submitted() int {
	n := 0
	for _, jobs := range r.strangers {
		n += jobs
	}
	for _, l := range r.launches {
		if l.asked {
			n += max(1, l.status.Jobs)
		}
	}
	return n
}

// compare takes an answer to a question that was asked at a time. r.mu is held.
func (r *Roster) compare(found map[string]Status, at time.Time) {
	for name, l := range r.launches {
		if !l.asked || l.flying || l.at.After(at) {
			continue // it may have been submitted after the question
		}
		status, ok := found[name]
		if l.doubtful && !ok {
			if l.missed++; l.missed >= MissedAnswers {
				r.notTaken(name, l)
			}
			continue
		}
		l.doubtful = false
		switch {
		case !ok:
			r.missing(name, l, at)
		case status.State == Gone:
			r.end(name, cmp.Or(status.Reason, "ended"))
		default:
			l.seen, l.missed, l.status = true, 0, status
			r.judge(l)
			if status.Jobs > 1 {
				r.cfg.Log.Warn("a batch system has started a pilot twice; both are withdrawn", "site", r.cfg.Site, "launch", name)
				l.withdrawn = true
			}
			if l.withdrawn && status.State != Ending {
				r.unwanted[name] = true // the last call may have been lost
			}
		}
	}
	clear(r.strangers)
	r.surveyed = true
	for name, status := range found {
		if r.launches[name] == nil && status.State != Gone && !r.cfg.Elsewhere(name) {
			r.strangers[name] = max(1, status.Jobs)
			if status.State != Ending {
				r.unwanted[name] = true
			}
		}
	}
	nudge(r.work)
}

// judge finds out whether pilots can start at all. r.mu is held.
func (r *Roster) judge(l *launch) {
	switch {
	case l.status.State == Running:
		r.possible = true
	case !l.status.Never:
		l.never = 0
	default:
		if l.never++; l.never >= MissedAnswers {
			r.tellNever(l.status.Reason)
		}
	}
}

// tellNever tells of it once, unless it has been seen to be possible. r.mu is held.
func (r *Roster) tellNever(reason string) (told bool) {
	if r.possible || r.cfg.Never == nil {
		return false
	}
	r.possible = true
	r.cfg.Never(reason)
	return true
}

// missing is for a launch that an answer leaves out. r.mu is held.
func (r *Roster) missing(name string, l *launch, at time.Time) {
	l.missed++
	_, ok := r.cfg.System.(Notifier)
	switch {
	case ok:
		r.end(name, "ended while nobody looked")
	case l.seen && l.missed >= MissedAnswers:
		r.end(name, "is not known to the batch system any more")
	case !l.seen && at.Sub(l.at) >= UnseenTime:
		r.end(name, "is not known to the batch system")
	}
}

// toil withdraws, submits and tells, one after the other.
func (r *Roster) toil() {
	var pause time.Duration
	for {
		r.attend()
		taken, refused := r.submitAll()
		if taken {
			pause = 0
		}
		if !refused {
			if _, err := sched.Receive(r.ctx, r.cfg.Sched, r.work); err != nil {
				return
			}
			continue
		}
		pause = min(max(2*pause, MinPause), MaxPause)
		r.mu.Lock()
		r.retryAt = time.Now().Add(pause)
		r.mu.Unlock()
		if r.rest(pause) != nil {
			return
		}
	}
}

// rest waits for a time. Ends are told, and pilots withdrawn, meanwhile.
func (r *Roster) rest(pause time.Duration) error {
	until := time.Now().Add(pause)
	for {
		ctx, cancel := context.WithDeadline(r.ctx, until)
		_, err := sched.Receive(ctx, r.cfg.Sched, r.work)
		cancel()
		if err != nil {
			return r.ctx.Err() // nil: the time is over
		}
		r.attend()
	}
}

func (r *Roster) attend() {
	r.verify()
	r.sendEnds()
	r.withdraw()
}

// verify asks a Notifier about launches that it tells nothing more of if they have
// ended. Other systems are asked about all launches anyway.
func (r *Roster) verify() {
	r.mu.Lock()
	ask := r.doubtful && r.Notified()
	r.doubtful = false
	r.mu.Unlock()
	if !ask {
		return
	}
	ctx, cancel := context.WithTimeout(r.ctx, CallTime)
	defer cancel()
	at := time.Now()
	found, err := r.cfg.System.Status(ctx)
	if err != nil {
		r.cfg.Log.Warn("a batch system does not answer", "site", r.cfg.Site, "error", err)
		return // the lease of the pilot decides
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.compare(found, at)
}

func (r *Roster) sendEnds() {
	r.mu.Lock()
	endings := r.endings
	r.endings = nil
	r.mu.Unlock()
	for _, end := range endings {
		if r.ctx.Err() == nil {
			r.cfg.Ended(end)
		}
	}
}

// withdraw ends what is not wanted. What could not be withdrawn comes again with
// the next answer of the batch system, or the next wish.
func (r *Roster) withdraw() {
	r.mu.Lock()
	var names []string
	for name := range r.unwanted {
		names = append(names, name)
	}
	clear(r.unwanted)
	r.mu.Unlock()
	if len(names) == 0 {
		return
	}
	slices.Sort(names)
	ctx, cancel := context.WithTimeout(r.ctx, CallTime)
	defer cancel()
	err := r.cfg.System.Withdraw(ctx, names...)
	if r.ctx.Err() != nil {
		return
	}
	if err != nil {
		r.warn(fmt.Sprintf("%ss could not be withdrawn from %s: %v", r.cfg.Job, r.cfg.Site, err))
		r.mu.Lock()
		defer r.mu.Unlock()
		for _, name := range names {
			r.unwanted[name] = true
		}
		return
	}
	for _, name := range names {
		r.mu.Lock()
		l := r.launches[name]
		taken := l != nil && l.withdrawn && !l.doubtful
		r.mu.Unlock()
		if taken {
			r.cfg.Withdrawn(name)
		}
	}
}

// submitAll submits what waits, as far as there may be so many, until the batch
// system refuses one. It reports whether it took any.
func (r *Roster) submitAll() (taken, refused bool) {
	for {
		names := r.next()
		if len(names) == 0 {
			return taken, false
		}
		err := r.submit(names)
		if r.ctx.Err() != nil {
			return taken, true
		}
		if told := r.submittedNow(names, err); told {
			return taken, true
		}
		if err != nil {
			r.warn(r.refusedText(err))
			return taken, true
		}
		taken = true
	}
}

// submit has the batch system take launches, which are several for a Batcher only.
func (r *Roster) submit(names []string) error {
	ctx, cancel := context.WithTimeout(r.ctx, CallTime)
	defer cancel()
	if several, ok := r.cfg.System.(Batcher); ok {
		return several.SubmitAll(ctx, names)
	}
	return r.cfg.System.Submit(ctx, names[0])
}

// refusedText is what a person is told of a submission that was refused.
func (r *Roster) refusedText(err error) string {
	return fmt.Sprintf("%s takes no %s, and is asked again: %v", r.cfg.Site, r.cfg.Job, err)
}

// next takes the launches that are to be submitted with one call now, if there are any. Until
// it is known that the batch system has not taken one, it counts as submitted. While that is
// not known of another they wait, so that launches keep their order.
func (r *Roster) next() (names []string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if !r.surveyed || r.inDoubt() {
		return nil
	}
	n := min(1, len(r.waiting))
	if several, ok := r.cfg.System.(Batcher); ok {
		n = min(several.AtOnce(), len(r.waiting))
	}
	if r.cfg.MaxPilots > 0 {
		n = min(n, max(0, r.cfg.MaxPilots-r.submitted()))
	}
	names, r.waiting = slices.Clone(r.waiting[:n]), r.waiting[n:]
	for _, name := range names {
		l := r.launches[name]
		l.asked, l.flying = true, true
	}
	return names
}

func (r *Roster) inDoubt() bool {
	for _, l := range r.launches {
		if l.doubtful {
			return true
		}
	}
	return false
}

// submittedNow notes how the submission of launches has ended. Those of one that failed may have
// been taken all the same, but by a Notifier. It reports whether Never was told.
func (r *Roster) submittedNow(names []string, err error) (told bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	taken := err == nil
	r.refusal = err
	if never, ok := errors.AsType[*NeverError](err); ok {
		if told = r.tellNever(oneLine(never)); told {
			r.lastTold = r.refusedText(err) // which is no news any more
		}
	}
	if taken {
		r.lastTold = ""
	}
	for _, name := range names {
		switch l := r.launches[name]; {
		case l == nil:
		case !taken && r.Notified():
			l.flying = false
			r.notTaken(name, l)
		default:
			l.flying, l.at, l.doubtful = false, time.Now(), !taken
			nudge(r.asking)
		}
	}
	return told
}

// notTaken puts a launch that the batch system does not have back in its place among those
// that wait. r.mu is held.
func (r *Roster) notTaken(name string, l *launch) {
	if l.withdrawn {
		r.end(name, "was withdrawn before it was submitted")
		return
	}
	l.asked, l.doubtful, l.missed = false, false, 0
	at := slices.IndexFunc(r.waiting, func(w string) bool { return r.launches[w].number > l.number })
	if at < 0 {
		at = len(r.waiting)
	}
	r.waiting = slices.Insert(r.waiting, at, name)
}

// warn says something to a person, once in a row.
func (r *Roster) warn(text string) {
	r.mu.Lock()
	news := text != r.lastTold
	r.lastTold = text
	r.mu.Unlock()
	if news {
		r.cfg.Tell(text)
	}
}
