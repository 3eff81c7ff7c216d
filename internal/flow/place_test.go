package flow

import (
	"slices"
	"strings"
	"testing"
)

// calibrating is the example of docs/steps.md, with the files that all jobs read listed last.
const calibrating = `
workflow: w
inputs:
  runs: {watch: "raw/{run}", as: "raw/{run}"}
  geometry: {watch: "geometry", as: geometry}
  first: {watch: "first", as: FIRST}
steps:
  reco: {each: "raw/{run}", reads: [calib, geometry], writes: "reco/{run}", command: "true"}
  calibrate: {each: "reco/{run}", rewrites: calib, command: "true"}
  gather: {merge: "reco/{run}", files: 3, writes: "all/{merge}", command: "true"}
`

const seeding = `
  seeding: {each: seed, writes: sown, command: "true"}
  init: {reads: sown, writes: calib, command: "true"}`

// The place of a job in the order is that of the data from which it follows: when a file that
// all jobs of its step read came, and which version of a rewritten one was first, makes no
// difference. So the same files give the same order whether the last ones come later or not.
func TestFilesOfAllJobsDoNotCountForTheOrder(t *testing.T) {
	for what, c := range map[string]struct{ first, steps string }{
		"listed last":                        {"calib", ""},
		"made of a file that is listed last": {"seed", seeding},
	} {
		text := strings.NewReplacer("FIRST", c.first, "steps:", "steps:"+c.steps).Replace(calibrating)
		var all [][]string
		for late := range 3 {
			x := newWorld(t, text, nil)
			runs := []string{"raw/c", "raw/a", "raw/b"}
			x.arrive("runs", runs[:3-late]...)
			x.arrive("geometry", "geometry")
			x.close("geometry")
			x.arrive("first", c.first)
			x.close("first")
			for _, run := range runs[3-late:] {
				x.arrive("runs", run)
			}
			x.close("runs")
			x.commitAll(first)
			if !x.finished {
				t.Fatalf("%s, %d late: not finished: %v", what, late, x.notes)
			}
			uses := slices.DeleteFunc(x.uses["calib"], func(use string) bool { return use == "w init" })
			all = append(all, append(uses, x.jobs["gather/1"].Job.Reads...))
		}
		want := []string{
			"r reco/c", "w calibrate/c", "r reco/a", "w calibrate/a", "r reco/b", "w calibrate/b", "reco/c", "reco/a", "reco/b",
		}
		for late, got := range all {
			if !slices.Equal(got, want) {
				t.Errorf("%s, %d late: %v, want %v", what, late, got, want)
			}
		}
	}
}

// Jobs that follow from one last file go by their other ones.
func TestJobsOfOneLastFileGoByTheOthers(t *testing.T) {
	x := newWorld(t, `
workflow: w
inputs:
  runs: {files: "raw/{run}", as: "raw/{run}"}
  grid: {files: grid}
steps:
  reco: {each: ["raw/{run}", grid], writes: "reco/{run}", command: "true"}
  gather: {merge: "reco/{run}", writes: all, command: "true"}
`, nil)
	x.arrive("runs", "raw/c", "raw/a", "raw/b")
	x.close("runs")
	x.arrive("grid", "grid")
	x.close("grid")
	if got := x.jobs["gather"].Job.Reads; !slices.Equal(got, []string{"reco/c", "reco/a", "reco/b"}) {
		t.Error(got)
	}
}

// A group is not complete while a job that makes one of its files waits for another file.
func TestGroupWaitsForJobsThatReadLateFiles(t *testing.T) {
	x := newWorld(t, `
workflow: w
inputs:
  runs: {watch: "raw/{run}", as: "raw/{run}"}
  conditions: {watch: "conditions/{run}", as: "conditions/{run}"}
steps:
  a: {each: "raw/{run}", reads: "conditions/{run}", writes: "a/{run}", command: "true"}
  b: {each: "raw/{run}", writes: "b/{run}", command: "true"}
  gather: {merge: ["a/{run}", "b/{run}"], by: [run], writes: "all/{run}", command: "true"}
`, nil)
	x.arrive("runs", "raw/1", "raw/2")
	x.arrive("conditions", "conditions/1", "conditions/2")
	x.close("runs")
	x.close("conditions")
	for _, run := range []string{"1", "2"} {
		if got := x.jobs["gather/"+run].Job.Reads; !slices.Equal(got, []string{"b/" + run, "a/" + run}) {
			t.Errorf("run %s: %v", run, got)
		}
	}
}

// A file that all jobs read, and that comes from jobs which themselves read what these rewrite,
// does count: else each would wait for the other.
func TestFileFromCalibratedJobsCounts(t *testing.T) {
	x := newWorld(t, `
workflow: w
inputs:
  first: {files: calib}
  runs: {files: "raw/{run}", as: "raw/{run}"}
  sets: {files: "sets/{set}", as: "sets/{set}"}
steps:
  prepare: {each: "sets/{set}", reads: calib, writes: "prepared/{set}", command: "true"}
  table: {merge: "prepared/{set}", writes: table, command: "true"}
  reco: {each: "raw/{run}", reads: table, rewrites: calib, writes: "reco/{run}", command: "true"}
`, nil)
	for input, file := range map[string]string{"first": "calib", "runs": "raw/1", "sets": "sets/1"} {
		x.arrive(input, file)
		x.close(input)
	}
	x.commitAll(first)
	if !x.finished {
		t.Errorf("not finished: %v", x.notes)
	}
}
