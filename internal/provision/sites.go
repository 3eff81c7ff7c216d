//go:build linux

package provision

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"path/filepath"
	"slices"
	"strings"

	"fairway/internal/batch"
	"fairway/internal/batch/allocation"
	"fairway/internal/bootstrap"
	"fairway/internal/eviction"
	"fairway/internal/pilot"
	"fairway/internal/pilot/process"
	"fairway/internal/server"
	"fairway/internal/server/folder"
	"fairway/internal/server/launch"
	"fairway/internal/server/publish"
	"fairway/internal/site"
	"fairway/internal/taskqueue"
)

// runsLocally reports whether pilots of a run are started on this machine: no site is
// named, or local is one of them.
func (o *Options) runsLocally() bool {
	return len(o.Sites) == 0 || slices.Contains(o.Sites, server.LocalSite)
}

// farSites are those that the person has named, but this machine.
func (p *plan) farSites(ctx context.Context) (sites []*site.Site, err error) {
	named := map[string]bool{}
	for _, name := range p.Sites {
		if name == server.LocalSite || named[name] {
			continue
		}
		named[name] = true
		s, err := findSite(p.config, name)
		if err == nil {
			err = EnterSite(ctx, s)
		}
		if err == nil && s.OutputPlace != "" {
			if s.OutputPlace, err = publish.ParsePlace(s.OutputPlace); err != nil {
				err = fmt.Errorf("the site %s stores outputs by `catalog_outputs`: %w", name, err)
			}
		}
		if err != nil {
			return nil, err
		}
		s.Environment = append(s.Environment, p.Environment...)
		sites = append(sites, s)
	}
	return sites, nil
}

// findSite is a site that is described beside the workflow, or for the person, or needs no description.
func findSite(config *server.Config, name string) (*site.Site, error) {
	return site.Find(cmp.Or(config.Base, config.Folder), name)
}

func usage(instead, format string, values ...any) error {
	return &UsageError{fmt.Errorf(format, values...), instead}
}

// EnterSite finds the nodes of a site that is the job in which this process runs. The error may be a
// *UsageError.
func EnterSite(ctx context.Context, s *site.Site) error {
	err := s.Enter(ctx)
	if errors.Is(err, allocation.ErrNone) {
		return usage("run this in a job that you have (salloc, qsub, a batch script), or describe the batch "+
			"system with `fairway site add`",
			"the site %s is the nodes of the job in which Fairway runs, and %w", s.Name, err)
	}
	return err
}

// unknownAmount stands for what only the nodes of a site know.
const unknownAmount = math.MaxInt64 / 4

// farSite is a site for the server. Which tools are there the pilots find out.
func (p *plan) farSite(s *site.Site) server.Site {
	tools := slices.Concat(s.Tools, p.Tools)
	for _, demand := range p.demands {
		tools = append(tools, demand.Tools...)
	}
	slices.Sort(tools)
	tools = slices.Compact(tools)
	has := siteHas(s)
	if s.CPUs() == 0 {
		has.MilliCPUs = p.mostCPUs(s)
	}
	return server.Site{
		Site: taskqueue.Site{
			Name: s.Name, MinPilots: s.MinPilots, MaxPilots: s.MaxPilots, MinIdlePilots: s.MinIdlePilots, Pilot: has,
			IdleTime: s.IdleTimeout, Placement: taskqueue.Placements[s.Placement],
			Tools: tools, FindsTools: p.later,
			CacheWith: s.CacheWith, GroupCache: s.GroupCache, Lease: cmp.Or(s.Lease, pilot.DefaultFarLease),
			Most:  taskqueue.Resources{MilliCPUs: s.CPUs() * 1000, Memory: s.Request.Memory, Time: has.Time, Countable: s.Has},
			Price: s.Price.Seconds(), QueueWait: s.QueueWait, Storage: s.Near,
		},
		Poll:    s.Pace(),
		Outputs: s.OutputPlace, Catalog: s.OutputPFN,
		Pilot: func(l folder.Layout) any {
			return p.farPilot(s, tools, l)
		},
		System: func(l folder.Layout, way func(string, any) (launch.Way, error)) (batch.System, error) {
			settings := p.farPilot(s, tools, l)
			return s.Open(site.Launcher{
				State: l.ID, Folder: l.Pilots, Environment: process.Handed,
				Start: func(name string) (bootstrap.Start, error) {
					settings := *settings
					if left, ends := s.Left(); ends {
						settings.Life = left
					}
					at, err := way(name, &settings)
					if err != nil {
						return bootstrap.Start{}, err
					}
					return StartOf(s, at)
				},
			})
		},
	}
}

// mostCPUs stands for the processors of a node where the description does not say how
// many it has: as many as a job needs, or one. Until pilots have come, there is one for
// each such job, and so rather too many than none. Where jobs come later, it is 0: what each needs.
func (p *plan) mostCPUs(s *site.Site) int64 {
	switch most := int64(1000); {
	case !s.LeavesCPUs():
		return most
	case p.later:
		return 0
	default:
		for _, demand := range p.demands {
			most = max(most, demand.Needs.MilliCPUs)
		}
		return most
	}
}

// StartOf is how the pilot of a launch is started at a site: what it says is beside its
// connection file, where nodes see that.
func StartOf(s *site.Site, at launch.Way, arguments ...string) (bootstrap.Start, error) {
	if s.Shares == site.SharesNothing {
		return bootstrap.Carried(bootstrap.Load{
			Connection: at.Connection, Authority: at.Authority, Program: at.Program, Scratch: s.Scratch, Arguments: arguments,
		})
	}
	log := strings.TrimSuffix(at.File, filepath.Ext(at.File)) + ".log"
	return bootstrap.InPlace(at.Path, log, append([]string{PilotCommand, "--connect", at.File}, arguments...)...), nil
}

// SandboxMode is what pilots must be able to do, for a workflow and a site.
func SandboxMode(workflow, site bool) pilot.SandboxMode {
	switch {
	case site:
		return pilot.SandboxStrict
	case workflow:
		return pilot.SandboxSteps
	}
	return ""
}

// farPilot are the settings of the pilots of a site. Folders on the node may begin with
// a variable, which has its value there.
func (p *plan) farPilot(s *site.Site, tools []string, l folder.Layout) *pilot.Config {
	c := &pilot.Config{
		LogDir:      l.Logs,
		Storage:     l.StorageAt(p.config.Storage),
		Element:     l.Storage,
		Workflow:    l.Workflow,
		WatchInputs: pilot.WatchMode(p.WatchInputs),
		Sandbox:     SandboxMode(p.Strict, s.Strict),
		Life:        s.Request.Time,
		Lease:       s.Lease,
		Check:       s.Check,
		Tools:       s.Tools,
		Environment: s.Environment,
		Memory:      s.Request.Memory,
		Countable:   s.Has,
		Probe:       slices.DeleteFunc(slices.Clone(tools), func(tool string) bool { return slices.Contains(s.Tools, tool) }),
		KeepSandbox: p.KeepSandbox,
	}
	if s.CatalogText != "" {
		c.Catalog = &pilot.CatalogConfig{Text: s.CatalogText, Protocol: s.CatalogRules}
	}
	switch s.System {
	case site.SSH: // which does not divide a host by itself
		c.MilliCPUs = s.Request.CPUs * 1000
	case site.Allocation: // the server is in the same job, and the nodes are soon others'
		c.Lease = cmp.Or(s.Lease, pilot.DefaultLease)
		c.MilliCPUs = s.TakenCPUs() * 1000
	}
	c.Cache = pilot.CacheConfig{Mode: pilot.CacheMode(cmp.Or(s.Cache, cacheMode(p.Cache)))}
	if c.Cache.Mode != pilot.CacheNone {
		c.Cache.MaxSpace = max(s.CacheSpace, p.CacheSpace)
		c.Cache.MinThreshold = s.MinThreshold
		c.Cache.Group = s.GroupCache
		c.Cache.Policy = cmp.Or(s.CachePolicy, eviction.Policy(p.CachePolicy))
	}
	c.InScratch(filepath.Join(s.Scratch, pilot.ScratchPrefix+l.ID))
	return c
}
