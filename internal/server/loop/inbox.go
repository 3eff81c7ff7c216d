package loop

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"

	"fairway/internal/flow"
	"fairway/internal/server/state"
	"fairway/internal/taskqueue"
	"fairway/internal/wire"
)

// ErrReloaded ends a request whose effects were lost because the store failed:
// it has changed nothing, and may be made again.
var ErrReloaded = errors.New("the store failed and the state was loaded again; repeat the request")

// ErrEnded ends a request that came when the loop had ended.
var ErrEnded = errors.New("the run has ended")

// Request is the single entry of the loop: everything that changes a run comes
// as one, so a recording of the inputs of all requests replays the run.
type Request struct {
	// Run is the run that the request is about. 0: it is about what all runs share, and what is
	// told to a run is told to all.
	Run taskqueue.RunID

	// Prepare runs in the loop before the inputs are stepped, and may look at
	// the cores, refuse the request, or add to it.
	Prepare func(*state.Cores, *Request) error

	Dispatch []taskqueue.Input
	Flow     []flow.Input
	Records  []taskqueue.Record     // of the server's own tables
	Publish  []taskqueue.StoredFile // files that are to be published once more

	// Ask runs in the loop after the inputs were stepped. It must only read.
	Ask func(*state.Cores)

	// Done is called once: with nil when all is durable, else with what went
	// wrong: taskqueue.ErrRefused, ErrReloaded, ErrEnded. It must not block.
	Done func(error)

	toEnding func(*Ending) // runs in the loop with Ask

	refused func(error) // instead of Ask; unlike Done it is not told of success

	ofPilot bool // it is a call of a pilot: what it changes of runs, events tell

	add  *Run // a run that is new to the loop
	drop bool // the loop forgets the run, if nothing is refused
}

// changes reports whether a request does more than ask or tell.
func (r *Request) changes() bool {
	return r.Prepare != nil || r.add != nil || len(r.Dispatch)+len(r.Flow)+len(r.Records)+len(r.Publish) > 0
}

// asks reports whether a request is a question only. Who follows the run asks when
// something has changed, so a question that counted as a change would bring the next.
func (r *Request) asks() bool { return r.Ask != nil && r.toEnding == nil && !r.changes() }

func (r *Request) finish(err error) {
	if r.Done != nil {
		r.Done(err)
	}
	if r.refused != nil && err != nil {
		r.refused(err)
	}
}

// inboxSize is how many requests wait for the loop before those who make them
// wait too.
const inboxSize = 256

// Inbox is how goroutines reach the loop. It is made before the loop, for those that
// the loop hands work to. Questions overtake requests: who asks sees what was acknowledged
// before, and waits for no more than one piece of what others submit.
type Inbox struct {
	requests  chan *Request
	questions chan *Request          // that only ask
	ended     chan struct{}          // closed when the loop takes no more
	why       *atomic.Pointer[error] // that, where it is no order; it is set before
	held      *heldSyncs
	run       taskqueue.RunID // that requests are about which do not say
}

// NewInbox makes the inbox of one loop.
func NewInbox() *Inbox {
	return &Inbox{
		requests: make(chan *Request, inboxSize), questions: make(chan *Request, inboxSize), ended: make(chan struct{}),
		why:  new(atomic.Pointer[error]),
		held: &heldSyncs{byPilot: map[taskqueue.PilotID][]*heldSync{}},
	}
}

func (i *Inbox) over() error {
	if why := i.why.Load(); why != nil {
		return fmt.Errorf("%w: %w", ErrEnded, *why)
	}
	return ErrEnded
}

// Waiting is how many requests wait for the loop.
func (i *Inbox) Waiting() int { return len(i.requests) + len(i.questions) }

// Of is the same inbox, for requests that are about a run.
func (i *Inbox) Of(run taskqueue.RunID) *Inbox {
	of := *i
	of.run = run
	return &of
}

// Begin hands a run to the loop that is new to it, with the request that begins it: runs begin in the order
// of these calls. An error means that it was not handed over. begun answers when it is durable; after an
// error of it the loop does not have the run, unless it is ErrEnded: then the store may have it.
func (i *Inbox) Begin(ctx context.Context, run *Run, r *Request) (begun func(context.Context) error, err error) {
	r.Run, r.add = run.Run, run
	durable, err := i.start(ctx, r)
	if err != nil {
		return nil, err
	}
	return func(ctx context.Context) error {
		err := durable(ctx)
		if errors.Is(err, ErrReloaded) && i.Of(run.Run).Query(ctx, func(*state.Cores) {}) == nil {
			return nil // the store failed when it had done it
		}
		return err
	}, nil
}

// Drop is Deliver for a request that has the loop forget its run, unless it is refused.
func (i *Inbox) Drop(ctx context.Context, newRequest func() *Request) error {
	return i.Deliver(ctx, func() *Request {
		r := newRequest()
		r.drop = true
		return r
	})
}

// Send hands a request to the loop; its Done says what became of it.
func (i *Inbox) Send(ctx context.Context, r *Request) error {
	if r.Run == 0 {
		r.Run = i.run
	}
	way := i.requests
	if r.asks() {
		way = i.questions
	}
	select {
	case way <- r:
		return nil
	case <-i.ended:
		return i.over()
	case <-ctx.Done():
		return ctx.Err()
	}
}

// Wake has the loop find out whether the run is over. A loop that has ended knows.
func (i *Inbox) Wake(ctx context.Context) error {
	if err := i.Send(ctx, &Request{}); !errors.Is(err, ErrEnded) {
		return err
	}
	return nil
}

// Do carries out a request and waits until it is durable.
func (i *Inbox) Do(ctx context.Context, r *Request) error {
	durable, err := i.start(ctx, r)
	if err != nil {
		return err
	}
	return durable(ctx)
}

// start hands a request over, and returns what waits until it is durable.
func (i *Inbox) start(ctx context.Context, r *Request) (durable func(context.Context) error, err error) {
	result := make(chan error, 1)
	r.Done = func(err error) { result <- err }
	if err := i.Send(ctx, r); err != nil {
		return nil, err
	}
	return func(ctx context.Context) error {
		select {
		case err := <-result:
			return err
		case <-i.ended:
		case <-ctx.Done():
			return ctx.Err()
		}
		select {
		case err := <-result: // it was among the last
			return err
		default:
			return i.over()
		}
	}, nil
}

// Deliver is Do for the server's own goroutines, which repeat a request that
// was lost. newRequest makes it each time.
func (i *Inbox) Deliver(ctx context.Context, newRequest func() *Request) error {
	for {
		err := i.Do(ctx, newRequest())
		if !errors.Is(err, ErrReloaded) {
			return err
		}
	}
}

// Query asks the loop a question and waits for the answer. It doesn't wait for
// the disk: what is seen may not be durable yet. The cores must not be kept or
// changed. The error is ErrEnded where the loop does not have the run of the inbox.
func (i *Inbox) Query(ctx context.Context, ask func(*state.Cores)) error {
	seen := make(chan error, 1)
	r := &Request{Ask: func(c *state.Cores) { ask(c); seen <- nil }, refused: func(err error) { seen <- err }}
	if err := i.Send(ctx, r); err != nil {
		return err
	}
	select {
	case err := <-seen:
		return err
	case <-i.ended:
		return i.over()
	case <-ctx.Done():
		return ctx.Err()
	}
}

// Fail ends the run for a reason that no retry repairs.
func (i *Inbox) Fail(ctx context.Context, err error) error {
	return i.Send(ctx, &Request{toEnding: func(e *Ending) { e.fail(err) }})
}

// Note tells a person of something that went another way than the workflow says.
func (i *Inbox) Note(ctx context.Context, text string) error {
	return i.Send(ctx, &Request{toEnding: func(e *Ending) { e.Note(text) }})
}

// GiveUp lets the run end without a file that cannot be published.
func (i *Inbox) GiveUp(ctx context.Context, file taskqueue.FileRef, err error) error {
	return i.Send(ctx, &Request{toEnding: func(e *Ending) { e.giveUp(file, err) }})
}

// Lose says of a file that is to be published that its stored file is lost. It is handed
// out for publication again when it has been made again: in this run, if jobs may still run.
func (i *Inbox) Lose(ctx context.Context, file taskqueue.LostFile) error {
	return i.Deliver(ctx, func() *Request {
		return &Request{
			Dispatch: []taskqueue.Input{taskqueue.LoseFiles{Files: []taskqueue.LostFile{file}}},
			toEnding: func(e *Ending) { e.lose(&file) },
		}
	})
}

// Sync hands the report of a pilot to the loop and waits until dispatch answers it,
// which may take as long as dispatch holds answers, and what the answer tells is
// durable. note takes note in the loop of what it says for people. What it says that attempts
// used is cut to what can be (state.Cores.Plausible). taskqueue.ErrRefused,
// ErrReloaded and ErrEnded are told as they are.
func (i *Inbox) Sync(ctx context.Context, in taskqueue.Sync, note func(*state.Nodes)) (*wire.SyncAnswer, error) {
	held := i.held.add(in.Pilot, in.Seq)
	defer i.held.remove(in.Pilot, held)
	err := i.Send(ctx, &Request{
		ofPilot: true,
		Prepare: func(c *state.Cores, _ *Request) error {
			note(c.Tally.Nodes)
			c.Plausible(state.Now(), in.Ended)
			return nil
		},
		Dispatch: []taskqueue.Input{in},
		Done: func(err error) {
			if err != nil {
				held.give(answer{err: err})
			}
		},
	})
	if err != nil {
		return nil, err
	}
	select {
	case a := <-held.answer:
		return a.message, a.err
	case <-i.ended:
		held.give(answer{err: i.over()}) // unless it was among the last to get one
		a := <-held.answer
		return a.message, a.err
	case <-ctx.Done():
		// The pilot hung up, or its line broke. The error is that of the call in any case.
		_ = i.Send(context.WithoutCancel(ctx), &Request{
			Dispatch: []taskqueue.Input{taskqueue.HangUp{Pilot: in.Pilot, Seq: in.Seq}},
		})
		return nil, ctx.Err()
	}
}

// answer is a reply as a message, for the Sync of pilot numbered seq.
type answer struct {
	pilot   taskqueue.PilotID
	seq     uint64
	message *wire.SyncAnswer
	err     error
}

// heldSync is a Sync call whose answer is held.
type heldSync struct {
	seq    uint64
	answer chan answer // room for one
}

// heldSyncs are the Sync calls whose answers are held: few for each pilot, the newest
// and those that it superseded a moment ago. Their goroutines add and remove them;
// the loop answers.
type heldSyncs struct {
	mu      sync.Mutex // guards byPilot
	byPilot map[taskqueue.PilotID][]*heldSync
}

func (h *heldSyncs) add(pilot taskqueue.PilotID, seq uint64) *heldSync {
	one := &heldSync{seq: seq, answer: make(chan answer, 1)}
	h.mu.Lock()
	defer h.mu.Unlock()
	h.byPilot[pilot] = append(h.byPilot[pilot], one)
	return one
}

func (h *heldSyncs) remove(pilot taskqueue.PilotID, one *heldSync) {
	h.mu.Lock()
	defer h.mu.Unlock()
	rest := slices.DeleteFunc(h.byPilot[pilot], func(other *heldSync) bool { return other == one })
	if h.byPilot[pilot] = rest; len(rest) == 0 {
		delete(h.byPilot, pilot)
	}
}

// resolve gives an answer to whoever waits for it. An answer that nobody waits
// for any more is dropped: the pilot's next Sync shows that it hasn't seen it.
func (h *heldSyncs) resolve(a answer) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, one := range h.byPilot[a.pilot] {
		if one.seq == a.seq {
			one.give(a)
		}
	}
}

// fail ends all calls, for when the cores that they wait in are gone.
func (h *heldSyncs) fail(err error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, all := range h.byPilot {
		for _, one := range all {
			one.give(answer{err: err})
		}
	}
}

func (one *heldSync) give(a answer) {
	select {
	case one.answer <- a:
	default: // it has one already
	}
}
