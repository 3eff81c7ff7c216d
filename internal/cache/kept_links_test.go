package cache

import (
	"math/rand/v2"
	"testing"

	"fairway/internal/eviction"
)

// Where pilots of a host keep their links to a file that its owner evicts, as section IV-D of paper 3
// has it, each counts what it links itself, and what they hold together outgrows the space of all: here
// is by how much. So a cache has its peers drop with it what it evicts (untilDropped).
func TestLinksThatOutliveAnEvictionOutgrowTheSpace(t *testing.T) {
	const (
		pilots, limit = 4, 160 // of files of one size: 40 for each pilot
		recent, looks = 240, 8 // jobs read some of the last files, and pilots look for files after so many jobs
		jobs          = 4000
	)
	rng := rand.New(rand.NewPCG(1, 0))
	var orders [pilots]*eviction.Order[int]
	var links [pilots]map[int]bool
	for p := range pilots {
		order, err := eviction.New[int](eviction.LRU)
		if err != nil {
			t.Fatal(err)
		}
		orders[p], links[p] = order, map[int]bool{}
	}
	store := func(p, file int) {
		for f := range orders[p].Going() {
			if len(links[p]) < limit {
				break
			}
			orders[p].Drop(f)
			delete(links[p], f)
		}
		orders[p].Store(file, 1, 1)
		links[p][file] = true
	}
	most := 0
	for job := range jobs {
		p := job % pilots
		for range 3 {
			if f := job - rng.IntN(recent); links[p][f] {
				orders[p].Use(f)
			}
		}
		store(p, job)
		if job%looks == 0 {
			for q := range pilots {
				for f := job - looks; f <= job; f++ {
					if f >= 0 && !links[q][f] {
						store(q, f)
					}
				}
			}
		}
		all := map[int]bool{}
		for q := range pilots {
			for f := range links[q] {
				all[f] = true
			}
		}
		most = max(most, len(all))
	}
	t.Logf("with links that outlive an eviction a host holds up to %.2f times its space", float64(most)/limit)
	if most <= limit {
		t.Errorf("%d files, at most %d", most, limit)
	}
}
