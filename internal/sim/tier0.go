package sim

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"time"

	"fairway/internal/sim/experiment"
)

func tier0(s experiment.WorkflowSpec, r *rand.Rand) *jobGraph {
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
// evenly, and returns what they write. Each job reads a part of a file, as the events in it are
// divided: section III has several jobs depend on one file, and each process some of its events.
func (w *jobGraph) processed(
	step *experiment.Tier0Step, s experiment.WorkflowSpec, r *rand.Rand, files []string,
) []string {
	var out []string
	readers := map[string]int64{}
	begin := len(w.jobs)
	for i := range step.Jobs {
		f := extant{fmt.Sprintf("%s/%03d", step.Name, i), int64(step.Writes) / int64(step.Jobs)}
		of := files[i*len(files)/step.Jobs]
		w.add(step.Name, fmt.Sprintf("%s-%03d", step.Name, i), s.Run.Draw(r), []string{of}, f)
		readers[of]++
		out = append(out, f.lfn)
	}
	for i := begin; i < len(w.jobs); i++ {
		w.jobs[i].sharers = readers[w.jobs[i].job.Reads[0]]
	}
	return out
}

// merged adds the jobs that join the outputs of a step, and returns what they
// write.
func (w *jobGraph) merged(
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
