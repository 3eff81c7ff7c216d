package results

import (
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"testing"
	"time"

	"fairway/internal/dispatch/records"
	"fairway/internal/taskqueue"
)

// holder is a job of a run that has a result.
type holder struct {
	run taskqueue.RunID
	n   int
}

func (h holder) Run() taskqueue.RunID { return h.run }

func seed(t *testing.T) *rand.Rand {
	n, err := strconv.ParseUint(os.Getenv("FAIRWAY_SEED"), 10, 64)
	if err != nil {
		n = rand.Uint64()
	}
	t.Logf("FAIRWAY_SEED=%d", n)
	return rand.New(rand.NewPCG(n, 1))
}

// What may be forgotten is what a search through all results finds: whose time is over, and then the oldest that
// nobody has promised to keep, until few enough are left.
func TestForgettableAsASearchFindsIt(t *testing.T) {
	rng := seed(t)
	keeps := map[string]time.Duration{"promised": 50 * time.Second, "kept": 20 * time.Second}
	for range 200 {
		b := NewBook[holder](func(group string) (time.Duration, bool) { return keeps[group], group == "promised" })
		now, limit := time.Unix(1000, 0), rng.IntN(6)
		for i := range 1 + rng.IntN(20) {
			r := &Result[holder]{Result: records.Result{Job: strconv.Itoa(i), Scope: "all",
				Group:   []string{"promised", "kept"}[rng.IntN(2)],
				Left:    taskqueue.InstantOf(now.Add(-time.Duration(rng.IntN(60)) * time.Second)),
				Outputs: []records.Output{{LFN: "o", PFN: fmt.Sprint("p", i), Size: 1}}}}
			if rng.IntN(4) == 0 {
				r.Takers = []holder{{1, i}}
			}
			b.Add(records.Identity{byte(i)}, r)
		}
		gone := map[string]bool{}
		for _, u := range b.Forgettable(now, limit, 0) {
			gone[u.Job] = true
			if len(u.PFNs) != 1 || u.Bytes != 1 {
				t.Fatalf("%+v", u)
			}
		}
		stay := 0
		for _, key := range b.Keys(func(*Result[holder]) bool { return true }) {
			r := b.Of(key)
			end := r.Left.After(keeps[r.Group])
			over := end <= taskqueue.InstantOf(now)
			switch {
			case len(r.Takers) > 0 || !over && r.Group == "promised":
				if gone[r.Job] {
					t.Fatalf("%+v is to go", r)
				}
			case over && !gone[r.Job]:
				t.Fatalf("the time of %+v is over", r)
			case !over && !gone[r.Job]:
				stay++
				for _, other := range b.Keys((*Result[holder]).IsUnused) {
					o := b.Of(other)
					if gone[o.Job] && o.Group == "kept" && o.Left.After(keeps["kept"]) > end {
						t.Fatalf("%s goes before %s, which is older", o.Job, r.Job)
					}
				}
			}
		}
		if stay > limit {
			t.Fatalf("%d stay, of %d", stay, limit)
		}
	}
}

// A result gets the stored files that it lacks, and the list that somebody else has of its files stays as it was.
func TestAResultIsCompletedAndItsListsAreNotShared(t *testing.T) {
	r := &Result[holder]{Result: records.Result{Outputs: []records.Output{{LFN: "a", PFN: "pa"}, {LFN: "b"}, {LFN: "c"}}}}
	before := slices.Clone(r.Outputs)
	list := r.Outputs
	own := []records.Output{{LFN: "a", PFN: "other"}, {LFN: "b", PFN: "pb"}, {LFN: "c", PFN: "going"}}
	isGoing := func(pfn string) bool { return pfn == "going" }
	changed := r.Complete(func() []records.Output { return own }, isGoing)
	if !changed || !r.Names("pb") || !r.Names("pa") || r.Names("going") {
		t.Fatalf("%+v", r.Outputs)
	}
	r.Drop("pa")
	if r.Names("pa") || !slices.Equal(list, before) {
		t.Fatalf("%+v, and the list from before is %+v", r.Outputs, list)
	}
	if r.Agrees([]records.Output{{LFN: "a", PFN: "pa"}}) || !r.Agrees([]records.Output{{LFN: "b", PFN: "pb"}}) {
		t.Error("it does not know where its files are")
	}
}

// Results come oldest first: by incarnation, then as their runs left them, whoever names them.
func TestResultsComeInTheOrderInWhichTheyWereLeft(t *testing.T) {
	b := NewBook[holder](nil)
	var want []string
	for i, made := range []uint64{1, 2, 2} {
		r := &Result[holder]{Result: records.Result{Job: strconv.Itoa(i), Made: made, Runs: []taskqueue.RunID{7}}}
		b.HasLeft(r)
		b.Add(records.Identity{byte(9 - i)}, r)
		want = append(want, records.Identity{byte(9 - i)}.Hex())
	}
	if got := b.KeysNamedBy(7); !slices.Equal(got, want) {
		t.Errorf("%v, want %v", got, want)
	}
	r := b.known(want[0])
	r.Takers = []holder{{3, 0}, {2, 1}}
	if n := b.Named(r, 2, time.Unix(1, 0)); !slices.Equal(n.Others, []taskqueue.RunID{3, 7}) {
		t.Errorf("others are %v", n.Others)
	}
	if r.Release(7); r.Lasts() || r.IsUnused() || b.Results() != 3 || b.MadeBy(want[0]) != "0" || b.MadeBy("x") != "" {
		t.Errorf("%+v", r)
	}
}
