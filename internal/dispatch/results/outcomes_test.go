package results

import (
	"slices"
	"strings"
	"testing"
	"time"

	"fairway/internal/dispatch/records"
	"fairway/internal/taskqueue"
)

// Of results that no run names the oldest go until so much is given back, and those whose time is over in any case.
func TestForgettableUntilEnoughIsGivenBack(t *testing.T) {
	b := NewBook[holder](func(string) (time.Duration, bool) { return time.Hour, false })
	now := time.Unix(100_000, 0)
	for i, age := range []time.Duration{3, 2, 1, 90, 80} { // minutes; the last two are over
		r := &Result[holder]{Result: records.Result{
			Job: string(rune('a' + i)), Scope: "all", Left: taskqueue.InstantOf(now.Add(-age * time.Minute)),
			Outputs: []records.Output{{LFN: "o", PFN: "p", Size: 10}},
		}}
		b.Add(records.Identity{byte(i + 1)}, r)
	}
	for _, c := range []struct {
		limit int
		bytes int64
		want  string
	}{{3, 0, "de"}, {2, 0, "dea"}, {9, 20, "de"}, {9, 21, "dea"}, {9, 31, "deab"}, {9, 99, "deabc"}, {0, 0, "deabc"}} {
		var got strings.Builder
		for _, u := range b.Forgettable(now, c.limit, c.bytes) {
			got.WriteString(u.Job)
		}
		if got.String() != c.want {
			t.Errorf("at most %d, %d bytes back: %s, want %s", c.limit, c.bytes, &got, c.want)
		}
	}
}

// A result is known by its key: who may take it, whether somebody names it, and what it stores.
func TestWhatIsKnownOfAResult(t *testing.T) {
	b := NewBook[holder](func(string) (time.Duration, bool) { return time.Hour, true })
	key := records.Identity{1}
	r := &Result[holder]{Result: records.Result{
		Job: "j", Scope: "lab", Runs: []taskqueue.RunID{4},
		Outputs: []records.Output{{LFN: "a", PFN: "pa", Size: 3}, {LFN: "b", PFN: "pb", Size: 4}},
	}, Takers: []holder{{5, 1}}}
	b.Add(key, r)
	if b.IsUnused(key.Hex()) || b.IsUnused("x") || !b.IsIn("lab", key.Hex()) || b.IsIn("", key.Hex()) || b.IsIn("", "x") {
		t.Error("it is known as another one")
	}
	now := time.Unix(1000, 0)
	n := b.Named(r, 4, now)
	if len(n.Files) != 2 || n.Bytes != 7 || !n.Promised || !n.Until.Equal(now.Add(time.Hour)) {
		t.Errorf("%+v", n)
	}
	if r.Scope = ""; !b.Named(r, 4, now).Until.IsZero() {
		t.Errorf("nobody else could take it, and it is kept until %v", b.Named(r, 4, now).Until)
	}
	var files []string
	for pfn := range b.ResultFiles {
		files = append(files, pfn)
	}
	for range b.ResultFiles {
		break
	}
	if slices.Sort(files); !slices.Equal(files, []string{"pa", "pb"}) {
		t.Errorf("it stores %q", files)
	}
	r.Release(4)
	if r.IsUnused() {
		t.Error("a job has it")
	}
	if r.Leave(holder{5, 1}); !r.IsUnused() || !b.IsUnused(key.Hex()) {
		t.Error("nobody names it")
	}
	if r.Complete(func() []records.Output { return r.Outputs }, nil) {
		t.Error("it lacked something")
	}
	if !r.Agrees([]records.Output{{LFN: "a", PFN: "pa"}}) || r.Agrees([]records.Output{{LFN: "c"}}) {
		t.Error("it does not know its first file, or one that it does not have")
	}
}
