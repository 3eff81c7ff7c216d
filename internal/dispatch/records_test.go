package dispatch

import (
	"encoding/json"
	"fmt"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"fairway/internal/taskqueue"
)

// history runs a script and returns the records that it leaves.
func history(t testing.TB) []taskqueue.Record {
	t.Helper()
	s := newScript()
	core, e := New(s.config)
	s.core = core
	s.keep(e.Persist)
	if err := s.begin(); err != nil {
		t.Fatal(err)
	}
	step := func(in taskqueue.Input) {
		e, err := s.core.Step(s.now, in)
		if err != nil {
			t.Fatal(err)
		}
		s.render(e)
	}
	step(taskqueue.AddFiles{Run: 1, Files: []taskqueue.ExistingFile{{LFN: "raw", PFN: "/data/raw", Size: 10,
		Identity: "1"}}})
	sub, err := s.submission([]string{
		"a1 reads=raw writes=a,tmp!cache mem=5 tools=root,sh gpu=1 codes=3,4",
		"b1 reads=a,raw writes=part.*,raw!publish share=250",
		"c1 reads=a writes=c", "d1 reads=c writes=d digest= priority=3 site=x wait=1s",
	})
	if err != nil {
		t.Fatal(err)
	}
	step(sub)
	info := taskqueue.PilotInfo{
		Host: "h", Has: taskqueue.Resources{MilliCPUs: 1000, Memory: 10, Countable: map[string]int64{"gpu": 1}},
		Tools: []string{"root", "sh"},
	}
	step(taskqueue.Sync{Pilot: "p", Seq: 1, Full: true, Hello: &info})
	for i, line := range []string{"1.1 done", "1.2 done out=part.x", "1.3 exit=1"} {
		r, err := s.result(line)
		if err != nil {
			t.Fatal(err)
		}
		step(taskqueue.Sync{Pilot: "p", Seq: uint64(i + 2), Full: true, Hello: &info, LastAnswer: 1 << 40,
			Ended: []taskqueue.Result{r}})
	}
	step(taskqueue.Cancel{Jobs: []taskqueue.JobID{taskqueue.NewJobID(1, 4)}})
	return s.records()
}

func TestLoadOfAHistory(t *testing.T) {
	records := history(t)
	core, _, err := Load(Config{}, records)
	if err != nil {
		t.Fatal(err)
	}
	tables := make(map[string]bool)
	for _, r := range records {
		tables[r.Table] = true
	}
	for _, name := range []string{TableMeta, TableRun, TableFile, TableJob, TableCommit, TableFate, TablePilot} {
		if !tables[name] {
			t.Errorf("the history leaves nothing in table %s", name)
		}
	}
	slices.Reverse(records)
	again, _, err := Load(Config{}, records)
	if err != nil || again.snapshot() != core.snapshot() {
		t.Errorf("the order of the records matters (%v)", err)
	}
}

// Stores of earlier versions have the results of all commits in a table.
func TestLoadOfEarlierCommits(t *testing.T) {
	records := history(t)
	core, _, err := Load(Config{}, records)
	if err != nil {
		t.Fatal(err)
	}
	fresh, _, _, err := Fresh(records)
	if err != nil {
		t.Fatal(err)
	}
	for i, r := range records {
		var c commitBody
		if r.Table != TableCommit || json.Unmarshal(r.Body, &c) != nil || !c.Whole || c.Key == "" {
			continue
		}
		records[i].Body, _ = json.Marshal(commitBody{V: bodyVersion, Attempt: c.Attempt, Key: c.Key})
	}
	for _, r := range fresh {
		if r.Table == TableResult {
			records = append(records, r)
		}
	}
	again, _, err := Load(Config{}, records)
	if err != nil || again.snapshot() != core.snapshot() {
		t.Errorf("(%v) got\n%s\nwant\n%s", err, again.snapshot(), core.snapshot())
	}
	if len(again.Unused()) != len(core.Unused()) {
		t.Errorf("%d results count as unused, not %d", len(again.Unused()), len(core.Unused()))
	}
}

// FuzzLoad gives Load records of which some were changed: it must refuse them
// or make a Core that works.
func FuzzLoad(f *testing.F) {
	var lines []string
	for _, r := range history(f) {
		lines = append(lines, fmt.Sprintf("%s\t%d\t%s\t%s", r.Table, r.Run, r.Key, r.Body))
	}
	f.Add(strings.Join(lines, "\n"))
	for i := range lines {
		f.Add(strings.Join(slices.Delete(slices.Clone(lines), i, i+1), "\n"))
	}
	f.Fuzz(func(t *testing.T, text string) {
		var records []taskqueue.Record
		for _, line := range strings.Split(text, "\n") {
			parts := strings.SplitN(line, "\t", 4)
			if len(parts) == 4 {
				run, _ := strconv.ParseUint(parts[1], 10, 32)
				records = append(records, taskqueue.Record{
					Table: parts[0], Run: taskqueue.RunID(run), Key: parts[2], Body: []byte(parts[3]),
				})
			}
		}
		core, _, err := Load(Config{}, records)
		if err != nil {
			return
		}
		info := taskqueue.PilotInfo{Host: "h", Has: taskqueue.Resources{MilliCPUs: 4000, Memory: 1 << 40}}
		for i, in := range []taskqueue.Input{taskqueue.Tick{}, taskqueue.Sync{Pilot: "q", Seq: 1, Full: true, Hold: true,
			Hello: &info}, taskqueue.Tick{}} {
			if _, err := core.Step(epoch.Add(time.Duration(i)*time.Minute), in); err != nil {
				t.Fatal(err)
			}
		}
		for j := range core.jobs.all {
			core.Explain(j.id)
		}
	})
}

// The encoding by hand is the JSON that encoding/json reads.
func TestHandWrittenEncoding(t *testing.T) {
	text := rapid.OneOf(rapid.String(), rapid.StringMatching(`[a-z/.]{0,9}`))
	rapid.Check(t, func(t *rapid.T) {
		var outputs []output
		for range rapid.IntRange(0, 3).Draw(t, "outputs") {
			outputs = append(outputs, output{
				LFN: text.Draw(t, "lfn"), Pattern: text.Draw(t, "pattern"), PFN: text.Draw(t, "pfn"),
				Size: rapid.Int64().Draw(t, "size"), Records: rapid.Int64().Draw(t, "records"),
				Adler32: rapid.Uint32().Draw(t, "adler"),
				Written: rapid.Uint32().Draw(t, "written"),
				Hash:    rapid.StringMatching(`[0-9a-f]{0,9}`).Draw(t, "hash"),
			})
		}
		result := resultBody{
			V: 1, Job: text.Draw(t, "job"), Digest: text.Draw(t, "digest"), Outputs: outputs, Scope: text.Draw(t, "scope"),
			Run: taskqueue.RunID(rapid.Uint32().Draw(t, "run")), Group: text.Draw(t, "group"), User: text.Draw(t, "user"),
			Left: instant(rapid.Int64Min(0).Draw(t, "left")),
		}
		for range rapid.IntRange(0, 3).Draw(t, "runs") {
			result.Runs = append(result.Runs, taskqueue.RunID(rapid.Uint32().Draw(t, "names")))
		}
		same(t, appendResult(nil, &result), result)
		commit := commitBody{
			V: 1, Attempt: taskqueue.AttemptID(rapid.Int64Min(0).Draw(t, "attempt")), Reused: rapid.Bool().Draw(t, "reused"),
		}
		done := job{committed: commit.Attempt, key: identityOf(text.Draw(t, "key"))}
		if commit.Reused {
			done.result = takenResult
		} else if rapid.Bool().Draw(t, "lent") {
			done.result = lentResult
		}
		for range rapid.IntRange(1, 3).Draw(t, "inputs") {
			done.requests = append(done.requests, request{read: &version{identity: identityOf(text.Draw(t, "input"))}})
		}
		commit.Key = done.key.hex()
		if !done.inJournal() {
			commit.Whole, commit.Inputs, commit.Outputs = true, done.inputMarks(), outputs
		}
		same(t, appendCommit(nil, &done, outputs), commit)
		job := taskqueue.Job{
			Name: text.Draw(t, "name"), Step: text.Draw(t, "step"),
			Payload: []byte(text.Draw(t, "payload")), Digest: text.Draw(t, "digest"),
			Tools: []string{text.Draw(t, "tool")}, Site: text.Draw(t, "site"), Priority: rapid.Int().Draw(t, "priority"),
			Needs:       taskqueue.Resources{Memory: rapid.Int64().Draw(t, "memory")},
			WaitForData: time.Duration(rapid.Int64().Draw(t, "wait")),
		}
		body := jobBody{}
		if err := json.Unmarshal(appendJob(nil, &noRequests, &job), &body); err != nil {
			t.Fatal(err)
		}
		job.Payload, body.Payload = nonNil(job.Payload), nonNil(body.Payload)
		if got := body.job(); !reflect.DeepEqual(valid(got), valid(job)) {
			t.Fatalf("read %+v, wrote %+v", got, job)
		}
	})
}

var noRequests job // without requests

func nonNil(b []byte) []byte { return append([]byte{}, b...) }

// valid is the job as JSON can hold it.
func valid(j taskqueue.Job) taskqueue.Job {
	for _, s := range []*string{&j.Name, &j.Step, &j.Digest, &j.Site, &j.Tools[0]} {
		*s = strings.ToValidUTF8(*s, "\ufffd")
	}
	return j
}

func same[T any](t *rapid.T, data []byte, want T) {
	t.Helper()
	var got, through T
	if err := json.Unmarshal(data, &got); err != nil {
		t.Fatalf("%s: %v", data, err)
	}
	plain, _ := json.Marshal(want)
	if err := json.Unmarshal(plain, &through); err != nil {
		t.Fatal(err)
	}
	x, _ := json.Marshal(got)
	y, _ := json.Marshal(through)
	if string(x) != string(y) {
		t.Fatalf("read %s, wrote %s", x, y)
	}
}
