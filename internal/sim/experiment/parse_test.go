package experiment

import (
	"errors"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"go.yaml.in/yaml/v3"

	"fairway/internal/yamlfile"
)

const small = `experiment: small
workflow: {pattern: W1, file_size: 1MB, run: 10s}
sites:
  - {name: here, nodes: 2, slots: 2, started: 4}
storage:
  - {name: se}
`

func TestSweepsAndAxesCombine(t *testing.T) {
	p, err := Parse("x.yaml", []byte(small+`seed: {from: 1, to: 3, step: 1}
cache: {size: {sweep: [1GB, 2GB]}}
axes:
  storage:
    good: {storage.se.failure_rate: 0}
    bad: {storage.se.failure_rate: 0.5, cache.spare: 1MB}
`))
	if err != nil {
		t.Fatal(err)
	}
	if want := []string{"storage", "seed", "cache.size"}; !reflect.DeepEqual(p.Axes, want) {
		t.Errorf("axes %v, not %v", p.Axes, want)
	}
	if len(p.Points) != 12 {
		t.Fatalf("%d points, not 12", len(p.Points))
	}
	last := p.Points[11]
	if e := last.Experiment; e.Seed != 3 || e.Cache.Size != 2e9 || e.Storage[0].FailureRate != 0.5 ||
		e.Cache.Spare != 1e6 {
		t.Errorf("the last point %v is %+v", last.Levels, e)
	}
}

func TestProblems(t *testing.T) {
	for text, want := range map[string][]string{
		"": {"x.yaml:1:1: the file is empty; start with `experiment: NAME`"},
		"experiment: x\nworkfow: {}\ncache: {sise: 1}\n":                        {`x.yaml:2:1: unknown key "workfow" in the experiment; did you mean "workflow"?`, `x.yaml:3:9: unknown key "sise" in cache; did you mean "size"?`},
		small + "cache: {size: 10 furlongs}\n":                                  {`x.yaml:7:15: cache.size: "10 furlongs" is no size; write a number with B`},
		small + "cache: {share: everyone}\n":                                    {`x.yaml:7:16: cache.share: there is no "everyone"; known here: none, pilot, host, global`},
		small + "cache: {policy: lur}\n":                                        {`x.yaml:7:17: cache.policy: there is no "lur"; did you mean "lru"?`},
		strings.Replace(small, "W1", "W9", 1):                                   {`x.yaml:2:21: workflow.pattern: there is no "W9"; did you mean "W1"?`},
		strings.Replace(small, "started: 4", "started: 5", 1):                   {`x.yaml:4:47: sites.here.started: 5 pilots do not fit on 2 nodes with 2 slots; give it more`},
		small + "because: {cache.size: a reason}\n":                             {`x.yaml:7:11: because: nothing is set at cache.size; set it, or remove its reason`},
		small + "because: {seed: ''}\nseed: 1\n":                                {`x.yaml:7:17: because: seed has no reason; write why`},
		small + "axes: {a: {b: {storage.xx.capacity: 1GB}}}\n":                  {`x.yaml:7:37: there is nothing at storage.xx.capacity to set; write a path`},
		small + "axes: {a: {}}\n":                                               {`x.yaml:7:11: axis a has no level; write the name`},
		small + "repetitions: many\n":                                           {`x.yaml:7:14: repetitions: "many" is no such number; write a whole number from 0`},
		small + "repetitions: 100001\n":                                         {`x.yaml:7:14: repetitions: 100001 repetitions are too many; write a number from 1 to 100000`},
		small + "network: {patience: 5}\n":                                      {`x.yaml:7:21: network.patience: "5" is no duration; write a number with ms, s, m, h or d`},
		small + "network: {latency: {mean: 5}}\n":                               {`x.yaml:7:27: network.latency.mean: "5" is no duration; write a number with ms, s, m, h or d`},
		small + "network: {latency: -5s}\n":                                     {`x.yaml:7:20: network.latency: "-5s" is no duration; write a number with ms, s, m, h or d`},
		small + "creation: {poll: -1m}\n":                                       {`x.yaml:7:18: creation.poll: "-1m" is no duration; write a number`},
		strings.Replace(small, "pattern: W1", "trace: none.json", 1):            {`x.yaml:2:19: workflow.trace: none.json cannot be read; give the path`},
		strings.Replace(small, "pattern: W1", "file: none.yaml", 1):             {`x.yaml:2:18: workflow.file: read the workflow: open none.yaml: no such file or directory; give the path`},
		strings.Replace(small, "{name: se}", "{name: se, delay_factor: -1}", 1): {`x.yaml:6:30: storage.se.delay_factor: "-1" is no number of decimal digits`},
		strings.Replace(small, "{name: se}", "{name: se, failure_rate: 2}", 1):  {`x.yaml:6:30: storage.se.failure_rate: "2" is no probability; write a number from 0 to 1`},
		"- a\n":              {`x.yaml:1:1: the experiment must be a mapping, not a list; write`},
		small + "storage:\n": {`x.yaml:7:1: the experiment has "storage" twice, first in line 5; give it another name`},
		small + "cache: {size: {from: 1, to: 0, step: 1}}\n":                                                                 {`x.yaml:7:15: from 1 to 0 in steps of 1 is no range; write a range such as`},
		small + "seed: {from: 1, to: 10001, step: 1}\n":                                                                      {`x.yaml:1:1: there are more than 10000 combinations; leave out a level`},
		strings.Replace(small, "{name: se}", "{name: se, latency: {men: 1s}}", 1):                                            {`x.yaml:6:26: unknown key "men" in storage.se.latency; did you mean "mean"?`},
		strings.Replace(small, "W1,", "Tier0, tier0: {steps: [{name: a, jobs: 3}]},", 1):                                     {`x.yaml:2:44: workflow.tier0.steps.a: a step needs jobs and merge; give jobs, from 1 to 1000000`},
		"experiment: x\nworkflow: {pattern: W1, trace: t}\nsites: [{name: a}, {name: a, nodes: 1}]\nstorage: [{name: se}]\n": {`x.yaml:2:11: workflow: the jobs must come from one place; give one of pattern, trace and file`, `x.yaml:3:8: sites: two sites are named "a"; give each a name of its own`, `x.yaml:3:9: sites.a: site a has no nodes; add nodes: NUMBER`},
	} {
		_, err := Parse("x.yaml", []byte(text))
		problems, _ := errors.AsType[yamlfile.Problems](err)
		if len(problems) != len(want) {
			t.Errorf("%s\ngot %v\nwant %q", text, err, want)
			continue
		}
		for i, problem := range problems {
			if !strings.HasPrefix(problem.String(), want[i]) {
				t.Errorf("%s\ngot  %s\nwant %s", text, problem, want[i])
			}
		}
	}
}

// A problem of one level is told beside those of the others, and a problem of
// all points once.
func TestProblemsOfAllPointsAreToldOnce(t *testing.T) {
	_, err := Parse("x.yaml", []byte(small+"cache: {policy: lur}\naxes:\n  a:\n    b: {cache.share: c}\n    d: "+
		"{cache.share: e}\n"))
	want := `x.yaml:7:17: cache.policy: there is no "lur"; did you mean "lru"?
x.yaml:10:22: cache.share: there is no "c"; known here: none, pilot, host, global
x.yaml:11:22: cache.share: there is no "e"; known here: none, pilot, host, global`
	if err == nil || err.Error() != want {
		t.Errorf("got\n%v\nwant\n%s", err, want)
	}
}

// Every number of the paper's experiments that the paper does not give has a
// reason in the file.
func TestPaperExperimentsGiveReasons(t *testing.T) {
	given := []string{
		"experiment", "about", "seed", "repetitions", "timeline", "because", // not about the world
		"workflow.pattern", "workflow.file_size", // 700 MB
		"sites.ciemat.name", "sites.ciemat.started", "sites.tier0.name", "sites.tier0.nodes", "sites.tier0.slots",
		"storage.se.name", "storage.se.failure_rate", "cache.share", "cache.size", // 10 GB
		"cache.policy", // LRU, section IV-B
	}
	files, err := filepath.Glob("../paper/*.yaml")
	if err != nil || len(files) == 0 {
		t.Fatalf("no experiments of the paper: %v", err)
	}
	for _, file := range files {
		name := strings.TrimSuffix(filepath.Base(file), ".yaml")
		data, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		var doc yaml.Node
		if err := yaml.Unmarshal(data, &doc); err != nil {
			t.Fatal(err)
		}
		root := doc.Content[0]
		var r yamlfile.Reader
		takeAxes(&r, root)
		if err := r.Err(); err != nil {
			t.Fatal(err)
		}
		for _, path := range statedIn(name) {
			if yamlfile.Find(root, path) == nil {
				t.Errorf("%s.yaml does not set %s", name, path)
			}
		}
		reasons := root.Content[keyIndex(root, "because")+1]
		for _, path := range leaves(root, "") {
			if !covered(path, given) && !covered(path, keysOf(reasons)) {
				t.Errorf("%s.yaml: %s has no reason", name, path)
			}
		}
	}
}

// statedIn are the assumptions that an experiment of the paper states and does
// not leave to the simulator's defaults.
func statedIn(experiment string) []string {
	stated := []string{"network.patience", "taskqueue.lease", "creation.lead", "cache.policy"}
	if experiment == "tier0" {
		stated = append(stated, "workflow.tier0.input", "workflow.tier0.merge_run", "workflow.tier0.steps")
	}
	return stated
}

func leaves(n *yaml.Node, path string) []string {
	var all []string
	switch n.Kind {
	case yaml.MappingNode:
		for i := 0; i < len(n.Content); i += 2 {
			all = append(all, leaves(n.Content[i+1], yamlfile.Join(path, n.Content[i].Value))...)
		}
	case yaml.SequenceNode:
		for i, item := range n.Content {
			all = append(all, leaves(item, yamlfile.Join(path, yamlfile.ItemName(item, i)))...)
		}
	default:
		all = append(all, path)
	}
	return all
}

func covered(path string, by []string) bool {
	for _, p := range by {
		if path == p || strings.HasPrefix(path, p+".") {
			return true
		}
	}
	return false
}

func keysOf(n *yaml.Node) []string {
	var keys []string
	for i := 0; i < len(n.Content); i += 2 {
		keys = append(keys, n.Content[i].Value)
	}
	return keys
}

func FuzzParse(f *testing.F) {
	f.Add([]byte("{}"))
	f.Add([]byte(small))
	f.Add([]byte(small + "axes: {a: {b: {cache.size: 1GB}}}\nseed: {sweep: [1, 2]}\n"))
	f.Fuzz(func(t *testing.T, data []byte) {
		p, err := Parse("x.yaml", data)
		if err == nil && len(p.Points) == 0 {
			t.Error("no error and no point")
		}
	})
}

func TestSweptSeedsAreNotReplaced(t *testing.T) {
	p, err := Parse("test.yaml", []byte(small+"seed: {sweep: [1, 2]}\n"))
	if err != nil {
		t.Fatal(err)
	}
	if err := p.Reseed(0); err != nil {
		t.Error(err)
	}
	if err := p.Reseed(5); err == nil || !strings.Contains(err.Error(), "test.yaml: its points differ") {
		t.Errorf("replaced: %v", err)
	}
}
