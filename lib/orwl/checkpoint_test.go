package orwl

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"fairway/lib/orwl/internal/checkpoint"
	"fairway/lib/seed"
)

// chain is a program of several tasks, in which each number depends on the order of all steps: a
// task makes its number from that of the next task, and a second goroutine of it keeps a list.
type chain struct {
	numbers []int64
	lists   [][]int64
}

const growEvery = 3 // iterations, after which the lists get longer

func newChain(n int) *chain {
	c := &chain{numbers: make([]int64, n), lists: make([][]int64, n)}
	for k := range n {
		c.numbers[k], c.lists[k] = int64(k+1), make([]int64, 1)
	}
	return c
}

func nextNumber(own, next int64) int64 { return 3*own + 5*next + 1 }

// iterate is what all tasks do in an iteration, one after the other.
func (c *chain) iterate(i int) {
	for k := len(c.numbers) - 1; k >= 0; k-- {
		next := int64(0)
		if k+1 < len(c.numbers) {
			next = c.numbers[k+1]
		}
		c.numbers[k] = nextNumber(c.numbers[k], next)
		if i%growEvery == 0 {
			c.lists[k] = append(c.lists[k], 0)
		}
		for j := range c.lists[k] {
			c.lists[k][j] = 7*c.lists[k][j] + c.numbers[k]
		}
	}
}

// link is one task of a chain as a member of a gang.
type link struct {
	member       *Member
	saves        *Checkpoints
	number, list *Location
}

// joinChain makes a task, as its file says, and gives it what was saved.
func joinChain(ctx context.Context, path string, every time.Duration) (l *link, err error) {
	l = new(link)
	if l.member, err = joinGang(ctx, path); err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			l.member.Close()
		}
	}()
	k, first := l.member.Process(), newChain(l.member.Processes())
	requests := 2
	if k > 0 {
		requests++ // of the task before
	}
	l.number, err = New(fmt.Sprint("number ", k), 8, StartWith(requests))
	if err != nil {
		return nil, err
	}
	l.number.Initialize(func(b []byte) { BytesAs[int64](b)[0] = first.numbers[k] })
	if l.list, err = New(fmt.Sprint("list ", k), 8, StartWith(1)); err != nil {
		return nil, err
	}
	if l.saves, err = l.member.Checkpoints(ctx, every, l.number, l.list); err != nil {
		return nil, err
	}
	return l, l.member.Serve(ctx, l.number)
}

// run does the iterations, or as many as are asked for.
func (l *link) run(ctx context.Context, iterations int, after func(n int)) error {
	k, n := l.member.Process(), l.member.Processes()
	var own, next, seen, list Pair
	rank := -10 * k
	pairs, requests := Pairs{&own}, []Posting{own.Writing(l.number).At(rank)}
	if k+1 < n {
		r, err := l.member.Resource(ctx, fmt.Sprint("number ", k+1))
		if err != nil {
			return err
		}
		pairs, requests = append(pairs, &next), append(requests, next.Reading(r).At(rank))
	}
	if err := Insert(ctx, requests...); err != nil {
		return err
	}
	if err := Insert(ctx, seen.Reading(l.number).At(rank+1), list.Writing(l.list)); err != nil {
		return err
	}
	var both sync.WaitGroup
	errs := make([]error, 2)
	both.Go(func() {
		errs[0] = l.recur(ctx, iterations, pairs, func(int) error {
			a, err := WriteAs[int64](&own)
			if err != nil {
				return err
			}
			b := []int64{0}
			if len(pairs) == 2 {
				if b, err = ReadAs[int64](&next); err != nil {
					return err
				}
			}
			a[0] = nextNumber(a[0], b[0])
			return nil
		}, after)
	})
	both.Go(func() {
		errs[1] = l.recur(ctx, iterations, Pairs{&seen, &list}, func(i int) error {
			a, err := ReadAs[int64](&seen)
			if err != nil {
				return err
			}
			b, err := list.ReadMap()
			if err == nil && i%growEvery == 0 {
				err = list.Resize(len(b) + 8)
			}
			if err != nil {
				return err
			}
			w, err := WriteAs[int64](&list)
			for j := range w {
				w[j] = 7*w[j] + a[0]
			}
			return err
		}, func(int) {})
	})
	both.Wait()
	return errors.Join(errs...)
}

func (l *link) recur(ctx context.Context, iterations int, ps Pairs, do func(i int) error, after func(n int)) error {
	for i := l.saves.Begun(); i < iterations; i++ {
		if err := ps.Acquire(ctx); err != nil {
			return err
		}
		if err := do(i); err != nil {
			return errors.Join(err, ps.Cancel())
		}
		if i+1 == iterations {
			return ps.Finish()
		}
		if err := l.saves.Release(ctx, i+1, ps); err != nil {
			return err
		}
		after(i + 1)
	}
	return nil
}

// attempt runs all tasks, which end at once when one has come so far; it reports whether all have
// come to the end.
func attempt(t *testing.T, paths []string, iterations int, every time.Duration, victim, end int) (done bool) {
	t.Helper()
	ctx, cancel := context.WithCancel(background)
	defer cancel()
	var all sync.WaitGroup
	errs := make([]error, len(paths))
	got := newChain(len(paths))
	for k, path := range paths {
		all.Go(func() {
			l, err := joinChain(ctx, path, every)
			if err != nil {
				errs[k] = err
				cancel()
				return
			}
			defer l.member.Close()
			errs[k] = l.run(ctx, iterations, func(n int) {
				if k == victim && n == end {
					cancel()
				}
			})
			if errs[k] != nil {
				cancel()
				return
			}
			_, _, err = l.saves.Saved()
			errs[k] = errors.Join(err, l.member.Finish(ctx))
			got.numbers[k] = BytesAs[int64](read(t, l.number))[0]
			got.lists[k] = append([]int64(nil), BytesAs[int64](read(t, l.list))...)
		})
	}
	all.Wait()
	if ctx.Err() != nil && end > 0 {
		return false
	}
	must(t, errors.Join(errs...))
	want := newChain(len(paths))
	for i := range iterations {
		want.iterate(i)
	}
	if fmt.Sprint(got) != fmt.Sprint(want) {
		t.Fatalf("%d iterations give %v and not %v", iterations, got, want)
	}
	return true
}

// checkWhole compares the last whole checkpoint with what a sequential program has after as many
// iterations, and returns their number.
func checkWhole(t *testing.T, folder string, tasks int) int {
	t.Helper()
	w, err := checkpoint.ReadManifest(folder, tasks)
	must(t, err)
	if w.Iteration == 0 {
		return 0
	}
	want := newChain(tasks)
	for i := range w.Iteration {
		want.iterate(i)
	}
	for k := range tasks {
		number := &covered{location: newLocation(t, fmt.Sprint("number ", k), 8)}
		list := &covered{location: newLocation(t, fmt.Sprint("list ", k), 8)}
		f, err := os.Open(checkpoint.PartPath(folder, w.Iteration, k))
		must(t, err)
		must(t, checkpoint.ReadPart(background, f, w.Parts[k], []*covered{list, number}))
		must(t, f.Close())
		a, b := BytesAs[int64](read(t, number.location)), BytesAs[int64](read(t, list.location))
		if a[0] != want.numbers[k] || fmt.Sprint(b) != fmt.Sprint(want.lists[k]) {
			t.Fatalf("task %d after iteration %d: %v, %v and not %v, %v", k, w.Iteration, a, b, want.numbers[k], want.lists[k])
		}
	}
	return w.Iteration
}

// Gangs end at random moments and begin again, until they are through: each whole checkpoint is what
// a sequential program has, and so is the end.
func TestGangGoesOnFromItsCheckpoints(t *testing.T) {
	rng := seed.Source(t)
	for range rounds(3) {
		gangUntilDone(t, rng)
	}
}

func gangUntilDone(t *testing.T, rng *rand.Rand) {
	tasks, iterations := 1+rng.IntN(4), 40
	every := []time.Duration{1, time.Millisecond, 5 * time.Millisecond}[rng.IntN(3)]
	folders := make([]string, tasks)
	for k := range folders {
		folders[k] = filepath.Join(t.TempDir(), "state")
	}
	begun := 0
	for n := 0; ; n++ {
		end := begun + 1 + rng.IntN(iterations/2)
		if n == 6 { // with long intervals it may get nowhere
			end = 0
		}
		paths := testGang(t, tasks, fmt.Sprint("attempt ", n), folders...)
		if attempt(t, paths, iterations, every, rng.IntN(tasks), end) {
			break
		}
		whole := checkWhole(t, folders[0], tasks)
		if whole < begun {
			t.Fatalf("the last whole checkpoint was after iteration %d and is now after %d", begun, whole)
		}
		begun = whole
	}
}

// Where every iteration is saved, the last whole checkpoint is a few behind.
func TestCheckpointsAreMade(t *testing.T) {
	folder := t.TempDir()
	if !attempt(t, testGang(t, 3, "only", folder), 200, 1, 0, 0) {
		t.Fatal("it did not come to its end")
	}
	if n := checkWhole(t, folder, 3); n == 0 {
		t.Error("nothing was saved")
	}
}

// The plan comes to the interval by doubling its distances, has its points in order, and keeps about an interval
// between two checkpoints, also where iterations change.
func TestPlanOfCheckpoints(t *testing.T) {
	const every = 10 * time.Second
	steady := func(iteration time.Duration) func(int) time.Duration {
		return func(int) time.Duration { return iteration }
	}
	for _, c := range []struct {
		iteration         time.Duration
		shortest, longest time.Duration // between two checkpoints
	}{
		{time.Millisecond, 9 * time.Second, 10 * time.Second},
		{20 * time.Second, 20 * time.Second, 60 * time.Second}, // the first two points save nothing
		{0, 0, 0},
	} {
		checkPlan(t, fmt.Sprint(c.iteration), steady(c.iteration), every, c.shortest, c.longest)
	}
	for i := range time.Duration(60) { // a point before an interval is over does not put the checkpoint off
		iteration := 200*time.Millisecond + i*10*time.Millisecond
		checkPlan(t, fmt.Sprint(iteration), steady(iteration), every, 8*time.Second, 10*time.Second)
	}
	// A machine that becomes slower and faster by two, at once.
	for period := 5; period < 200; period += 7 {
		uneven := func(n int) time.Duration {
			if n/period%2 == 0 {
				return 300 * time.Millisecond
			}
			return 600 * time.Millisecond
		}
		checkPlan(t, fmt.Sprint("changing after ", period), uneven, every, 6*time.Second, 15*time.Second)
	}
}

// checkPlan makes a plan for iterations that take some time, as task 0 does.
func checkPlan(t *testing.T, name string, takes func(n int) time.Duration, every, shortest, longest time.Duration) {
	t.Helper()
	p := newPlan(100)
	var now, savedAt, passedAt, iteration time.Duration
	passed, saved := 100, 0
	for n := 101; now < 200*time.Second && n < 300_000; n++ {
		now += takes(n)
		if p.horizon() < n {
			t.Fatalf("%s: at %d nobody knows what comes", name, n)
		}
		if p.isSaved(n) {
			if apart := now - savedAt; apart < shortest || apart > longest {
				t.Errorf("%s: checkpoints are %v apart", name, apart)
			}
			saved, savedAt = saved+1, now
		}
		if !p.passes(n) {
			continue
		}
		iteration, passed, passedAt = (now-passedAt)/time.Duration(n-passed), n, now
		for len(p.points)-p.passed < pointsAhead {
			q := p.further(iteration, every, now-savedAt)
			if q.iteration <= p.horizon() {
				t.Fatalf("%s: %d follows %d", name, q.iteration, p.horizon())
			}
			p.add(q)
		}
	}
	if (saved == 0) != (longest == 0) {
		t.Errorf("%s: %d checkpoints", name, saved)
	}
}

// TestPlanThatEnds has tasks come to the end of the plan of a first task that is gone: before it is known
// to be gone, and after.
func TestPlanThatEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := &Checkpoints{plan: newPlan(0), learned: make(chan struct{}), reached: make(chan struct{}, 1)}
		c.ctx, c.cancel = context.WithCancel(t.Context())
		beyond := c.plan.horizon() + 1
		waits := make(chan error)
		go func() { waits <- c.Release(background, beyond, nil) }()
		synctest.Wait()
		c.end()
		for _, err := range []error{<-waits, c.Release(background, beyond, nil)} {
			if !errors.Is(err, ErrLeaseLost) {
				t.Errorf("a task goes on with %v", err)
			}
		}
	})
}

// What cannot be saved is refused, with what to do.
func TestCheckpointsThatCannotBe(t *testing.T) {
	folder := t.TempDir()
	refused := func(name, want string, every time.Duration, folder string, locations ...*Location) {
		t.Helper()
		var folders []string
		if folder != "" {
			folders = []string{folder}
		}
		m, err := joinGang(background, testGang(t, 1, "only", folders...)[0])
		must(t, err)
		defer m.Close()
		if _, err := m.Checkpoints(background, every, locations...); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", name, err)
		}
	}
	refused("no folder", "checkpoint: state/", time.Second, "")
	refused("no interval", "more than zero", 0, folder)
	refused("no start", "StartWith", time.Second, folder, newLocation(t, "l", 8))
	refused("two of a name", "two locations", time.Second, folder, newLocation(t, "l", 8, StartWith(1)),
		newLocation(t, "l", 8, StartWith(1)))
	must(t, os.WriteFile(filepath.Join(folder, checkpoint.ManifestName), []byte(`{"tasks": 2, "iteration": 3}`), 0o600))
	refused("another number of tasks", "of 2 tasks, and these are 1", time.Second, folder)
	whole := `{"tasks": 1, "iteration": 3, "parts": [{"size": 40, "crc32c": 1}]}`
	for n := 0; n < len(whole); n += 7 {
		must(t, os.WriteFile(filepath.Join(folder, checkpoint.ManifestName), []byte(whole[:n]), 0o600))
		refused("a manifest that was cut", folder+": "+checkpoint.ErrDamaged.Error(), time.Second, folder)
	}
	must(t, os.WriteFile(filepath.Join(folder, checkpoint.ManifestName), []byte(whole), 0o600))
	refused("a part that lacks", folder+": "+checkpoint.ErrDamaged.Error(), time.Second, folder,
		newLocation(t, "l", 8, StartWith(1)))
	must(t, os.MkdirAll(checkpoint.PartFolder(folder, 3), 0o700))
	for _, part := range []string{"", "{\"locations\": [", `{"locations": [{"name": "l", "size": 8}]}` + "\n123"} {
		must(t, os.WriteFile(checkpoint.PartPath(folder, 3, 0), []byte(part), 0o600))
		refused("a part that was cut", folder+": "+checkpoint.ErrDamaged.Error(), time.Second, folder,
			newLocation(t, "l", 8, StartWith(1)))
	}
}

// A location gets a file as its first version, and gives its last one to a file.
func TestLocationsFromAndToFiles(t *testing.T) {
	in, out := filepath.Join(t.TempDir(), "in"), filepath.Join(t.TempDir(), "out")
	must(t, os.WriteFile(in, []byte("first"), 0o600))
	l, err := NewFromFile("l", in)
	must(t, err)
	var before Handle
	must(t, before.WriteRequest(l))
	must(t, Do(background, &before, func(b []byte) error { b[0] = 'F'; return nil }))
	must(t, WriteFile(background, l, out))
	got, err := os.ReadFile(out)
	must(t, err)
	if string(got) != "First" {
		t.Errorf("%q", got)
	}
	if entries, err := os.ReadDir(filepath.Dir(out)); err != nil || len(entries) != 1 {
		t.Errorf("%v, %v", entries, err)
	}
	if err := WriteFile(background, l, filepath.Join(out, "x")); err == nil {
		t.Error("written below a file")
	}
	if _, err := NewFromFile("l", out+"x"); !errors.Is(err, os.ErrNotExist) {
		t.Error(err)
	}
}
