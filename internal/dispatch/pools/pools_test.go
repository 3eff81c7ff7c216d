package pools

import (
	"math/rand/v2"
	"testing"
	"time"

	"fairway/internal/taskqueue"
	"fairway/lib/seed"
)

// Jobs get what is left of pools, but for what is kept for another one, and whoever was kept from some is told of
// when some is given back. All of it is compared with lists of who holds what.
func TestPoolsAgainstLists(t *testing.T) {
	first := seed.Of(t)
	rng := rand.New(rand.NewPCG(first, 0))
	type kept struct {
		by    int
		until taskqueue.Instant
	}
	for range 300 {
		now := taskqueue.InstantOf(time.Unix(1000, 0))
		limits := map[string]int64{"a": 1 + rng.Int64N(4), "b": 1 + rng.Int64N(4)}
		all := Set[int](nil).Limited(limits)
		held := map[int]Needs[int]{} // by job; jobs count from 1
		keeps, stopped := map[*Pool[int]]kept{}, map[*Pool[int]]bool{}
		used := func(p *Pool[int]) (sum int64) {
			for _, n := range held {
				sum += n.of(p)
			}
			return sum
		}
		isKept := func(p *Pool[int], from int) bool {
			k := keeps[p]
			return k.by != 0 && k.by != from && now < k.until
		}
		for range 60 {
			now = now.After(time.Duration(rng.IntN(3)) * time.Second)
			j, tasks := 1+rng.IntN(6), 1+rng.IntN(2)
			var needs Needs[int]
			for _, name := range []string{"a", "b"} {
				if rng.IntN(3) > 0 {
					needs = append(needs, Need[int]{all[name], rng.Int64N(3)})
				}
			}
			switch rng.IntN(6) {
			case 0:
				freed := false
				for _, x := range held[j] {
					freed = freed || stopped[x.Pool]
					delete(stopped, x.Pool)
				}
				if held[j].GiveBack() != freed {
					t.Fatalf("FAIRWAY_SEED=%d: somebody was kept from %+v: %v", first, held[j], freed)
				}
				delete(held, j)
			case 1:
				needs.Keep(now, j, now.After(2*time.Second))
				for _, x := range needs {
					if !isKept(x.Pool, j) {
						keeps[x.Pool] = kept{j, now.After(2 * time.Second)}
					}
				}
			case 2:
				freed := false
				for _, x := range needs {
					if keeps[x.Pool].by == j {
						delete(keeps, x.Pool)
						freed = freed || stopped[x.Pool]
					}
				}
				if needs.LetGo(j) != freed {
					t.Fatalf("FAIRWAY_SEED=%d: somebody was kept from %+v for job %d: %v", first, needs, j, freed)
				}
			default:
				var lacks *Pool[int]
				room := true
				for _, x := range needs {
					left := limits[x.Pool.name] - used(x.Pool)
					room = room && left >= x.N*int64(tasks)
					if lacks == nil && (left+held[j].of(x.Pool) < x.N*int64(tasks) || isKept(x.Pool, j)) {
						lacks = x.Pool
						stopped[x.Pool] = true
					}
				}
				standing := len(needs.Standing(now, j, tasks, func(int) string { return "" })) > 0
				if needs.Lacks(now, j, tasks, held[j]) != (lacks != nil) || held[j] == nil && standing != (lacks != nil) ||
					(needs.Room(tasks) > 0) != room {
					t.Fatalf("FAIRWAY_SEED=%d: %+v lacks %v beside %v, kept: %v", first, needs, lacks, held, keeps)
				}
				if held[j] == nil && lacks == nil && tasks == 1 {
					needs.Grant()
					held[j] = needs
				}
			}
			for _, v := range all.Views() {
				if v.Used != used(all[v.Name]) || v.Used != all[v.Name].Used() || v.Most != limits[v.Name] {
					t.Fatalf("FAIRWAY_SEED=%d: %+v, and jobs have %d", first, v, used(all[v.Name]))
				}
			}
		}
		if again := all.Limited(map[string]int64{"a": 9, "c": 1}); again["a"] != all["a"] || again["b"] != nil ||
			again["c"].Used() != 0 || len(again) != 2 {
			t.Fatalf("FAIRWAY_SEED=%d: %+v", first, again)
		}
	}
}
