//go:build linux

package provision

import (
	"slices"
	"testing"

	"fairway/internal/flow/workflow"
	"fairway/internal/pilot/gpu"
	"fairway/internal/quantity"
	"fairway/internal/server"
)

// Pilots of this machine are started for jobs that need GPUs of so much memory, if all have it.
func TestMemoryOfGPUsIsThere(t *testing.T) {
	w, err := workflow.Parse("w.yaml", []byte(`workflow: w
steps:
  one: {writes: a, needs: {gpu: {memory: 12GB}}, command: "true"}
  other: {writes: b, tools: [sh], command: "true"}
`))
	if err != nil {
		t.Fatal(err)
	}
	p := planFor(&Options{}, &server.Config{RunConfig: server.RunConfig{Workflow: w}})
	c := &capacity{pilots: 1, gpus: []gpu.Device{{UUID: "GPU-1", Memory: 15e9}}}
	c.each.MilliCPUs, c.each.Countable = 1000, map[string]int64{quantity.GPU: 1}
	if err := p.checkDemands(c, nil); err != nil {
		t.Fatal(err)
	}
	if want := []string{quantity.GPUMemory(12e9), "sh"}; !slices.Equal(c.tools, want) {
		t.Errorf("the machine has %q, want %q", c.tools, want)
	}
	c.gpus[0].Memory = 11e9
	err = p.checkDemands(c, nil)
	if err == nil || slices.Contains(c.tools, quantity.GPUMemory(12e9)) {
		t.Errorf("less memory is taken for it: %v, %q", err, c.tools)
	}
}
