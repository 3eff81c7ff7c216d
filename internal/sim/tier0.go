package sim

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"time"
)

// Tier0Spec divides the jobs and bytes of the pattern Tier0, the workflow of
// paper 3, sections III and V, among its steps. The paper gives 172 jobs that
// read 83.41 GB and write 112 GB, and says neither how the steps share them
// nor how long a merge takes; so these are assumptions of the experiment.
type Tier0Spec struct {
	Input    Size        `yaml:"input"`     // bytes that exist before, a file for each job of the first step; 0 means 83.41GB
	MergeRun float64     `yaml:"merge_run"` // run time of a merge, as a part of another job's; 0 means 0.1
	Steps    []Tier0Step `yaml:"steps"`     // in their order; none means tier0Steps
}

// Tier0Step is a processing step and the merges that join its outputs. The
// merges write as many bytes as they read.
type Tier0Step struct {
	Name   string `yaml:"name"`
	Jobs   int    `yaml:"jobs"`   // without the merges; each reads one file of the step before
	Writes Size   `yaml:"writes"` // bytes of all of these jobs
	Merge  int    `yaml:"merge"`  // outputs that go into one merge; the last may get fewer
}

// tier0Steps is one division that follows the paper's two rules: every job
// writes less than it reads, and a merge writes what it reads. 60+60+36 jobs
// and 6+6+4 merges are 172; 2·(32+18+6) GB are 112.
var tier0Steps = []Tier0Step{
	{Name: "repack", Jobs: 60, Writes: 32e9, Merge: 10},
	{Name: "reco", Jobs: 60, Writes: 18e9, Merge: 10},
	{Name: "alca", Jobs: 36, Writes: 6e9, Merge: 9},
}

func (s *Tier0Spec) defaults() {
	setDefault(&s.Input, 83.41e9)
	setDefault(&s.MergeRun, 0.1)
	if len(s.Steps) == 0 {
		s.Steps = tier0Steps
	}
}

func (s *Tier0Spec) check() error {
	names := map[string]bool{}
	for _, step := range s.Steps {
		path := "workflow.tier0.steps"
		switch {
		case step.Name == "" || names[step.Name]:
			return atPath(path, "step %q: every one needs a name of its own", step.Name)
		case step.Jobs < 1 || step.Jobs > MaxValues || step.Merge < 1:
			return atPath(path+"."+step.Name, "step %s: needs jobs (1 to %d), and in merge how many of their outputs are merged into one", step.Name, MaxValues)
		}
		names[step.Name] = true
	}
	if s.MergeRun < 0 {
		return atPath("workflow.tier0.merge_run", "a merge takes a part of another job's run time, such as 0.1")
	}
	return nil
}

func tier0(s WorkflowSpec, r *rand.Rand) *workflow {
	w := newWorkflow("Tier0")
	var files []string
	first := s.Tier0.Steps[0].Jobs
	for i := range first {
		lfn := fmt.Sprintf("raw/%03d", i)
		w.exists(lfn, int64(s.Tier0.Input)/int64(first))
		files = append(files, lfn)
	}
	for i := range s.Tier0.Steps {
		step := &s.Tier0.Steps[i]
		files = w.merged(step, s, r, w.processed(step, s, r, files))
	}
	return w
}

// processed adds the jobs of a step over the files given, which they share
// evenly, and returns what they write.
func (w *workflow) processed(step *Tier0Step, s WorkflowSpec, r *rand.Rand, files []string) []string {
	var out []string
	for i := range step.Jobs {
		f := extant{fmt.Sprintf("%s/%03d", step.Name, i), int64(step.Writes) / int64(step.Jobs)}
		w.add(step.Name, fmt.Sprintf("%s-%03d", step.Name, i), s.Run.draw(r), []string{files[i*len(files)/step.Jobs]}, f)
		out = append(out, f.lfn)
	}
	return out
}

// merged adds the jobs that join the outputs of a step, and returns what they
// write.
func (w *workflow) merged(step *Tier0Step, s WorkflowSpec, r *rand.Rand, files []string) []string {
	name := step.Name + "-merge"
	var out []string
	for reads := range slices.Chunk(files, step.Merge) {
		f := extant{fmt.Sprintf("%s/%03d", name, len(out)), 0}
		for _, lfn := range reads {
			f.size += w.sizes[lfn]
		}
		run := time.Duration(float64(s.Run.draw(r)) * s.Tier0.MergeRun)
		w.add(name, fmt.Sprintf("%s-%03d", name, len(out)), run, reads, f)
		out = append(out, f.lfn)
	}
	return out
}
