package api

import (
	"cmp"
	"context"
	"maps"
	"slices"
	"strings"

	"fairway/internal/server/state"
	"fairway/internal/taskqueue"
	"fairway/internal/wire"
)

// ListCaches tells what the caches of each host hold, and what they were good for.
func (s *Service) ListCaches(ctx context.Context, r *wire.ListCachesRequest) (*wire.ListCachesResponse, error) {
	a, err := s.of(ctx, r)
	if err != nil {
		return nil, err
	}
	hosts := hostCaches{}
	if err := a.run.QueryTally(ctx, hosts.count); err != nil {
		return nil, rpcError(err)
	}
	files, err := a.lookAtNodes(ctx, r, hosts)
	if err != nil {
		return nil, err
	}
	if files, err = matching(ctx, r.GetPattern(), files, func(f cachedCopy) string { return f.File.LFN }); err != nil {
		return nil, err
	}
	response := &wire.ListCachesResponse{Live: a.control != nil, Total: int64(len(files))}
	if response.Nodes, err = matching(ctx, r.GetNode(), hosts.sorted(), (*wire.NodeCache).GetHost); err != nil {
		return nil, err
	}
	slices.SortFunc(files, cachedCopy.compare)
	limit := DefaultFilesListed
	if r.GetLimit() > 0 {
		limit = int(r.GetLimit())
	}
	response.More = len(files) > limit
	response.Files, err = a.withNextUse(ctx, r, files[:min(len(files), limit)])
	return response, err
}

// lookAtNodes takes in what the nodes hold that a request names, and returns their copies
// if it asks for files.
func (a *view) lookAtNodes(
	ctx context.Context, r *wire.ListCachesRequest, hosts hostCaches,
) (files []cachedCopy, err error) {
	if a.control == nil {
		return nil, nil
	}
	type node struct{ name, host string }
	var nodes []node
	err = a.lookAt(ctx, func(c *state.Cores) error {
		for name, host := range c.Dispatch.Nodes() {
			nodes = append(nodes, node{name, host})
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	if nodes, err = matching(ctx, r.GetNode(), nodes, func(n node) string { return n.host }); err != nil {
		return nil, err
	}
	for _, n := range nodes { // one by one, so that other requests come between
		var view taskqueue.NodeView
		err := a.lookAt(ctx, func(c *state.Cores) error {
			view, _ = c.Dispatch.Node(n.name) // whose pilots may have gone meanwhile
			return nil
		})
		if err != nil {
			return nil, err
		}
		hosts.add(&view)
		for _, f := range view.Copies {
			if r.GetFiles() {
				files = append(files, cachedCopy{f, n.host, n.name})
			}
		}
	}
	return a.known(ctx, files), nil
}

// known are the copies among some of which who asks may know: of the run's own files, unless of all.
func (a *view) known(ctx context.Context, files []cachedCopy) []cachedCopy {
	if a.knowsAll(ctx) {
		return files
	}
	return slices.DeleteFunc(files, func(f cachedCopy) bool { return !slices.Contains(f.Runs, a.run.ID()) })
}

type cachedCopy struct {
	taskqueue.CopyView
	host, node string
}

func (f cachedCopy) compare(o cachedCopy) int {
	return cmp.Or(strings.Compare(f.host, o.host), strings.Compare(f.File.LFN, o.File.LFN),
		cmp.Compare(f.File.Version, o.File.Version),
		cmp.Compare(f.File.Tag, o.File.Tag), strings.Compare(f.node, o.node), cmp.Compare(f.Pilot, o.Pilot))
}

// withNextUse tells of copies, also who reads them next.
func (a *view) withNextUse(
	ctx context.Context, r *wire.ListCachesRequest, files []cachedCopy,
) ([]*wire.CachedCopy, error) {
	listed := make([]*wire.CachedCopy, len(files))
	byNode := map[string][]int{}
	for i, f := range files {
		listed[i] = &wire.CachedCopy{
			Host: f.host, Lfn: f.File.LFN, Version: uint32(f.File.Version), Size: f.Size, Pinned: f.Pinned, Stale: f.Stale,
			Pilot: string(f.Pilot),
		}
		byNode[f.node] = append(byNode[f.node], i)
	}
	for node, at := range byNode {
		copies := make([]taskqueue.CopyView, len(at))
		for i, n := range at {
			copies[i] = files[n].CopyView
		}
		err := a.lookAt(ctx, func(c *state.Cores) error {
			for i, next := range c.Dispatch.NextReaders(node, copies) {
				if next.ID != 0 && (next.ID.Run() == c.Run || a.knowsAll(ctx)) {
					listed[at[i]].NextUse = jobRef(next)
				}
			}
			return nil
		})
		if err != nil {
			return nil, err
		}
	}
	return listed, nil
}

type hostCaches map[string]*wire.NodeCache

func (h hostCaches) of(host string) *wire.NodeCache {
	if h[host] == nil {
		h[host] = &wire.NodeCache{Host: host}
	}
	return h[host]
}

func (h hostCaches) sorted() (all []*wire.NodeCache) {
	for _, host := range slices.Sorted(maps.Keys(h)) {
		all = append(all, h[host])
	}
	return all
}

func (h hostCaches) count(t *state.Tally) {
	for host, reads := range t.ReadsAt {
		n := h.of(host)
		n.Hits, n.HitBytes, n.Misses, n.MissBytes = reads.Hits, reads.Cached, reads.Misses, reads.Staged
		n.RemoteHits, n.RemoteBytes = reads.Remote, reads.BytesRemote
		n.PrefetchHits, n.PrefetchHitBytes = reads.Prefetched, reads.BytesPrefetched
		if all := n.Hits + n.Misses; all > 0 {
			n.HitRatio = float64(n.Hits) / float64(all)
		}
	}
	sums := map[string]state.CacheCounts{}
	for pilot, counts := range t.Caches {
		sum := sums[t.Hosts[pilot]]
		sum.Add(counts)
		sums[t.Hosts[pilot]] = sum
	}
	for host, sum := range sums {
		n := h.of(host)
		n.EvictedFiles, n.EvictedBytes = sum.EvictedFiles, sum.EvictedBytes
		n.PrefetchedFiles, n.PrefetchedBytes = sum.PrefetchedFiles, sum.PrefetchedBytes
	}
}

func (h hostCaches) add(node *taskqueue.NodeView) {
	if node.Pilots == 0 {
		return
	}
	n := h.of(node.Host)
	n.Kinds = slices.Compact(slices.Sorted(slices.Values(append(n.Kinds, node.Kinds...))))
	n.Pilots += int64(node.Pilots)
	n.LimitBytes += node.Limit
	for _, f := range node.Copies {
		n.Files++
		n.Bytes += f.Size
		if f.Pinned {
			n.PinnedFiles++
			n.PinnedBytes += f.Size
		}
	}
}
