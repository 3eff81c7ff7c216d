package flow

import (
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"fairway/internal/flow/workflow"
	"fairway/lib/seed"
)

// inPieces is a world whose Flow does few things at a time.
type inPieces struct {
	*world
	piece  int
	pieces int // that were done with a Tick
}

func (x *inPieces) reload() {
	x.t.Helper()
	left := x.flow.Unfinished()
	var err error
	if x.flow, err = Load(x.w, x.records); err != nil {
		x.t.Fatalf("load: %v", err)
	}
	if !left && x.flow.Unfinished() {
		x.t.Fatal("loaded again, something is left to do")
	}
	for _, lfn := range x.flow.ReadersKnown() { // perhaps more than were told, if something was left
		if known := x.known[lfn]; !known && !left {
			x.t.Fatalf("loaded again, the readers of %s are known", lfn)
		}
		x.known[lfn] = true
	}
	x.flow.piece = x.piece
}

// next is what comes to a run next: the first of the arrivals that are left, or the commit of a pending job; r says
// which. nil: there is neither.
func (x *inPieces) next(r *rand.Rand, left *[]Input) (in Input, job string) {
	switch {
	case len(*left) > 0 && (len(x.pending) == 0 || r.IntN(3) == 0):
		in, *left = (*left)[0], (*left)[1:]
	case len(x.pending) > 0:
		job = x.takePending(r.IntN(len(x.pending)))
		in = Happened{x.event(x.jobs[job])}
	}
	return in, job
}

// goOn does some of the pieces that are left, and loads the run again now and then.
func (x *inPieces) goOn(r *rand.Rand) {
	x.t.Helper()
	for r.IntN(3) > 0 && x.flow.Unfinished() {
		x.step(Tick{})
		x.pieces++
	}
	if r.IntN(5) == 0 {
		x.reload()
	}
}

// end does all that is left. A Flow that is loaded lets nothing out again.
func (x *inPieces) end() {
	x.t.Helper()
	x.step(Tick{}) // as after each load
	for x.flow.Unfinished() {
		x.step(Tick{})
	}
	loaded, err := Load(x.w, x.records)
	if err != nil || loaded.letOut != uint64(len(x.submitted)) || loaded.Unfinished() {
		x.t.Fatalf("loaded again: %v, %d jobs were let out of %d", err, loaded.letOut, len(x.submitted))
	}
}

func newInPieces(t *testing.T, w *workflow.Workflow, r *rand.Rand) *inPieces {
	x := &inPieces{world: newWorldOf(t, w, nil), piece: 1 + r.IntN(3)}
	x.flow.piece = x.piece
	x.produce, x.size = produced, func(lfn string) int64 { return int64(hashed(lfn) % 20) }
	return x
}

// However much is done at a time, and wherever the run is loaded again between, the same jobs are let out, in the
// same order: as if each input were done at once.
func TestRandomWorkflowsDoNotDependOnPieces(t *testing.T) {
	r := seed.Source(t)
	tried, pieces := 0, 0
	for range rounds() {
		g := generate(r, false)
		w, err := workflow.Parse("random.yaml", []byte(g.text.String()))
		if err != nil {
			continue
		}
		tried++
		parts, whole := newInPieces(t, w, r), newInPieces(t, w, r)
		whole.flow.piece = math.MaxInt
		for left := g.arrivals; len(left)+len(whole.pending) > 0; {
			if len(left) == 0 && len(parts.pending) == 0 {
				parts.step(Tick{})
				continue
			}
			in, job := parts.next(r, &left)
			if job != "" {
				whole.takePending(slices.Index(whole.pending, job))
				whole.event(whole.jobs[job]) // its files exist there too
			}
			whole.step(in)
			parts.step(in)
			parts.goOn(r)
		}
		parts.end()
		if got, want := strings.Join(parts.submitted, " "), strings.Join(whole.submitted, " "); got != want {
			t.Fatalf("%d at a time\n%s\ngot\n%s\nwant\n%s", parts.piece, g.text.String(), got, want)
		}
		if got, want := parts.order(), whole.order(); got != want || parts.finished != whole.finished {
			t.Fatalf("%d at a time\n%s\ngot\n%s\nwant\n%s", parts.piece, g.text.String(), got, want)
		}
		pieces += parts.pieces
	}
	t.Logf("%d workflows, %d pieces", tried, pieces)
	if pieces < tried {
		t.Errorf("%d workflows in %d pieces", tried, pieces)
	}
}

// Merges by age depend on when they are made, and are let out once all the same.
func TestMergesByAgeInPieces(t *testing.T) {
	r := seed.Source(t)
	for range rounds() {
		g := generate(r, true)
		w, err := workflow.Parse("random.yaml", []byte(g.text.String()))
		if err != nil {
			continue
		}
		x := newInPieces(t, w, r)
		for left := g.arrivals; len(left)+len(x.pending) > 0 || x.flow.Unfinished(); {
			x.now = x.now.Add(time.Duration(r.IntN(8)) * time.Second)
			if in, _ := x.next(r, &left); in != nil {
				x.step(in)
			} else {
				x.step(Tick{})
			}
			x.goOn(r)
		}
		x.now = x.now.Add(time.Minute)
		x.end()
	}
}
