package sched

import (
	"bytes"
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"sync"
	"testing"
	"time"

	"fairway/lib/modelcheck"
	"fairway/lib/seed"
)

// checkLeaders has SPIN walk the model of a source's leader, and returns what it says. The model says
// itself who may stand still.
func checkLeaders(t *testing.T, trace string, defines ...string) (said string, refused bool) {
	t.Helper()
	return modelcheck.Check(t, "model/leader.pml", trace, true, defines...)
}

// In no order of steps does an event get lost, do two goroutines poll, or does somebody block for nobody; and the
// model that says so refuses what is broken.
func TestModelOfTheLeader(t *testing.T) {
	waiters := "-DWAITERS=2"
	if os.Getenv("FAIRWAY_SOAK") != "" {
		waiters = "-DWAITERS=3"
	}
	for _, concurrent := range []string{"-DCONCURRENT=0", "-DCONCURRENT=1"} {
		if said, refused := checkLeaders(t, "", waiters, concurrent); refused {
			t.Errorf("%s: the model is wrong:\n%s", concurrent, said)
		}
	}
	for i, name := range []string{
		"one poll", "no promotion", "no unblock", "no look after", "unblock lost", "two leaders", "leader sleeps",
		"nobody looks",
	} {
		concurrent := "-DCONCURRENT=0"
		if i >= 6 { // where requests leave while the leader blocks
			concurrent = "-DCONCURRENT=1"
		}
		if _, refused := checkLeaders(t, "", "-DWAITERS=2", concurrent, fmt.Sprint("-DBROKEN=", i+1)); !refused {
			t.Errorf("%s is not refused", name)
		}
	}
}

// What callbacks of a real source see is a way through the model, and what they could not see is none.
func TestModelFollowsTheLeader(t *testing.T) {
	random := rand.New(rand.NewPCG(seed.Of(t), 0))
	for concurrent := range 2 {
		seen := recordedCallbacks(t, random, concurrent == 1)
		mode := fmt.Sprint("-DCONCURRENT=", concurrent)
		if _, found := checkLeaders(t, traced(seen), "-DTRACE", "-DWAITERS=2", mode); !found {
			t.Errorf("%s: the model does not do this: %v", mode, seen)
		}
		wrong := append(append([]int(nil), seen...), seenArm, seenBlocked) // an end of no Block
		if _, found := checkLeaders(t, traced(wrong), "-DTRACE", "-DWAITERS=2", mode); found {
			t.Errorf("%s: the model does this too: %v", mode, wrong)
		}
	}
}

// What is seen, by the numbers of leader.pml.
const (
	seenGroup   = 0
	seenRemove  = 10
	seenPoll    = 20
	seenArm     = 21
	seenBlock   = 22
	seenBlocked = 23
	seenUnblock = 24
)

func traced(seen []int) string {
	var b bytes.Buffer
	fmt.Fprintf(&b, "#define STEPS %d\ninline load() {\n", len(seen))
	for i, what := range seen {
		fmt.Fprintf(&b, "\tseen[%d] = %d;\n", i, what)
	}
	b.WriteString("\tskip\n}\n")
	return b.String()
}

// recordedCallbacks are the callbacks of a kind at which two wait, of whom the first may give up.
func recordedCallbacks(t *testing.T, random *rand.Rand, concurrent bool) []int {
	t.Helper()
	var mu sync.Mutex
	var seen []int
	var happened [2]bool
	see := func(what int) {
		mu.Lock()
		defer mu.Unlock()
		seen = append(seen, what)
	}
	nudge := make(chan struct{}, 1)
	wake := func() {
		select {
		case nudge <- struct{}{}:
		default:
		}
	}
	s := New(Config{Slots: 1})
	defer s.Close()
	h := Register(s, Kind[int, int]{
		Name: "recorded", Strategy: BlockOnly, Concurrent: concurrent,
		Group: func(r *Request[int, int], joined bool) {
			if joined {
				see(seenGroup + r.Value)
			} else {
				see(seenRemove + r.Value)
			}
		},
		Poll: func(waiting []*Request[int, int]) {
			mu.Lock()
			defer mu.Unlock()
			seen = append(seen, seenPoll)
			for _, r := range waiting {
				if happened[r.Value] {
					r.Done(0, nil)
				}
			}
		},
		Arm: func() bool { see(seenArm); return true },
		Block: func(limit time.Duration) {
			see(seenBlock)
			var over <-chan time.Time
			if limit > 0 {
				over = time.After(limit)
			}
			select {
			case <-nudge:
			case <-over:
			}
			see(seenBlocked)
		},
		Unblock: func() { see(seenUnblock); wake() },
	})
	ctx, giveUp := context.WithCancel(t.Context())
	defer giveUp()
	steps := []func(){
		func() {
			mu.Lock()
			happened[0] = true
			mu.Unlock()
			wake()
		},
		func() {
			mu.Lock()
			happened[1] = true
			mu.Unlock()
			wake()
		},
		giveUp,
	}
	random.Shuffle(len(steps), func(i, j int) { steps[i], steps[j] = steps[j], steps[i] })
	var waiting sync.WaitGroup
	for i := range happened {
		waiting.Go(func() {
			of := ctx
			if i == 1 {
				of = t.Context()
			}
			_, _ = h.Wait(of, i)
		})
		if random.IntN(2) == 0 {
			steps[i]()
		}
	}
	for _, step := range steps {
		step()
	}
	waiting.Wait()
	mu.Lock()
	defer mu.Unlock()
	return append([]int(nil), seen...)
}
