package dispatch

import (
	"crypto/sha256"
	"encoding/json"
	"os"
	"reflect"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"

	"fairway/internal/taskqueue"
)

// TestDigest prints one digest over all that the simulations of the seeds 1 to FAIRWAY_DIGEST let out.
// Who moves code, and changes nothing of what it does, compares that before and after:
//
//	FAIRWAY_DIGEST=2000 go test ./internal/dispatch -run TestDigest -v
func TestDigest(t *testing.T) {
	seeds, err := strconv.Atoi(os.Getenv("FAIRWAY_DIGEST"))
	if err != nil {
		t.Skip("FAIRWAY_DIGEST says over how many seeds")
	}
	digests := make([][32]byte, seeds)
	var next atomic.Int64
	var workers sync.WaitGroup
	for range 2 {
		workers.Go(func() {
			for i := next.Add(1); i <= int64(seeds); i = next.Add(1) {
				s := newSimulation(uint64(i))
				s.whole = true
				if err := s.run(); err != nil {
					t.Errorf("FAIRWAY_SEED=%d: %v", i, err)
				}
				digests[i-1] = s.digest()
			}
		})
	}
	workers.Wait()
	all := sha256.New()
	for i := range digests {
		all.Write(digests[i][:])
	}
	t.Logf("%d seeds: %x", seeds, all.Sum(nil))
}

// noteAll takes all effects of a step into the digest.
func (s *simulation) noteAll(e taskqueue.Effects) error {
	text, err := json.Marshal(e)
	s.hash = sha256.Sum256(append(s.hash[:], text...))
	return err
}

// inputName is that of the type of an input, in whichever package it stands.
func inputName(in taskqueue.Input) string { return reflect.TypeOf(in).Name() }
