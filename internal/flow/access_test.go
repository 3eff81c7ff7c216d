package flow

import (
	"fmt"
	"reflect"
	"strings"
	"testing"

	"fairway/internal/flow/workflow"
	"fairway/internal/taskqueue"
)

const streaming = `workflow: w
inputs:
  raw: {files: 'raw/{n}.bam', as: 'raw/{n}', access: stream}
  genome: {files: 'genome/', as: 'genome/'}
  index: {files: 'raw/{n}.bai', as: 'index/{n}'}
steps:
  view:
    each: {bam: 'raw/{n}'}
    reads: {genome: genome/, index: 'index/{n}'}
    access: {index: copy}
    writes: 'a/{n}'
    command: view "$bam" "$in"
  all:
    merge: 'raw/{n}'
    reads: genome/
    writes: all
    access: stream
    command: cat $in > "$out"
  plain:
    reads: 'a/1'
    access: stream
    writes: plain
    command: cat "$in" > "$out"
  linked:
    each: 'raw/{n}'
    access: link
    writes: 'l/{n}'
    command: cat "$in" > "$out"
`

// What a step says of a file counts before what it says of all, and that before what the
// input says. Folders are linked where files are streamed.
func TestAccessOfInputs(t *testing.T) {
	x := newWorld(t, streaming, nil)
	x.arrive("raw", "raw/1")
	x.arrive("genome", "genome/")
	x.arrive("index", "index/1")
	for _, in := range []string{"raw", "genome", "index"} {
		x.close(in)
	}
	x.commit("view/1")
	const link, own, stream = taskqueue.AccessLink, taskqueue.AccessCopy, taskqueue.AccessStream
	for name, want := range map[string]map[string]taskqueue.Access{
		"view/1": {"raw/1": stream, "genome/": link, "index/1": own}, "all": {"raw/1": stream, "genome/": link},
		"plain": {"a/1": stream}, "linked/1": nil,
	} {
		j, ok := x.jobs[name]
		if !ok {
			t.Fatalf("no job %s among %v", name, x.submitted)
		}
		var got map[string]taskqueue.Access
		for i, a := range j.Job.Access {
			if got == nil {
				got = map[string]taskqueue.Access{}
			}
			got[j.Job.Reads[i]] = a
		}
		if !reflect.DeepEqual(got, want) {
			t.Errorf("%s: %v, want %v", name, got, want)
		}
	}
	for name, want := range map[string][]workflow.InputVariable{
		"view/1": {{Name: "in", LFNs: []string{"raw/1"}}, {Name: "bam", LFNs: []string{"raw/1"}}}, "all": {{Name: "in",
			LFNs: []string{"raw/1"}}},
		"plain": {{Name: "in", LFNs: []string{"a/1"}}},
	} {
		if got := x.jobs[name].Command.InputVariables; !reflect.DeepEqual(got, want) {
			t.Errorf("%s: %v, want %v", name, got, want)
		}
	}
	if env := x.jobs["view/1"].Command.Environment; env["in"] != "raw/1" || env["bam"] != "raw/1" ||
		env["index"] != "index/1" {
		t.Errorf("the record names files by their logical names: %v", env)
	}
}

// A command that counts records gets what the jobs of its step get. Where Fairway counts
// itself, it reads a file, to which it does not write.
func TestAccessOfCountingJobs(t *testing.T) {
	const link, own, stream = taskqueue.AccessLink, taskqueue.AccessCopy, taskqueue.AccessStream
	for _, c := range []struct {
		input, step, split string
		want               []taskqueue.Access // of raw/1, then of index
		variables          []workflow.InputVariable
	}{
		{"link", "access: copy", "count: 'wc -l < $in'", []taskqueue.Access{own, own}, nil},
		{"copy", "", "count: 'wc -l < $in'", []taskqueue.Access{own, link}, nil},
		{"copy", "access: link", "count: 'wc -l < $in'", nil, nil},
		{"link", "access: stream", "count: 'curl $in | wc -l'", []taskqueue.Access{stream, stream},
			[]workflow.InputVariable{{Name: "in", LFNs: []string{"raw/1"}}, {Name: "x", LFNs: []string{"raw/1"}},
				{Name: "index", LFNs: []string{"index"}}}},
		{"stream", "access: {index: copy}", "count: 'curl $x | wc -l'", []taskqueue.Access{stream, own},
			[]workflow.InputVariable{{Name: "in", LFNs: []string{"raw/1"}}, {Name: "x", LFNs: []string{"raw/1"}}}},
		{"link", "access: {x: copy}", "of: lines", nil, nil},
		{"stream", "", "of: fastq", nil, nil},
		{"stream", "access: {index: stream}", "of: lines", []taskqueue.Access{link, stream},
			[]workflow.InputVariable{{Name: "index", LFNs: []string{"index"}}}},
	} {
		access := ""
		if c.step != "" {
			access = c.step + "\n    "
		}
		x := newWorld(t, `workflow: w
inputs: {raw: {files: 'raw/{n}', as: 'raw/{n}', access: `+c.input+`}, index: {files: index}}
steps:
  a:
    each: {x: 'raw/{n}'}
    reads: {index: index}
    split: {records: 1, `+c.split+`}
    `+access+`writes: 'a/{n}.{chunk}'
    command: sed -n $first $in
`, nil)
		x.arrive("raw", "raw/1")
		x.arrive("index", "index")
		j := x.jobs["a/1/records"]
		if !reflect.DeepEqual(j.Job.Reads, []string{"raw/1", "index"}) || !reflect.DeepEqual(j.Job.Access, c.want) ||
			!reflect.DeepEqual(j.Command.InputVariables, c.variables) {
			t.Errorf("%s, %s, %s: %v %v, %v", c.input, c.step, c.split, j.Job.Reads, j.Job.Access, j.Command.InputVariables)
		}
	}
}

// Another access runs nothing again: it is no part of what a job is known by.
func TestAccessIsNotInTheDigest(t *testing.T) {
	digests := map[string]bool{}
	for _, access := range []string{"link", "copy", "stream"} {
		x := newWorld(t, strings.Replace(streaming, "access: stream}", "access: "+access+"}", 1), nil)
		x.arrive("raw", "raw/1")
		x.close("raw")
		digests[x.jobs["view/1"].Job.Digest] = true
	}
	if len(digests) != 1 {
		t.Errorf("%d digests", len(digests))
	}
}

// URLs are longer than names: many of them stand in the file of inputs only.
func TestManyStreamedInputsAreReadFromAFile(t *testing.T) {
	x := newWorld(t, "workflow: w\ninputs: {raw: {files: 'raw/{n}', as: 'raw/{n}'}}\nsteps: {all: {merge: 'raw/{n}', "+
		"access: stream, writes: all, command: 'cat $in > $out'}}\n", nil)
	for i := range 200 {
		x.arrive("raw", fmt.Sprintf("raw/%d", i))
	}
	x.close("raw")
	c := x.jobs["all"].Command
	if _, there := c.Environment["in"]; there || !strings.HasPrefix(c.Shell, "in=$(head -n 200 ") ||
		len(c.InputVariables) > 0 {
		t.Errorf("%.100s %v", c.Shell, c.InputVariables)
	}
}
