package state

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"google.golang.org/protobuf/proto"

	"fairway/internal/server/convert"
	"fairway/internal/taskqueue"
	"fairway/internal/wire"
	"fairway/test/files"
)

// An attempt of which a pilot told late has run since its start, not since the server knows of it.
func TestAttemptsRunSinceTheirStart(t *testing.T) {
	tally, at := newTally("", nil, newNodes()), time.Unix(1_800_000_000, 0)
	tally.Observe(&taskqueue.Event{Kind: taskqueue.JobStarted, Job: taskqueue.NewJobID(1, 1), At: at, Ago: time.Minute})
	if began := tally.Started[taskqueue.NewJobID(1, 1)]; !began.Equal(at.Add(-time.Minute)) {
		t.Error(began)
	}
}

// Attempts that were in the store and those that end now are of one list, and what all of
// them used is counted.
func TestAttemptsOfBothLives(t *testing.T) {
	before := newTally("", nil, newNodes())
	var records []taskqueue.Record
	began := time.Unix(1_800_000_000, 500).UTC()
	end := func(at *Tally, number uint32, attempt taskqueue.AttemptID) {
		result := &taskqueue.Result{
			Job: taskqueue.NewJobID(1, number), Attempt: attempt, Message: fmt.Sprint("attempt ", attempt),
			Outputs: []taskqueue.WrittenFile{{LFN: "out", Size: 3}},
			Usage: taskqueue.Usage{
				StageInStart: began, Start: began.Add(time.Second),
				End: began.Add(3 * time.Second), StageOutEnd: began.Add(4 * time.Second),
				CPU: time.Second, BytesStaged: 5, CacheHits: 2,
			},
		}
		event := &taskqueue.Event{Job: result.Job, Result: result}
		records = append(records, at.Attempts.Record(event))
		at.Observe(event)
	}
	for number := range uint32(500) {
		for try := range number % 3 {
			end(before, number+1, taskqueue.AttemptID(number*10+try))
		}
	}
	after := newTally("", nil, newNodes())
	for _, r := range records {
		scratch := bytes.Clone(r.Body)
		if err := after.recall(taskqueue.Record{Table: r.Table, Run: r.Run, Key: r.Key, Body: scratch}); err != nil {
			t.Fatal(err)
		}
		clear(scratch) // it is good only for the call
	}
	if after.Sums != before.Sums || after.Sums.computing == 0 {
		t.Errorf("%+v is recalled of %+v", after.Sums, before.Sums)
	}
	end(after, 3, 1<<32)
	for number, want := range map[uint32]int{1: 0, 2: 1, 3: 3, 6: 2, 501: 0} {
		job := taskqueue.NewJobID(1, number)
		details, err := after.Attempts.Of(job)
		if err != nil || len(details) != want || after.Attempts.Count(job) != want {
			t.Errorf("job %d: %d attempts, %v; want %d", number, len(details), err, want)
		}
		for i, d := range details {
			if int(d.GetTry()) != i+1 || d.GetResult().GetMessage() != fmt.Sprint("attempt ", d.GetAttempt()) {
				t.Errorf("job %d: attempt %d is %v", number, i+1, d)
			}
		}
		if last := after.Attempts.Last(job); want == 0 && last != nil || want > 0 && !proto.Equal(last, details[want-1]) {
			t.Errorf("job %d: the last is %v", number, last)
		}
	}
}

// What an attempt used is found in any record, as decoding all of it would.
func FuzzUsage(f *testing.F) {
	body, err := proto.Marshal(&wire.AttemptDetail{Attempt: 1, Pilot: "p", Host: "h", Result: &wire.Result{
		Message: "m", Usage: &wire.Usage{CacheHits: 7, BytesStaged: 1},
	}})
	if err != nil {
		f.Fatal(err)
	}
	f.Add(body)
	f.Add([]byte{})
	f.Add(body[:len(body)-3])
	f.Fuzz(func(t *testing.T, body []byte) {
		_, _, err := usageOf(body)
		detail := new(wire.AttemptDetail)
		if proto.Unmarshal(body, detail) != nil {
			return
		}
		again, marshalErr := proto.Marshal(detail) // each field once, as records have them
		if err != nil || marshalErr != nil {
			t.Fatal(err, marshalErr)
		}
		pilot, got, err := usageOf(again)
		if err != nil || got != convert.ResultFromWire(detail.GetResult()).Usage || string(pilot) != detail.GetPilot() {
			t.Errorf("%s, %+v, %v of %v", pilot, got, err, detail)
		}
	})
}

// With the logs of an attempt goes what has come of it from a pilot that was lost. Nothing
// else does.
func TestLogsOfLostPilotsAreRemoved(t *testing.T) {
	logs := Logs(t.TempDir())
	for _, name := range []string{"7.out", "7.out.live", "7.err.live", "7.log", "77.out.live", "7.live", "run.log"} {
		files.Write(t, filepath.Join(string(logs), name), "")
	}
	if err := logs.Remove([]taskqueue.AttemptID{7, 8}); err != nil {
		t.Fatal(err)
	}
	left, err := os.ReadDir(string(logs))
	if err != nil || fmt.Sprint(left) != "[- 7.live - 77.out.live - run.log]" {
		t.Error(left, err)
	}
}
