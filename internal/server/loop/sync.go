package loop

import (
	"context"
	"slices"
	"sync"

	"fairway/internal/dispatch"
	"fairway/internal/wire"
)

// Sync hands the report of a pilot to the loop and waits until dispatch answers it,
// which may take as long as dispatch holds answers, and what the answer tells is
// durable. dispatch.ErrRefused, ErrReloaded and ErrEnded are told as they are.
func (i *Inbox) Sync(ctx context.Context, in dispatch.Sync) (*wire.SyncAnswer, error) {
	held := i.held.add(in.Pilot, in.Seq)
	defer i.held.remove(in.Pilot, held)
	err := i.Send(ctx, &Request{
		Dispatch: []dispatch.Input{in},
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
		held.give(answer{err: ErrEnded}) // unless it was among the last to get one
		a := <-held.answer
		return a.message, a.err
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// answer is a reply as a message, for the Sync of pilot numbered seq.
type answer struct {
	pilot   dispatch.PilotID
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
	byPilot map[dispatch.PilotID][]*heldSync
}

func (h *heldSyncs) add(pilot dispatch.PilotID, seq uint64) *heldSync {
	one := &heldSync{seq: seq, answer: make(chan answer, 1)}
	h.mu.Lock()
	defer h.mu.Unlock()
	h.byPilot[pilot] = append(h.byPilot[pilot], one)
	return one
}

func (h *heldSyncs) remove(pilot dispatch.PilotID, one *heldSync) {
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
