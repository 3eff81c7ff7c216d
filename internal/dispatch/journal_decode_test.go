package dispatch

import (
	"encoding/json"
	"reflect"
	"testing"
)

// FuzzScanned compares what is decoded by hand with what encoding/json makes of it.
func FuzzScanned(f *testing.F) {
	for _, r := range history(f) {
		f.Add(r.Body)
	}
	for _, text := range []string{
		`{"v":1,"n":"a","p":"QQ==","rv":[0,4294967295],"pr":-3,"q":{"Memory":5,"Countable":{"a":1},"GPUShare":3},"re":{"ExitCodes":[1,2]}}`,
		`{"v":1,"j":"a\u0062","d":"é","o":[{"l":"x","t":18446744073709551615}]}`, `{"v":1,"n":"a","N":"b"}`, `{"v":1,"n":null}`, `{}`, `{"v":1,}`, `{,"v":1}`,
		`{"v":01}`, `{"v":1,"rv":[4294967296]}`, `{"v":1,"w":[{"l":"x","p":false}]}`, `{"v":1,"q":[]}`, `{"v":1,"r":[],"n":""}`, `{"v":1,"p":"QQ"}`, `{"v":1,"pr":-}`,
		`{"v":1,"l":"in/0.txt","n":2,"f":"folder:in/0.txt","s":2,"i":"sha256-9a","t":18316689309073318179}`, `{"v":1,"n":4294967296}`,
	} {
		f.Add([]byte(text))
	}
	f.Fuzz(func(t *testing.T, body []byte) {
		agree(t, body, new(jobBody))
		agree(t, body, new(commitBody))
		agree(t, body, new(resultBody))
		agree(t, body, new(fileBody))
		agree(t, body, new(publishedBody))
	})
}

func agree[T any](t *testing.T, body []byte, by *T) {
	t.Helper()
	if !scanned(body, by) {
		return
	}
	plain := new(T)
	if err := json.Unmarshal(body, plain); err != nil {
		t.Fatalf("%s is read by hand, and encoding/json says: %v", body, err)
	}
	if !reflect.DeepEqual(by, plain) {
		t.Fatalf("%s is read by hand as\n%+v\nnot\n%+v", body, *by, *plain)
	}
}

// What is written for each job or file is decoded by hand: else loading would be slow unnoticed.
func TestRecordsOfJobsAndFilesAreScanned(t *testing.T) {
	seen := map[string]bool{}
	for _, r := range history(t) {
		var into any
		switch r.Table {
		case TableJob:
			into = new(jobBody)
		case TableCommit:
			into = new(commitBody)
		case TableFile:
			into = new(fileBody)
		default:
			continue
		}
		if seen[r.Table] = true; !scanned(r.Body, into) {
			t.Errorf("%s is not", r.Body)
		}
	}
	if len(seen) != 3 {
		t.Error("the history has none of", seen)
	}
}

// BenchmarkDecode compares the two ways to decode the record of a job.
func BenchmarkDecode(b *testing.B) {
	var body []byte
	for _, r := range history(b) {
		if r.Table == TableJob {
			body = r.Body
		}
	}
	for name, read := range map[string]func(*jobBody) bool{
		"by-hand": func(into *jobBody) bool { return scanned(body, into) },
		"json":    func(into *jobBody) bool { return json.Unmarshal(body, into) == nil },
	} {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if !read(new(jobBody)) {
					b.Fatal("it is not read")
				}
			}
		})
	}
}
