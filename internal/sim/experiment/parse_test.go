package experiment

import (
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"go.yaml.in/yaml/v3"
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
	if e := last.Experiment; e.Seed != 3 || e.Cache.Size != 2e9 || e.Storage[0].FailureRate != 0.5 || e.Cache.Spare != 1e6 {
		t.Errorf("the last point %v is %+v", last.Levels, e)
	}
}

func TestErrorsNameFileAndLine(t *testing.T) {
	for text, want := range map[string]string{
		"experiment: x\nworkfow: {}\n":                                          `x.yaml:2: unknown key "workfow"`,
		small + "cache: {size: 10 furlongs}\n":                                  `x.yaml:7: "10 furlongs" is no size; write a number with B`,
		small + "cache: {share: everyone}\n":                                    `x.yaml:7: cache.share: "everyone"`,
		strings.Replace(small, "W1", "W9", 1):                                   `x.yaml:2: workflow.pattern: "W9" is unknown`,
		strings.Replace(small, "started: 4", "started: 5", 1):                   `x.yaml:4: sites.here.started: site here: 5 pilots do not fit`,
		small + "because: {cache.size: a reason}\n":                             `x.yaml:7: because: nothing is set at cache.size`,
		small + "axes: {a: {b: {storage.xx.capacity: 1GB}}}\n":                  `x.yaml:7: nothing is named xx`,
		small + "repetitions: many\n":                                           `x.yaml:7: `,
		small + "network: {patience: 5}\n":                                      `x.yaml:7: "5" is no duration; write a number with ms, s, m, h or d`,
		small + "network: {latency: {mean: 5}}\n":                               `x.yaml:7: "5" is no duration; write a number with ms, s, m, h or d`,
		small + "network: {latency: -5s}\n":                                     `x.yaml:7: "-5s" is no duration; write a number with ms, s, m, h or d`,
		small + "creation: {poll: -1m}\n":                                       `x.yaml:7: poll: -1m: it cannot be negative`,
		strings.Replace(small, "pattern: W1", "trace: none.json", 1):            `x.yaml:2: workflow.trace: none.json cannot be read`,
		strings.Replace(small, "{name: se}", "{name: se, delay_factor: -1}", 1): `x.yaml:6: delay_factor: -1: it cannot be negative`,
		"- a\n":                            `x.yaml:1: an experiment file is a mapping`,
		small + "cache: {policy: magic}\n": `x.yaml:7: cache.policy: "magic"`,
		small + "storage:\n":               `x.yaml:7: mapping key "storage" already defined`,
		small + "cache: {size: {from: 1, to: 0, step: 1}}\n":                             `x.yaml:7: from 1 to 0`,
		strings.Replace(small, "{name: se}", "{name: se, latency: {men: 1s}}", 1):        `x.yaml:6: unknown key "men"`,
		strings.Replace(small, "W1,", "Tier0, tier0: {steps: [{name: a, jobs: 3}]},", 1): `x.yaml:2: workflow.tier0.steps.a: step a: needs jobs`,
	} {
		_, err := Parse("x.yaml", []byte(text))
		if err == nil || !strings.HasPrefix(err.Error(), want) {
			t.Errorf("error is %v, not %s", err, want)
		}
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
		if _, err := takeAxes(root); err != nil {
			t.Fatal(err)
		}
		for _, path := range statedIn(name) {
			if find(root, path) == nil {
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
			all = append(all, leaves(n.Content[i+1], join(path, n.Content[i].Value))...)
		}
	case yaml.SequenceNode:
		for i, item := range n.Content {
			all = append(all, leaves(item, join(path, itemName(item, i)))...)
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
