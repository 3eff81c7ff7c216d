package state

import (
	"testing"
	"time"

	"pgregory.net/rapid"

	"fairway/internal/taskqueue"
	"fairway/internal/wire"
)

// Counts of a pilot never fall, in whatever order its Syncs come, and are the same when
// they are recalled. Those of a pilot that nobody knows are not taken.
func TestCountsOfCachesNeverFall(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		tally := newTally("", nil, newNodes())
		tally.Hosts["p"] = "h"
		var highest CacheCounts
		for range rapid.IntRange(0, 10).Draw(t, "syncs") {
			n := rapid.Int64Range(0, 1<<50)
			m := &wire.CacheCounts{EvictedFiles: n.Draw(t, "ef"), EvictedBytes: n.Draw(t, "eb"),
				PrefetchedFiles: n.Draw(t, "pf"), PrefetchedBytes: n.Draw(t, "pb")}
			tally.CacheTold(rapid.SampledFrom([]taskqueue.PilotID{"p", "stranger"}).Draw(t, "pilot"), m)
			tally.CacheTold("p", nil)
			now := tally.Caches["p"]
			if now.EvictedFiles < highest.EvictedFiles || now.EvictedBytes < highest.EvictedBytes ||
				now.PrefetchedFiles < highest.PrefetchedFiles || now.PrefetchedBytes < highest.PrefetchedBytes {
				t.Fatalf("%+v fell to %+v", highest, now)
			}
			highest = now
		}
		if _, taken := tally.Caches["stranger"]; taken {
			t.Fatal("a pilot that has not registered is counted")
		}
		records, err := tally.CacheRecords("p")
		if err != nil {
			t.Fatal(err)
		}
		again := newTally("", nil, newNodes())
		for _, r := range records {
			if err := again.recallCache(r); err != nil {
				t.Fatal(err)
			}
		}
		if again.Caches["p"] != highest {
			t.Fatalf("%+v is recalled of %+v", again.Caches["p"], highest)
		}
	})
}

// Each attempt counts on the host of its pilot, and the hosts together have what the run has.
func TestReadsAreSummedByHost(t *testing.T) {
	tally := newTally("", nil, newNodes())
	tally.Hosts = Hosts{"p1": "a", "p2": "a", "p3": "b"}
	for pilot, u := range map[taskqueue.PilotID]taskqueue.Usage{
		"p1":      {CacheHits: 3, BytesCached: 30, RemoteHits: 1, BytesRemote: 10, PrefetchHits: 1, BytesPrefetched: 10},
		"p2":      {CacheHits: 1, BytesCached: 10, CacheMisses: 2, BytesStaged: 20, Start: time.Unix(1, 0)},
		"p3":      {CacheMisses: 1, BytesStaged: 10},
		"unknown": {CacheMisses: 1, BytesStaged: 10},
	} {
		tally.Observe(&taskqueue.Event{Pilot: pilot, Result: &taskqueue.Result{Usage: u}})
	}
	want := map[string]Reads{
		"a": {Hits: 4, Cached: 40, Misses: 2, Staged: 20, Remote: 1, BytesRemote: 10, Prefetched: 1, BytesPrefetched: 10},
		"b": {Misses: 1, Staged: 10},
		"":  {Misses: 1, Staged: 10},
	}
	for host, reads := range want {
		if got := tally.ReadsAt[host]; got == nil || *got != reads {
			t.Errorf("on %q: %+v, want %+v", host, got, reads)
		}
	}
	if s := tally.Sums; len(tally.ReadsAt) != len(want) || s.Hits != 4 || s.Misses != 4 || s.Staged != 40 {
		t.Errorf("in all: %+v", s.Reads)
	}
}
