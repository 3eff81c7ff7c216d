package records

import (
	"encoding/json"
	"reflect"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"fairway/internal/taskqueue"
)

// bodies are those that have a table of fields.
func bodies() []any { return []any{new(Job), new(Commit), new(Result), new(File), new(Published)} }

// What stands in stores keeps its form.
func TestFormOfRecords(t *testing.T) {
	priority := int32(-2)
	for want, body := range map[string]any{
		`{"v":1,"n":"a","s":"step","p":"QQ==","d":"d","r":["x","é"],"ra":[0,2],"rv":[0,4294967295],` +
			`"w":[{"l":"y","c":true,"v":3},{"l":"*","p":true,"u":true,"t":true}],"q":{"Memory":5,"Countable":{"gpu":1}},` +
			`"t":["sh"],"at":"site","pr":-3,"re":{"Attempts":2,"Backoff":0,"ExitCodes":[1],"MemoryFactor":0},` +
			`"ck":"c/","ta":2,"ap":true,"on":true,"wd":7,"su":9}`: &Job{
			Job: taskqueue.Job{
				Name: "a", Step: "step", Payload: []byte("A"), Digest: "d", Reads: []string{"x", "é"},
				Access: []taskqueue.Access{taskqueue.AccessLink, taskqueue.AccessStream},
				Needs:  taskqueue.Resources{Memory: 5, Countable: map[string]int64{"gpu": 1}},
				Tools:  []string{"sh"}, Site: "site", Priority: -3,
				Retry:      taskqueue.Retry{Attempts: 2, ExitCodes: []int{1}},
				Checkpoint: "c/", Tasks: 2, Apart: true, Once: true, WaitForData: 7,
			},
			Read: []taskqueue.Version{0, 1<<32 - 1}, Submitted: 9,
			Written: []Write{
				{Output: taskqueue.Output{LFN: "y", Storage: taskqueue.StorageCache}, Version: 3},
				{Output: taskqueue.Output{LFN: "*", Pattern: true, Publish: true, Temporary: true}},
			},
		},
		`{"v":1,"a":7,"k":"0100000000000000000000000000000f","re":true}`: &Commit{
			Attempt: 7, Key: Identity{0: 1, 15: 15}, Reused: true,
		},
		`{"v":1,"a":1,"w":true,"i":["010203"],"o":[{"l":"x","t":18446744073709551615}]}`: &Commit{
			Attempt: 1, Whole: true, Inputs: []Mark{{1, 2, 3}}, Outputs: []Output{{LFN: "x", Tag: 1<<64 - 1}},
		},
		`{"v":1,"j":"j","n":4,"sc":"lab","ru":2,"g":"g","u":"u","by":[1],"le":5}`: &Result{
			Job: "j", Made: 4, Scope: "lab", Run: 2, Group: "g", User: "u", Runs: []taskqueue.RunID{1}, Left: 5,
		},
		`{"v":1,"l":"in/0.txt","n":2,"f":"folder:in/0.txt","s":2,"i":"sha256-9a","t":18316689309073318179}`: &File{
			LFN: "in/0.txt", Version: 2, PFN: "folder:in/0.txt", Size: 2, Identity: "sha256-9a", Tag: 18316689309073318179,
		},
		`{"v":1,"n":6}`:        &Published{Version: 6},
		`{"v":1}`:              &Removal{},
		`{"v":1,"t":2,"u":-2}`: &Fate{Tries: 2, Priority: &priority},
	} {
		if got := string(Append(nil, body)); got != want {
			t.Errorf("%+v is written as\n%s\nnot\n%s", body, got, want)
		}
		again := reflect.New(reflect.TypeOf(body).Elem()).Interface()
		if err := Decode(taskqueue.Record{Body: []byte(want)}, again); err != nil || !reflect.DeepEqual(again, body) {
			t.Errorf("%s is read as\n%+v\nnot\n%+v: %v", want, again, body, err)
		}
	}
}

// What is written is read, whatever the struct held before.
func TestWhatIsWrittenIsRead(t *testing.T) {
	var job Job
	var commit Commit
	rapid.Check(t, func(t *rapid.T) {
		text := rapid.OneOf(rapid.StringMatching(`[a-z/.]{0,9}`), rapid.String())
		name := func() string { return strings.ToValidUTF8(text.Draw(t, "text"), "\ufffd") }
		wrote := Job{Submitted: taskqueue.Instant(rapid.Int64Min(0).Draw(t, "submitted")), Job: taskqueue.Job{
			Name: name(), Step: rapid.SampledFrom([]string{"", "a", "b"}).Draw(t, "step"), Digest: name(), Site: name(),
			Priority: rapid.Int().Draw(t, "priority"), WaitForData: time.Duration(rapid.Int64().Draw(t, "wait")),
			Payload: rapid.SliceOfN(rapid.Byte(), 1, 9).Draw(t, "payload"), Apart: rapid.Bool().Draw(t, "apart"),
			Needs: taskqueue.Resources{Memory: rapid.Int64().Draw(t, "memory"), GPUShare: rapid.Int64().Draw(t, "share")},
		}}
		for range rapid.IntRange(0, 3).Draw(t, "inputs") {
			wrote.Reads = append(wrote.Reads, rapid.SampledFrom([]string{"x", "y"}).Draw(t, "lfn"))
			wrote.Read = append(wrote.Read, taskqueue.Version(rapid.Uint32().Draw(t, "version")))
		}
		for range rapid.IntRange(0, 3).Draw(t, "outputs") {
			wrote.Written = append(wrote.Written, Write{
				Output:  taskqueue.Output{LFN: name(), Pattern: rapid.Bool().Draw(t, "pattern")},
				Version: taskqueue.Version(rapid.Uint32().Draw(t, "version")),
			})
		}
		same(t, &job, &wrote)
		done := Commit{Attempt: taskqueue.AttemptID(rapid.Uint64().Draw(t, "attempt")), Whole: rapid.Bool().Draw(t, "whole")}
		for range rapid.IntRange(0, 3).Draw(t, "outputs") {
			done.Outputs = append(done.Outputs, Output{
				LFN: name(), PFN: name(), Size: rapid.Int64().Draw(t, "size"), Adler32: rapid.Uint32().Draw(t, "sum"),
			})
		}
		same(t, &commit, &done)
	})
}

func same(t *rapid.T, into, wrote any) {
	t.Helper()
	body := Append(nil, wrote)
	if !json.Valid(body) {
		t.Fatalf("%s is no JSON", body)
	}
	if err := Decode(taskqueue.Record{Body: body}, into); err != nil {
		t.Fatal(err)
	}
	if again := Append(nil, into); string(again) != string(body) {
		t.Fatalf("wrote %s, and what was read is %s", body, again)
	}
}

// FuzzDecode gives it bodies of all kinds: what it reads is JSON, and is the same when it was written again.
func FuzzDecode(f *testing.F) {
	for _, text := range []string{
		`{"v":1,"n":"a","p":"QQ==","rv":[0,4294967295],"pr":-3,"q":{"Memory":5,"Countable":{"a":1},"GPUShare":3},"re":{"ExitCodes":[1,2]}}`,
		`{"v":1,"j":"a\u0062","d":"é","o":[{"l":"x","t":18446744073709551615}]}`, `{"v":1,"n":"a","N":{"b":[1,"]"]}}`, `{"v":1,"n":null}`, `{}`,
		`{"v":1,}`, `{,"v":1}`, `{"v":01}`, `{"v":2}`, `{"v":1,"rv":[4294967296]}`, `{"v":1,"w":[{"l":"x","p":false}]}`, `{"v":1,"q":[]}`,
		`{"v":1,"r":[],"n":""}`, `{"v":1,"p":"QQ"}`, `{"v":1,"pr":-}`, `{"v":1,"n":"\`, `{"v":1,"i":["0102"]}`, `{"v":1,"n":4294967296}`, `{"v":1`, `{"v":1,"n":"a`,
	} {
		f.Add([]byte(text))
	}
	f.Fuzz(func(t *testing.T, body []byte) {
		for _, into := range bodies() {
			if Decode(taskqueue.Record{Body: body}, into) != nil {
				continue
			}
			once := Append(nil, into)
			again := reflect.New(reflect.TypeOf(into).Elem()).Interface()
			if err := Decode(taskqueue.Record{Body: once}, again); err != nil {
				t.Fatalf("%s is read, and then written as %s: %v", body, once, err)
			}
			if twice := Append(nil, again); string(twice) != string(once) || !json.Valid(once) {
				t.Fatalf("%s is written as %s, and then as %s", body, once, twice)
			}
		}
	})
}

// What cannot be read is refused with the place.
func TestRefusedRecords(t *testing.T) {
	for body, want := range map[string]string{
		`{"v":2}`: "not the form 1", ``: "has no form", `{"n":1}`: "has no form", `{"v":1,"n":}`: "at byte 12 of 12",
	} {
		err := Decode(taskqueue.Record{Table: TablePublished, Key: "k", Body: []byte(body)}, new(Published))
		if err == nil || !strings.Contains(err.Error(), want) || !strings.Contains(err.Error(), "k of table published") {
			t.Errorf("%s: %v, want %q", body, err, want)
		}
	}
}

// Texts are written as encoding/json writes them, and what is no text, number or list of them is refused.
func TestTextsOfRecords(t *testing.T) {
	for _, text := range []string{"a", " a ", "a\"b", `a\b`, "a\tb", "\x1f", "\x7f", "\u0080", "é", "a<b"} {
		encoded, err := json.Marshal(text)
		if err != nil {
			t.Fatal(err)
		}
		want := `{"v":1,"j":` + string(encoded) + `}`
		if text == "a<b" {
			want = `{"v":1,"j":"a<b"}`
		}
		var again Result
		if got := string(Append(nil, &Result{Job: text})); got != want {
			t.Errorf("%q is written as %s, not %s", text, got, want)
		} else if err := Decode(taskqueue.Record{Body: []byte(got)}, &again); err != nil || again.Job != text {
			t.Errorf("%s is read as %q, %v", got, again.Job, err)
		}
	}
	for _, body := range []string{
		"{\"v\":1,\"n\":\"a\tb\"}", `{"v":1,"n" "a"}`, `{"v":1,"re":[]}`, `{"v":1,"x" 1}`, `{"v":1,"x":}`,
		`{"v":1,x:1}`, `{"v":1,"n":"a"`, `{"v":1,"pr":`, `{"v":1,"pr":1`, `{"v":1 "n":"a"}`,
	} {
		if err := Decode(taskqueue.Record{Body: []byte(body)}, new(Job)); err == nil {
			t.Errorf("%s is read", body)
		}
	}
	for _, body := range []string{`{"v":1,"k":"0100000000000000000000000000000x"}`, `{"v":1,"k":"01"}`} {
		if err := Decode(taskqueue.Record{Body: []byte(body)}, new(Commit)); err == nil {
			t.Errorf("%s is read", body)
		}
	}
	job := Job{Job: taskqueue.Job{Retry: taskqueue.Retry{Attempts: 1, ExitCodes: []int{1}}}}
	if err := Decode(taskqueue.Record{Body: []byte(`{"v":1,"re":{"Backoff":2},"d":"d","n":"a"}`)}, &job); err != nil {
		t.Fatal(err)
	}
	again := job.Retry
	if again.Attempts != 0 || again.ExitCodes != nil || again.Backoff != 2 || job.Digest != "d" || job.Name != "a" {
		t.Errorf("%+v", job)
	}
}

// BenchmarkJob compares with encoding/json what the record of a job costs.
func BenchmarkJob(b *testing.B) {
	body := Append(nil, &Job{
		Job: taskqueue.Job{Name: "count/12", Step: "count", Digest: strings.Repeat("d", 64), Payload: make([]byte, 200),
			Reads: []string{"in/12"}, Tools: []string{"sh"}, Needs: taskqueue.Resources{MilliCPUs: 1000}},
		Read: []taskqueue.Version{1}, Written: []Write{{Output: taskqueue.Output{LFN: "out/12"}, Version: 1}},
	})
	b.Run("read", func(b *testing.B) {
		var job Job
		for b.Loop() {
			if err := Decode(taskqueue.Record{Body: body}, &job); err != nil {
				b.Fatal(err)
			}
		}
	})
	b.Run("write", func(b *testing.B) {
		var job Job
		var memory []byte
		err := Decode(taskqueue.Record{Body: body}, &job)
		for b.Loop() {
			memory = Append(memory[:0], &job)
		}
		if err != nil || string(memory) != string(body) {
			b.Fatal(err, string(memory))
		}
	})
	b.Run("json", func(b *testing.B) {
		for b.Loop() {
			var any map[string]any
			if err := json.Unmarshal(body, &any); err != nil {
				b.Fatal(err)
			}
		}
	})
}
