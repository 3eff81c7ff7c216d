package rocrate

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"
)

var began = time.Date(2026, 11, 27, 8, 0, 0, 0, time.UTC)

func example() *Run {
	in := File{LFN: "in/a b.txt", Version: 1, Size: 7, Place: "https://example.org/a%20b.txt"}
	up := File{LFN: "up/a b.txt", Version: 1, Size: 9, Made: true, Adler32: "0badcafe"}
	table := File{LFN: "table", Version: 1, Size: 3, Made: true}
	again := File{LFN: "table", Version: 2, Size: 4, Made: true, Published: true, BLAKE3: "aa"}
	folder := File{LFN: "index/", Version: 1, Size: 100, Made: true}
	return &Run{
		Workflow: "demo", Number: 3, Made: began, Version: "1.2", Agent: "ada", Steps: []string{"idle", "up", "all"},
		Parameters: map[string]string{"word": "x"}, Ended: true, FileSize: 10,
		Jobs: []Job{
			{
				Name: "up/a b", Step: "up", Command: "tr a-z A-Z", Start: began, End: began.Add(time.Second), Host: "node1",
				CPU: time.Second / 2, Memory: 4096, Reads: []File{in}, Writes: []File{up, folder, table},
			},
			{
				Name: "all", Step: "all", Start: began.Add(time.Second), End: began.Add(3 * time.Second),
				Reads: []File{{LFN: "up/a b.txt", Version: 1, Size: 9, Place: "state:up"}, folder, table}, Writes: []File{again},
			},
			{Name: "all/2", Step: "all", Failed: true, Error: "exit 1", Reads: []File{up}},
		},
	}
}

func graphOf(t *testing.T, run *Run) map[string]entity {
	t.Helper()
	var text bytes.Buffer
	if err := Write(&text, run); err != nil {
		t.Fatal(err)
	}
	var crate struct {
		Graph []entity `json:"@graph"`
	}
	if err := json.Unmarshal(text.Bytes(), &crate); err != nil {
		t.Fatal(err)
	}
	all := map[string]entity{}
	for _, e := range crate.Graph {
		id := fmt.Sprint(e["@id"])
		if all[id] != nil {
			t.Errorf("%s is described twice", id)
		}
		all[id] = e
	}
	return all
}

// references are all identifiers that a value refers to.
func references(value any) (ids []string) {
	switch v := value.(type) {
	case map[string]any:
		if id, ok := v["@id"].(string); ok && len(v) == 1 {
			return []string{id}
		}
	case []any:
		for _, of := range v {
			ids = append(ids, references(of)...)
		}
	}
	return ids
}

func TestEachReferenceIsDescribed(t *testing.T) {
	all := graphOf(t, example())
	for id, e := range all {
		for property, value := range e {
			for _, to := range references(value) {
				outside := strings.HasPrefix(to, crateSpec) || strings.HasPrefix(to, "https://bioschemas.org/")
				if all[to] == nil && !outside {
					t.Errorf("%s of %s is %s, which is not described", property, id, to)
				}
			}
		}
	}
}

func TestJobsBecomeActions(t *testing.T) {
	all := graphOf(t, example())
	job := all["#job/up/a%20b"]
	if job == nil || job["startTime"] != "2026-11-27T08:00:00.000+00:00" ||
		job["endTime"] != "2026-11-27T08:00:01.000+00:00" {
		t.Fatalf("the job is %v", job)
	}
	read, wrote := references(job["object"]), references(job["result"])
	if len(read) != 1 || len(wrote) != 3 {
		t.Fatalf("it reads %v and writes %v", read, wrote)
	}
	in, up, folder := all[read[0]], all[wrote[0]], all[wrote[1]]
	if in["contentSize"] != "7" || in["contentUrl"] != "https://example.org/a%20b.txt" {
		t.Errorf("the input is %v", in)
	}
	if sums := references(up["additionalProperty"]); len(sums) != 1 || all[sums[0]]["value"] != "0badcafe" {
		t.Errorf("the output is %v", up)
	}
	if up["description"] != "Stored at state:up" {
		t.Errorf("the place that a reader knows is lost: %v", up)
	}
	if folder["@type"] != "Dataset" {
		t.Errorf("the folder is %v", folder)
	}
	if table := wrote[2]; !strings.HasSuffix(table, "/table?version=1") {
		t.Errorf("of two versions one is %s", table)
	}
	if broken := all["#job/all/2"]; broken["actionStatus"] != failed || broken["error"] != "exit 1" {
		t.Errorf("the failed job is %v", broken)
	}
	if all["#tool/idle"] != nil || all["#step/idle"] != nil {
		t.Error("a step without jobs is described")
	}
	if used := references(job["resourceUsage"]); len(used) != 2 || all[used[0]]["value"] != "0.5" {
		t.Errorf("it used %v", used)
	}
}

func TestRunAndWorkflow(t *testing.T) {
	all := graphOf(t, example())
	run := all[runID]
	if run["actionStatus"] != failed || run["endTime"] != "2026-11-27T08:00:03.000+00:00" {
		t.Errorf("the run is %v", run)
	}
	if results := references(run["result"]); len(results) != 1 || !strings.HasSuffix(results[0], "/table?version=2") {
		t.Errorf("the results are %v, not what was published", results)
	}
	if all[agentID]["name"] != "ada" || all["#value/word"]["value"] != "x" {
		t.Errorf("the user is %v, the parameter %v", all[agentID], all["#value/word"])
	}
	for _, mentioned := range []string{runID, "#job/all", "#orchestration"} {
		if !strings.Contains(fmt.Sprint(all["./"]["mentions"]), "map[@id:"+mentioned+"]") {
			t.Errorf("the crate does not mention %s", mentioned)
		}
	}
}

func TestSameRunSameText(t *testing.T) {
	var first, second bytes.Buffer
	if err := Write(&first, example()); err != nil {
		t.Fatal(err)
	}
	if err := Write(&second, example()); err != nil {
		t.Fatal(err)
	}
	if first.String() != second.String() {
		t.Error("two descriptions of one run differ")
	}
}

func TestNothingExecuted(t *testing.T) {
	all := graphOf(t, &Run{Workflow: "w", Made: began, Steps: []string{"a"}})
	if all["#orchestration"] != nil || all[agentID] != nil ||
		all[runID]["startTime"] != nil || all[runID]["actionStatus"] != nil {
		t.Error("a run without jobs tells of some")
	}
}
