package pilotplan

import (
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"fairway/lib/seed"
)

// A site gets as many pilots as its groups and its bounds ask for, one pilot looked at after the other.
func TestToSendAgainstOneByOne(t *testing.T) {
	first := seed.Of(t)
	rng := rand.New(rand.NewPCG(first, 0))
	for range 20_000 {
		s := Site{Min: rng.IntN(5), MinIdle: rng.IntN(4), Inactive: rng.IntN(5), Idle: rng.IntN(4)}
		s.Submitted, s.Max = s.Inactive+s.Idle+rng.IntN(4), s.Min+rng.IntN(9)
		needs := make([]int, rng.IntN(4))
		for i := range needs {
			needs[i] = rng.IntN(5)
		}
		if sent, want := s.ToSend(slices.Values(needs)), oneByOne(s, needs); sent != want {
			t.Fatalf("FAIRWAY_SEED=%d: %+v with %v gets %d instead of %d", first, s, needs, sent, want)
		}
	}
}

// oneByOne sends a pilot for each one that is wanted and is not on its way, while there is a slot.
func oneByOne(s Site, needs []int) (sent int) {
	free := s.Inactive
	send := func() {
		if s.Submitted+sent < s.Max {
			sent++
		}
	}
	for _, n := range needs {
		for range n {
			if free > 0 {
				free--
			} else {
				send()
			}
		}
	}
	for n := s.Idle + free; n < s.MinIdle; n++ {
		send()
	}
	for n := s.Submitted + sent; n < s.Min; n++ {
		send()
	}
	return sent
}

// What is given away one pilot after the other is the room that is free first, each time for as long as the
// pilot is busy with what it was given before.
func TestGiveAgainstSinglePilots(t *testing.T) {
	first := seed.Of(t)
	rng := rand.New(rand.NewPCG(first, 1))
	for range 2_000 {
		rooms := make(Rooms, 1+rng.IntN(4))
		type pilots struct {
			in           time.Duration
			n, busy, got int
		}
		model := make([]pilots, len(rooms))
		for i := range rooms {
			n, in := rng.IntN(4), time.Duration(rng.IntN(5))*time.Second
			rooms[i] = Room{In: in, Size: n * Whole, Starts: rng.IntN(2) == 0}
			model[i] = pilots{in: in, n: n}
		}
		if rooms.Next() == nil {
			continue
		}
		run := time.Duration(1+rng.IntN(5)) * time.Second
		for range rng.IntN(12) {
			best := -1
			for i, m := range model {
				if m.n > 0 && (best < 0 || m.in < model[best].in) {
					best = i
				}
			}
			rooms.Give(Whole, false, run)
			m := &model[best]
			m.got = min(m.got+1, m.n)
			if m.busy++; m.busy == m.n {
				m.in, m.busy = m.in+run, 0
			}
		}
		wanted := 0
		for i, m := range model {
			if rooms[i].In != m.in {
				t.Fatalf("FAIRWAY_SEED=%d: %+v is free in %v", first, rooms[i], m.in)
			}
			if rooms[i].Starts {
				wanted += m.got
			}
		}
		if rooms.Wanted() != wanted {
			t.Fatalf("FAIRWAY_SEED=%d: %d pilots are wanted of %+v, not %d", first, rooms.Wanted(), rooms, wanted)
		}
	}
}

// What is needed at the same time is taken of all rooms, the one that is free first before others.
func TestGiveTogether(t *testing.T) {
	rooms := Rooms{{Size: Whole, In: 3 * time.Second, Starts: true}, {Size: 2 * Whole, In: time.Second}, {}}
	rooms.Give(2*Whole+1, true, time.Minute)
	if rooms[1].In != time.Second+time.Minute || rooms[0].In != 3*time.Second || rooms.Wanted() != 1 {
		t.Errorf("%+v", rooms)
	}
}
