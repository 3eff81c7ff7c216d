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

// Compared is one policy on one piece of work. What was not measured is nil.
type Compared struct {
	Kind         string   `json:"kind"` // one of the Kind constants
	Work         string   `json:"work"`
	Policy       string   `json:"policy"`
	CachePercent int      `json:"cache_percent"` // of the work's data; 0: does not matter here, or all sizes together
	HitRatio     *float64 `json:"hit_ratio"`     // of files; nil beside Bound, which counts bytes
	ByteHitRatio *float64 `json:"byte_hit_ratio"`
	ReadGB       *float64 `json:"read_gb"`      // from storage
	OverBound    *float64 `json:"over_bound"`   // part by which ReadGB is above the bound; of replayed sequences, where the bound is not 0
	Turnaround   *float64 `json:"turnaround_s"` // of runs
	WideGB       *float64 `json:"wide_gb"`      // read from other sites; of KindSites
	Money        *float64 `json:"money"`        // price of the slots; of KindSites
}

// What a Compared is about.
const (
	KindScheduled = "scheduled" // runs, in which the order of jobs depends on what is cached
	KindSum       = "sum"       // of what scheduled runs read and took, and the mean of their hits, over all sizes of the cache
	KindReplayed  = "replayed"  // one recorded sequence of accesses
	KindPlacement = "placement" // rules for placing jobs on pilots
	KindSites     = "sites"     // what is weighed in placing jobs over sites
	KindCritical  = "critical"  // a run with all the pilots it can use, against the longest chain of its jobs
)

// WidePilots is the name under which a run with all the pilots it can use
// stands.
const WidePilots = "as many pilots as the work is wide"

// LongestChain is the name under which the run time of the longest chain of
// jobs stands beside that of a run with all the pilots it can use.
const LongestChain = "longest chain of jobs"

// Bound is the name under which the lower bound of replayed sequences stands
// among the policies.
const Bound = "offline bound (PFOO-L)"

// cachePercents are the sizes of the cache that are compared.
var cachePercents = []int{5, 10, 20, 40, 70, 100}

// comparedPatterns are the works without traces.
var comparedPatterns = []string{"W1", "W2-shared", "W3", "Tier0", "layers"}

// Compare runs the policies of eviction and placement, on pilots and over sites, on the same work: the
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
		each, err := comparisonPlans(w)
		if err != nil {
			return nil, nil, err
		}
		plans = append(plans, each...)
	}
	for _, p := range plans {
		if err := p.Reseed(seed); err != nil {
			return nil, nil, err
		}
	}
	chapters, err := sweepAll(ctx, plans, progress)
	if err != nil {
		return nil, nil, err
	}
	var rows []Compared
	for _, c := range chapters {
		some, err := comparedRows(c.Results)
		if err != nil {
			return nil, nil, err
		}
		rows = append(rows, some...)
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

// comparisonPlans are the experiments on one piece of work.
func comparisonPlans(work WorkflowSpec) ([]*Plan, error) {
	var plans []*Plan
	for _, prepare := range []func(WorkflowSpec) (*Plan, error){evictionPlan, placementPlan, sitesPlan, criticalPlan} {
		p, err := prepare(work)
		if err != nil {
			return nil, err
		}
		p.About = work.name() + ": " + p.About
		p.Name += "-" + work.name()
		p.Within = strings.TrimSpace("compare " + work.Trace)
		plans = append(plans, p)
	}
	return plans, nil
}

func evictionPlan(work WorkflowSpec) (*Plan, error) {
	p, err := embedded("compare/eviction.yaml")
	if err != nil {
		return nil, err
	}
	base := p.Points[0].Experiment
	base.Workflow = base.Workflow.as(work)
	w, err := workOf(&base)
	if err != nil {
		return nil, err
	}
	base.Timeline = false // of 48 points
	p.Axes, p.Points = []string{"cache_percent", "eviction"}, nil
	for _, percent := range cachePercents {
		for _, policy := range dispatch.EvictionPolicies {
			exp := base
			exp.Cache.Policy = string(policy)
			exp.Cache.Size = Size(w.bytes() * int64(percent) / 100 / int64(exp.Sites[0].Slots))
			exp.Accesses = percent == 100 && policy == dispatch.LRU
			p.Points = append(p.Points, Point{[]string{strconv.Itoa(percent), string(policy)}, exp})
		}
	}
	return p, nil
}

func placementPlan(work WorkflowSpec) (*Plan, error) {
	return embeddedFor(work, "compare/placement.yaml")
}

func sitesPlan(work WorkflowSpec) (*Plan, error) { return embeddedFor(work, "compare/sites.yaml") }

// embeddedFor reads an experiment whose points all do this work.
func embeddedFor(work WorkflowSpec, file string) (*Plan, error) {
	p, err := embedded(file)
	if err != nil {
		return nil, err
	}
	for i := range p.Points {
		x := &p.Points[i].Experiment
		x.Workflow = x.Workflow.as(work)
	}
	return p, nil
}

func criticalPlan(work WorkflowSpec) (*Plan, error) {
	p, err := embeddedFor(work, "compare/critical.yaml")
	if err != nil {
		return nil, err
	}
	x := &p.Points[0].Experiment
	w, err := workOf(x)
	if err != nil {
		return nil, err
	}
	site := &x.Sites[0]
	site.Nodes = w.width()
	site.Started, site.Max = site.Nodes, site.Nodes
	return p, nil
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

// as is the workflow that work names, with all other settings of s.
func (s WorkflowSpec) as(work WorkflowSpec) WorkflowSpec {
	s.Pattern, s.Trace = work.Pattern, work.Trace
	return s
}

// workOf is the workflow of the first repetition.
func workOf(exp *Experiment) (*workflow, error) { return build(exp, stream(mix(exp.Seed), "workflow")) }

// bytes is the size of all files of a workflow together.
func (w *workflow) bytes() int64 {
	var total int64
	for _, size := range w.sizes {
		total += size
	}
	return total
}
