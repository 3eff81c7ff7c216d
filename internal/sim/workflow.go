package sim

import (
	"fmt"
	"math/rand/v2"
	"time"

	"fairway/internal/sim/experiment"
	"fairway/internal/taskqueue"
)

// jobGraph is what a run executes: jobs in the order of their submission, and
// the files that exist before.
type jobGraph struct {
	jobs  []task
	files []extant
	sizes map[string]int64  // of every file by LFN
	homes map[string]string // PFN of files that exist before, where it is not that of the first storage element
	rules *unfolding        // of a workflow file: creates the jobs as data appears; else nil

	submitted []time.Duration // of recorded jobs: when each was; nil: all are at the start
}

// task is a job with what the model needs to know of it.
type task struct {
	job  taskqueue.Job
	run  time.Duration // on a node of speed 1, without access to storage
	made []made        // of a workflow file, or recorded: what it writes

	sharers int64 // so many jobs read what this one reads, each an equal part; 0: it reads all itself

	tries []RecordedTry // of a recorded job; else none
}

// made is a file that a job of a workflow file writes.
type made struct {
	extant
	pattern string // of the job's outputs that it matches, or empty
}

// extant is a file that exists when the run starts.
type extant struct {
	lfn  string
	size int64
}

func newWorkflow() *jobGraph {
	return &jobGraph{sizes: map[string]int64{}, homes: map[string]string{}}
}

// writes lists the files of one output of a job.
func (w *jobGraph) writes(t *task, o taskqueue.Output) []extant {
	if t.made == nil {
		return []extant{{o.LFN, w.sizes[o.LFN]}}
	}
	var files []extant
	for _, m := range t.made {
		if m.lfn == o.LFN && !o.Pattern || m.pattern == o.LFN && o.Pattern {
			files = append(files, m.extant)
		}
	}
	return files
}

// add appends a job that writes its outputs with the sizes given.
func (w *jobGraph) add(step, name string, run time.Duration, reads []string, writes ...extant) {
	j := taskqueue.Job{Name: name, Step: step, Digest: name, Reads: reads}
	for _, f := range writes {
		j.Writes = append(j.Writes, taskqueue.Output{LFN: f.lfn})
		w.sizes[f.lfn] = f.size
	}
	w.append(task{job: j, run: run})
}

// append adds a task and returns its place, which is the payload of its job.
func (w *jobGraph) append(t task) int {
	t.job.Payload = appendIndex(nil, len(w.jobs))
	w.jobs = append(w.jobs, t)
	return len(w.jobs) - 1
}

func (w *jobGraph) exists(lfn string, size int64) {
	w.files = append(w.files, extant{lfn, size})
	w.sizes[lfn] = size
}

// Job is a job of an experiment, for programs that run the same ones in another way.
type Job struct {
	Name          string
	Reads, Writes []string      // LFNs
	Run           time.Duration // without access to storage
}

// JobsOf are the jobs of the first repetition of an experiment, in the order of their
// submission, each output of workflow.file_size. A workflow file creates its jobs as it
// runs, so it has none before.
func JobsOf(exp *experiment.Experiment) ([]Job, error) {
	w, err := workOf(exp)
	if err != nil {
		return nil, err
	}
	jobs := make([]Job, len(w.jobs))
	for i, t := range w.jobs {
		jobs[i] = Job{Name: t.job.Name, Reads: t.job.Reads, Run: t.run}
		for _, o := range t.job.Writes {
			jobs[i].Writes = append(jobs[i].Writes, o.LFN)
		}
	}
	return jobs, nil
}

// The payload of a simulated job is its place in the workflow.
func appendIndex(b []byte, i int) []byte {
	return append(b, byte(i), byte(i>>8), byte(i>>16), byte(i>>24))
}

func indexOf(payload []byte) int {
	return int(payload[0]) | int(payload[1])<<8 | int(payload[2])<<16 | int(payload[3])<<24
}

// patterns make the workflows of paper 3, section V, and one for scale. Run
// times are drawn from one stream in the order of the jobs.
var patterns = map[string]func(experiment.WorkflowSpec, *rand.Rand) *jobGraph{
	"W1": func(s experiment.WorkflowSpec, r *rand.Rand) *jobGraph {
		return twoSteps(s, r, s.Jobs, s.Jobs, 1)
	},
	"W2-shared": func(s experiment.WorkflowSpec, r *rand.Rand) *jobGraph {
		return twoSteps(s, r, s.Jobs/2, s.Jobs, 1)
	},
	"W2-pairs": func(s experiment.WorkflowSpec, r *rand.Rand) *jobGraph {
		return twoSteps(s, r, s.Jobs/2, s.Jobs, 2)
	},
	"W3": func(s experiment.WorkflowSpec, r *rand.Rand) *jobGraph {
		return twoSteps(s, r, s.Jobs, s.Jobs/2, 1)
	},
	"Tier0":  func(s experiment.WorkflowSpec, r *rand.Rand) *jobGraph { return tier0(s, r) },
	"layers": func(s experiment.WorkflowSpec, r *rand.Rand) *jobGraph { return layers(s, r) },
}

// twoSteps is a workflow of two steps: first jobs with outputs files each,
// then second jobs that share those files out among them. Where there are
// more files than jobs, each job reads several; where there are fewer, each
// file is read by several.
func twoSteps(s experiment.WorkflowSpec, r *rand.Rand, first, second, outputs int) *jobGraph {
	w := newWorkflow()
	var files []string
	for i := range first {
		var out []extant
		for k := range outputs {
			lfn := fmt.Sprintf("step0/%03d.%d", i, k)
			out = append(out, extant{lfn, int64(s.FileSize)})
			files = append(files, lfn)
		}
		w.add("step0", fmt.Sprintf("step0-%03d", i), s.Run.Draw(r), nil, out...)
	}
	for i := range second {
		var reads []string
		if len(files) >= second {
			n := len(files) / second
			reads = files[i*n : (i+1)*n]
		} else {
			reads = []string{files[i*len(files)/second]}
		}
		out := extant{fmt.Sprintf("step1/%03d", i), int64(s.FileSize)}
		w.add("step1", fmt.Sprintf("step1-%03d", i), s.Run.Draw(r), reads, out)
	}
	return w
}

// layers is a workflow for scale: layers of equal numbers of jobs, each of
// which reads fan files of the layer before that stand near its own place.
func layers(s experiment.WorkflowSpec, r *rand.Rand) *jobGraph {
	w := newWorkflow()
	w.jobs = make([]task, 0, s.Jobs)
	width := (s.Jobs + s.Layers - 1) / s.Layers
	var step string
	var above, here []string // files of the layer before and of this one
	for n := range s.Jobs {
		layer, i := n/width, n%width
		if i == 0 {
			step = fmt.Sprintf("layer%d", layer)
			above, here = here, make([]string, 0, width)
		}
		var reads []string
		for k := range min(s.Fan, len(above)) {
			reads = append(reads, above[(i+k)%width])
		}
		if layer == 0 && s.Raw {
			reads = []string{fmt.Sprintf("raw/%d", i)}
			w.exists(reads[0], int64(s.FileSize))
		}
		lfn := fmt.Sprintf("l%d/%d", layer, i)
		here = append(here, lfn)
		w.add(step, lfn, s.Run.Draw(r), reads, extant{lfn, int64(s.FileSize)})
		if s.Priorities > 1 {
			w.jobs[len(w.jobs)-1].job.Priority = r.IntN(s.Priorities)
		}
		if s.Tasks > 1 && r.Float64() < float64(s.Gangs) {
			j := &w.jobs[len(w.jobs)-1].job
			j.Tasks, j.Once = 2+r.IntN(s.Tasks-1), r.IntN(4) == 0
		}
	}
	return w
}
