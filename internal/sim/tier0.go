package sim

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"time"

	"fairway/internal/sim/experiment"
)

func tier0(s experiment.WorkflowSpec, r *rand.Rand) *workflow {
	w := newWorkflow()
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
func (w *workflow) processed(
	step *experiment.Tier0Step, s experiment.WorkflowSpec, r *rand.Rand, files []string,
) []string {
	var out []string
	for i := range step.Jobs {
		f := extant{fmt.Sprintf("%s/%03d", step.Name, i), int64(step.Writes) / int64(step.Jobs)}
		w.add(step.Name, fmt.Sprintf("%s-%03d", step.Name, i), s.Run.Draw(r), []string{files[i*len(files)/step.Jobs]}, f)
		out = append(out, f.lfn)
	}
	return out
}

// merged adds the jobs that join the outputs of a step, and returns what they
// write.
func (w *workflow) merged(
	step *experiment.Tier0Step, s experiment.WorkflowSpec, r *rand.Rand, files []string,
) []string {
	name := step.Name + "-merge"
	var out []string
	for reads := range slices.Chunk(files, step.Merge) {
		f := extant{fmt.Sprintf("%s/%03d", name, len(out)), 0}
		for _, lfn := range reads {
			f.size += w.sizes[lfn]
		}
		run := time.Duration(float64(s.Run.Draw(r)) * s.Tier0.MergeRun)
		w.add(name, fmt.Sprintf("%s-%03d", name, len(out)), run, reads, f)
		out = append(out, f.lfn)
	}
	return out
}
