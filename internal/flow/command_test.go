package flow

import (
	"fmt"
	"os/exec"
	"slices"
	"strings"
	"testing"

	"fairway/internal/flow/workflow"
	"fairway/internal/taskqueue"
)

func TestPlainWordsNeedNoShell(t *testing.T) {
	for text, want := range map[string]string{
		"true":                    "true",
		"bowtie2 -x genome -1 a":  "bowtie2|-x|genome|-1|a",
		"/bin/ls  a,b:c@d%e=f+g ": "/bin/ls|a,b:c@d%e=f+g",
		"cat $in":                 "",
		"a; b":                    "",
		"a\nb":                    "",
		"cd x":                    "",
		"echo x":                  "",
		"if x":                    "",
		"A=1 b":                   "",
		"a ~/b":                   "",
		"a #b":                    "",
		"":                        "",
	} {
		if got := strings.Join(workflow.PlainWords(text), "|"); got != want {
			t.Errorf("%q: got %q, want %q", text, got, want)
		}
	}
}

func onlyJob(t *testing.T, text string, set map[string]string) workflow.NewJob {
	t.Helper()
	x := newWorld(t, text, set)
	x.arrive("raw", "raw/1")
	if len(x.submitted) != 1 {
		t.Fatalf("submitted %v", x.submitted)
	}
	return x.jobs[x.submitted[0]]
}

const digestable = `
workflow: w
placement: by-files
parameters: {used: 1, other: 2}
inputs: {raw: {files: "raw/{n}", as: "raw/{n}"}}
steps:
  s:
    each: raw/{n}
    reads: {}
    writes: {result: "s/{n}.${used}"}
    needs: {cpus: 2, memory: 1GB, gpu: 1}
    tools: [awk]
    retry: {attempts: 2, exit_codes: [3, 4]}
    priority: 5
    site: here
    wait_for_data: 0s
    command: run $used > $out
`

// A word of bash that is no program would fail as one, or be another one.
func TestWordsOfBashNeedTheShell(t *testing.T) {
	bash, err := exec.LookPath("bash")
	if err != nil {
		t.Skip(err)
	}
	words, err := exec.Command(bash, "-c", "compgen -b; compgen -k").Output()
	if err != nil {
		t.Skip("bash cannot name its words:", err)
	}
	for _, word := range strings.Fields(string(words)) {
		switch word {
		case "true", "false", "]]": // the programs do the same; and no command begins so
			continue
		}
		if plain := workflow.PlainWords(word + " x"); plain != nil {
			t.Errorf("%q would be executed without a shell", plain)
		}
	}
}

func TestJobHasWhatTheStepSays(t *testing.T) {
	j := onlyJob(t, digestable, nil)
	if got := j.Job; got.Name != "s/1" || got.Step != "s" || got.Needs.MilliCPUs != 2000 || got.Needs.Memory != 1e9 ||
		got.Needs.Countable["gpu"] != 1 || got.Priority != 5 || got.Site != "here" || got.WaitForData >= 0 ||
		got.Retry.Attempts != 2 || !slices.Equal(got.Retry.ExitCodes, []int{3, 4}) ||
		!slices.Equal(got.Tools, []string{"awk"}) || got.Placement != taskqueue.ByFiles {
		t.Errorf("%+v", got)
	}
	if want := (taskqueue.Output{LFN: "s/1.1", Publish: true}); j.Job.Writes[0] != want {
		t.Errorf("writes %+v", j.Job.Writes)
	}
	want := map[string]string{"used": "1", "n": "1", "in": "raw/1", "out": "s/1.1", "result": "s/1.1"}
	if fmt.Sprint(j.Command.Environment) != fmt.Sprint(want) {
		t.Errorf("environment %v", j.Command.Environment)
	}
}

func TestDigestIsOfWhatDecidesTheOutputs(t *testing.T) {
	reference := onlyJob(t, digestable, nil).Job.Digest
	for old, new := range map[string]string{
		"cpus: 2": "cpus: 1", "attempts: 2": "attempts: 9", "priority: 5": "priority: 6", "site: here": "site: there",
		"other: 2": "other: 3", "about": "about", "tools: [awk]": "tools: [sed]",
	} {
		if got := onlyJob(t, strings.Replace(digestable, old, new, 1), nil).Job.Digest; got != reference {
			t.Errorf("%s changes the digest", new)
		}
	}
	for old, new := range map[string]string{
		"used: 1": "used: 7", "run $used": "walk $used", "s/{n}": "t/{n}", "{result:": "{outcome:",
	} {
		if got := onlyJob(t, strings.Replace(digestable, old, new, 1), nil).Job.Digest; got == reference {
			t.Errorf("%s does not change the digest", new)
		}
	}
}

// A merge of very many files does not exceed what the kernel takes as a
// variable.
func TestLongListsAreReadFromTheFile(t *testing.T) {
	x := newWorld(t, `
workflow: w
inputs: {raw: {files: "raw/{n}", as: "raw/{n}"}}
steps:
  m: {merge: "raw/{n}", reads: raw/1, writes: m, command: "cat $in > $out"}
`, nil)
	var names []string
	for i := range 20_000 {
		names = append(names, fmt.Sprintf("raw/%d", i))
	}
	x.arrive("raw", names...)
	x.close("raw")
	c := x.jobs["m"].Command
	if _, ok := c.Environment["in"]; ok || !strings.HasPrefix(c.Shell, `in=$(head -n 20000 "$FAIRWAY_INPUTS_FILE");`) {
		t.Errorf("command %.100s", c.Shell)
	}
	if !slices.Equal(x.jobs["m"].Job.Reads, names) {
		t.Error("the merge does not read all files once")
	}
}

// What a workflow says of all steps a step may say otherwise, also by publishing.
func TestStorageOfAllSteps(t *testing.T) {
	x := newWorld(t, `
workflow: w
storage: temporary
steps:
  a: {writes: a, command: "true"}
  b: {reads: a, writes: b, storage: element, command: "true"}
  c: {reads: b, writes: c, publish: true, command: "true"}
  d: {reads: c, writes: d, storage: cache, command: "true"}
  e: {reads: d, writes: e, command: "true"}
`, nil)
	x.step(Tick{})
	for name, want := range map[string]string{
		"a": "[{a false 0 true false}]", "b": "[{b false 0 false false}]", "c": "[{c false 0 false true}]",
		"d": "[{d false 1 false false}]", "e": "[{e false 0 false true}]",
	} {
		if got := fmt.Sprint(x.jobs[name].Job.Writes); got != want {
			t.Errorf("%s writes %s, want %s", name, got, want)
		}
	}
}

func TestStorageAndPublishing(t *testing.T) {
	x := newWorld(t, `
workflow: w
inputs: {raw: {files: "raw/{n}", as: "raw/{n}"}, c: {files: c}}
steps:
  a: {each: "raw/{n}", reads: c, writes: ["a/{n}", "log/{n}"], storage: cache, command: "true"}
  b: {each: "a/{n}", rewrites: c, writes: "b/{n}", command: "true"}
  d: {each: "b/{n}", writes: "d/{n}", publish: false, command: "true"}
  e: {each: "b/{n}", writes: ["e/{n}", "more/{n}"], log: "log2/{n}", storage: temporary, command: "true"}
  f: {each: "e/{n}", writes: "f/{n}", storage: temporary, command: "true"}
`, nil)
	x.arrive("raw", "raw/1")
	x.arrive("c", "c")
	x.close("raw")
	x.close("c")
	for name, want := range map[string]string{
		"a/1": "[{a/1 false 1 false false} {log/1 false 1 false false}]",
		"b/1": "[{b/1 false 0 false false} {c false 0 false false}]",
		"d/1": "[{d/1 false 0 false false}]",
		"e/1": "[{e/1 false 0 true false} {more/1 false 0 false true} {log2/1 false 0 false true}]",
		"f/1": "[{f/1 false 0 false true}]",
	} {
		if got := fmt.Sprint(x.jobs[name].Job.Writes); got != want {
			t.Errorf("%s writes %s, want %s", name, got, want)
		}
	}
}
