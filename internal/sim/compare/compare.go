// Package compare measures the policies of eviction and placement against each
// other on the same work: in scheduled runs, where what is cached changes the
// order of jobs, and on one recorded sequence of accesses, where it does not and
// an offline bound says how good any cache can be. The policies are those of
// internal/dispatch.
package compare

import (
	"context"
	"embed"
	"fmt"
	"path"
	"path/filepath"
	"strconv"
	"strings"

	"fairway/internal/eviction"
	"fairway/internal/sim"
	"fairway/internal/sim/experiment"
)

//go:embed *.yaml
var compareFiles embed.FS

// Row is one policy on one piece of work. What was not measured is nil.
type Row struct {
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

// What a Row is about.
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

// cachePercents are the sizes of the cache that are rowOf.
var cachePercents = []int{5, 10, 20, 40, 70, 100}

// comparedPatterns are the works without traces.
var comparedPatterns = []string{"W1", "W2-shared", "W3", "Tier0", "layers"}

// Policies runs the policies of eviction and placement, on pilots and over sites, on the same work: the
// traces given, or the patterns of the paper if there is none. The results
// are those of the scheduled runs, in full.
func Policies(
	ctx context.Context, traces []string, seed uint64, progress func(done, total int),
) ([]Row, []*sim.Results, error) {
	var works []experiment.WorkflowSpec
	for _, trace := range traces {
		works = append(works, experiment.WorkflowSpec{Trace: trace, Scale: 1, SizeScale: 1, Accesses: 1})
	}
	if len(traces) == 0 {
		for _, p := range comparedPatterns {
			works = append(works, experiment.WorkflowSpec{Pattern: p})
		}
	}
	var plans []*experiment.Plan
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
	all, err := sim.SweepAll(ctx, plans, progress)
	if err != nil {
		return nil, nil, err
	}
	var rows []Row
	for _, res := range all {
		some, err := rowsOf(res)
		if err != nil {
			return nil, nil, err
		}
		rows = append(rows, some...)
	}
	return rows, all, nil
}

// comparisonPlans are the experiments on one piece of work.
func comparisonPlans(work experiment.WorkflowSpec) ([]*experiment.Plan, error) {
	var plans []*experiment.Plan
	for _, prepare := range []func(experiment.WorkflowSpec) (*experiment.Plan, error){
		evictionPlan, placementPlan, sitesPlan, criticalPlan,
	} {
		p, err := prepare(work)
		if err != nil {
			return nil, err
		}
		p.About = nameOf(work) + ": " + p.About
		p.Name += "-" + nameOf(work)
		p.Within = strings.TrimSpace("compare " + work.Trace)
		plans = append(plans, p)
	}
	return plans, nil
}

func evictionPlan(work experiment.WorkflowSpec) (*experiment.Plan, error) {
	p, err := embedded("eviction.yaml")
	if err != nil {
		return nil, err
	}
	base := p.Points[0].Experiment
	replace(&base.Workflow, work)
	extent, err := sim.ExtentOf(&base)
	if err != nil {
		return nil, err
	}
	base.Timeline = false // of 48 points
	p.Axes, p.Points = []string{"cache_percent", "eviction"}, nil
	for _, percent := range cachePercents {
		for _, policy := range eviction.Policies {
			exp := base
			exp.Cache.Policy = string(policy)
			exp.Cache.Size = experiment.Size(extent.Bytes * int64(percent) / 100 / int64(exp.Sites[0].Slots))
			exp.Accesses = percent == 100 && policy == eviction.LRU
			p.Points = append(p.Points, experiment.Point{
				Levels: []string{strconv.Itoa(percent), string(policy)}, Experiment: exp,
			})
		}
	}
	return p, nil
}

func placementPlan(work experiment.WorkflowSpec) (*experiment.Plan, error) {
	return embeddedFor(work, "placement.yaml")
}

func sitesPlan(work experiment.WorkflowSpec) (*experiment.Plan, error) {
	return embeddedFor(work, "sites.yaml")
}

// embeddedFor reads an experiment whose points all do this work.
func embeddedFor(work experiment.WorkflowSpec, file string) (*experiment.Plan, error) {
	p, err := embedded(file)
	if err != nil {
		return nil, err
	}
	for i := range p.Points {
		replace(&p.Points[i].Experiment.Workflow, work)
	}
	return p, nil
}

func criticalPlan(work experiment.WorkflowSpec) (*experiment.Plan, error) {
	p, err := embeddedFor(work, "critical.yaml")
	if err != nil {
		return nil, err
	}
	x := &p.Points[0].Experiment
	extent, err := sim.ExtentOf(x)
	if err != nil {
		return nil, err
	}
	site := &x.Sites[0]
	site.Nodes = extent.Width
	site.Started, site.Max = site.Nodes, site.Nodes
	return p, nil
}

func embedded(file string) (*experiment.Plan, error) {
	data, err := compareFiles.ReadFile(file)
	if err != nil {
		return nil, fmt.Errorf("read an experiment: %w", err)
	}
	return experiment.Parse(path.Join("compare", file), data)
}

// nameOf is how tables call a piece of work.
func nameOf(s experiment.WorkflowSpec) string {
	if s.Trace != "" {
		return strings.TrimSuffix(filepath.Base(s.Trace), ".json")
	}
	return s.Pattern
}

// replace puts the workflow that work names in the place of that of s, and keeps
// all other settings.
func replace(s *experiment.WorkflowSpec, work experiment.WorkflowSpec) {
	s.Pattern, s.Trace = work.Pattern, work.Trace
}
