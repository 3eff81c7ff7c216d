//go:build linux

package provision

import (
	"context"
	"maps"
	"slices"

	"fairway/internal/flow/workflow"
	"fairway/internal/pilot/report"
	"fairway/internal/server"
	"fairway/internal/server/serverjob"
	"fairway/internal/site"
	"fairway/internal/taskqueue"
)

// Options are what a person says of the pilots of a server.
type Options struct {
	Sites       []string         // none: this machine
	Pilots      int              // of this machine; 0: as many as there is room for
	Has         map[string]int64 // of this machine, for all pilots
	Tools       []string         // that pilots look for
	Environment []string         // variables that jobs get, or process.AllVariables
	Cache       string           // a pilot.CacheMode, or CacheAuto; for sites that do not say it
	CachePolicy string
	CacheSpace  int64 // in bytes for each pilot; 0: what there is room for
	WatchInputs string
	KeepSandbox bool
	Strict      bool // pilots must be able to give strict sandboxes, whether or not the workflow asks for one
	// Attached pilots of this machine end when standard input ends.
	Attached bool
	// Demands are those of jobs that come later and are known already.
	Demands []workflow.Demand
	// Shown shortens a path for the person who is told of it.
	Shown func(path string) string
}

// UsageError is something that cannot be as a person says it, and what to say instead.
type UsageError struct {
	Err     error
	Instead string
}

func (e *UsageError) Error() string { return e.Err.Error() }

func (e *UsageError) Unwrap() error { return e.Err }

// plan is what a server is to have.
type plan struct {
	Options
	config  *server.Config
	demands []workflow.Demand // of the workflow
	later   bool              // jobs come later, and say then in what they run
}

func planFor(o *Options, config *server.Config) *plan {
	p := &plan{Options: *o, config: config, later: config.Lasting}
	if work := config.Workflow; work != nil {
		p.demands, p.later, p.Strict = work.Demands(), work.Open(), p.Strict || work.Strict()
	}
	if p.later {
		p.Tools = slices.Concat(p.Tools, workflow.InsideTools())
	}
	return p
}

// Provide adds to a configuration, which says what is run and in which folder, how pilots come, which
// variables they get, and what is refused since none could ever run it. The error is one of
// yamlfile.Problems where that is so for a step; it may be a *UsageError or a *site.UnknownError.
func Provide(ctx context.Context, o *Options, config *server.Config) error {
	p := planFor(o, config)
	c, err := p.capacity(ctx)
	if err != nil {
		return err
	}
	sites, err := p.farSites(ctx)
	if err == nil && !config.Lasting {
		err = p.checkDemands(c, sites)
	}
	if err != nil {
		return err
	}
	if config.Variables, err = p.variables(); err != nil {
		return err
	}
	for _, s := range sites {
		config.Sites = append(config.Sites, p.farSite(s))
	}
	if p.later && (config.Lasting || !config.WaitAnyway) {
		config.Check = func(demands []workflow.Demand, limits map[string]int64, waitAnyway bool) error {
			return p.refuseUnserved(demands, limits, waitAnyway, c, sites)
		}
	}
	if len(p.Tools) > 0 {
		c.tools = c.toolsThere(p.Tools)
	}
	if serverjob.Running() {
		s, err := ServerSite(o, config)
		if err != nil {
			return err
		}
		config.Job = serverjob.This(ctx, s)
	}
	if p.runsLocally() {
		config.Site = taskqueue.Site{
			Name: server.LocalSite, MaxPilots: c.pilots, Pilot: c.each, Tools: c.tools, FindsTools: p.later,
		}
		config.System, config.Spooled = p.localPilots(c), report.Spooled
	}
	return nil
}

// ServerSite is the first site, whose job the server is to be. The job gets what the pilots of all sites
// are to get, and hands it on, with the Variables of the configuration.
func ServerSite(o *Options, config *server.Config) (*site.Site, error) {
	if len(o.Sites) == 0 {
		return nil, usage("unset it; FAIRWAY_SERVICE is the variable that names a server which takes workflows",
			"%s is set, as it is in the job of a site that is a server, and no site is named", serverjob.Variable)
	}
	s, err := findSite(config, o.Sites[0])
	if err != nil {
		return nil, err
	}
	if err := s.TakesServers(); err != nil {
		return nil, usage("name another site first, or leave --server out", "--server site: %w", err)
	}
	for _, name := range o.Sites[1:] {
		other, err := findSite(config, name)
		if err != nil {
			return nil, err
		}
		s.Environment = append(s.Environment, other.Environment...)
	}
	s.Environment = slices.Concat(s.Environment, o.Environment, slices.Collect(maps.Keys(config.Variables)))
	return s, nil
}
