//go:build linux

package cli

import (
	"fmt"
	"maps"
	"os/exec"
	"slices"
	"time"

	"fairway/internal/dispatch"
	"fairway/internal/flow"
	"fairway/internal/pilot/gpu"
	"fairway/internal/quantity"
	"fairway/internal/site"
	"fairway/internal/yamlfile"
)

// checkDemands refuses a workflow with a step that no pilot of the run could ever run, as far
// as that is known before one has come. It notes the tools that this machine has.
func checkDemands(workflow *flow.Workflow, o *runOptions, c *capacity, sites []*site.Site) error {
	var problems yamlfile.Problems
	for _, demand := range workflow.Demands() {
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

// shortage is what a step needs and a pilot could never have, and what to do about it.
type shortage struct{ what, instead string }

// lacks is what this machine lacks. Tools that are there are noted.
func (c *capacity) lacks(demand flow.Demand) (lacking []shortage) {
	for _, tool := range demand.Tools {
		if memory, ok := quantity.ParseGPUMemory(tool); ok {
			if gpu.AllHave(c.gpus, memory) {
				c.tools = append(c.tools, tool)
			} else {
				lacking = append(lacking, shortage{
					fmt.Sprintf("needs GPUs of %s each, which are not there", quantity.Bytes(memory)), "ask for less memory",
				})
			}
			continue
		}
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
