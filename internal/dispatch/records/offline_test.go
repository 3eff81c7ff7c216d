package records

import (
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"
	"testing"

	"fairway/internal/taskqueue"
)

func recorded(table string, run taskqueue.RunID, key string, body any) taskqueue.Record {
	return taskqueue.Record{Table: table, Run: run, Key: key, Body: Append(nil, body)}
}

func keyed(n byte) Identity { return Identity{0: n} }

// jobOf is a job that reads and writes files, the last of which are published.
func jobOf(name string, reads []string, writes ...string) *Job {
	j := &Job{Job: taskqueue.Job{Name: name, Step: name[:1], Payload: []byte(name), Digest: "d" + name, Reads: reads}}
	for _, lfn := range writes {
		output := taskqueue.Output{LFN: lfn, Pattern: strings.Contains(lfn, "*")}
		output.Publish = !strings.HasPrefix(lfn, "temporary")
		j.Written = append(j.Written, Write{Output: output})
	}
	return j
}

// chain are the records of jobs that read each other's files: a, b of it, by a name that was chosen by content, and
// c of that; d reads nothing, and e was submitted before, when nothing is known of it.
func chain() []taskqueue.Record {
	return []taskqueue.Record{
		recorded(TableResult, 0, keyed(2).Hex(), &Result{Job: "b", Outputs: []Output{{LFN: "b/chosen", Pattern: "b/*"}}}),
		recorded(TableResult, 0, keyed(9).Hex(), &Result{Job: "e"}),
		recorded(TableResult, 0, keyed(4).Hex(), &Result{Job: "d"}),
		recorded(TableCommit, 1, "0000000001", &Commit{Attempt: 1, Key: keyed(1), Whole: true}),
		recorded(TableCommit, 1, "0000000002", &Commit{Attempt: 2, Key: keyed(2)}),
		recorded(TableCommit, 1, "0000000003", &Commit{Attempt: 3, Key: keyed(3), Outputs: []Output{{LFN: "c/chosen"}}}),
		recorded(TableCommit, 1, "0000000004", &Commit{Attempt: 4, Key: keyed(4)}),
		recorded(TableJob, 1, "0000000001", jobOf("a", nil, "a/x")),
		recorded(TableJob, 1, "0000000002", jobOf("b", []string{"a/x"}, "b/*")),
		recorded(TableJob, 1, "0000000003", jobOf("c", []string{"b/chosen"}, "c/*")),
		recorded(TableJob, 1, "0000000004", jobOf("d", nil, "d/x")),
		recorded(TableJob, 1, "0000000005", jobOf("f", []string{"c/chosen"})), // was not committed
	}
}

// What is run once more is what is chosen, all that reads what it wrote, and all of which nothing is known.
func TestWhatIsRunOnceMore(t *testing.T) {
	for _, c := range []struct {
		chosen string
		jobs   int
		keys   []byte
	}{
		{"", 0, []byte{9}}, {"d", 1, []byte{4, 9}}, {"c", 1, []byte{3, 9}}, {"b", 1, []byte{2, 3, 9}},
		{"abcdf", 5, []byte{1, 2, 3, 4, 9}},
	} {
		keys, jobs, err := Rerun(chain(), func(step, job string) bool {
			return step == job && strings.Contains(c.chosen, job) && c.chosen != ""
		})
		want := map[string]bool{}
		for _, n := range c.keys {
			want[keyed(n).Hex()] = true
		}
		if jobs != c.jobs || !maps.Equal(keys, want) || err != nil {
			t.Errorf("%q: %d jobs, %v, %v; want %v", c.chosen, jobs, keys, err, want)
		}
	}
}

// Records that cannot be read are told, whatever is asked of them.
func TestRecordsThatCannotBeRead(t *testing.T) {
	all := func(string, string) bool { return true }
	for _, table := range []string{TableCommit, TableResult, TableJob} {
		broken := taskqueue.Record{Table: table, Run: 1, Key: "0000000001", Body: []byte("{")}
		if keys, jobs, err := Rerun([]taskqueue.Record{broken}, all); err == nil || keys != nil || jobs != 0 {
			t.Errorf("%s: %v", table, err)
		}
	}
	for table, body := range map[string]any{TableCommit: &Commit{Key: keyed(1), Whole: true}, TableJob: jobOf("a", nil)} {
		if _, _, err := Rerun([]taskqueue.Record{recorded(table, 1, "x", body)}, all); err == nil {
			t.Errorf("a %s of no number", table)
		}
	}
	whole, job := &Commit{Key: keyed(1), Whole: true}, jobOf("a", nil)
	broken := func(r taskqueue.Record) taskqueue.Record { r.Body = []byte("{"); return r }
	result := recorded(TableResult, 0, keyed(1).Hex(), &Result{})
	for what, list := range map[string][]taskqueue.Record{
		"a commit":           {broken(recorded(TableCommit, 1, "1", whole))},
		"a commit of no job": {recorded(TableCommit, 1, "1", whole)},
		"a job":              {recorded(TableCommit, 1, "1", whole), broken(recorded(TableJob, 1, "1", job))},
		"a key":              {recorded(TableCommit, 1, "x", whole), recorded(TableJob, 1, "x", job)},
		"a fate":             {broken(recorded(TableFate, 1, "1", &Fate{}))},
		"a result": {
			recorded(TableCommit, 1, "1", &Commit{Key: keyed(1)}), recorded(TableJob, 1, "1", job), broken(result),
		},
	} {
		if _, _, _, err := Fresh(list); err == nil {
			t.Errorf("%s is read", what)
		}
	}
	if _, err := TakenResults([]taskqueue.Record{broken(recorded(TableCommit, 1, "1", whole))}); err == nil {
		t.Error("a commit is read")
	}
	for _, r := range []*RecordedJob{{Job: []byte("{")}, {Commit: []byte("{")}, {Fate: []byte("{")}} {
		if v, err := r.View(); err == nil || v.Name != "" {
			t.Errorf("%+v is read: %+v", r, v)
		}
	}
}

// Results are taken that commits name and do not hold.
func TestResultsThatAreTaken(t *testing.T) {
	keys, err := TakenResults(append(chain(), recorded(TableCommit, 1, "6", &Commit{Attempt: 5})))
	want := map[string]bool{keyed(2).Hex(): true, keyed(3).Hex(): true, keyed(4).Hex(): true}
	if err != nil || !maps.Equal(keys, want) {
		t.Errorf("%v, %v", keys, err)
	}
}

// A job is seen from its own records as it was.
func TestJobsThatAreRecorded(t *testing.T) {
	id, raised := taskqueue.NewJobID(2, 7), int32(5)
	job := jobOf("a", nil)
	job.Priority, job.Tasks, job.Submitted = 3, 2, 9
	body := func(b any) []byte { return Append(nil, b) }
	for _, c := range []struct {
		what         string
		commit, fate []byte
		known        bool
		want         taskqueue.JobView
	}{
		{"waits", nil, nil, false, taskqueue.JobView{State: taskqueue.Done, Priority: 3, Effective: 3}},
		{"done", body(&Commit{Attempt: 8}), body(&Fate{Tries: 1, Reason: "before"}), true,
			taskqueue.JobView{State: taskqueue.Done, Priority: 3, Effective: 3, Committed: 8}},
		{"reused", body(&Commit{Attempt: 8, Reused: true}), nil, true,
			taskqueue.JobView{State: taskqueue.Done, Priority: 3, Effective: 3, Committed: 8, Reused: true}},
		{"of an earlier run", body(&Commit{Attempt: ReusedAttempt}), nil, true,
			taskqueue.JobView{State: taskqueue.Done, Priority: 3, Effective: 3, Committed: ReusedAttempt, Reused: true}},
		{"failed", nil, body(&Fate{End: taskqueue.Failed, Reason: "why", Priority: &raised}), true,
			taskqueue.JobView{State: taskqueue.Failed, Priority: 5, Effective: 5, Reason: "why"}},
	} {
		r := &RecordedJob{ID: id, Job: body(job), Commit: c.commit, Fate: c.fate}
		state, known, err := r.State()
		c.want.ID, c.want.Name, c.want.Step, c.want.Tasks, c.want.Submitted = id, "a", "a", 2, job.Submitted.Time()
		if state != c.want.State || known != c.known || err != nil {
			t.Errorf("%s: %v, %v, %v", c.what, state, known, err)
		}
		if v, err := r.View(); err != nil || !reflect.DeepEqual(v, c.want) {
			t.Errorf("%s: %+v, %v, want %+v", c.what, v, err, c.want)
		}
	}
}

// A run that is retired leaves its results, with how they were made, and what was handed out.
func TestRunsThatAreRetired(t *testing.T) {
	attempt := taskqueue.AttemptID(3<<32 + 1)
	outputs := []Output{
		{LFN: "a/x", PFN: "state:a", Size: 4}, {LFN: "temporary/x", PFN: "state:t"}, {LFN: "a/y"},
		{LFN: "a/chosen", Pattern: "a/*", PFN: "state:c", Tag: 5},
	}
	job := jobOf("a", []string{"in"}, "a/x", "temporary/x", "a/y", "a/*")
	shared := recorded(TableResult, 0, keyed(2).Hex(), &Result{Job: "b", Inputs: []Mark{{7, 8, 9}}, Outputs: outputs[:1]})
	fate := &Fate{Gang: &DoneMembers{Result: &taskqueue.Result{
		Outputs: []taskqueue.WrittenFile{{LFN: "g", PFN: "state:g"}, {LFN: "h"}},
	}}}
	fresh, made, handed, err := Fresh([]taskqueue.Record{
		shared,
		recorded(TableCommit, 1, "0000000001", &Commit{
			Attempt: attempt, Key: keyed(1), Whole: true, Inputs: []Mark{{1, 2, 3}}, Outputs: outputs,
		}),
		recorded(TableCommit, 1, "0000000002", &Commit{Attempt: attempt + 1, Key: keyed(2)}),
		recorded(TableCommit, 1, "0000000003", &Commit{Attempt: attempt, Key: keyed(2), Reused: true}),
		recorded(TableCommit, 1, "0000000004", &Commit{Attempt: attempt, Key: keyed(4)}), // whose result has gone
		recorded(TableCommit, 1, "0000000005", &Commit{Attempt: attempt}),
		recorded(TableJob, 1, "0000000001", job),
		recorded(TableJob, 1, "0000000002", jobOf("b", nil, "a/x")),
		recorded(TableJob, 1, "0000000003", jobOf("c", nil, "a/x")),
		recorded(TableJob, 1, "0000000004", jobOf("d", nil)),
		recorded(TableFate, 1, "0000000001", fate), recorded(TableFate, 1, "0000000002", &Fate{Gang: &DoneMembers{}}),
		recorded(TableMeta, 0, MetaKey, &Removal{}),
	})
	if err != nil {
		t.Fatal(err)
	}
	var told []string
	for _, m := range made {
		own := m.Key == keyed(m.Name[0]-'a'+1).Hex()
		told = append(told, fmt.Sprint(m.Name, m.Attempt-attempt, m.Reads, m.Marks, string(m.Payload), own))
	}
	if want := []string{"a0 [in] [010203]atrue", "b1 [] [070809]btrue"}; !slices.Equal(told, want) {
		t.Errorf("made are %q, want %q", told, want)
	}
	var names []string
	for _, h := range handed {
		names = append(names, fmt.Sprint(h.File.LFN, " ", h.PFN, " ", h.Size))
	}
	want := []string{"a/x state:a 4", "a/chosen state:c 0", "a/x state:a 4", "a/x state:a 4"}
	if !slices.Equal(names, want) {
		t.Errorf("handed out are %q, want %q", names, want)
	}
	kept, forgotten := map[string]taskqueue.Record{}, 0
	for _, r := range fresh {
		if r.Body == nil {
			forgotten++
		} else {
			kept[r.Table+" "+r.Key] = r
		}
	}
	var result Result
	if err := Decode(kept[TableResult+" "+keyed(1).Hex()], &result); err != nil {
		t.Fatal(err)
	}
	tags := []taskqueue.Tag{result.Outputs[0].Tag, result.Outputs[3].Tag}
	if result.Job != "a" || result.Made != 3 || !slices.Equal(tags, []taskqueue.Tag{taskqueue.Tag(attempt), 5}) {
		t.Errorf("the result is %+v", result)
	}
	again := kept[TableResult+" "+keyed(2).Hex()]
	_, removes := kept[TableRemove+" state:g"]
	if len(kept) != 3 || forgotten != 11 || !removes || !reflect.DeepEqual(again, shared) {
		t.Errorf("%d are forgotten, and kept are %v", forgotten, kept)
	}
}

func TestMarksArePeoples(t *testing.T) {
	id := Identity{0xab, 1, 2, 3}
	if got := id.Mark().Hex(); got != "ab0102" {
		t.Error(got)
	}
	if again, err := ParseIdentity(id.Hex()); again != id || err != nil {
		t.Error(again, err)
	}
	for _, text := range []string{"", "ab", strings.Repeat("x", 32)} {
		if _, err := ParseIdentity(text); err == nil {
			t.Errorf("%q is the key of a result", text)
		}
	}
}

// Keys of jobs sort as their numbers do, and give them back.
func TestKeysOfJobs(t *testing.T) {
	for n, want := range map[uint32]string{7: "0000000007", 120: "0000000120", 1<<32 - 1: "4294967295"} {
		id := taskqueue.NewJobID(3, n)
		if again, err := ParseJobKey(3, JobKey(id)); JobKey(id) != want || again != id || err != nil {
			t.Errorf("%d has the key %s, which is %v, %v", n, JobKey(id), again, err)
		}
	}
	if all := Tables(); !slices.Contains(all, TableJob) || slices.Index(all, TableCommit) > slices.Index(all, TableJob) {
		t.Errorf("%q", all)
	}
}
