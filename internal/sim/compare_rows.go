package sim

import (
	"cmp"
	"strings"

	"fairway/internal/dispatch"
)

// comparedRows flattens the results of one plan.
func comparedRows(res *Results) ([]Compared, error) {
	kind, work, _ := strings.Cut(res.Plan.Name, "-")
	if kind == "eviction" {
		return evictionRows(res, work), nil
	}
	var rows []Compared
	for i := range res.Rows {
		policy := cmp.Or(strings.Join(res.Rows[i].Levels, ", "), WidePilots)
		rows = append(rows, compared(&res.Rows[i], kind, work, policy))
	}
	if kind == KindCritical {
		w, err := workOf(&res.Plan.Points[0].Experiment)
		if err != nil {
			return nil, err
		}
		rows = append(rows, Compared{Kind: kind, Work: work, Policy: LongestChain, Turnaround: new(w.criticalPath().Seconds())})
	}
	return rows, nil
}

func compared(r *Row, kind, work, policy string) Compared {
	c := Compared{
		Kind: kind, Work: work, Policy: policy, HitRatio: new(r.value("hit_ratio")),
		ByteHitRatio: new(r.value("byte_hit_ratio")), ReadGB: new(r.value("read_gb")), Turnaround: new(r.value("turnaround_s")),
	}
	if kind == KindSites {
		c.WideGB, c.Money = new(r.value("wide_gb")), new(r.value("money"))
	}
	return c
}

// evictionRows are the scheduled runs, what they read together, and the
// replays of the sequence that one of them recorded.
func evictionRows(res *Results, work string) []Compared {
	var rows, sums, replays []Compared
	policies := len(dispatch.EvictionPolicies)
	for i := range res.Rows {
		r := &res.Rows[i]
		c := compared(r, KindScheduled, work, r.Levels[1])
		c.CachePercent = cachePercents[i/policies]
		rows = append(rows, c)
		if accesses := r.Runs[0].Accesses; len(accesses) > 0 {
			replays = replayed(work, accesses)
		}
	}
	for p := range policies {
		sums = append(sums, summed(rows, p, policies))
	}
	return append(append(rows, sums...), replays...)
}

// summed is one policy over all sizes of the cache: every step-th row.
func summed(rows []Compared, first, step int) Compared {
	var hits, byteHits, read, turnaround float64
	n := 0.0
	for i := first; i < len(rows); i += step {
		hits += *rows[i].HitRatio
		byteHits += *rows[i].ByteHitRatio
		read += *rows[i].ReadGB
		turnaround += *rows[i].Turnaround
		n++
	}
	return Compared{
		Kind: KindSum, Work: rows[first].Work, Policy: rows[first].Policy, HitRatio: new(hits / n),
		ByteHitRatio: new(byteHits / n), ReadGB: &read, Turnaround: &turnaround,
	}
}

// replayed compares the policies on one sequence, where what is read does
// not depend on what was evicted.
func replayed(work string, accesses []Access) []Compared {
	data := dataOf(accesses)
	var rows []Compared
	for _, percent := range cachePercents {
		limit := data * int64(percent) / 100
		bound := LowerBound(limit, accesses)
		row := func(policy string, missed, read int64) Compared {
			c := Compared{
				Kind: KindReplayed, Work: work, Policy: policy, CachePercent: percent, ReadGB: new(float64(missed) / 1e9),
				ByteHitRatio: new(1 - ratio(float64(missed), float64(read))),
			}
			if bound > 0 {
				c.OverBound = new(float64(missed-bound) / float64(bound))
			}
			return c
		}
		var read int64
		for _, policy := range dispatch.EvictionPolicies {
			r, err := Replay(policy, limit, accesses)
			if err != nil {
				panic(err) // the policies are those that there are
			}
			read = r.ReadBytes
			c := row(string(policy), r.Missed, r.ReadBytes)
			c.HitRatio = new(ratio(float64(r.Hits), float64(r.Reads)))
			rows = append(rows, c)
		}
		rows = append(rows, row(Bound, bound, read))
	}
	return rows
}

// dataOf is the size of all files of a sequence together.
func dataOf(accesses []Access) int64 {
	var data int64
	seen := map[dispatch.FileRef]bool{}
	for _, a := range accesses {
		if !seen[a.File] {
			seen[a.File] = true
			data += a.Size
		}
	}
	return data
}
