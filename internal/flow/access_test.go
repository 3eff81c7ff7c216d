package flow

import (
	"fmt"
	"reflect"
	"strings"
	"testing"

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
	for name, want := range map[string][]InputVariable{
		"view/1": {{"in", []string{"raw/1"}}, {"bam", []string{"raw/1"}}}, "all": {{"in", []string{"raw/1"}}},
		"plain": {{"in", []string{"a/1"}}},
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
		variables          []InputVariable
	}{
		{"link", "access: copy", "count: 'wc -l < $in'", []taskqueue.Access{own, own}, nil},
		{"copy", "", "count: 'wc -l < $in'", []taskqueue.Access{own, link}, nil},
		{"copy", "access: link", "count: 'wc -l < $in'", nil, nil},
		{"link", "access: stream", "count: 'curl $in | wc -l'", []taskqueue.Access{stream, stream}, []InputVariable{{"in", []string{"raw/1"}}, {"x", []string{"raw/1"}}, {"index", []string{"index"}}}},
		{"stream", "access: {index: copy}", "count: 'curl $x | wc -l'", []taskqueue.Access{stream, own}, []InputVariable{{"in", []string{"raw/1"}}, {"x", []string{"raw/1"}}}},
		{"link", "access: {x: copy}", "of: lines", nil, nil},
		{"stream", "", "of: fastq", nil, nil},
		{"stream", "access: {index: stream}", "of: lines", []taskqueue.Access{link, stream}, []InputVariable{{"index", []string{"index"}}}},
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

func TestAccessProblems(t *testing.T) {
	for text, want := range map[string]string{
		"a: {each: 'raw/{n}', access: streaming, writes: 'a/{n}', command: cat $in}":               `step "a": access: "streaming" is no access; did you mean "stream"?`,
		"a: {each: 'raw/{n}', access: symlink, writes: 'a/{n}', command: cat $in}":                 `did you mean "link"?`,
		"a: {each: 'raw/{n}', access: strem, writes: 'a/{n}', command: cat $in}":                   `did you mean "stream"?`,
		"a: {each: 'raw/{n}', access: 7, writes: 'a/{n}', command: cat $in}":                       `"7" is no access; write link, copy or stream`,
		"a: {each: 'raw/{n}', access: [stream], writes: 'a/{n}', command: cat $in}":                `step "a": access must be one word, not a list; write link, copy or stream, or a mapping with a word for each variable of a file`,
		"a: {each: 'raw/{n}', access: , writes: 'a/{n}', command: cat $in}":                        `step "a": access must be one word, not nothing; write link, copy or stream, or a mapping`,
		"a: {each: {bam: 'raw/{n}'}, access: {bam: }, writes: 'a/{n}', command: cat $in}":          `step "a": access: bam must be one word, not nothing; write link, copy or stream`,
		"a: {reads: 'raw/1', rewrites: {k: 'raw/2'}, access: {k: stream}, command: cat $in}":       `step "a": access: the step rewrites "k", and files that a step rewrites have no access; remove it`,
		"a: {access: stream, writes: a, command: 'true'}":                                          `the step reads no file that could be streamed; remove it`,
		"a: {reads: 'dir/', access: stream, writes: a, command: ls $in}":                           `the step reads no file that could be streamed`,
		"a: {reads: {d: dir/}, access: {d: stream}, writes: a, command: ls $d}":                    `step "a": access: "d" is a folder, and only files can be streamed`,
		"a: {each: {bam: 'raw/{n}'}, access: {ban: stream}, writes: 'a/{n}', command: cat $in}":    `the step reads no file with the name "ban"; did you mean "bam"?`,
		"a: {each: 'raw/{n}', access: {bam: stream}, writes: 'a/{n}', command: cat $in}":           `the step reads no file with a name; give the file a name`,
		"a: {each: 'raw/{n}', access: stream, writes: 'a/{n}', command: 'view \"raw/$n\" > $out'}": `step "a": its inputs are streamed, and the command has none of the variables that say where they are; write "$in"`,
		"a: {each: 'raw/{n}', access: stream, writes: 'a/{n}', command: view raw/1}":               `the command has none of the variables`,
		"a: {each: 'raw/{n}', stream: true, writes: 'a/{n}', command: cat $in}":                    "write `access: stream`",
		"a: {each: 'raw/{n}', stageInMode: copy, writes: 'a/{n}', command: cat $in}":               "write `access: link`, `access: copy` or `access: stream`",
		"a: {each: 'raw/{n}', should_transfer_files: 'NO', writes: 'a/{n}', command: cat $in}":     "write `access: link`, `access: copy` or `access: stream`",
		"a: {each: 'raw/{n}', retrieve: false, writes: 'a/{n}', command: cat $in}":                 "write `access: stream`",
		"a: {each: 'raw/{n}', transfer_input_files: 'x.txt', writes: 'a/{n}', command: cat $in}":   "name the files under each or reads",
	} {
		_, err := Parse("t.yaml", []byte("workflow: w\ninputs: {raw: {files: 'raw/{n}', as: 'raw/{n}'}, dir: {files: "+
			"'dir/', as: 'dir/'}}\nsteps:\n  "+text+"\n"))
		if err == nil || !strings.Contains(err.Error(), want) || strings.Count(err.Error(), "\n") > 0 {
			t.Errorf("%s\ngot  %v\nwant %s", text, err, want)
		}
	}
	_, err := Parse("t.yaml", []byte("workflow: w\ninputs: {raw: {files: 'raw/', access: stream}}\nsteps: {a: {reads: "+
		"raw/, writes: a, command: ls $in}}\n"))
	if err == nil || !strings.Contains(err.Error(), `the input "raw": access: the input has folders, and only files can be streamed`) {
		t.Error(err)
	}
	_, err = Parse("t.yaml", []byte("workflow: w\ninputs: {raw: {files: raw, access: {raw: stream}}}\nsteps: {a: "+
		"{reads: raw, writes: a, command: ls $in}}\n"))
	if err == nil || !strings.Contains(err.Error(), `the input "raw": access must be one word, not a mapping; write link, copy or stream`) {
		t.Error(err)
	}
	// A command that may find its inputs in another way is left alone.
	for _, command := range []string{`eval "$x"`, `xargs cat < "$FAIRWAY_INPUTS_FILE"`, `cat "$bam"`} {
		if _, err := Parse("t.yaml", []byte("workflow: w\nparameters: {x: 1}\ninputs: {raw: {files: 'raw/{n}', as: "+
			"'raw/{n}'}}\nsteps:\n  a:\n    each: {bam: 'raw/{n}'}\n    access: stream\n    writes: 'a/{n}'\n    command: |\n "+
			"     "+command+"\n")); err != nil {
			t.Error(err)
		}
	}
}
