// Package storetest is the conformance suite of [store.Store]: what every
// implementation must do.
package storetest

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"pgregory.net/rapid"

	"fairway/internal/store"
	"fairway/internal/taskqueue"
)

// Maker opens the store of a folder, making it if it is not there.
type Maker func(folder string) (store.Store, error)

// Run tests an implementation whose stores are files in a folder.
func Run(t *testing.T, open Maker) {
	RunElsewhere(t, open)
	t.Run("CopyOfFilesOpens", func(t *testing.T) { copyOfFilesOpens(t, open) })
}

// RunElsewhere tests an implementation whose stores are somewhere else: a folder only names one.
func RunElsewhere(t *testing.T, open Maker) {
	for _, c := range []struct {
		name string
		test func(*testing.T, Maker)
	}{
		{"KeepsWhatWasApplied", keepsWhatWasApplied},
		{"LaterRecordReplaces", laterRecordReplaces},
		{"NilBodyDeletes", nilBodyDeletes},
		{"EmptyBodyIsARecord", emptyBodyIsARecord},
		{"LoadsInKeyOrder", loadsInKeyOrder},
		{"LoadsParts", loadsParts},
		{"GivesEachRecord", givesEachRecord},
		{"KeepsRunsApart", keepsRunsApart},
		{"TakesLargeTransactions", takesLargeTransactions},
		{"TakesLargeBodies", takesLargeBodies},
		{"RefusesEndedContext", refusesEndedContext},
		{"MayBeUsedByManyGoroutines", mayBeUsedByManyGoroutines},
		{"FailsAfterClose", failsAfterClose},
		{"AgreesWithMap", agreesWithMap},
	} {
		t.Run(c.name, func(t *testing.T) { c.test(t, open) })
	}
}

func mustOpen(t testing.TB, open Maker, folder string) store.Store {
	t.Helper()
	s, err := open(folder)
	if err != nil {
		t.Fatalf("opening the store: %v", err)
	}
	t.Cleanup(func() { _ = s.Close() })
	return s
}

func mustApply(t testing.TB, s store.Store, records ...taskqueue.Record) {
	t.Helper()
	if err := s.Apply(context.Background(), records); err != nil {
		t.Fatalf("applying %d records: %v", len(records), err)
	}
}

func mustLoad(t testing.TB, s store.Store, table string) []taskqueue.Record {
	t.Helper()
	records, err := s.Load(context.Background(), table)
	if err != nil {
		t.Fatalf("loading %s: %v", table, err)
	}
	return records
}

// wantTable fails unless the table holds exactly the given keys and bodies.
func wantTable(t testing.TB, s store.Store, table string, want map[string]string) {
	t.Helper()
	got := map[string]string{}
	for _, r := range mustLoad(t, s, table) {
		if r.Table != table || r.Body == nil {
			t.Fatalf("loading %s gave %+v", table, r)
		}
		got[nameOf(r)] = string(r.Body)
	}
	if !maps.Equal(got, want) {
		t.Fatalf("table %s holds %v, want %v", table, got, want)
	}
}

func nameOf(r taskqueue.Record) string {
	if r.Run == 0 {
		return r.Key
	}
	return fmt.Sprintf("%d/%s", r.Run, r.Key)
}

func record(table, key, body string) taskqueue.Record {
	return taskqueue.Record{Table: table, Key: key, Body: []byte(body)}
}

func keepsWhatWasApplied(t *testing.T, open Maker) {
	folder := t.TempDir()
	s := mustOpen(t, open, folder)
	mustApply(t, s, record("job", "1", "a"), record("file", "1", "b"))
	wantTable(t, s, "job", map[string]string{"1": "a"})
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	s = mustOpen(t, open, folder)
	wantTable(t, s, "job", map[string]string{"1": "a"})
	wantTable(t, s, "file", map[string]string{"1": "b"})
	wantTable(t, s, "none", map[string]string{})
}

func laterRecordReplaces(t *testing.T, open Maker) {
	s := mustOpen(t, open, t.TempDir())
	mustApply(t, s, record("job", "1", "a"), record("job", "2", "x"), record("job", "1", "b"))
	wantTable(t, s, "job", map[string]string{"1": "b", "2": "x"})
	mustApply(t, s, record("job", "1", "c"))
	wantTable(t, s, "job", map[string]string{"1": "c", "2": "x"})
}

func nilBodyDeletes(t *testing.T, open Maker) {
	s := mustOpen(t, open, t.TempDir())
	gone := taskqueue.Record{Table: "job", Key: "1"}
	mustApply(t, s, gone) // deleting what is not there is no error
	mustApply(t, s, record("job", "1", "a"), gone)
	wantTable(t, s, "job", map[string]string{})
	mustApply(t, s, gone, record("job", "1", "b"))
	wantTable(t, s, "job", map[string]string{"1": "b"})
	mustApply(t, s, gone, record("file", "1", "b"))
	wantTable(t, s, "job", map[string]string{})
	wantTable(t, s, "file", map[string]string{"1": "b"})
}

func emptyBodyIsARecord(t *testing.T, open Maker) {
	s := mustOpen(t, open, t.TempDir())
	mustApply(t, s, record("job", "", ""), record("job", "1", ""))
	wantTable(t, s, "job", map[string]string{"": "", "1": ""})
}

func loadsInKeyOrder(t *testing.T, open Maker) {
	s := mustOpen(t, open, t.TempDir())
	keys := []string{"b", "a", "10", "9", "B", "é", "a/b", "a b", "a\x01", "'; DROP TABLE record; --"}
	for _, k := range keys {
		mustApply(t, s, record("job", k, k))
	}
	var got []string
	for _, r := range mustLoad(t, s, "job") {
		got = append(got, r.Key)
	}
	slices.Sort(keys)
	if !slices.Equal(got, keys) {
		t.Fatalf("got %q, want %q", got, keys)
	}
}

func loadsParts(t *testing.T, open Maker) {
	s := mustOpen(t, open, t.TempDir())
	for n := range 20 {
		mustApply(t, s, record("job", fmt.Sprintf("%02d", n), "job"), record("file", fmt.Sprintf("%02d", n), "file"))
	}
	for _, c := range []struct {
		from, below string
		most        int
		want        string
	}{
		{"", "99", 100, "00 01 02 03 04 05 06 07 08 09 10 11 12 13 14 15 16 17 18 19"},
		{"05", "08", 100, "05 06 07"},
		{"05", "08", 2, "05 06"},
		{"055", "07", 9, "06"},
		{"19", "19", 9, ""},
		{"2", "3", 9, ""},
		{"03", "09", 0, ""},
	} {
		records, err := s.LoadPart(context.Background(), "job", 0, c.from, c.below, c.most)
		var got []string
		for _, r := range records {
			if got = append(got, r.Key); string(r.Body) != "job" || r.Table != "job" {
				t.Errorf("got %+v", r)
			}
		}
		if err != nil || strings.Join(got, " ") != c.want {
			t.Errorf("%+v: got %q, %v", c, got, err)
		}
	}
}

// givesEachRecord has more records than are read at once, in runs that end within a page
// and at the end of one. Whoever takes them may use the store meanwhile.
func givesEachRecord(t *testing.T, open Maker) {
	s := mustOpen(t, open, t.TempDir())
	var records []taskqueue.Record
	for run, n := range map[taskqueue.RunID]int{0: 4096, 1: 5000, 2: 3} {
		for i := range n {
			r := taskqueue.Record{Table: "job", Run: run, Key: fmt.Sprintf("%06d", i), Body: fmt.Appendf(nil, "%d %d", run, i)}
			if i%1000 == 999 {
				r.Body = bytes.Repeat(r.Body, 1000) // kept apart
			}
			records = append(records, r)
		}
	}
	records = append(records, taskqueue.Record{Table: "job", Run: 3, Key: "", Body: []byte{}})
	mustApply(t, s, records...)
	slices.SortFunc(records, func(a, b taskqueue.Record) int {
		return cmp.Or(cmp.Compare(a.Run, b.Run), strings.Compare(a.Key, b.Key))
	})
	at := 0
	err := s.Each(context.Background(), "job", func(r taskqueue.Record) error {
		want := records[at]
		if r.Table != want.Table || r.Run != want.Run || r.Key != want.Key || r.Body == nil ||
			!bytes.Equal(r.Body, want.Body) {
			return fmt.Errorf("record %d is %.200v, want %.200v", at, r, want)
		}
		if at++; at%4000 == 1 {
			_, err := s.LoadPart(context.Background(), "job", 1, "", "9", 1)
			return err
		}
		return nil
	})
	if err != nil || at != len(records) {
		t.Fatalf("after %d of %d records: %v", at, len(records), err)
	}
	enough := errors.New("enough")
	for _, most := range []int{1, 5000} {
		n := 0
		err := s.Each(context.Background(), "job", func(taskqueue.Record) error {
			if n++; n == most {
				return enough
			}
			return nil
		})
		if n != most || !errors.Is(err, enough) {
			t.Errorf("%d records, then %v", n, err)
		}
	}
	if err := s.Each(context.Background(), "none", func(taskqueue.Record) error { return enough }); err != nil {
		t.Error(err)
	}
}

// Records of one table and key that bear different runs are different ones.
func keepsRunsApart(t *testing.T, open Maker) {
	folder := t.TempDir()
	s := mustOpen(t, open, folder)
	large := strings.Repeat("large", 5000)
	of := func(run taskqueue.RunID, key, body string) taskqueue.Record {
		return taskqueue.Record{Table: "job", Run: run, Key: key, Body: []byte(body)}
	}
	mustApply(t, s, of(10, "1", "ten"), of(2, "2", "two"), of(2, "1", large), record("job", "1", "none"),
		of(math.MaxUint32, "1", "last"))
	mustApply(t, s, of(10, "1", large), taskqueue.Record{Table: "job", Key: "1"})
	mustApply(t, s, of(2, "1", "small"))
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	s = mustOpen(t, open, folder)
	var order []string
	for _, r := range mustLoad(t, s, "job") {
		order = append(order, nameOf(r)+" "+string(r.Body))
	}
	if want := []string{"2/1 small", "2/2 two", "10/1 " + large, "4294967295/1 last"}; !slices.Equal(order, want) {
		t.Fatalf("got %q", order)
	}
	part, err := s.LoadPart(context.Background(), "job", 2, "1", "9", 9)
	if err != nil || len(part) != 2 || nameOf(part[0]) != "2/1" || nameOf(part[1]) != "2/2" {
		t.Fatalf("got %v, %v", part, err)
	}
}

func takesLargeTransactions(t *testing.T, open Maker) {
	s := mustOpen(t, open, t.TempDir())
	want := map[string]string{}
	var records []taskqueue.Record
	for i := range 20_011 {
		key := fmt.Sprintf("%06d", i)
		want[key] = "body"
		records = append(records, record("job", key, "body"))
	}
	mustApply(t, s, records...)
	wantTable(t, s, "job", want)
}

func takesLargeBodies(t *testing.T, open Maker) {
	s := mustOpen(t, open, t.TempDir())
	body := bytes.Repeat([]byte{0, 1, 2, 255}, 1<<20)
	mustApply(t, s, taskqueue.Record{Table: "job", Key: "1", Body: body})
	if got := mustLoad(t, s, "job"); len(got) != 1 || !bytes.Equal(got[0].Body, body) {
		t.Fatal("a body of 4 MiB came back changed")
	}
}

func refusesEndedContext(t *testing.T, open Maker) {
	s := mustOpen(t, open, t.TempDir())
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if err := s.Apply(ctx, []taskqueue.Record{record("job", "1", "a")}); err == nil {
		t.Fatal("Apply under an ended context succeeded")
	}
	wantTable(t, s, "job", map[string]string{})
}

func mayBeUsedByManyGoroutines(t *testing.T, open Maker) {
	s := mustOpen(t, open, t.TempDir())
	want := map[string]string{}
	var group sync.WaitGroup
	for i := range 8 {
		want[fmt.Sprint(i)] = "19"
		group.Go(func() {
			for n := range 20 {
				if err := s.Apply(
					context.Background(), []taskqueue.Record{record("job", fmt.Sprint(i), fmt.Sprint(n))},
				); err != nil {
					t.Error(err)
				}
				if _, err := s.Load(context.Background(), "job"); err != nil {
					t.Error(err)
				}
			}
		})
	}
	group.Wait()
	wantTable(t, s, "job", want)
}

func failsAfterClose(t *testing.T, open Maker) {
	s := mustOpen(t, open, t.TempDir())
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	if err := s.Close(); err != nil {
		t.Fatalf("a second Close: %v", err)
	}
	if err := s.Apply(context.Background(), []taskqueue.Record{record("job", "1", "a")}); err == nil {
		t.Fatal("Apply after Close succeeded")
	}
	if _, err := s.Load(context.Background(), "job"); err == nil {
		t.Fatal("Load after Close succeeded")
	}
}

// agreesWithMap applies random transactions and reopens at random; the store
// must hold what a map holds.
func agreesWithMap(t *testing.T, open Maker) {
	rapid.Check(t, func(rt *rapid.T) {
		folder, err := os.MkdirTemp(t.TempDir(), "")
		if err != nil {
			rt.Fatal(err)
		}
		s := mustOpen(t, open, folder)
		model := map[string]map[string]string{"a": {}, "b": {}}
		for range rapid.IntRange(1, 6).Draw(rt, "transactions") {
			records := drawRecords(rt)
			mustApply(t, s, records...)
			applyToModel(model, records)
			if rapid.Bool().Draw(rt, "reopen") {
				if err := s.Close(); err != nil {
					rt.Fatal(err)
				}
				s = mustOpen(t, open, folder)
			}
		}
		for table, want := range model {
			wantTable(t, s, table, want)
		}
		_ = s.Close()
	})
}

func drawRecords(t *rapid.T) []taskqueue.Record {
	return rapid.SliceOfN(rapid.Custom(func(t *rapid.T) taskqueue.Record {
		r := taskqueue.Record{
			Table: rapid.SampledFrom([]string{"a", "b"}).Draw(t, "table"),
			Run:   rapid.SampledFrom([]taskqueue.RunID{0, 1, math.MaxUint32}).Draw(t, "run"),
			Key:   rapid.StringMatching(`[a-e]{1,2}`).Draw(t, "key"),
		}
		if !rapid.Bool().Draw(t, "delete") {
			r.Body = rapid.SliceOfN(rapid.Byte(), 0, 20).Draw(t, "body")
			if r.Body == nil {
				r.Body = []byte{}
			}
			if rapid.IntRange(0, 4).Draw(t, "large") == 0 { // as stores may keep apart
				r.Body = bytes.Repeat(append(r.Body, 'x'), 5000)
			}
		}
		return r
	}), 0, 100).Draw(t, "records")
}

func applyToModel(model map[string]map[string]string, records []taskqueue.Record) {
	for _, r := range records {
		if r.Body == nil {
			delete(model[r.Table], nameOf(r))
		} else {
			model[r.Table][nameOf(r)] = string(r.Body)
		}
	}
}

// copyOfFilesOpens simulates a crash: the files, as they are between two
// transactions and without the store being closed, must open with all that was
// applied. The stores are large enough for several checkpoints.
func copyOfFilesOpens(t *testing.T, open Maker) {
	folder := t.TempDir()
	s := mustOpen(t, open, folder)
	model := map[string]map[string]string{"a": {}, "b": {}}
	for i := range 200 {
		var records []taskqueue.Record
		for k := range 40 {
			records = append(records, record("a", fmt.Sprint(i*7919%100, "-", k), strings.Repeat(fmt.Sprint(i), 100)))
		}
		mustApply(t, s, records...)
		applyToModel(model, records)
		if i%20 == 19 {
			crashed := mustOpen(t, open, copyFolder(t, folder))
			wantTable(t, crashed, "a", model["a"])
			mustApply(t, crashed, record("b", "more", "x"))
			wantTable(t, crashed, "b", map[string]string{"more": "x"})
			_ = crashed.Close()
		}
	}
}

func copyFolder(t *testing.T, folder string) string {
	t.Helper()
	target := filepath.Join(t.TempDir(), "copy")
	if err := os.CopyFS(target, os.DirFS(folder)); err != nil {
		t.Fatal(err)
	}
	return target
}
