package sim

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"fairway/internal/sim/experiment"
)

// everyRule has outputs chosen by content, a split by records, merges by
// number, a file that is rewritten and outputs that stay in caches.
const everyRule = `
workflow: every-rule
parameters:
  per: null
inputs:
  runs: {watch: "raw/run{run}.{part}", as: "raw/{run}.{part}"}
  start: {files: calibration}
steps:
  sort:
    each: "raw/{run}.{part}"
    split: {records: "${per}", of: lines}
    writes: "sorted/{kind}/{run}.{part}.{chunk}"
    storage: cache
    needs: {cpus: 64, memory: 1TB}
    tools: [none-such]
    command: sort "$in"
  merge:
    merge: "sorted/{kind}/{run}.{part}.{chunk}"
    by: [kind]
    files: 4
    writes: "merged/{kind}.{merge}"
    command: cat $in
  learn:
    each: "merged/{kind}.{merge}"
    reads: calibration
    rewrites: calibration
    command: learn "$in"
  report:
    merge: "merged/{kind}.{merge}"
    writes: report
    command: cat $in
`

// Two runs of two parts with 25 records each: 4 counting jobs and 3·4 that
// sort; 2 kinds of 12 files in merges of 4; 6 that learn, and the report.
const everyRuleJobs = 4 + 12 + 6 + 6 + 1

const everyRuleExperiment = `experiment: file
workflow:
  file: workflow.yaml
  parameters: {per: 10}
  run: {mean: 1m, sd: 10s, least: 1s}
  inputs:
    runs: {values: {run: 2, part: [a, b]}, size: 1GB, records: 25, every: 10m}
    start: {size: 1MB}
  steps:
    sort: {files: 2, per_gb: 1m}
    learn: {size: 1MB}
sites:
  - {name: here, nodes: 2, slots: 2, started: 4}
storage:
  - {name: se, bandwidth: 100MB}
cache: {share: global, size: 10GB}
taskqueue: {attempts: 100, backoff: 1s}
creation: {poll: 10s}
`

// fileExperiment writes both files and parses the experiment with further
// lines.
func fileExperiment(t *testing.T, text string) (*experiment.Plan, error) {
	t.Helper()
	folder := t.TempDir()
	if err := os.WriteFile(filepath.Join(folder, "workflow.yaml"), []byte(everyRule), 0o600); err != nil {
		t.Fatal(err)
	}
	return experiment.Parse(filepath.Join(folder, "x.yaml"), []byte(text))
}

// jobNames executes the first point of a plan and returns the jobs that ended
// well.
func jobNames(t *testing.T, plan *experiment.Plan) ([]string, *run) {
	t.Helper()
	exp := plan.Points[0].Experiment
	work, err := build(&exp, Stream(exp.Seed, "workflow"))
	if err != nil {
		t.Fatal(err)
	}
	r := newRun(&exp, work, 0)
	if err := r.execute(); err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, task := range r.work.jobs {
		names = append(names, task.job.Name)
	}
	slices.Sort(names)
	if r.succeeded() != len(names) {
		t.Errorf("%d of %d jobs are done", r.succeeded(), len(names))
	}
	return names, r
}

// Whatever the way of submission, when jobs are created and what goes wrong,
// the same jobs come of a workflow file.
func TestWorkflowFileUnfolds(t *testing.T) {
	var first []string
	for _, more := range []string{
		"", "submission: monitor\n", "submission: direct\n", "creation: {when_data: true, poll: 10s}\n",
		"faults: {lost: 0.05, repeated: 0.05, pilot_dies: {mean: 20m, sd: 5m}, pilot_deaths: 10, server_dies: {mean: 5m, sd: 1m}, server_away: 1m, crashes: 5, write_fails: 0.02, write_failures: 50}\nsubmission: monitor\n",
	} {
		text := everyRuleExperiment + more
		if strings.HasPrefix(more, "creation") {
			text = strings.Replace(everyRuleExperiment, "creation: {poll: 10s}\n", more, 1)
		}
		plan, err := fileExperiment(t, text)
		if err != nil {
			t.Fatal(err)
		}
		names, r := jobNames(t, plan)
		if len(names) != everyRuleJobs {
			t.Errorf("%q: %d jobs, not %d: %v", more, len(names), everyRuleJobs, names)
		}
		if first == nil {
			first = names
		}
		if !slices.Equal(names, first) {
			t.Errorf("%q: jobs\n%v, not\n%v", more, names, first)
		}
		if took := r.ended - r.submitted; took < 30*time.Minute {
			t.Errorf("%q: took %v, before the last file came", more, took)
		}
	}
}

func TestWorkflowFileModel(t *testing.T) {
	plan, err := fileExperiment(t, everyRuleExperiment)
	if err != nil {
		t.Fatal(err)
	}
	_, r := jobNames(t, plan)
	for lfn, want := range map[string]int64{
		"raw/1.a":        1e9,
		"sorted/1/1.a.1": 2e8, // its share of 10 among 25 records, in two files
		"sorted/2/1.a.3": 1e8,
		"calibration":    1e6,
		"merged/1.1":     7e8, // three parts of run 1, file a, and one of file b
	} {
		if got := r.work.sizes[lfn]; got != want {
			t.Errorf("%s has %d bytes, not %d", lfn, got, want)
		}
	}
}

func TestWorkflowFileErrorsNameTheirLine(t *testing.T) {
	for change, want := range map[string]string{
		"file: workflow.yaml|file: none.yaml":                 `x.yaml:3:9: workflow.file: read the workflow: open `,
		"{per: 10}|{pear: 10}":                                `workflow.yaml: there is no parameter "pear"; did you mean "per"?`,
		"    sort: {|    sorted: {":                           `workflow.steps.sorted: there is no "sorted"; did you mean "sort"?`,
		"    start: {|    begin: {":                           `workflow.inputs.begin: there is no "begin"; known here: runs, start`,
		"part: [a, b]|side: [a, b]":                           `workflow.inputs.runs.values.side: there is no "side"; known here: run, part`,
		"files: 2|file: 2":                                    `x.yaml:10:12: unknown key "file" in workflow.steps.sort; did you mean "files"?`,
		"run: 2, |run: many, ":                                `x.yaml:7:26: workflow.inputs.runs.values.run: "many" is no number of values`,
		"start: {size: 1MB}|start: {every: 1m}":               `workflow.inputs.start.every: the input has all its files`,
		"start: {size: 1MB}|start: {storage: tape}":           `workflow.inputs.start.storage: there is no "tape"`,
		"  file: workflow.yaml|  pattern: W1":                 `x.yaml:3:3: workflow: parameters, inputs and steps are for a workflow file`,
		"  file: workflow.yaml|  file: w.yaml\n  pattern: W1": `x.yaml:3:3: workflow: the jobs must come from one place; give one of pattern, trace and file`,
	} {
		from, to, _ := strings.Cut(change, "|")
		_, err := fileExperiment(t, strings.Replace(everyRuleExperiment, from, to, 1))
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: error is\n%v, not\n%s", change, err, want)
		}
	}
}

// What a step splits needs a number of records.
func TestWorkflowFileWithoutRecords(t *testing.T) {
	plan, err := fileExperiment(t, strings.Replace(everyRuleExperiment, "records: 25, ", "", 1))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := Once(plan.Points[0].Experiment, 0); err == nil ||
		!strings.Contains(err.Error(), "give records under workflow.inputs") {
		t.Errorf("error %v", err)
	}
}

// What jobs stream counts as no stage-in, neither as hit nor as miss, and stays in no cache.
func TestStreamedInputsAreNotStagedIn(t *testing.T) {
	const workflow = "workflow: w\ninputs: {raw: {files: 'raw/{n}', as: 'raw/{n}'}}\nsteps:\n  a: {each: 'raw/{n}', " +
		"access: ACCESS, writes: 'a/{n}', command: cat $in}\n  b: {each: 'raw/{n}', reads: 'a/{n}', access: ACCESS, " +
		"writes: 'b/{n}', command: cat $in}\n"
	for _, access := range []string{"link", "stream"} {
		folder := t.TempDir()
		text := strings.ReplaceAll(workflow, "ACCESS", access)
		if err := os.WriteFile(filepath.Join(folder, "workflow.yaml"), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		plan, err := experiment.Parse(filepath.Join(folder, "x.yaml"), []byte(`experiment: file
workflow: {file: workflow.yaml, run: 1m, inputs: {raw: {values: {n: 4}, size: 1GB}}}
sites: [{name: here, nodes: 1, slots: 1, started: 1}]
storage: [{name: se, bandwidth: 100MB}]
cache: {share: pilot, size: 100GB, inputs: true}
`))
		if err != nil {
			t.Fatal(err)
		}
		_, r := jobNames(t, plan)
		misses := 4 // the inputs, once
		if access == "stream" {
			misses = 0
		}
		if r.misses != misses || (r.stageIn == 0) != (access == "stream") {
			t.Errorf("%s: %d misses, want %d; %v of stage-in", access, r.misses, misses, r.stageIn)
		}
	}
}
