package pilot

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"hash/fnv"
	"math/rand/v2"
	"slices"
	"time"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/durationpb"

	"fairway/internal/access"
	"fairway/internal/fault"
	"fairway/internal/pilot/report"
	"fairway/internal/wire"
	"fairway/lib/sched"
)

var (
	syncBefore = fault.New("pilot.sync.before")
	syncAfter  = fault.New("pilot.sync.after")
)

// exchange is where the conversation with the TaskQueue stands. It lasts as long as
// the pilot, whose mutex guards it. The goroutine of converse decides, in
// exchangeIfDue, what is to be done next; each Sync has a goroutine of its own (call),
// which notes how it ended and pokes converse.
type exchange struct {
	// How long the two sides have patience with each other: the TaskQueue may hold an
	// answer for patience, and after lease more without any the pilot gives up. Answers
	// set both.
	patience time.Duration
	lease    time.Duration

	// When the next Sync goes out: 0 <= inFlight <= maxConnections are under way. due is
	// when one is sent even without news. After a failure, backoff is above 0 until one
	// is answered, and meanwhile there is one at a time.
	inFlight int
	lastSent time.Time
	due      time.Time
	backoff  time.Duration
	jitter   *rand.Rand

	// Whether the TaskQueue is there: heard is when it last answered. away is set with
	// the first call that failed, and the pilot keeps results on disk until it is
	// cleared by an answer.
	heard time.Time
	away  bool

	// How the conversation ends: farewellBy is zero until the pilot has nothing left to
	// do; from then on each Sync says that it leaves, until farewell, which is the end.
	farewellBy time.Time
	farewell   bool

	// Where servers stand by: the highest term of an answer, and the number of the addresses
	// that were told last.
	term    uint64
	servers uint64

	// lookedFor is the number of the programs that were looked for last, of which hello tells;
	// tellFound says that the next Sync describes the pilot for that.
	lookedFor uint64
	tellFound bool

	alarm alarm
}

// jitter returns the source of chance of a pilot: it has its own, and the same each time,
// since its name bears that of its launch.
func jitter(pilot string) *rand.Rand {
	h := fnv.New64a()
	_, _ = h.Write([]byte(pilot)) // never fails
	return rand.New(rand.NewPCG(h.Sum64(), 0))
}

// nextPause is how long the pilot waits after a call that failed: twice as long as before,
// and half of that is left to chance. So pilots that lose their server together do not
// return together.
func (x *exchange) nextPause(most time.Duration) time.Duration {
	x.backoff = min(max(2*x.backoff, MinBackoff), most)
	return x.backoff/2 + time.Duration(x.jitter.Int64N(int64(x.backoff/2)))
}

// alarm wakes the exchange at a time. One is set at most: an earlier one replaces it,
// a later one is not needed, since converse sets it again when it has looked.
type alarm struct {
	at     time.Time // zero: none is set
	cancel context.CancelFunc
}

func (p *pilot) poke() {
	select {
	case p.wake <- struct{}{}:
	default:
	}
}

// pokeAt has the exchange look again at t or earlier. The caller holds the mutex.
func (p *pilot) pokeAt(ctx context.Context, t time.Time) {
	set := &p.exchange.alarm
	if !set.at.IsZero() && !set.at.After(t) {
		return
	}
	if set.cancel != nil {
		set.cancel()
	}
	set.at = t
	ctx, set.cancel = context.WithCancel(ctx)
	p.workers.Go(func() {
		if p.sched.WaitUntil(ctx, t) != nil {
			return
		}
		p.mu.Lock()
		defer p.mu.Unlock()
		if set.at.Equal(t) {
			set.at = time.Time{}
		}
		p.poke()
	})
}

func (p *pilot) converse(ctx context.Context) error {
	talk, hangUp := context.WithCancel(context.Background())
	defer hangUp()
	context.AfterFunc(ctx, func() {
		p.mu.Lock()
		defer p.mu.Unlock()
		p.leaveNow("the pilot was told to stop")
	})
	p.mu.Lock()
	p.exchange.heard, p.exchange.lease = time.Now(), p.cfg.Lease
	p.reports.Take(p.spool.Found())
	p.reports.StartOver()
	p.limitLife(talk)
	p.mu.Unlock()
	if p.cfg.Program != nil {
		p.workers.Go(func() { p.outliveProgram(talk) })
	}
	if p.sendsLogs {
		p.workers.Go(func() { p.followLogs(talk) })
	}
	for {
		if done, err := p.exchangeIfDue(talk, time.Now()); done {
			return err
		}
		if _, err := sched.Receive(talk, p.sched, p.wake); err != nil {
			return err
		}
	}
}

// outliveProgram takes note of the end of the program for which the run was opened.
func (p *pilot) outliveProgram(ctx context.Context) {
	if _, err := sched.Receive(ctx, p.sched, p.cfg.Program); !errors.Is(err, sched.ErrChannelClosed) {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.orphaned = time.Now()
	p.poke()
}

// limitLife ends what runs in time before the pilot's life is over.
func (p *pilot) limitLife(ctx context.Context) {
	if p.cfg.Life <= 0 {
		return
	}
	end := time.Now().Add(p.cfg.Life - 2*p.cfg.Grace)
	p.lifeEnds = end
	p.workers.Go(func() {
		if p.sched.WaitUntil(ctx, p.saveBy()) == nil {
			p.endInTimeToSave()
		}
	})
	p.workers.Go(func() {
		if p.sched.WaitUntil(ctx, end) == nil {
			p.mu.Lock()
			defer p.mu.Unlock()
			p.leaveNow("the pilot's life is over")
		}
	})
}

// leaveNow ends what runs; the conversation ends when that is told. The caller
// holds the mutex.
func (p *pilot) leaveNow(why string) {
	if !p.leaving {
		p.log.Info("leaving", "reason", why)
	}
	p.draining, p.leaving = true, true
	p.reports.News = true
	p.loseAll(why)
	p.poke()
}

func (p *pilot) exchangeIfDue(talk context.Context, now time.Time) (done bool, err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	x := &p.exchange
	p.leaveWhenDrained(now)
	if x.farewell {
		return true, nil
	}
	if p.refusal != nil {
		p.leaveNow(p.refusal.Error())
		return true, p.refusal
	}
	if x.backoff > 0 && (!p.workspace.stand() || p.cfg.Line != nil && p.cfg.Line.Gone()) {
		p.over = true
		p.leaveNow(ErrRemoved.Error())
		return true, ErrRemoved
	}
	if end, err := p.giveUpAt(); !end.IsZero() {
		if !now.Before(end) {
			p.leaveNow(err.Error())
			return true, err
		}
		p.pokeAt(talk, end)
	}
	switch at, due := p.sendAt(); {
	case !due:
	case now.Before(at):
		p.pokeAt(talk, at)
	default:
		p.send(talk, now)
	}
	return false, nil
}

// leaveWhenDrained begins the farewell once nothing runs any more.
func (p *pilot) leaveWhenDrained(now time.Time) {
	if !p.draining || p.running > 0 || len(p.queue) > 0 || !p.exchange.farewellBy.IsZero() {
		return
	}
	p.leaving = true
	p.reports.News = true
	p.exchange.farewellBy = now.Add(FarewellTimeout)
}

// giveUpAt is when the conversation ends without a farewell, and why.
func (p *pilot) giveUpAt() (time.Time, error) {
	x := &p.exchange
	if !x.farewellBy.IsZero() {
		return x.farewellBy, fmt.Errorf("%w while saying farewell", ErrLease)
	}
	if x.away && !p.orphaned.IsZero() {
		return p.orphaned.Add(OrphanPatience), ErrLease
	}
	if x.away {
		return x.heard.Add(x.patience + x.lease), ErrLease
	}
	return time.Time{}, nil
}

// answerTime is how long a call waits for its answer: as was promised, and a margin,
// but not beyond the lease. A server behind a cut line is silent and breaks nothing
// off: until the call is given up the pilot does not know that it is alone.
func (x *exchange) answerTime() time.Duration { return x.patience + min(CallMargin, x.lease) }

// sendAt is when the next Sync is to be sent; false if an answer or news must
// come first.
func (p *pilot) sendAt() (time.Time, bool) {
	x := &p.exchange
	switch {
	case x.inFlight >= maxConnections, x.backoff > 0 && x.inFlight > 0:
		return time.Time{}, false
	case x.backoff > 0:
		return x.due, true
	case p.reports.News && (len(p.queue) <= p.running-p.concluding || p.reports.HasFailures()):
		// Else the pilot could run out of work, or it waits for the answer.
		return x.lastSent, true
	case p.reports.News || p.caching.news():
		return x.lastSent.Add(ReportInterval), true
	case x.inFlight == 0:
		return x.due, true
	}
	_, storing := p.stage.Storing()
	return x.lastSent.Add(StoringInterval), storing > 0 || p.stage.Waits.Some()
}

// send sends a Sync with what is new. The caller holds the mutex.
func (p *pilot) send(talk context.Context, now time.Time) {
	x := &p.exchange
	m := &wire.SyncRequest{
		Protocol: wire.Protocol, Pilot: p.cfg.Pilot, Draining: p.draining, Leaving: !x.farewellBy.IsZero(),
	}
	// After a failure the first answer must come at once: until then no newer
	// Sync may follow, and news would wait as long as this one is held.
	m.Hold = !m.Leaving && x.backoff == 0
	if p.reports.Full {
		p.fullState(m)
	} else {
		p.reports.Carry(m)
	}
	m.Term, m.ServersKnown = x.term, x.servers
	p.describeAgain(m)
	p.members(m)
	m.MovesFiles = p.movingFiles()
	p.savedStates(m)
	p.caching.carry(m)
	m.Counts = p.stage.CacheCounts()
	p.stage.Sharing.Carry(m)
	p.stage.Waits.Carry(m)
	m.OutputsStored, m.OutputsToStore = p.stage.Storing()
	x.inFlight++
	x.lastSent = now
	limit := x.answerTime()
	p.workers.Go(func() { p.call(talk, m, limit) })
}

// helloNow is what the pilot says of itself, with the life that is left to it.
func (p *pilot) helloNow() *wire.PilotInfo {
	if !p.lifeEnds.IsZero() {
		p.hello.Remaining = durationpb.New(max(time.Nanosecond, time.Until(p.lifeEnds)))
	}
	return proto.CloneOf(p.hello)
}

// describeAgain tells which programs were found that the TaskQueue has asked for. It asks again until
// it has heard that.
func (p *pilot) describeAgain(m *wire.SyncRequest) {
	x := &p.exchange
	m.LookedFor = x.lookedFor
	if x.tellFound && m.Hello == nil {
		m.Hello = p.helloNow()
	}
	x.tellFound = false
}

// found takes note of the programs that were found of those that the TaskQueue has asked for. The
// caller holds the mutex.
func (p *pilot) found(a *wire.SyncAnswer, tools []string) {
	if a.GetLookForNumber() == 0 {
		return
	}
	for _, tool := range a.GetLookFor() {
		p.hello.Tools = slices.DeleteFunc(p.hello.Tools, func(t string) bool { return t == tool })
	}
	p.hello.Tools = append(p.hello.Tools, tools...)
	p.exchange.lookedFor, p.exchange.tellFound, p.reports.News = a.GetLookForNumber(), true, true
}

// fullState puts the whole state into a message. An attempt whose result comes
// in a later one is told as one that runs.
func (p *pilot) fullState(m *wire.SyncRequest) {
	m.Full, m.Hello = true, p.helloNow()
	for _, r := range p.reports.CarryFull(m) {
		m.Started = append(m.Started, &wire.AttemptRef{
			Run: r.GetResult().GetRun(), Job: r.GetResult().GetJob(), Attempt: r.GetResult().GetAttempt(), Ticket: r.GetTicket(),
			Leader: r.GetResult().GetLeader(), Task: r.GetResult().GetTask(),
		})
	}
	for _, a := range p.known {
		if a.queued {
			m.Queued = append(m.Queued, a.ref())
		} else {
			m.Started = append(m.Started, report.Running(a.ref(), a.turn))
		}
	}
	p.tellWhole(m)
}

// call is one Sync and what follows from its answer.
func (p *pilot) call(talk context.Context, m *wire.SyncRequest, limit time.Duration) {
	_ = syncBefore.Hit()
	ctx, cancel := context.WithTimeout(talk, limit)
	answer, err := p.client.Sync(ctx, m)
	cancel()
	_ = syncAfter.Hit()
	tools := p.toolsThere(answer.GetLookFor())
	switch {
	case p.answered(m, answer, tools, err):
		p.followHints(answer)
		p.mu.Lock()
		p.startAll() // after the hints: what they read makes other files go
		p.mu.Unlock()
	case err != nil && p.stage.Cache != nil:
		p.stage.Cache.SetHints(nil, 0) // while the TaskQueue is away the cache goes by its own order
	}
	p.poke()
}

// answered takes note of how a call ended, and reports whether its answer counts.
func (p *pilot) answered(m *wire.SyncRequest, answer *wire.SyncAnswer, tools []string, err error) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	x := &p.exchange
	x.inFlight--
	if err == nil {
		err = p.ofServer(answer)
	}
	if err != nil {
		p.callFailed(m, err)
		return false
	}
	x.backoff, x.away, x.heard = 0, false, time.Now()
	if m.GetLeaving() && !answer.GetNeedFull() {
		p.spool.Told(p.reports.Acknowledge(answer.GetSeen()))
		x.farewell = true
		return false
	}
	if !p.reports.Accept(m.GetSeq(), answer) {
		return false
	}
	p.spool.Told(p.reports.Acknowledge(answer.GetSeen()))
	p.caching.acknowledge(answer.GetSeen())
	p.announceAll(answer.GetTellCache())
	p.stage.Sharing.Acknowledge(answer.GetSeen())
	p.found(answer, tools)
	if len(answer.GetRun()) > 0 {
		p.handed = answer.GetVariables()
	}
	p.carryOut(answer)
	return true
}

// errReplaced: what a server says that another one has replaced does not count. It may have been frozen, and
// not know.
var errReplaced = errors.New("it was answered by a server that another one has replaced")

// ofServer takes note of which server has answered. The caller holds the mutex.
func (p *pilot) ofServer(a *wire.SyncAnswer) error {
	x := &p.exchange
	if a.GetTerm() < x.term {
		return errReplaced
	}
	x.term = a.GetTerm()
	if servers := a.GetServers(); len(servers) > 0 && p.cfg.Line != nil {
		p.cfg.Line.Learn(servers)
		x.servers = a.GetServersNumber()
	}
	return nil
}

// spoolUntold keeps on disk what the TaskQueue could not be told. The caller holds the
// mutex.
func (p *pilot) spoolUntold() {
	if p.spool.Put(p.reports.Untold()) {
		p.workers.Go(p.spool.Write)
	}
}

// callFailed has the whole state told when the TaskQueue is back. Of several
// calls that were under way when it went, the first is enough.
func (p *pilot) callFailed(m *wire.SyncRequest, err error) {
	x, now := &p.exchange, time.Now()
	if p.reports.Superseded(m.GetSeq()) {
		return
	}
	if sentence, refused := access.Refused(err); refused {
		p.refusal = fmt.Errorf("%w: %s", ErrRefused, sentence)
		return
	}
	p.log.Info("the TaskQueue does not answer", "error", err)
	p.reports.StartOver()
	x.away = true
	p.spoolUntold()
	most := MaxBackoff
	if p.cfg.Line != nil {
		most = MaxFarBackoff
	}
	x.due = now.Add(x.nextPause(most))
	if p.reports.HasFailures() {
		p.startAll() // which waited for the answer
	}
}

// carryOut does what the TaskQueue wants, but for the hints and the start of
// what is assigned, which follow it. The caller holds the mutex.
func (p *pilot) carryOut(a *wire.SyncAnswer) {
	x := &p.exchange
	p.scratch.answered()
	x.patience = a.GetNextSync().AsDuration()
	if granted := a.GetLease().AsDuration(); granted > 0 {
		x.lease = granted
	}
	x.due = x.lastSent.Add(ReportInterval)
	for _, id := range a.GetEnd() {
		p.endAttempt(id)
	}
	for _, id := range a.GetGiveBack() {
		p.giveBack(p.known[id])
	}
	for _, w := range a.GetRun() {
		p.assign(w)
	}
	for _, start := range a.GetBegin() {
		p.beginMember(start)
	}
	if (a.GetLeave() || a.GetLeaveNow()) && a.GetWhy() == "" {
		p.over = true
	}
	if a.GetLeaveNow() {
		p.leaveNow(cmp.Or(a.GetWhy(), "it was ended with the run"))
	}
	if a.GetLeave() && !p.draining {
		p.log.Info("leaving", "reason", cmp.Or(a.GetWhy(), "the run ends"))
		p.draining = true
		for _, a := range p.known {
			// Staging in may take long, and what comes after it is not to be done any more.
			if !a.queued {
				p.giveBack(a)
			}
		}
	}
}
