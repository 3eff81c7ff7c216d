package convert

import (
	"strings"
	"testing"
	"time"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/durationpb"

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

func TestResultSurvivesTheWire(t *testing.T) {
	r := &wire.Result{
		Job: 3, Attempt: 1<<32 | 7, Outcome: wire.Outcome_OUTCOME_OUT_OF_DISK, ExitCode: 2, Signal: 9, Message: "m",
		Outputs: []*wire.WrittenFile{{Lfn: "a", Version: 2, Pfn: "p", Size: 5, Adler32: 6, Records: 7, Written: 8}},
		Usage: &wire.Usage{
			BytesStaged: 1, BytesCached: 2, BytesWritten: 3, CacheHits: 4, CacheMisses: 5, RemoteHits: 9,
			BytesRemote: 10, PrefetchHits: 11, BytesPrefetched: 12, MaxRssBytes: 6, StagedAhead: durationpb.New(8),
		},
	}
	converted := ResultFromWire(r)
	if back := resultToWire(&converted); !proto.Equal(back, r) {
		t.Fatalf("got %v, want %v", back, r)
	}
}

// Attempts are encoded by hand as the messages that would be made of them.
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
			Signal: rng.IntN(64), Message: strings.Repeat("é", rng.IntN(300)),
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
		want := &wire.AttemptDetail{
			Attempt: uint64(r.Attempt), Try: int32(rng.IntN(3)), Pilot: strings.Repeat("p", rng.IntN(9)),
			Outcome: r.Outcome.String(), Result: resultToWire(&r),
		}
		got := new(wire.AttemptDetail)
		body := AppendAttempt([]byte("before"), int(want.Try), taskqueue.PilotID(want.Pilot), &r)
		if err := proto.Unmarshal(body[len("before"):], got); err != nil || !proto.Equal(got, want) {
			t.Fatalf("%v: encoded as\n%v\nnot\n%v", err, got, want)
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

// resultToWire makes the message of a result; ResultFromWire gives it back.
func resultToWire(r *taskqueue.Result) *wire.Result {
	return &wire.Result{
		Run:      uint32(r.Job.Run()),
		Job:      r.Job.Number(),
		Attempt:  uint64(r.Attempt),
		Outcome:  wire.Outcome(r.Outcome),
		ExitCode: int32(r.ExitCode),
		Signal:   int32(r.Signal),
		Message:  r.Message,
		Notes:    r.Notes,
		Outputs:  Each(r.Outputs, writtenToWire),
		Usage:    usageToWire(&r.Usage),
		Lost:     Each(r.Lost, lostToWire),
		Leader:   uint64(r.Leader),
		Task:     int32(r.Task),
	}
}

func writtenToWire(w taskqueue.WrittenFile) *wire.WrittenFile {
	return &wire.WrittenFile{
		Lfn:     w.LFN,
		Version: uint32(w.Version),
		Pfn:     w.PFN,
		Size:    w.Size,
		Adler32: w.Adler32,
		Written: w.Written,
		Blake3:  hashToWire(w.Hash),
		Records: w.Records,
	}
}

func usageToWire(u *taskqueue.Usage) *wire.Usage {
	return &wire.Usage{
		StageInStart: InstantToWire(u.StageInStart),
		Start:        InstantToWire(u.Start),
		End:          InstantToWire(u.End),
		StageOutEnd:  InstantToWire(u.StageOutEnd),
		StagedAhead:  durationToWire(u.StagedAhead),
		Cpu:          durationToWire(u.CPU),
		MaxRssBytes:  u.MaxRSS,
		BytesStaged:  u.BytesStaged,
		BytesCached:  u.BytesCached,
		BytesWritten: u.BytesWritten,
		CacheHits:    int32(u.CacheHits),
		CacheMisses:  int32(u.CacheMisses),

		RemoteHits: int32(u.RemoteHits), BytesRemote: u.BytesRemote,
		PrefetchHits: int32(u.PrefetchHits), BytesPrefetched: u.BytesPrefetched,
	}
}
