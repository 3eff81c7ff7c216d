package sim

import (
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
		rows = append(rows, compared(&res.Rows[i], kind, work, strings.Join(res.Rows[i].Levels, ", ")))
	}
	if kind == KindCritical {
		w, err := workOf(&res.Plan.Points[0].Experiment)
		if err != nil {
			return nil, err
		}
		rows = append(rows, Compared{Kind: kind, Work: work, Policy: LongestChain, Turnaround: w.criticalPath().Seconds()})
	}
	return rows, nil
}

func compared(r *Row, kind, work, policy string) Compared {
	return Compared{
		Kind: kind, Work: work, Policy: policy, HitRatio: r.value("hit_ratio"),
		ByteHitRatio: r.value("byte_hit_ratio"), ReadGB: r.value("read_gb"), Turnaround: r.value("turnaround_s"),
	}
}

// evictionRows are the scheduled runs, what they read together, and the
// replays of the sequence that one of them recorded.
func evictionRows(res *Results, work string) []Compared {
	var rows, replays []Compared
	sums := make([]Compared, len(dispatch.EvictionPolicies))
	for i := range res.Rows {
		r := &res.Rows[i]
		c := compared(r, KindScheduled, work, r.Levels[1])
		c.CachePercent = cachePercents[i/len(sums)]
		rows = append(rows, c)
		sum := &sums[i%len(sums)]
		sum.Kind, sum.Work, sum.Policy = KindSum, work, c.Policy
		sum.ReadGB += c.ReadGB
		sum.HitRatio += c.HitRatio / float64(len(cachePercents))
		sum.ByteHitRatio += c.ByteHitRatio / float64(len(cachePercents))
		sum.Turnaround += c.Turnaround
		if accesses := r.Runs[0].Accesses; len(accesses) > 0 {
			replays = replayed(work, accesses)
		}
	}
	return append(append(rows, sums...), replays...)
}

// replayed compares the policies on one sequence, where what is read does
// not depend on what was evicted.
func replayed(work string, accesses []Access) []Compared {
	var data int64
	sizes := map[dispatch.FileRef]int64{}
	for _, a := range accesses {
		if _, seen := sizes[a.File]; !seen {
			sizes[a.File] = a.Size
			data += a.Size
		}
	}
	var rows []Compared
	for _, percent := range cachePercents {
		limit := data * int64(percent) / 100
		bound := LowerBound(limit, accesses)
		var read int64
		for _, policy := range dispatch.EvictionPolicies {
			r, err := Replay(policy, limit, accesses)
			if err != nil {
				panic(err) // the policies are those that there are
			}
			read = r.ReadBytes
			rows = append(rows, Compared{
				Kind: KindReplayed, Work: work, Policy: string(policy), CachePercent: percent,
				HitRatio: ratio(float64(r.Hits), float64(r.Reads)), ReadGB: float64(r.Missed) / 1e9,
				ByteHitRatio: 1 - ratio(float64(r.Missed), float64(r.ReadBytes)),
				OverBound:    ratio(float64(r.Missed-bound), float64(bound)),
			})
		}
		rows = append(rows, Compared{
			Kind: KindReplayed, Work: work, Policy: Bound, CachePercent: percent,
			ByteHitRatio: 1 - ratio(float64(bound), float64(read)), ReadGB: float64(bound) / 1e9,
		})
	}
	return rows
}
