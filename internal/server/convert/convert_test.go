package convert

import (
	"strings"
	"testing"
	"time"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/durationpb"

	"fairway/internal/dispatch"
	"fairway/internal/wire"
)

// TestOutcomesAgree: the conversion relies on equal numbers.
func TestOutcomesAgree(t *testing.T) {
	for number, name := range wire.Outcome_name {
		want := strings.ToLower(strings.ReplaceAll(strings.TrimPrefix(name, "OUTCOME_"), "_", " "))
		got := strings.ReplaceAll(dispatch.Outcome(number).String(), "-", " ")
		if got != want {
			t.Errorf("%s is %q in dispatch", name, got)
		}
	}
}

func TestResultSurvivesTheWire(t *testing.T) {
	r := &wire.Result{
		Job: 3, Attempt: 1<<32 | 7, Outcome: wire.Outcome_OUTCOME_OUT_OF_DISK, ExitCode: 2, Signal: 9, Message: "m",
		Outputs: []*wire.WrittenFile{{Lfn: "a", Version: 2, Pfn: "p", Size: 5, Adler32: 6, Records: 7, Written: 8}},
		Usage:   &wire.Usage{BytesStaged: 1, BytesCached: 2, BytesWritten: 3, CacheHits: 4, CacheMisses: 5, RemoteHits: 9, BytesRemote: 10, PrefetchHits: 11, BytesPrefetched: 12, MaxRssBytes: 6, StagedAhead: durationpb.New(8)},
	}
	converted := ResultFromWire(r)
	if back := ResultToWire(&converted); !proto.Equal(back, r) {
		t.Fatalf("got %v, want %v", back, r)
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
