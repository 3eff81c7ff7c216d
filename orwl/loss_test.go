package orwl

import (
	"errors"
	"testing"
)

// Poison reaches those, too, who wait behind an insertion that is under way.
func TestPoisonBehindALatch(t *testing.T) {
	l := newLocation(t, "l", 8, Shared(), OnLoss(Poison))
	_, p := served(t, "unix", l)
	var lost, postponed, spanning Handle
	must(t, lost.WriteRequest(mirror(t, p, "l")))
	must(t, lost.Acquire(background))
	other, err := localOwner{}.reserve(background, []Posting{spanning.Writing(l)})
	must(t, err)
	must(t, postponed.ReadRequest(l))
	must(t, p.Close())
	for _, h := range []*Handle{&spanning, &postponed} {
		if err := h.Acquire(background); !errors.Is(err, ErrPoisoned) {
			t.Fatal(err)
		}
	}
	other.settle(true)
	if err := postponed.ReadRequest(l); !errors.Is(err, ErrPoisoned) {
		t.Fatal(err)
	}
}
