package dispatch

import (
	"maps"
	"slices"
	"testing"

	"fairway/internal/taskqueue"
)

// What the pilots of a host share counts once, what each has for itself counts each time.
// Copies that running jobs read are pinned, and the job that is to read one next is named.
func TestNodesTellWhatTheirCachesHold(t *testing.T) {
	s := newSharers(t)
	s.sync("p1", "h1", "a", nil)
	s.sync("p2", "h1", "a", nil)
	s.sync("p3", "h1", "a", func(m *taskqueue.Sync) {
		m.Hello.CacheDir, m.Hello.Address, m.Hello.Pin, m.Hello.Has.MilliCPUs = "", "", "", 0
	})
	s.sync("p4", "h2", "a", func(m *taskqueue.Sync) { m.Hello.Machine, m.Hello.Address, m.Hello.Pin = "m", "", "" })
	for _, id := range []taskqueue.PilotID{"p1", "p2", "p3"} {
		s.has(id, "")
	}
	s.sync("p2", "", "", func(m *taskqueue.Sync) {
		m.CacheAdded = []taskqueue.CachedFile{{File: taskqueue.FileRef{LFN: "lost", Version: 1, Tag: 7}, Size: 30}}
	})
	hosts := maps.Collect(s.core.Nodes())
	nodes := slices.Sorted(maps.Keys(hosts))
	if len(nodes) != 2 || hosts[nodes[0]] != "h1" || hosts[nodes[1]] != "h2" {
		t.Fatalf("the nodes are %q", hosts)
	}
	node := func(i int) taskqueue.NodeView {
		t.Helper()
		view, ok := s.core.Node(nodes[i])
		if !ok {
			t.Fatal("there is no node", nodes[i])
		}
		slices.SortFunc(view.Copies, func(a, b taskqueue.CopyView) int { return a.File.Compare(b.File) })
		return view
	}
	first, second := node(0), node(1)
	if first.Host != "h1" || first.Pilots != 3 || first.Limit != 3<<30 ||
		!slices.Equal(first.Kinds, []string{"global", "pilot"}) {
		t.Errorf("the first node is %+v", first)
	}
	if second.Host != "h2" || second.Pilots != 1 || !slices.Equal(second.Kinds, []string{"host"}) || second.Copies != nil {
		t.Errorf("the second node is %+v", second)
	}
	if len(first.Copies) != 3 || first.Copies[0].Size != 1000 || first.Copies[1].File.LFN != "f" ||
		!first.Copies[2].Stale {
		t.Fatalf("the first node holds %+v", first.Copies)
	}

	s.jobs(3)
	pinned := func() (n int) {
		for _, f := range node(0).Copies {
			if f.Pinned {
				n++
			}
		}
		return n
	}
	if pinned() != 0 {
		t.Error("a copy is pinned before a job runs")
	}
	ran := s.ran["p1"]
	s.sync("p1", "", "", func(m *taskqueue.Sync) {
		m.Started = []taskqueue.AttemptRef{{Job: ran.Job,
			Attempt: ran.Attempt}}
	})
	if pinned() != 1 {
		t.Errorf("%d copies are pinned that a job reads where they are shared", pinned())
	}
	// p2 has yet to start its job, and p3 too; p4 reads no copy of theirs.
	next := s.core.NextReaders(nodes[0], first.Copies)
	for i, f := range first.Copies[:2] {
		of := s.ran["p2"].Job
		if f.Pilot == "p3" {
			of = s.ran["p3"].Job
		}
		if next[i].ID != of || of == 0 {
			t.Errorf("%+v is read next by %+v, not by job %v", f, next[i], of)
		}
	}
	if next[2] != (taskqueue.JobRef{}) {
		t.Errorf("what nobody may read is read next by %+v", next[2])
	}
	for _, id := range []taskqueue.PilotID{"p2", "p3", "p4"} {
		ran := s.ran[id]
		s.sync(id, "", "", func(m *taskqueue.Sync) {
			m.Started = []taskqueue.AttemptRef{{Job: ran.Job,
				Attempt: ran.Attempt}}
		})
	}
	if next = s.core.NextReaders(nodes[0], first.Copies); next[0] != (taskqueue.JobRef{}) {
		t.Errorf("all readers run, and the next one is %+v", next[0])
	}
	s.jobs(2)
	if next = s.core.NextReaders(nodes[0], first.Copies); next[0].State != taskqueue.Ready ||
		next[0].Name != next[1].Name {
		t.Errorf("of two jobs that wait, the next readers are %+v", next[:2])
	}
	if _, ok := s.core.Node("h3"); ok || s.core.NextReaders("h3", first.Copies)[0] != (taskqueue.JobRef{}) {
		t.Error("a node without pilots has a cache")
	}
}
