package state

import (
	"fmt"

	"google.golang.org/protobuf/proto"

	"fairway/internal/taskqueue"
	"fairway/internal/wire"
)

// CacheTable has one record for each pilot that has gone and had told of its cache, by
// pilot: a wire.CacheCounts. Nothing is decided by them; they are for people.
const CacheTable = "server_cache"

// CacheCounts are what a pilot has done to its cache since it started.
type CacheCounts struct {
	EvictedFiles, EvictedBytes       int64
	PrefetchedFiles, PrefetchedBytes int64
}

// Add adds what another pilot has done.
func (c *CacheCounts) Add(o CacheCounts) {
	c.EvictedFiles += o.EvictedFiles
	c.EvictedBytes += o.EvictedBytes
	c.PrefetchedFiles += o.PrefetchedFiles
	c.PrefetchedBytes += o.PrefetchedBytes
}

func cacheCountsOf(m *wire.CacheCounts) CacheCounts {
	return CacheCounts{
		EvictedFiles: m.GetEvictedFiles(), EvictedBytes: m.GetEvictedBytes(),
		PrefetchedFiles: m.GetPrefetchedFiles(), PrefetchedBytes: m.GetPrefetchedBytes(),
	}
}

// CacheTold takes in what a Sync of a pilot says of its cache. Syncs may come late, so no
// count falls. The counts of a pilot that has not registered come again with its next Sync.
func (n *Nodes) CacheTold(pilot taskqueue.PilotID, m *wire.CacheCounts) {
	if _, ok := n.Hosts[pilot]; m == nil || !ok {
		return
	}
	told, known := cacheCountsOf(m), n.Caches[pilot]
	n.Caches[pilot] = CacheCounts{
		EvictedFiles: max(known.EvictedFiles, told.EvictedFiles), EvictedBytes: max(known.EvictedBytes, told.EvictedBytes),
		PrefetchedFiles: max(known.PrefetchedFiles, told.PrefetchedFiles),
		PrefetchedBytes: max(known.PrefetchedBytes, told.PrefetchedBytes),
	}
}

// CacheRecords make durable what a pilot that goes has told; none if that is nothing.
func (n *Nodes) CacheRecords(pilot taskqueue.PilotID) ([]taskqueue.Record, error) {
	c, ok := n.Caches[pilot]
	if !ok {
		return nil, nil
	}
	body, err := proto.Marshal(&wire.CacheCounts{
		EvictedFiles: c.EvictedFiles, EvictedBytes: c.EvictedBytes, PrefetchedFiles: c.PrefetchedFiles,
		PrefetchedBytes: c.PrefetchedBytes,
	})
	if err != nil {
		return nil, fmt.Errorf("the cache of pilot %s: %w", pilot, err)
	}
	return []taskqueue.Record{{Table: CacheTable, Key: string(pilot), Body: body}}, nil
}

// recallCache takes in the record of a pilot that went before the server started.
func (n *Nodes) recallCache(r taskqueue.Record) error {
	m := new(wire.CacheCounts)
	if err := proto.Unmarshal(r.Body, m); err != nil {
		return fmt.Errorf("record %s %s: %w", CacheTable, r.Key, err)
	}
	n.Caches[taskqueue.PilotID(r.Key)] = cacheCountsOf(m)
	return nil
}
