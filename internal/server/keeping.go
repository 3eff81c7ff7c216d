package server

import (
	"context"
	"encoding/json"
	"fmt"
	"sync"
	"time"

	"fairway/internal/server/state"
	"fairway/internal/taskqueue"
)

// keepingTable has one record, under keepingKey: the time up to which what is kept for a time has been kept.
const (
	keepingTable = "server_keeping"
	keepingKey   = "reached"
)

// Bounds of a keeping.
const (
	// keepingRate is how much faster than time it goes at the most: after a server was away, it
	// follows the clock of the machine.
	keepingRate = 2
	// keepingRecorded is how much of what it has reached may be lost with a server. The next one makes
	// up for as much at its start, so that what is kept for no time goes at once.
	keepingRecorded = time.Hour
	// keepingJump is how far the clock of a server that starts may be ahead of it without a word.
	keepingJump = 24 * time.Hour
)

// keeping is the time by which a lasting server removes what it has promised to keep for a time. A clock that
// is set ahead, while a server runs or before it starts, and also for a moment only, must not have
// things removed that are to be kept for months. So it goes on with the time that servers have seen pass, at
// most keepingRate times as fast, and is never ahead of a clock. Any goroutine may use it.
type keeping struct {
	mu       sync.Mutex // guards what follows
	reached  time.Time
	looked   time.Time // by state.Now, when it was asked last
	recorded time.Time
}

// open reads what earlier servers have reached, and begins with the clock where there were none.
func (k *keeping) open(ctx context.Context, records state.PartSource) error {
	stored, err := records.LoadPart(ctx, keepingTable, 0, keepingKey, state.LastKey, 1)
	if err != nil {
		return fmt.Errorf("loading the time up to which results were kept: %w", err)
	}
	k.looked = state.Now()
	k.reached = k.looked
	if len(stored) > 0 {
		if err := json.Unmarshal(stored[0].Body, &k.reached); err != nil {
			return fmt.Errorf("record %s %s: %w", keepingTable, keepingKey, err)
		}
		k.recorded = k.reached
		if k.reached = k.reached.Add(keepingRecorded); k.reached.After(k.looked) {
			k.reached = k.looked
		}
	}
	return nil
}

// ahead is how far the clock is ahead of it.
func (k *keeping) ahead() time.Duration {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.looked.Sub(k.reached)
}

// now is the time by which things are kept.
func (k *keeping) now() time.Time { return k.by(state.Now(), time.Now().Round(0)) }

// by is now by the clock that goes on, and by that of the machine.
func (k *keeping) by(running, machine time.Time) time.Time {
	k.mu.Lock()
	defer k.mu.Unlock()
	least := running
	if machine.Before(least) {
		least = machine
	}
	next := k.reached.Add(keepingRate * max(0, running.Sub(k.looked)))
	if next.After(least) {
		next = least
	}
	if next.After(k.reached) {
		k.reached = next
	}
	k.looked = running
	if k.reached.Before(least) {
		return k.reached
	}
	return least
}

// record makes durable what is reached, if that is much more than before; nil: it is not.
func (k *keeping) record() ([]taskqueue.Record, error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.reached.Sub(k.recorded) < keepingRecorded {
		return nil, nil
	}
	record, err := state.NewRecord(keepingTable, 0, keepingKey, k.reached)
	if err != nil {
		return nil, err
	}
	k.recorded = k.reached
	return []taskqueue.Record{record}, nil
}
