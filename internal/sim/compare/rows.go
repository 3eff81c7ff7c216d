package compare

import (
	"cmp"
	"strings"

	"fairway/internal/eviction"
	"fairway/internal/sim"
	"fairway/internal/taskqueue"
)

// rowsOf flattens the results of one plan.
func rowsOf(res *sim.Results) ([]Row, error) {
	kind, work, _ := strings.Cut(res.Plan.Name, "-")
	if kind == "eviction" {
		return evictionRows(res, work), nil
	}
	var rows []Row
	for i := range res.Rows {
		policy := cmp.Or(strings.Join(res.Rows[i].Levels, ", "), WidePilots)
		rows = append(rows, rowOf(&res.Rows[i], kind, work, policy))
	}
	if kind == KindCritical {
		extent, err := sim.ExtentOf(&res.Plan.Points[0].Experiment)
		if err != nil {
			return nil, err
		}
		rows = append(rows, Row{Kind: kind, Work: work, Policy: LongestChain, Turnaround: new(extent.CriticalPath.Seconds())})
	}
	return rows, nil
}

func rowOf(r *sim.Row, kind, work, policy string) Row {
	c := Row{
		Kind: kind, Work: work, Policy: policy, HitRatio: new(r.Value("hit_ratio")),
		ByteHitRatio: new(r.Value("byte_hit_ratio")), ReadGB: new(r.Value("read_gb")),
		Turnaround: new(r.Value("turnaround_s")),
	}
	if kind == KindSites {
		c.WideGB, c.Money = new(r.Value("wide_gb")), new(r.Value("money"))
	}
	return c
}

// evictionRows are the scheduled runs, what they read together, and the
// replays of the sequence that one of them recorded.
func evictionRows(res *sim.Results, work string) []Row {
	var rows, sums, replays []Row
	policies := len(eviction.Policies)
	for i := range res.Rows {
		r := &res.Rows[i]
		c := rowOf(r, KindScheduled, work, r.Levels[1])
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
func summed(rows []Row, first, step int) Row {
	var hits, byteHits, read, turnaround float64
	n := 0.0
	for i := first; i < len(rows); i += step {
		hits += *rows[i].HitRatio
		byteHits += *rows[i].ByteHitRatio
		read += *rows[i].ReadGB
		turnaround += *rows[i].Turnaround
		n++
	}
	return Row{
		Kind: KindSum, Work: rows[first].Work, Policy: rows[first].Policy, HitRatio: new(hits / n),
		ByteHitRatio: new(byteHits / n), ReadGB: &read, Turnaround: &turnaround,
	}
}

// replayed compares the policies on one sequence, where what is read does
// not depend on what was evicted.
func replayed(work string, accesses []sim.Access) []Row {
	data := dataOf(accesses)
	var rows []Row
	for _, percent := range cachePercents {
		limit := data * int64(percent) / 100
		bound := lowerBound(limit, accesses)
		row := func(policy string, missed, read int64) Row {
			c := Row{
				Kind: KindReplayed, Work: work, Policy: policy, CachePercent: percent, ReadGB: new(float64(missed) / 1e9),
				ByteHitRatio: new(1 - share(missed, read)),
			}
			if bound > 0 {
				c.OverBound = new(float64(missed-bound) / float64(bound))
			}
			return c
		}
		var read int64
		for _, policy := range eviction.Policies {
			r, err := Replay(policy, limit, accesses)
			if err != nil {
				panic(err) // the policies are those that there are
			}
			read = r.ReadBytes
			c := row(string(policy), r.Missed, r.ReadBytes)
			c.HitRatio = new(share(int64(r.Hits), int64(r.Reads)))
			rows = append(rows, c)
		}
		rows = append(rows, row(Bound, bound, read))
	}
	return rows
}

// dataOf is the size of all files of a sequence together.
func dataOf(accesses []sim.Access) int64 {
	var data int64
	seen := map[taskqueue.FileRef]bool{}
	for _, a := range accesses {
		if !seen[a.File] {
			seen[a.File] = true
			data += a.Size
		}
	}
	return data
}

func share(part, whole int64) float64 {
	if whole == 0 {
		return 0
	}
	return float64(part) / float64(whole)
}
