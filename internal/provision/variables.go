//go:build linux

package provision

import (
	"fmt"
	"os"
	"slices"
	"strings"

	"fairway/internal/flow/workflow"
	"fairway/internal/pilot/process"
	"fairway/internal/yamlfile"
)

// variables are the variables of the environment of this process that jobs may name: those that the
// steps of the workflow name or, for a server that lasts, those under --environment. The error
// names steps whose variables are not set.
func (p *plan) variables() (map[string][]byte, error) {
	values := map[string][]byte{}
	if p.config.Lasting {
		for _, entry := range os.Environ() {
			name, value, _ := strings.Cut(entry, "=")
			if p.handsOver(name) {
				values[name] = []byte(value)
			}
		}
		return values, nil
	}
	var problems yamlfile.Problems
	for _, demand := range p.demands {
		for _, name := range demand.Variables {
			value, set := os.LookupEnv(name)
			if !set {
				problems = append(problems, yamlfile.Problem{
					File: p.config.Workflow.File, Line: demand.Line, Column: 1,
					What:    fmt.Sprintf("step %q names the variable %s, which is not set here", demand.Step, name),
					Instead: fmt.Sprintf("export %s=VALUE first, or write %s=VALUE under variables", name, name),
				})
				continue
			}
			values[name] = []byte(value)
		}
	}
	if len(problems) > 0 {
		return nil, problems
	}
	return values, nil
}

// handsOver reports whether a server that lasts gives a variable of its environment to jobs that
// name it.
func (o *Options) handsOver(name string) bool {
	return slices.Contains(o.Environment, name) ||
		slices.Contains(o.Environment, process.AllVariables) && !strings.HasPrefix(name, "FAIRWAY_")
}

// refuseVariables refuses steps that are submitted to a server that lasts and that name variables which
// it does not hand over.
func (p *plan) refuseVariables(demand workflow.Demand, who string) error {
	for _, name := range demand.Variables {
		_, set := os.LookupEnv(name)
		if p.config.Lasting && (!set || !p.handsOver(name)) {
			return fmt.Errorf("%s names the variable %s, which this server does not hand over: write %s=VALUE under variables, "+
				"or start the server with --environment %s", who, name, name, name)
		}
	}
	return nil
}
