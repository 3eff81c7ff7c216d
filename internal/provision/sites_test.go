//go:build linux

package provision

import (
	"testing"

	"fairway/internal/flow/workflow"
	"fairway/internal/server"
	"fairway/internal/site"
)

// Where a description does not say how many processors a pilot has, nobody knows. A job that needs several has a
// pilot started all the same, unless the batch system gives one processor where it is not asked for more.
func TestProcessorsOfPilotsThatNobodyKnows(t *testing.T) {
	const own = "command, max_pilots: 1, command: {submit: [x], status: [x], job: '(?P<name>a)(?P<id>a)(?P<state>a)', " +
		"states: {running: [a]}, cancel: [x, '{id}']}"
	for described, want := range map[string][2]int64{ // of a run, and where jobs come later
		own:                  {8000, 0},
		"slurm":              {8000, 0},
		"slurm, cpus: 4":     {4000, 4000},
		"slurm, memory: 8GB": {1000, 1000},
		"htcondor":           {1000, 1000},
		"ssh, hosts: [a]":    {8000, 0},
		"gridengine":         {1000, 1000},
	} {
		sites, err := site.Parse("sites.yaml", []byte("sites: {far: {system: "+described+"}}"))
		if err != nil {
			t.Fatal(described, err)
		}
		for i, text := range []string{"steps: {a: {writes: b, needs: {cpus: 8}, command: x}}", "open: true"} {
			w, err := workflow.Parse("w.yaml", []byte("workflow: w\n"+text+"\n"))
			if err != nil {
				t.Fatal(text, err)
			}
			p := planFor(&Options{}, &server.Config{RunConfig: server.RunConfig{Workflow: w}})
			if has := p.farSite(sites[0]).Site.Pilot.MilliCPUs; has != want[i] {
				t.Errorf("%s, %s: a pilot is taken to have %d, want %d", described, text, has, want[i])
			}
		}
	}
}
