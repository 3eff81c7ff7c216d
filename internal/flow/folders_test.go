package flow

import (
	"maps"
	"slices"
	"strings"
	"testing"

	"fairway/internal/flow/workflow"
)

const folderFrame = `workflow: w
inputs:
  samples: {files: "data/{sample}/", as: "in/{sample}/"}
  genome: {files: genome.fa}
steps:
`

// What check says of folders: a name beneath one, a wrong kind, what has none.
func TestFoldersInWorkflows(t *testing.T) {
	for text, want := range map[string]string{
		folderFrame + "  a: {reads: genome.fa, writes: [x/, x/a.txt], command: 'true'}\n":                                                             `makes the folder "x/" as a whole, and step "a" makes "x/a.txt" in it`,
		folderFrame + "  a: {reads: genome.fa, writes: x/, command: 'true'}\n  b: {each: 'in/{s}/', writes: 'x/y/{s}.txt', command: 'true'}\n":        `makes "x/y/{s}.txt" in it`,
		folderFrame + "  a: {reads: genome.fa, writes: [x/, x], command: 'true'}\n":                                                                   `makes a file "x", and step "a" one in a folder of that name, "x/"`,
		folderFrame + "  a: {reads: genome.fa, writes: x/, command: 'true'}\n  b: {reads: x, writes: y, command: 'true'}\n":                           `makes a folder of that name: write "x/"`,
		folderFrame + "  a: {reads: genome.fa, writes: x, command: 'true'}\n  b: {reads: x/, writes: y, command: 'true'}\n":                           `makes a file of that name: write "x"`,
		folderFrame + "  a: {reads: genome.fa, writes: x/, command: 'true'}\n  b: {reads: x/a, writes: y, command: 'true'}\n":                         `step "a" makes the folder "x/" as a whole: take that`,
		folderFrame + "  a: {each: 'in/{s}', writes: 'x/{s}', command: 'true'}\n":                                                                     `no step makes such a file`,
		folderFrame + "  a: {each: 'in/{s}/', split: {records: 1, of: lines}, writes: 'x/{s}.{chunk}', command: 'true'}\n":                            `a folder has no such records`,
		folderFrame + "  a: {reads: genome.fa, writes: x, log: y/, command: 'true'}\n":                                                                `a log is a file`,
		folderFrame + "  a: {reads: genome.fa, writes: x//, command: 'true'}\n":                                                                       `has the part ""`,
		folderFrame + "  a: {reads: genome.fa, writes: /, command: 'true'}\n":                                                                         `"/" is no name of a file`,
		"workflow: w\ninputs: {i: {watch: 'd/{s}/'}}\nsteps: {a: {each: '{s}/', writes: 'x/{s}', command: 'true'}}\n":                                 `nothing tells when a folder is complete`,
		"workflow: w\ninputs: {i: {url_list: u, match: '{s}/'}}\nsteps: {a: {each: '{s}/', writes: 'x/{s}', command: 'true'}}\n":                      `a url_list has files only`,
		"workflow: w\ninputs: {i: {files: 'https://example.org/d/'}}\nsteps: {a: {reads: d/, writes: x, command: 'true'}}\n":                          `an input folder must be on this machine`,
		"workflow: w\ninputs: {i: {files: 'd/{s}/', as: 'e/{s}'}}\nsteps: {a: {each: 'e/{s}', writes: 'x/{s}', command: 'true'}}\n":                   `write as: "e/{s}/"`,
		"workflow: w\ninputs: {i: {files: 'd/{s}', as: 'e/{s}/'}}\nsteps: {a: {each: 'e/{s}/', writes: 'x/{s}', command: 'true'}}\n":                  `the name "e/{s}/" for a folder`,
		folderFrame + "  z: {reads: genome.fa, writes: state/, command: x}\n  a: {each: 'in/{s}/', rewrites: state/, command: x}\n":                   "",
		folderFrame + "  a: {each: 'in/{s}/', split: {records: 1, count: ls $in | wc -l}, writes: 'x/{s}.{chunk}/', command: 'true'}\n":               "",
		folderFrame + "  a: {each: 'in/{s}/', writes: 'x/{s}/', rewrites: state/, command: 'true'}\n  b: {merge: 'x/{s}/', writes: y/, command: x}\n": "",
	} {
		_, err := workflow.Parse("t.yaml", []byte(text))
		if (err == nil) != (want == "") || err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("%s\n%v\nwant %q", text, err, want)
		}
	}
}

// A command sees folders without the slash at their end, and values come from them
// as from files.
func TestFoldersAreOneFileEach(t *testing.T) {
	x := newWorld(t, folderFrame+`
  index: {reads: genome.fa, writes: {index: index/}, command: make}
  quant:
    each: in/{sample}/
    reads: {index: index/}
    writes: {quant: "quant/{sample}/", part: "parts/{sample}/{p}/"}
    command: quant
  all: {merge: "quant/{sample}/", writes: all/, command: merge}
  part: {each: "parts/{sample}/{p}/", writes: "p/{sample}.{p}", command: part}
`, nil)
	x.produce = func(_ workflow.NewJob, pattern string) []string {
		return []string{strings.Replace(pattern, "*", "1", 1)}
	}
	x.arriveAt("samples", "data/A/", "data/B b/")
	x.arrive("genome", "genome.fa")
	x.close("samples")
	x.close("genome")
	x.commitAll(first)
	if want := []string{"all", "index", "part/A/1", "part/B b/1", "quant/A",
		"quant/B b"}; !slices.Equal(slices.Sorted(maps.Keys(x.jobs)), want) || !x.finished {
		t.Fatalf("%v, refused %q", slices.Sorted(maps.Keys(x.jobs)), x.flow.Refused())
	}
	env := x.jobs["quant/A"].Command.Environment
	for name, want := range map[string]string{
		"in":    "in/A",
		"index": "index",
		"quant": "quant/A",
		"out":   "quant/A parts/A/*",
		"part":  "parts/A/*",
	} {
		if env[name] != want {
			t.Errorf("$%s is %q, want %q", name, env[name], want)
		}
	}
	if env := x.jobs["all"].Command.Environment; env["in"] != "quant/A quant/B b" {
		t.Errorf("$in of a merge is %q", env["in"])
	}
	if got := x.jobs["quant/A"].Job.Writes[0].LFN; got != "quant/A/" {
		t.Errorf("it writes %q", got)
	}
}

// Where only values show it, the run tells that a name is in a folder that is kept
// as a whole, whichever comes first.
func TestNothingElseIsInAFolder(t *testing.T) {
	for steps, want := range map[string]string{
		"a: {each: '{n}', writes: 'o/{n}/', command: x}\n  b: {each: '{n}', writes: 'o/x/{n}', command: x}":    "o/x/ is a folder that is kept as a whole, and o/x/x is in it",
		"a: {each: '{n}', writes: 'o/x/{n}', command: x}\n  b: {each: '{n}', writes: 'o/{n}/', command: x}":    "o/x/ is a folder that is kept as a whole, and o/x/x is in it",
		"a: {each: '{n}', writes: 'o/{n}/', command: x}\n  b: {each: '{n}', writes: 'o/x/y/{n}/', command: x}": "o/x/ is a folder that is kept as a whole, and o/x/y/x/ is in it",
		"a: {each: '{n}', writes: 'o/x/{n}/', command: x}\n  b: {each: '{n}', writes: 'o/{n}', command: x}":    "o/x is a file, and o/x/x/ one in a folder of that name",
		"a: {each: '{n}', writes: 'o/x/{n}/', command: x}\n  b: {each: '{n}', writes: 'o/y/{n}/', command: x}": "nothing",
	} {
		x := newWorld(t, "workflow: w\ninputs: {i: {files: 'in/{n}'}}\nsteps:\n  "+steps+"\n", nil)
		x.arriveAt("i", "in/x")
		x.commitAll(first)
		refused := strings.Join(x.flow.Refused(), "\n")
		if want == "nothing" && refused != "" || want != "nothing" && !strings.Contains(refused, want) {
			t.Errorf("%s: refused %q", steps, refused)
		}
	}
}
