package orwl

import (
	"encoding/binary"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"github.com/anishathalye/porcupine"

	"fairway/lib/seed"
)

// registerInput is an operation on a register kept in a location: a write of
// the value, or a read.
type registerInput struct {
	write bool
	value uint64
}

var register = porcupine.Model{
	Init: func() any { return uint64(0) },
	Step: func(state, input, output any) (bool, any) {
		in := input.(registerInput)
		if in.write {
			return true, in.value
		}
		return output.(uint64) == state.(uint64), state
	},
}

// registerHistory lets one client for each resource do operations on the
// register, and returns what they saw.
func registerHistory(t *testing.T, rng *rand.Rand, clients []Resource, each int) []porcupine.Operation {
	t.Helper()
	return history(t, rng, clients, each, 2)
}

// readersHistory is registerHistory with one write in eight operations.
func readersHistory(t *testing.T, rng *rand.Rand, clients []Resource, each int) []porcupine.Operation {
	t.Helper()
	return history(t, rng, clients, each, 8)
}

// history has one of so many operations write.
func history(t *testing.T, rng *rand.Rand, clients []Resource, each, oneIn int) []porcupine.Operation {
	t.Helper()
	var (
		mu      sync.Mutex
		history []porcupine.Operation
		all     sync.WaitGroup
	)
	epoch := time.Now()
	for c, r := range clients {
		own := rand.New(rand.NewPCG(rng.Uint64(), 0))
		all.Go(func() {
			var h Handle
			for i := range each {
				in := registerInput{write: own.IntN(oneIn) == 0, value: uint64(c*each + i + 1)}
				op := porcupine.Operation{ClientId: c, Input: in, Call: int64(time.Since(epoch))}
				out, err := registerOperation(&h, r, in)
				if err != nil {
					t.Errorf("client %d: %v", c, err)
					return
				}
				op.Output, op.Return = out, int64(time.Since(epoch))
				mu.Lock()
				history = append(history, op)
				mu.Unlock()
			}
		})
	}
	all.Wait()
	return history
}

func registerOperation(h *Handle, r Resource, in registerInput) (uint64, error) {
	mode := Read
	if in.write {
		mode = Write
	}
	if err := h.request(r, mode); err != nil {
		return 0, err
	}
	if err := h.Acquire(background); err != nil {
		return 0, err
	}
	if in.write {
		b, err := h.WriteMap()
		if err != nil {
			return 0, err
		}
		binary.LittleEndian.PutUint64(b, in.value)
		return 0, h.Release()
	}
	b, err := h.ReadMap()
	if err != nil {
		return 0, err
	}
	v := binary.LittleEndian.Uint64(b)
	return v, h.Release()
}

func checkLinearizable(t *testing.T, history []porcupine.Operation) {
	t.Helper()
	if !porcupine.CheckOperations(register, history) {
		t.Fatal("the history is not linearizable")
	}
}

func TestLocalHistoryIsLinearizable(t *testing.T) {
	rng := seed.Source(t)
	for range rounds(10) {
		l := newLocation(t, "l", 8)
		checkLinearizable(t, registerHistory(t, rng, []Resource{l, l, l, l}, 25))
	}
}
