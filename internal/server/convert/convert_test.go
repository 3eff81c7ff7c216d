package convert

import (
	"reflect"
	"strings"
	"testing"
	"time"

	"google.golang.org/protobuf/proto"

	"fairway/internal/taskqueue"
	"fairway/internal/wire"
	"fairway/lib/seed"
)

// TestOutcomesAgree: the conversion relies on equal numbers.
func TestOutcomesAgree(t *testing.T) {
	for number, name := range wire.Outcome_name {
		want := strings.ToLower(strings.ReplaceAll(strings.TrimPrefix(name, "OUTCOME_"), "_", " "))
		got := strings.ReplaceAll(taskqueue.Outcome(number).String(), "-", " ")
		if got != want {
			t.Errorf("%s is %q in dispatch", name, got)
		}
	}
}

// Attempts are encoded by hand: what is decoded of them as messages is the same.
func TestAttemptsAreEncodedAsMessages(t *testing.T) {
	rng := seed.Source(t)
	maybe := func(n int64) int64 { return n * rng.Int64N(2) * rng.Int64N(1<<rng.IntN(40)+1) }
	at := func() time.Time {
		if rng.IntN(3) == 0 {
			return time.Time{}
		}
		return time.Unix(1_800_000_000+maybe(1), rng.Int64N(1e9)).UTC()
	}
	for range 2000 {
		r := taskqueue.Result{
			Job: taskqueue.NewJobID(taskqueue.RunID(rng.Uint32()), rng.Uint32()), Attempt: taskqueue.AttemptID(maybe(1)),
			Outcome: taskqueue.Outcome(rng.IntN(len(wire.Outcome_name))), ExitCode: int(rng.Int32()) * (rng.IntN(3) - 1),
			Signal: rng.IntN(64), Message: strings.Repeat("é", rng.IntN(100)),
			GangPlace: taskqueue.GangPlace{Leader: taskqueue.AttemptID(maybe(1)), Task: rng.IntN(3)},
			Usage: taskqueue.Usage{
				StageInStart: at(), Start: at(), End: at(), StageOutEnd: at(), CPU: time.Duration(maybe(1)),
				MaxRSS: maybe(1), BytesStaged: maybe(1), BytesCached: maybe(1), BytesWritten: maybe(1),
				CacheHits: rng.IntN(3), CacheMisses: rng.IntN(3), StagedAhead: time.Duration(maybe(-1)),
				RemoteHits: rng.IntN(3), BytesRemote: maybe(1), PrefetchHits: rng.IntN(3), BytesPrefetched: maybe(1),
			},
		}
		for range rng.IntN(3) {
			r.Outputs = append(r.Outputs, taskqueue.WrittenFile{
				LFN: strings.Repeat("o", rng.IntN(200)), Version: taskqueue.Version(rng.Uint32()), PFN: "p", Size: maybe(1),
				Adler32: rng.Uint32(), Hash: strings.Repeat("ab", 32*rng.IntN(2)), Records: maybe(1), Written: rng.Uint32(),
			})
			r.Notes = append(r.Notes, strings.Repeat("n", rng.IntN(2)))
			r.Lost = append(r.Lost, taskqueue.LostFile{File: taskqueue.FileRef{LFN: "l", Version: 2, Tag: 3}, PFN: "p",
				Why: "w"})
		}
		body := AppendAttempt([]byte("before"), 2, "p", &r)
		got := new(wire.AttemptDetail)
		if err := proto.Unmarshal(body[len("before"):], got); err != nil || len(got.ProtoReflect().GetUnknown()) > 0 {
			t.Fatalf("%v: %v", err, got)
		}
		if got.GetAttempt() != uint64(r.Attempt) || got.GetTry() != 2 || got.GetPilot() != "p" ||
			got.GetOutcome() != r.Outcome.String() {
			t.Fatalf("decoded as %v", got)
		}
		if back := ResultFromWire(got.GetResult()); !reflect.DeepEqual(back, r) {
			t.Fatalf("encoded as\n%+v\nnot\n%+v", back, r)
		}
	}
}

// FuzzSync: whatever a pilot sends becomes an input or an error, never a panic.
func FuzzSync(f *testing.F) {
	for _, message := range []*wire.SyncRequest{
		{Pilot: "p", Seq: 1, Full: true, Hello: &wire.PilotInfo{Launch: "l"}},
		{Ended: []*wire.Report{{Result: &wire.Result{Job: 1}}, {}}, CacheGone: []*wire.CacheGone{{}}},
	} {
		bytes, err := proto.Marshal(message)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(bytes)
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		message := new(wire.SyncRequest)
		if proto.Unmarshal(data, message) != nil {
			return
		}
		in := SyncFromWire(message, time.Time{})
		if len(in.Ended) != len(message.GetEnded()) || len(in.CacheGone) != len(message.GetCacheGone()) {
			t.Fatalf("%v became %+v", message, in)
		}
	})
}
