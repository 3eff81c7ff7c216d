//go:build linux

package cli

import (
	"context"
	"fmt"
	"maps"
	"os/exec"
	"slices"
	"time"

	"fairway/internal/dispatch"
	"fairway/internal/flow"
	"fairway/internal/quantity"
	"fairway/internal/server"
	"fairway/internal/site"
	"fairway/internal/yamlfile"
)

// checkDemands refuses a workflow with a step that no pilot of the run could ever run, as far
// as that is known before one has come. It notes the tools that this machine has. limits are those of
// the server, over all runs; what they or the workflow limit no pilot needs to have.
func checkDemands(
	workflow *flow.Workflow, o *runOptions, c *capacity, sites []*site.Site, limits map[string]int64,
) error {
	problems := beyondLimits(workflow, limits)
	for _, demand := range workflow.Demands() {
		demand.Needs.Countable = ofPilots(workflow, demand.Needs.Countable, limits)
		var lacking [][]shortage // of each place where the step may run
		if o.runsLocally() {
			lacking = append(lacking, c.lacks(demand))
		}
		for _, s := range sites {
			lacking = append(lacking, siteLacks(s, demand))
		}
		if slices.ContainsFunc(lacking, func(of []shortage) bool { return len(of) == 0 }) {
			continue
		}
		for _, l := range slices.Concat(lacking...) {
			problems = append(problems, yamlfile.Problem{
				File: workflow.File, Line: demand.Line, Column: 1,
				What: fmt.Sprintf("step %q %s", demand.Step, l.what), Instead: l.instead,
			})
		}
	}
	slices.Sort(c.tools)
	c.tools = slices.Compact(c.tools)
	if len(problems) > 0 && !o.waitAnyway {
		return problems
	}
	return nil
}

// beyondLimits are the steps that need more than all jobs of a server together may have.
func beyondLimits(workflow *flow.Workflow, limits map[string]int64) (problems yamlfile.Problems) {
	for _, demand := range workflow.Demands() {
		for _, name := range slices.Sorted(maps.Keys(demand.Needs.Countable)) {
			if most, ok := limits[name]; ok && demand.Needs.Countable[name] > most {
				problems = append(problems, yamlfile.Problem{
					File: workflow.File, Line: demand.Line, Column: 1, Instead: "ask for less",
					What: fmt.Sprintf("step %q needs %d %s, and all jobs of the server together may have %d", demand.Step,
						demand.Needs.Countable[name], name, most),
				})
			}
		}
	}
	return problems
}

// ofPilots are the needs that neither the workflow nor the server limits: pilots must have that.
func ofPilots(workflow *flow.Workflow, needs, limits map[string]int64) map[string]int64 {
	left := maps.Clone(needs)
	maps.DeleteFunc(left, func(name string, _ int64) bool {
		_, ofRun := workflow.Limits[name]
		_, ofServer := limits[name]
		return ofRun || ofServer
	})
	return left
}

// checkNeeds refuses a workflow with a step that the sites could never run, or, where none is named,
// that needs what no site that is described has.
func (c *console) checkNeeds(workflow *flow.Workflow, folder string, sites []string) error {
	o := newRunOptions()
	o.folder, o.sites = folder, sites
	described, err := farSites(context.Background(), o)
	if len(sites) == 0 {
		described, err = site.Load(folder)
	}
	if err != nil {
		return err
	}
	var problems yamlfile.Problems
	for _, demand := range workflow.Demands() {
		demand.Needs.Countable = ofPilots(workflow, demand.Needs.Countable, nil)
		if len(sites) == 0 { // it may run on another machine, of which no amount is known
			demand.Needs = dispatch.Resources{Countable: demand.Needs.Countable}
		}
		if len(sites) == 0 && len(demand.Needs.Countable) == 0 {
			continue
		}
		lacking := []shortage{}
		fits := slices.Contains(sites, server.LocalSite)
		for _, s := range described {
			l := siteLacks(s, demand)
			fits = fits || len(l) == 0
			lacking = append(lacking, l...)
		}
		if len(described) == 0 && !fits {
			lacking = amounts(demand.Needs, dispatch.Resources{}, "the sites that are described have", "",
				func(name string) string {
					return "give the workflow `limits: {" + name + ": N}`, or a site `has: [" + name + "=N]`"
				})
		}
		if fits {
			continue
		}
		for _, l := range lacking {
			problems = append(problems, yamlfile.Problem{
				File: workflow.File, Line: demand.Line, Column: 1, What: fmt.Sprintf("step %q %s", demand.Step, l.what),
				Instead: l.instead,
			})
		}
	}
	if len(problems) > 0 {
		return problems
	}
	return nil
}

// shortage is what a step needs and a pilot could never have, and what to do about it.
type shortage struct{ what, instead string }

// lacks is what this machine lacks. Tools that are there are noted.
func (c *capacity) lacks(demand flow.Demand) (lacking []shortage) {
	for _, tool := range demand.Tools {
		if _, err := exec.LookPath(tool); err != nil {
			lacking = append(lacking, shortage{
				fmt.Sprintf("needs the program %s, which is not there", tool), "install it, or put it into PATH",
			})
		} else {
			c.tools = append(c.tools, tool)
		}
	}
	return append(lacking, amounts(demand.Needs, c.each, "a pilot has", "ask for less, or use fewer --pilots",
		func(name string) string { return "say what this machine has with --has " + name + "=N" })...)
}

// siteLacks is what pilots of a site lack, as far as its description tells.
func siteLacks(s *site.Site, demand flow.Demand) []shortage {
	more := "ask for less, or choose another --site"
	if s.File != "" {
		more = fmt.Sprintf("ask for less, or change %s:%d", displayPath(s.File), s.Line)
	}
	return amounts(demand.Needs, siteHas(s), fmt.Sprintf("a pilot of the site %s has", s.Name), more,
		func(name string) string { return "say what a pilot of the site has with `has: [" + name + "=N]`" })
}

// siteHas is what a pilot of a site has, as far as its description tells.
func siteHas(s *site.Site) dispatch.Resources {
	has := dispatch.Resources{
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
func amounts(needs, has dispatch.Resources, who, more string, sayHow func(name string) string) (lacking []shortage) {
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
	return lacking
}
