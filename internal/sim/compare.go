package sim

import (
	"context"
	"embed"
	"fmt"
	"path/filepath"
	"strconv"
	"strings"

	"fairway/internal/dispatch"
)

//go:embed compare/*.yaml
var compareFiles embed.FS

// Compared is one policy on one piece of work.
type Compared struct {
	Kind         string  `json:"kind"` // scheduled, replayed, or placement
	Work         string  `json:"work"`
	Policy       string  `json:"policy"`
	CachePercent int     `json:"cache_percent"` // of the work's data; 0: does not matter here
	HitRatio     float64 `json:"hit_ratio"`
	ByteHitRatio float64 `json:"byte_hit_ratio"`
	ReadGB       float64 `json:"read_gb"`      // from storage
	Turnaround   float64 `json:"turnaround_s"` // 0: of replayed sequences
}

// Bound is the name under which the lower bound of replayed sequences stands
// among the policies.
const Bound = "offline bound (PFOO-L)"

// cachePercents are the sizes of the cache that are compared.
var cachePercents = []int{5, 10, 20, 40, 70, 100}

// comparedPatterns are the works without traces.
var comparedPatterns = []string{"W1", "W2-shared", "W3", "Tier0", "layers"}

// Compare runs the policies of eviction and placement on the same work: the
// traces given, or the patterns of the paper if there is none. The chapters
// hold the scheduled runs in full.
func Compare(ctx context.Context, traces []string, seed uint64, progress func(done, total int)) ([]Compared, []Chapter, error) {
	var works []WorkflowSpec
	for _, trace := range traces {
		works = append(works, WorkflowSpec{Trace: trace, Scale: 1, SizeScale: 1, Accesses: 1})
	}
	if len(traces) == 0 {
		for _, p := range comparedPatterns {
			works = append(works, WorkflowSpec{Pattern: p})
		}
	}
	var plans []*Plan
	for _, w := range works {
		both, err := comparisonPlans(w)
		if err != nil {
			return nil, nil, err
		}
		plans = append(plans, both...)
	}
	for _, p := range plans {
		p.Reseed(seed)
	}
	chapters, err := sweepAll(ctx, plans, progress)
	if err != nil {
		return nil, nil, err
	}
	var rows []Compared
	for _, c := range chapters {
		rows = append(rows, comparedRows(c.Results)...)
	}
	return rows, chapters, nil
}

// sweepAll runs plans one after the other and counts their runs together.
func sweepAll(ctx context.Context, plans []*Plan, progress func(done, total int)) ([]Chapter, error) {
	total, before := 0, 0
	for _, p := range plans {
		total += p.runs()
	}
	var chapters []Chapter
	for _, p := range plans {
		res, err := Sweep(ctx, p, func(done, _ int) {
			if progress != nil {
				progress(before+done, total)
			}
		})
		if err != nil {
			return nil, err
		}
		before += p.runs()
		chapters = append(chapters, Chapter{Results: res})
	}
	return chapters, nil
}

// comparisonPlans are the two experiments on one piece of work.
func comparisonPlans(work WorkflowSpec) ([]*Plan, error) {
	eviction, err := embedded("compare/eviction.yaml")
	if err != nil {
		return nil, err
	}
	placement, err := embedded("compare/placement.yaml")
	if err != nil {
		return nil, err
	}
	name := work.name()
	base := eviction.Points[0].Experiment
	base.Workflow = base.Workflow.as(work)
	data, err := dataOf(&base)
	if err != nil {
		return nil, err
	}
	e := &Plan{File: eviction.File, Name: "eviction-" + name, About: name + ": " + eviction.About, Axes: []string{"cache_percent", "eviction"}}
	for _, percent := range cachePercents {
		for _, policy := range dispatch.EvictionPolicies {
			exp := base
			exp.Cache.Policy = string(policy)
			exp.Cache.Size = Size(data * int64(percent) / 100 / int64(exp.Sites[0].Slots))
			exp.Accesses = percent == 100 && policy == dispatch.LRU
			e.Points = append(e.Points, Point{[]string{strconv.Itoa(percent), string(policy)}, exp})
		}
	}
	placement.Name, placement.About = "placement-"+name, name+": "+placement.About
	for i := range placement.Points {
		x := &placement.Points[i].Experiment
		x.Workflow = x.Workflow.as(work)
	}
	return []*Plan{e, placement}, nil
}

func embedded(file string) (*Plan, error) {
	data, err := compareFiles.ReadFile(file)
	if err != nil {
		return nil, fmt.Errorf("read an experiment: %w", err)
	}
	return Parse(file, data)
}

// name is how tables call a piece of work.
func (s WorkflowSpec) name() string {
	if s.Trace != "" {
		return strings.TrimSuffix(filepath.Base(s.Trace), ".json")
	}
	return s.Pattern
}

// as is the workflow that work names, with the settings of s for a pattern.
func (s WorkflowSpec) as(work WorkflowSpec) WorkflowSpec {
	if work.Trace != "" {
		return work
	}
	s.Pattern = work.Pattern
	return s
}

// dataOf is the size of all files of a workflow together.
func dataOf(exp *Experiment) (int64, error) {
	w, err := build(exp, stream(mix(exp.Seed), "workflow"))
	if err != nil {
		return 0, err
	}
	var total int64
	for _, size := range w.sizes {
		total += size
	}
	return total, nil
}

// comparedRows flattens the results of one plan, and adds the replays of the
// sequence that it recorded.
func comparedRows(res *Results) []Compared {
	kind, work, _ := strings.Cut(res.Plan.Name, "-")
	var rows []Compared
	for i := range res.Rows {
		r := &res.Rows[i]
		c := Compared{
			Kind: "scheduled", Work: work, Policy: r.Levels[len(r.Levels)-1], HitRatio: r.value("hit_ratio"),
			ByteHitRatio: r.value("byte_hit_ratio"), ReadGB: r.value("read_gb"), Turnaround: r.value("turnaround_s"),
		}
		if kind == "placement" {
			c.Kind = kind
		} else {
			c.CachePercent, _ = strconv.Atoi(r.Levels[0]) // written by comparisonPlans
		}
		rows = append(rows, c)
		if accesses := r.Runs[0].Accesses; len(accesses) > 0 {
			rows = append(rows, replayed(work, accesses)...)
		}
	}
	return rows
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
		var read int64
		for _, policy := range dispatch.EvictionPolicies {
			r, err := Replay(policy, limit, accesses)
			if err != nil {
				panic(err) // the policies are those that there are
			}
			read = r.ReadBytes
			rows = append(rows, Compared{
				Kind: "replayed", Work: work, Policy: string(policy), CachePercent: percent,
				HitRatio: ratio(float64(r.Hits), float64(r.Reads)), ReadGB: float64(r.Missed) / 1e9,
				ByteHitRatio: 1 - ratio(float64(r.Missed), float64(r.ReadBytes)),
			})
		}
		bound := LowerBound(limit, accesses)
		rows = append(rows, Compared{
			Kind: "replayed", Work: work, Policy: Bound, CachePercent: percent,
			ByteHitRatio: 1 - ratio(float64(bound), float64(read)), ReadGB: float64(bound) / 1e9,
		})
	}
	return rows
}
