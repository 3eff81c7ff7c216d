package dispatch

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"fairway/internal/dispatch/records"
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
	recorded := history(t)
	core, _, err := Load(taskqueue.Config{}, recorded)
	if err != nil {
		t.Fatal(err)
	}
	tables := make(map[string]bool)
	for _, r := range recorded {
		tables[r.Table] = true
	}
	for _, name := range []string{records.TableMeta, records.TableRun, records.TableFile, records.TableJob,
		records.TableCommit, records.TableFate, records.TablePilot} {
		if !tables[name] {
			t.Errorf("the history leaves nothing in table %s", name)
		}
	}
	slices.Reverse(recorded)
	again, _, err := Load(taskqueue.Config{}, recorded)
	if err != nil || again.snapshot() != core.snapshot() {
		t.Errorf("the order of the records matters (%v)", err)
	}
}

// Stores of earlier versions have the results of all commits in a table.
func TestLoadOfEarlierCommits(t *testing.T) {
	recorded := history(t)
	core, _, err := Load(taskqueue.Config{}, recorded)
	if err != nil {
		t.Fatal(err)
	}
	fresh, _, handed, err := records.Fresh(recorded)
	if err != nil {
		t.Fatal(err)
	}
	if len(handed) != 1 || handed[0].File.LFN != "raw" || handed[0].PFN == "" || handed[0].Size != 10 {
		t.Errorf("handed out for publication is %+v", handed)
	}
	for i, r := range recorded {
		var c records.Commit
		if r.Table != records.TableCommit || records.Decode(r, &c) != nil || !c.Whole || c.Key == (identity{}) {
			continue
		}
		recorded[i].Body = records.Append(nil, &records.Commit{Attempt: c.Attempt, Key: c.Key})
	}
	for _, r := range fresh {
		if r.Table == records.TableResult {
			recorded = append(recorded, r)
		}
	}
	again, _, err := Load(taskqueue.Config{}, recorded)
	if err != nil || again.snapshot() != core.snapshot() {
		t.Errorf("(%v) got\n%s\nwant\n%s", err, again.snapshot(), core.snapshot())
	}
	if len(again.Unused()) != len(core.Unused()) {
		t.Errorf("%d results count as unused, not %d", len(again.Unused()), len(core.Unused()))
	}
}

// A record that cannot be is refused, and not passed over.
func TestLoadRefusesRecordsThatCannotBe(t *testing.T) {
	recorded := history(t)
	of := func(table string) taskqueue.Record {
		return recorded[slices.IndexFunc(recorded, func(r taskqueue.Record) bool { return r.Table == table })]
	}
	last := recorded[0]
	for _, r := range recorded {
		if r.Table == records.TableJob {
			last = r
		}
	}
	id, err := records.ParseJobKey(last.Run, last.Key)
	if err != nil {
		t.Fatal(err)
	}
	twice := last
	twice.Key = records.JobKey(id + 1)
	elsewhere := of(records.TableFile)
	elsewhere.Run = 77
	named := func(table, key string) taskqueue.Record {
		r := of(table)
		r.Key = key
		return r
	}
	result := taskqueue.Record{Table: records.TableResult, Body: records.Append(nil, &records.Result{Job: "j"})}
	odd, short, cut := result, result, result
	odd.Key, short.Key = "no key", "abcd"
	cut.Key, cut.Body = strings.Repeat("ab", len(identity{})), []byte("{")
	file := of(records.TableFile)
	file.Body = []byte("[]")
	for want, r := range map[string]taskqueue.Record{
		"is used twice": twice, "belongs to run 77, which is not recorded": elsewhere,
		`"no key" is not a key of a result`: odd, `"abcd" is not a key of a result`: short,
		"record " + cut.Key: cut, "record " + file.Key: file,
		`parsing "c"`: named(records.TableCommit, "c"), `parsing "f"`: named(records.TableFate, "f"),
	} {
		_, _, err := Load(taskqueue.Config{}, append(slices.Clone(recorded), r))
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v, want %s", err, want)
		}
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
		var recorded []taskqueue.Record
		for _, line := range strings.Split(text, "\n") {
			parts := strings.SplitN(line, "\t", 4)
			if len(parts) == 4 {
				run, _ := strconv.ParseUint(parts[1], 10, 32)
				recorded = append(recorded, taskqueue.Record{
					Table: parts[0], Run: taskqueue.RunID(run), Key: parts[2], Body: []byte(parts[3]),
				})
			}
		}
		core, _, err := Load(taskqueue.Config{}, recorded)
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
