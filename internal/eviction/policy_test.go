package eviction

import (
	"cmp"
	"slices"
	"strings"
	"testing"

	"fairway/lib/seed"
)

func TestUnknownPolicyIsRefused(t *testing.T) {
	if _, err := New[int]("oldest"); err == nil || !strings.Contains(err.Error(), `"oldest"`) {
		t.Errorf("the error is %v", err)
	}
}

// past is what happened to one file, said naively.
type past struct {
	size  int64
	cost  float64
	times []int
	count int
}

// going is the order in which files go by the definitions of the policies.
func going(policy Policy, files map[int]*past, now int, unread []int) (order []int) {
	for f, p := range files {
		if policy != LFUStar || p.count == 1 || slices.Contains(unread, f) {
			order = append(order, f)
		}
	}
	last := func(p *past, k int) int {
		if len(p.times) < k {
			return 0
		}
		return p.times[len(p.times)-k]
	}
	rank := func(f int) float64 {
		p := files[f]
		switch policy {
		case FIFO:
			return float64(p.times[0])
		case LFU, LFUAging:
			return float64(p.count)
		case LRUK:
			return float64(last(p, 2))
		case LCBK:
			k := min(len(p.times), 2)
			return float64(k) * p.cost / float64(now+1-last(p, k)) / float64(max(p.size, 1))
		}
		return 0
	}
	slices.SortFunc(order, func(a, b int) int {
		x, y := slices.Contains(unread, a), slices.Contains(unread, b)
		switch {
		case x && !y:
			return -1
		case y && !x:
			return 1
		}
		return cmp.Or(cmp.Compare(rank(a), rank(b)), cmp.Compare(last(files[a], 1), last(files[b], 1)))
	})
	return order
}

// halve is what LFUAging does when the counts exceed 10 on average.
func halve(files map[int]*past) {
	sum := 0
	for _, p := range files {
		sum += p.count
	}
	if sum > 10*len(files) {
		for _, p := range files {
			p.count = (p.count + 1) / 2
		}
	}
}

// However files come, are used and go: each policy gives them up in the order of its definition.
func TestPoliciesGoByTheirDefinitions(t *testing.T) {
	r := seed.Source(t)
	for _, policy := range []Policy{FIFO, LFU, LRUK, LFUStar, LFUAging, LCBK} {
		for range 60 {
			o, files, now := order[int](t, policy), map[int]*past{}, 0
			var unread []int
			for range 120 {
				f, before := r.IntN(4), now
				switch p := files[f]; r.IntN(12) {
				case 0:
					o.Drop(f)
					delete(files, f)
				case 1:
					told := r.Perm(4)
					unread = told[:r.IntN(2)]
					o.Follow(told, len(unread))
				case 2, 3, 4:
					if p == nil { // sizes and costs that no two products of have in common
						p = &past{size: []int64{0, 3, 7, 19}[f], cost: []float64{1, 11, 23, 53}[f]}
						files[f] = p
					}
					now++
					p.times, p.count = append(p.times, now), p.count+1
					o.Store(f, p.size, p.cost)
				default:
					o.Use(f)
					if p != nil {
						now++
						p.times, p.count = append(p.times, now), p.count+1
					}
				}
				if policy == LFUAging && now > before {
					halve(files)
				}
				if got, want := slices.Collect(o.Going()), going(policy, files, now, unread); !slices.Equal(got, want) {
					t.Fatalf("%s: %v go, not %v", policy, got, want)
				}
			}
		}
	}
}
