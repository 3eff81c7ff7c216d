//go:build linux

package provision

import (
	"context"
	"fmt"
	"maps"
	"os/exec"
	"slices"
	"strings"
	"time"

	"fairway/internal/flow/workflow"
	"fairway/internal/pilot/gpu"
	"fairway/internal/quantity"
	"fairway/internal/server"
	"fairway/internal/site"
	"fairway/internal/taskqueue"
	"fairway/internal/yamlfile"
)

// checkDemands refuses a workflow with a step that no pilot of the run could ever run, as far
// as that is known before one has come. It notes the tools that this machine has.
func (p *plan) checkDemands(c *capacity, sites []*site.Site) error {
	work, problems, tools := p.config.Workflow, yamlfile.Problems(nil), []string(nil)
	for _, demand := range p.demands {
		tools = append(tools, demand.Tools...)
		problems = append(problems, problemsOf(work, demand, p.unserved(demand, c, sites, work.Limits))...)
	}
	slices.Sort(tools)
	c.tools = c.toolsThere(slices.Compact(tools))
	if len(problems) > 0 && !p.config.WaitAnyway {
		return problems
	}
	return nil
}

// unserved is what all places lack where a step or a job could run; nothing if one of them does not.
// limits are those over all jobs: what they name no pilot needs to have.
func (p *plan) unserved(
	demand workflow.Demand, c *capacity, sites []*site.Site, limits map[string]int64,
) []shortage {
	if beyond := beyondLimits(demand, limits); len(beyond) > 0 {
		return beyond
	}
	demand.Needs = ofPilots(demand.Needs, limits)
	var lacking [][]shortage // of each place
	if p.runsLocally() {
		lacking = append(lacking, c.lacks(demand))
	}
	for _, s := range sites {
		lacking = append(lacking, p.siteLacks(s, demand))
	}
	if slices.ContainsFunc(lacking, func(of []shortage) bool { return len(of) == 0 }) {
		return nil
	}
	return slices.Concat(lacking...)
}

// refuseUnserved refuses steps and jobs that are submitted to a server, and that no pilot of it could
// ever run. limits are those over all jobs.
func (p *plan) refuseUnserved(
	demands []workflow.Demand, limits map[string]int64, waitAnyway bool, c *capacity, sites []*site.Site,
) error {
	for _, demand := range demands {
		who := "it"
		if demand.Line > 0 {
			who = fmt.Sprintf("line %d: step %q", demand.Line, demand.Step)
		}
		if demand.Strict && p.config.Lasting && !p.Strict {
			return fmt.Errorf("%s asks for a strict sandbox, and this server is without: start it with --strict-sandboxes", who)
		}
		if err := p.refuseVariables(demand, who); err != nil {
			return err
		}
		if beyond := beyondLimits(demand, limits); len(beyond) > 0 { // no pilot would help
			return fmt.Errorf("%s %s", who, beyond[0].what)
		}
		var lacks []string
		for _, l := range p.unserved(demand, c, sites, limits) {
			lacks = append(lacks, fmt.Sprintf("%s (%s)", l.what, l.instead))
		}
		if len(lacks) > 0 && !waitAnyway {
			return fmt.Errorf("%s %s; with wait_anyway (--wait-anyway) it waits for a pilot that could run it", who,
				strings.Join(lacks, ", and "))
		}
	}
	return nil
}

// beyondLimits is what is needed beyond what all jobs together may have.
func beyondLimits(demand workflow.Demand, limits map[string]int64) (beyond []shortage) {
	for _, name := range slices.Sorted(maps.Keys(demand.Needs.Countable)) {
		needs := demand.Needs.Countable[name] * int64(max(1, demand.Tasks))
		if most, ok := limits[name]; ok && needs > most {
			beyond = append(beyond, shortage{
				fmt.Sprintf("needs %d %s, and all jobs together may have %d", needs, name, most), "ask for less",
			})
		}
	}
	return beyond
}

// ofPilots are the needs that nothing limits: pilots must have that.
func ofPilots(needs taskqueue.Resources, limits map[string]int64) taskqueue.Resources {
	needs.Countable = maps.Clone(needs.Countable)
	maps.DeleteFunc(needs.Countable, func(name string, _ int64) bool {
		_, limited := limits[name]
		return limited
	})
	if _, limited := limits[quantity.GPU]; limited {
		needs.GPUShare = 0
	}
	return needs
}

// CheckNeeds refuses a workflow with a step that the sites could never run, or, where none is named,
// that needs what no site that is described has. Errors are as those of [Provide].
func CheckNeeds(ctx context.Context, o *Options, work *workflow.Workflow, folder string) error {
	p := planFor(o, &server.Config{RunConfig: server.RunConfig{Workflow: work, Folder: folder}})
	described, err := p.farSites(ctx)
	if len(p.Sites) == 0 {
		described, err = site.Load(folder)
	}
	if err != nil {
		return err
	}
	var problems yamlfile.Problems
	for _, demand := range p.demands {
		demand.Needs = ofPilots(demand.Needs, work.Limits)
		if len(p.Sites) == 0 { // it may run on another machine, of which no amount is known
			demand.Needs = taskqueue.Resources{Countable: demand.Needs.Countable, GPUShare: demand.Needs.GPUShare}
		}
		if len(p.Sites) == 0 && len(demand.Needs.Countable) == 0 && demand.Needs.GPUShare == 0 {
			continue
		}
		lacking := []shortage{}
		fits := slices.Contains(p.Sites, server.LocalSite)
		for _, s := range described {
			l := p.siteLacks(s, demand)
			fits = fits || len(l) == 0
			lacking = append(lacking, l...)
		}
		if len(described) == 0 && !fits {
			lacking = amounts(demand.Needs, taskqueue.Resources{}, "the sites that are described have", "",
				func(name string) string {
					return "give the workflow `limits: {" + name + ": N}`, or a site `has: [" + name + "=N]`; a server may " +
						"have a limit of that name, of which this command does not know"
				})
		}
		if fits {
			continue
		}
		problems = append(problems, problemsOf(work, demand, lacking)...)
	}
	if len(problems) > 0 {
		return problems
	}
	return nil
}

// toolsThere are those of some programs that this machine has.
func (c *capacity) toolsThere(tools []string) (there []string) {
	for _, tool := range tools {
		if c.hasTool(tool) {
			there = append(there, tool)
		}
	}
	return there
}

// hasTool reports whether a program is in PATH, or all GPUs have the memory that is named like one.
func (c *capacity) hasTool(tool string) bool {
	if memory, ok := quantity.ParseGPUMemory(tool); ok {
		return gpu.AllHave(c.gpus, memory)
	}
	_, err := exec.LookPath(tool)
	return err == nil
}

// shortage is what a step needs and a pilot could never have, and what to do about it.
type shortage struct{ what, instead string }

// problemsOf are what the step of a demand lacks, as problems of the file.
func problemsOf(work *workflow.Workflow, demand workflow.Demand, lacking []shortage) (problems yamlfile.Problems) {
	for _, l := range lacking {
		problems = append(problems, yamlfile.Problem{
			File: work.File, Line: demand.Line, Column: 1, What: fmt.Sprintf("step %q %s", demand.Step, l.what),
			Instead: l.instead,
		})
	}
	return problems
}

func (c *capacity) lacks(demand workflow.Demand) (lacking []shortage) {
	for _, tool := range demand.Tools {
		if c.hasTool(tool) {
			continue
		}
		without := shortage{
			fmt.Sprintf("needs the program %s, which is not there", tool), "install it, or put it into PATH",
		}
		if memory, ok := quantity.ParseGPUMemory(tool); ok {
			without = shortage{
				fmt.Sprintf("needs GPUs of %s each, which are not there", quantity.Bytes(memory)), "ask for less memory",
			}
		}
		lacking = append(lacking, without)
	}
	more := "ask for fewer tasks, or use more --pilots or a --site"
	if demand.Apart {
		more = "ask for tasks: in place of nodes:, or use a --site of several nodes"
	}
	lacking = append(lacking, tooManyTasks(demand, c.each, c.pilots, 1, "this machine", more)...)
	less := "ask for less, or use fewer --pilots"
	if c.pilots == 1 {
		less = "ask for less, or use a --site with more"
	}
	return append(lacking, amounts(demand.Needs, c.each, "a pilot has", less,
		func(name string) string { return "say what this machine has with --has " + name + "=N" })...)
}

func (p *plan) siteLacks(s *site.Site, demand workflow.Demand) []shortage {
	more := "ask for less, or choose another --site"
	if s.File != "" {
		more = fmt.Sprintf("ask for less, or change %s:%d", p.Shown(s.File), s.Line)
	}
	lacking := tooManyTasks(demand, siteHas(s), s.MaxPilots, s.MaxPilots, "the site "+s.Name, more)
	return append(lacking, amounts(demand.Needs, siteHas(s), fmt.Sprintf("a pilot of the site %s has", s.Name), more,
		func(name string) string { return "say what a pilot of the site has with `has: [" + name + "=N]`" })...)
}

// tooManyTasks says that tasks that begin together have no room on so many pilots, which are on at most
// so many nodes.
func tooManyTasks(demand workflow.Demand, each taskqueue.Resources, pilots, nodes int, who, more string) []shortage {
	switch room := demand.RoomOn(each); {
	case demand.Tasks < 2 || pilots == 0:
	case demand.Apart && demand.Tasks > nodes:
		return []shortage{{fmt.Sprintf("needs %d nodes; %s has %d", demand.Tasks, who, nodes), more}}
	case !demand.Apart && room > 0 && demand.Tasks > room*pilots:
		return []shortage{{fmt.Sprintf("has %d tasks, which begin together; %s has room for %d", demand.Tasks, who,
			room*pilots), more}}
	}
	return nil
}

func siteHas(s *site.Site) taskqueue.Resources {
	has := taskqueue.Resources{
		MilliCPUs: s.CPUs() * 1000, Memory: s.Request.Memory, Disk: unknownAmount, Time: s.Request.Time, Countable: s.Has,
	}
	if has.MilliCPUs == 0 {
		has.MilliCPUs = unknownAmount
	}
	if has.Memory == 0 {
		has.Memory = unknownAmount
	}
	return has
}

// startTime is kept of the time of a pilot for its own start. A job that declared all of it
// would never find a pilot with so much left.
const startTime = 10 * time.Second

// amounts compares what a step needs with what a pilot has.
func amounts(needs, has taskqueue.Resources, who, more string, sayHow func(name string) string) (lacking []shortage) {
	lack := func(instead, format string, values ...any) {
		lacking = append(lacking, shortage{fmt.Sprintf(format, values...), instead})
	}
	if needs.MilliCPUs > has.MilliCPUs {
		lack(more, "needs %g processors; %s %g", float64(needs.MilliCPUs)/1000, who, float64(has.MilliCPUs)/1000)
	}
	if needs.Memory > has.Memory {
		lack(more, "needs %s of memory; %s %s", quantity.Bytes(needs.Memory), who, quantity.Bytes(has.Memory))
	}
	if needs.Disk > has.Disk {
		lack(more, "needs %s of disk; %s %s", quantity.Bytes(needs.Disk), who, quantity.Bytes(has.Disk))
	}
	if has.Time > 0 && needs.Time > has.Time-startTime {
		lack(more, "needs %s of time; %s %s, and %s of that for its own start", needs.Time, who, has.Time, startTime)
	}
	for _, name := range slices.Sorted(maps.Keys(needs.Countable)) {
		if n := needs.Countable[name]; n > has.Countable[name] {
			lack(sayHow(name), "needs %d %s; %s %d", n, name, who, has.Countable[name])
		}
	}
	if needs.GPUShare > 0 && has.Countable[quantity.GPU] == 0 {
		lack(sayHow(quantity.GPU), "needs %s gpu; %s 0", quantity.Amount{Share: needs.GPUShare}, who)
	}
	return lacking
}
