package dispatch

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"fairway/internal/taskqueue"
	"fairway/lib/seed"
)

// sharers are pilots that serve their caches, each on a host of its own, and jobs that
// all read one file from outside.
type sharers struct {
	t     *testing.T
	core  *Core
	seq   map[taskqueue.PilotID]uint64
	last  map[taskqueue.PilotID]uint64 // answer
	found map[taskqueue.PilotID]*taskqueue.Source
	ran   map[taskqueue.PilotID]taskqueue.Assignment
	named int                       // jobs
	evict func([]taskqueue.FileRef) // sees the hints of each answer
	other []taskqueue.PilotID       // that told another hash
	cut   []string                  // of whom it was told that he is offered no more, and to which host
	kept  []taskqueue.Record        // all that were persisted
}

func newSharers(t *testing.T, sites ...taskqueue.Site) *sharers {
	s := &sharers{
		t: t, seq: map[taskqueue.PilotID]uint64{}, last: map[taskqueue.PilotID]uint64{},
		found: map[taskqueue.PilotID]*taskqueue.Source{}, ran: map[taskqueue.PilotID]taskqueue.Assignment{},
	}
	core, e := New(taskqueue.Config{Ahead: -1})
	s.core, s.kept = core, e.Persist
	s.step(taskqueue.SetRun{Run: taskqueue.Run{ID: 1, KeepGoing: true}})
	for _, site := range sites {
		s.step(taskqueue.SetSite{Site: site})
	}
	s.step(taskqueue.AddFiles{Run: 1, Files: []taskqueue.ExistingFile{{LFN: "f", PFN: "x", Size: 1000, Tag: 1 << 63}}})
	return s
}

func (s *sharers) step(in taskqueue.Input) {
	s.t.Helper()
	e, err := s.core.Step(epoch, in)
	if err != nil {
		s.t.Fatal(err)
	}
	s.kept = append(s.kept, e.Persist...)
	for _, x := range e.Events {
		switch x.Kind {
		case taskqueue.CopyDiffers:
			s.other = append(s.other, x.Pilot)
		case taskqueue.SourceCut:
			s.cut = append(s.cut, fmt.Sprintf("%s from %s", x.Name, x.Host))
		}
	}
	for _, r := range e.Replies {
		s.last[r.Pilot] = max(s.last[r.Pilot], r.Answer.Number)
		if s.evict != nil && len(r.Answer.Evict) > 0 {
			s.evict(r.Answer.Evict)
		}
		for _, a := range r.Answer.Run {
			s.ran[r.Pilot] = a
			s.found[r.Pilot] = a.Inputs[0].Source
		}
	}
	s.check()
}

func (s *sharers) jobs(n int) {
	for range n {
		s.named++
		s.step(taskqueue.Submit{Run: 1, Jobs: []taskqueue.Job{{Name: fmt.Sprint("j", s.named), Reads: []string{"f"}}}})
	}
}

// sync is one call of a pilot, whose ID names host and site: host.site.
func (s *sharers) sync(id taskqueue.PilotID, host, site string, change func(*taskqueue.Sync)) {
	s.seq[id]++
	m := taskqueue.Sync{Pilot: id, Seq: s.seq[id], LastAnswer: s.last[id], Hold: true}
	if s.last[id] == 0 {
		m.Full = true
		m.Hello = &taskqueue.PilotInfo{
			Host: host, Site: site, CacheDir: "/c/" + string(id), CacheSize: 1 << 30, Address: string(id) + ":1",
			Pin: "pin of " + string(id),
			Has: taskqueue.Resources{MilliCPUs: 1000},
		}
	}
	if change != nil {
		change(&m)
	}
	s.step(m)
	if m.Full && !m.Leaving { // the next one waits for news
		s.sync(id, "", "", nil)
	}
}

// has tells of the file in a pilot's cache.
func (s *sharers) has(id taskqueue.PilotID, hash string) {
	s.sync(id, "", "", func(m *taskqueue.Sync) {
		m.CacheAdded = []taskqueue.CachedFile{{File: taskqueue.FileRef{LFN: "f", Tag: 1 << 63}, Size: 1000, Hash: hash}}
	})
}

// reads has a pilot be told to get a file, and tell of it when it has come.
func (s *sharers) reads(id taskqueue.PilotID, hash string) {
	s.arrives(id, "f")
	s.has(id, hash)
}

// arrives has a pilot be told to get a file from outside.
func (s *sharers) arrives(id taskqueue.PilotID, lfn string) *taskqueue.Source {
	c := s.core
	return c.fleet.sourceFor(c.fleet.pilots[id], c.files.version(taskqueue.FileRef{Run: 1, LFN: lfn}), nil)
}

// Whichever of several holders drops a file, the others are known to hold it.
func TestHoldersThatDropAFile(t *testing.T) {
	for _, order := range [][]taskqueue.PilotID{
		{"p1", "p3", "p2"}, {"p3", "p1", "p2"}, {"p2", "p3", "p1"}, {"p1", "p2", "p3"},
	} {
		s := newSharers(t)
		for i := range 3 {
			id := taskqueue.PilotID(fmt.Sprint("p", i+1))
			s.sync(id, "h"+string(id), "a", nil)
			s.has(id, "")
		}
		for n, id := range order {
			s.sync(id, "", "", func(m *taskqueue.Sync) { m.CacheGone = []taskqueue.FileRef{{LFN: "f", Tag: 1 << 63}} })
			var want []string
			for _, left := range order[n+1:] {
				want = append(want, "h"+string(left))
			}
			slices.Sort(want)
			versions, _ := s.core.History(1, "f")
			if got := slices.Sorted(slices.Values(versions[0].Hosts)); !slices.Equal(got, want) {
				t.Errorf("after %v it is at %v", order[:n+1], got)
			}
		}
	}
}

// Pilots of a host take a file from the one to which it comes, unless they have no cache to take it from another one.
func TestAPilotWithoutACacheGetsFilesItself(t *testing.T) {
	s := newSharers(t)
	s.sync("far", "h2", "b", nil)
	s.reads("far", "77")
	for _, id := range []taskqueue.PilotID{"one", "two"} {
		s.sync(id, "h1", "b", nil)
	}
	s.sync("alone", "h1", "b", func(m *taskqueue.Sync) { m.Hello.CacheDir = "" })
	for _, c := range []struct {
		id   taskqueue.PilotID
		gets bool
	}{{"one", true}, {"two", false}, {"alone", true}, {"one", true}} {
		if got := s.arrives(c.id, "f"); (got != nil) != c.gets {
			t.Errorf("%s gets it from %+v", c.id, got)
		}
	}
}

// output has a pilot make the file x, stored with an adler32 and no hash, and take no more jobs.
func (s *sharers) output(id taskqueue.PilotID) taskqueue.FileRef {
	s.step(taskqueue.Submit{Run: 1, Jobs: []taskqueue.Job{{Name: "make", Reads: []string{"f"},
		Writes: []taskqueue.Output{{LFN: "x"}}}}})
	a := s.ran[id]
	s.sync(id, "", "", func(m *taskqueue.Sync) {
		m.Ended = []taskqueue.Result{
			{Job: a.Job, Attempt: a.Attempt, Outputs: []taskqueue.WrittenFile{{LFN: "x", Version: 1, PFN: "px", Size: 1000,
				Adler32: 42}}},
		}
		m.Draining = true
	})
	return taskqueue.FileRef{LFN: "x", Version: 1, Tag: taskqueue.Tag(a.Attempt)}
}

// tells has a pilot tell of a copy, and take no more jobs.
func (s *sharers) tells(id taskqueue.PilotID, copied taskqueue.FileRef, hash string) {
	s.sync(id, "", "", func(m *taskqueue.Sync) {
		m.CacheAdded, m.Draining = []taskqueue.CachedFile{{File: copied, Size: 1000, Hash: hash}}, true
	})
}

// check makes sure of what holds of all arrivals.
func (s *sharers) check() {
	s.t.Helper()
	fl := &s.core.fleet
	serving, listed := map[*pilot]int{}, 0
	for v, list := range fl.sources.arriving {
		readers := map[*pilot]int{}
		for _, x := range list {
			listed++
			if x.version != v || !slices.Contains(x.to.exchange.arriving, x) || x.to.left {
				s.t.Fatal("an arrival is lost")
			}
			if x.from == nil {
				continue
			}
			serving[x.from]++
			if readers[x.from]++; readers[x.from] > maxSourceReaders {
				s.t.Fatal(x.from.id, "has too many readers")
			}
			if x.to.behind(x) {
				s.t.Fatal(x.to.id, "is to read what comes from itself")
			}
		}
	}
	for _, p := range fl.pilots {
		listed -= len(p.exchange.arriving)
		if len(p.exchange.sending) != serving[p] {
			s.t.Fatalf("%s serves %d and not %d", p.id, serving[p], len(p.exchange.sending))
		}
	}
	if listed != 0 {
		s.t.Fatal(listed, "arrivals belong to no pilot")
	}
}

// Sixteen hosts want one file: one reads it from storage, and each other from one that
// nobody else reads from.
func TestAPopularFileGoesFromHostToHost(t *testing.T) {
	s := newSharers(t)
	for i := range 16 {
		s.sync(taskqueue.PilotID(fmt.Sprint("p", i)), fmt.Sprint("h", i), "a", nil)
	}
	s.jobs(16)
	readers, origin := map[taskqueue.PilotID]int{}, taskqueue.PilotID("")
	for id := range s.ran {
		if from := s.found[id]; from == nil {
			if origin != "" {
				t.Error(id, "and", origin, "read storage")
			}
			origin = id
		} else {
			readers[from.Pilot]++
		}
	}
	if len(s.ran) != 16 || len(readers) != 15 || origin == "" {
		t.Fatalf("%d pilots run, %d serve, %s reads storage", len(s.ran), len(readers), origin)
	}
	for id, from := range s.found {
		if from != nil && (from.Origin == nil || from.Origin.Pilot != origin || s.ran[id].Inputs[0].Hash != "" ||
			from.Address != string(from.Pilot)+":1" || from.Pin == "") {
			t.Errorf("%s is told %+v", id, from)
		}
	}
	// Once one that has read storage has told the hash, that counts.
	s.has(origin, "77")
	s.sync("late", "hl", "a", nil)
	s.jobs(1)
	if from := s.found["late"]; from == nil || readers[from.Pilot] != 0 || s.ran["late"].Inputs[0].Hash != "77" ||
		from.Origin != nil {
		t.Errorf("%+v", from)
	}
}

// Of two pilots of a host that want a file one gets it.
func TestAFileComesToAHostOnce(t *testing.T) {
	s := newSharers(t)
	for i := range 4 {
		s.sync(taskqueue.PilotID(fmt.Sprint("p", i)), fmt.Sprint("h", i/2), "a", nil)
	}
	s.jobs(4)
	from := 0
	for _, source := range s.found {
		if source != nil {
			from++
		}
	}
	if from != 1 {
		t.Errorf("%d of four pilots on two hosts read from another host", from)
	}
}

// What is at the own site comes before the rest, and another site counts only if each
// names the other.
func TestSourcesOfOtherSites(t *testing.T) {
	for _, c := range []struct {
		a, b []string
		want bool
	}{{nil, nil, false}, {[]string{"b"}, nil, false}, {nil, []string{"a"}, false}, {[]string{"b"}, []string{"a"}, true}} {
		s := newSharers(t, taskqueue.Site{Name: "a", MaxPilots: 1, CacheWith: c.a}, taskqueue.Site{Name: "b", MaxPilots: 1,
			CacheWith: c.b})
		s.sync("p1", "h1", "a", nil)
		s.reads("p1", "07")
		s.sync("p2", "h2", "b", nil)
		s.sync("p1", "", "", func(m *taskqueue.Sync) { m.Draining = true })
		s.jobs(1)
		if got := s.found["p2"] != nil; len(s.ran) != 1 || got != c.want {
			t.Errorf("%v and %v: %v", c.a, c.b, s.found["p2"])
		}
	}
	s := newSharers(t, taskqueue.Site{Name: "a", MaxPilots: 1, CacheWith: []string{"b"}},
		taskqueue.Site{Name: "b", MaxPilots: 2, CacheWith: []string{"a"}})
	for _, at := range []string{"a1", "b1"} {
		s.sync(taskqueue.PilotID(at), at, at[:1], nil)
		s.reads(taskqueue.PilotID(at), "07")
		s.sync(taskqueue.PilotID(at), "", "", func(m *taskqueue.Sync) { m.Draining = true })
	}
	s.sync("b2", "b2", "b", nil)
	s.jobs(1)
	if from := s.found["b2"]; from == nil || from.Pilot != "b1" {
		t.Errorf("%+v", from)
	}
}

// A pilot that cannot be reached is found out by two hosts, and a host that reaches
// nobody by two pilots.
func TestUnreachablePilotsAreNotOffered(t *testing.T) {
	s := newSharers(t)
	reader := func(i int) (id taskqueue.PilotID) {
		id = taskqueue.PilotID(fmt.Sprint("r", i))
		s.sync(id, fmt.Sprint("rh", i), "a", nil)
		s.jobs(1)
		return id
	}
	s.sync("dead", "h", "a", nil)
	s.reads("dead", "07")
	s.sync("dead", "", "", func(m *taskqueue.Sync) { m.Draining = true })
	for i := range 2 {
		id := reader(i)
		if from := s.found[id]; from == nil || from.Pilot != "dead" {
			t.Fatalf("%d: %+v", i, from)
		}
		a := s.ran[id]
		s.sync(id, "", "", func(m *taskqueue.Sync) { // its attempt has failed, so that nothing arrives there
			m.Unserved, m.Draining = []taskqueue.PilotID{"dead"}, true
			m.Ended = []taskqueue.Result{{Job: a.Job, Attempt: a.Attempt, Outcome: taskqueue.InputChanged}}
		})
	}
	if from := s.found[reader(2)]; from != nil {
		t.Errorf("a pilot that two hosts could not reach is offered: %+v", from)
	}
	if !s.core.fleet.mayServe(nil, s.core.fleet.pilots["r2"], s.core.fleet.pilots["r0"]) {
		t.Error("a host is cut off because one pilot could not be reached")
	}
	s.sync("r0", "", "", func(m *taskqueue.Sync) { m.Unserved = []taskqueue.PilotID{"r2"} })
	if from, _ := s.core.fleet.bestSource(
		s.core.fleet.pilots["r0"], s.core.fleet.pilots["dead"].copies.versions[0],
	); from != nil {
		t.Error("a host that reaches nobody is offered", from.id)
	}
	s.sync("r0", "", "", func(m *taskqueue.Sync) { m.Unserved = []taskqueue.PilotID{"r2"} }) // it says so again
	if want := []string{"dead from rh0", "dead from rh1", "r2 from rh0"}; !slices.Equal(s.cut, want) {
		t.Errorf("told of %q, want %q", s.cut, want)
	}
}

// A host that reaches nobody reads storage, and tells of each file that it has then: that
// does not count as something got from the pilots that it was told of.
func TestAHostThatReachesNobodyIsFoundOut(t *testing.T) {
	s := newSharers(t)
	for i := range maxCut + 1 {
		lfn, id := fmt.Sprint("f", i), taskqueue.PilotID(fmt.Sprint("p", i))
		file := taskqueue.CachedFile{File: taskqueue.FileRef{LFN: lfn, Tag: 1 << 63}, Size: 1000, Hash: "07"}
		s.step(taskqueue.AddFiles{Run: 1, Files: []taskqueue.ExistingFile{{LFN: lfn, PFN: lfn, Size: 1000, Tag: 1 << 63}}})
		s.sync(id, fmt.Sprint("h", i), "a", nil)
		s.arrives(id, lfn)
		s.tells(id, file.File, "07")
		if i == 0 {
			s.sync("alone", "behind a wall", "a", nil)
		}
		s.step(taskqueue.Submit{Run: 1, Jobs: []taskqueue.Job{{Name: lfn, Reads: []string{lfn}}}})
		a := s.ran["alone"]
		if from := a.Inputs[0].Source; i == maxCut {
			if from != nil {
				t.Errorf("a host that reached none of %d pilots is told of %s", maxCut, from.Pilot)
			}
		} else if from == nil || from.Pilot != id {
			t.Fatalf("%s is told of %+v", lfn, from)
		}
		s.sync("alone", "", "", func(m *taskqueue.Sync) {
			m.Unserved, m.CacheAdded = []taskqueue.PilotID{id}, []taskqueue.CachedFile{file}
		})
		s.sync("alone", "", "", func(m *taskqueue.Sync) { m.Ended = []taskqueue.Result{{Job: a.Job, Attempt: a.Attempt}} })
		s.sync("alone", "", "", nil) // waits for news
	}
}

// The hash that the reader of the storage element tells counts, whoever tells another one
// before or later, and who does so is offered to nobody until its copy has gone.
func TestTheFirstHashOfAFileCounts(t *testing.T) {
	s := newSharers(t)
	s.sync("origin", "h1", "a", nil)
	s.jobs(1)
	s.sync("liar", "h2", "a", nil)
	s.has("liar", "0bad")
	s.has("origin", "07")
	if len(s.other) != 0 {
		t.Error("told before the hash was known, and found out:", s.other)
	}
	offered := func(id taskqueue.PilotID, want ...taskqueue.PilotID) {
		t.Helper()
		s.sync(id, "h"+string(id), "a", nil)
		v := s.core.fleet.pilots["origin"].copies.versions[0]
		for _, q := range []taskqueue.PilotID{"origin", "liar"} {
			if got := s.core.fleet.mayServe(v, s.core.fleet.pilots[q], s.core.fleet.pilots[id]); got != slices.Contains(want,
				q) {
				t.Errorf("%s is offered to %s: %v", q, id, got)
			}
		}
		if hash := s.core.files.hash(v).text(); hash != "07" {
			t.Errorf("the file has the hash %q", hash)
		}
	}
	offered("r1", "origin", "liar") // which is found out by who reads from it
	s.has("liar", "0bad")
	s.has("liar", "0bad")
	if !slices.Equal(s.other, []taskqueue.PilotID{"liar"}) {
		t.Error("people are told of", s.other)
	}
	offered("r2", "origin")
	s.sync("liar", "", "", func(m *taskqueue.Sync) { m.CacheGone = []taskqueue.FileRef{{LFN: "f", Tag: 1 << 63}} })
	s.has("liar", "07")
	offered("r3", "origin", "liar")
}

// An output has the hash that the pilot tells which has made it, also after a restart, and
// one without a hash comes from a cache only after a pilot has read it from storage.
func TestTheMakerTellsTheHash(t *testing.T) {
	for _, hash := range []string{"", "0a"} {
		s := newSharers(t)
		s.sync("maker", "h1", "a", nil)
		s.step(taskqueue.Submit{Run: 1, Jobs: []taskqueue.Job{{Name: "make", Reads: []string{"f"},
			Writes: []taskqueue.Output{{LFN: "x"}}}}})
		a := s.ran["maker"]
		s.sync("maker", "", "", func(m *taskqueue.Sync) {
			m.CacheAdded = []taskqueue.CachedFile{{File: taskqueue.FileRef{LFN: "x", Version: 1,
				Tag: taskqueue.Tag(a.Attempt)}, Size: 10}}
			m.Ended = []taskqueue.Result{{Job: a.Job, Attempt: a.Attempt, Outputs: []taskqueue.WrittenFile{
				{LFN: "x", Version: 1, PFN: "se", Size: 10, Adler32: 5, Hash: hash},
			}}}
			m.Draining = true
		})
		s.sync("reader", "h2", "a", nil)
		s.step(taskqueue.Submit{Run: 1, Jobs: []taskqueue.Job{{Name: "read", Reads: []string{"x"}}}})
		in := s.ran["reader"].Inputs[0]
		if (in.Source != nil) != (hash != "") || in.Hash != hash || in.Committed != (hash != "") {
			t.Errorf("with the hash %q the reader is told %+v, and the source %+v", hash, in, in.Source)
		}
		again, _, err := Load(taskqueue.Config{Ahead: -1}, s.kept)
		if err != nil || again.files.hash(again.files.version(taskqueue.FileRef{Run: 1, LFN: "x",
			Version: 1})).text() != hash {
			t.Error("after a restart there are the hashes", again.files.hashes, err)
		}
		if hash != "" {
			continue
		}
		s.sync("reader", "", "", func(m *taskqueue.Sync) {
			m.CacheAdded = []taskqueue.CachedFile{{File: in.File, Size: 10, Hash: "0b"}}
		})
		s.sync("late", "h3", "a", nil)
		s.step(taskqueue.Submit{Run: 1, Jobs: []taskqueue.Job{{Name: "late", Reads: []string{"x"}}}})
		if late := s.ran["late"].Inputs[0]; late.Source == nil || late.Hash != "0b" || late.Committed {
			t.Errorf("%+v", late)
		}
		v := s.core.files.version(taskqueue.FileRef{Run: 1, LFN: "x", Version: 1})
		if o := s.core.files.recorded(v.writer); o[0].Hash != "" {
			t.Errorf("a hash that a reader has told would be recorded in the commit: %q", o[0].Hash)
		}
	}
}

// Of a file that nobody was told to get, nobody can tell the first hash.
func TestAHashThatNobodyAskedForDoesNotCount(t *testing.T) {
	s := newSharers(t)
	s.sync("liar", "h1", "a", nil)
	s.has("liar", "0bad")
	s.sync("liar", "", "", func(m *taskqueue.Sync) { m.Draining = true })
	s.sync("honest", "h2", "a", nil)
	s.jobs(1)
	if in := s.ran["honest"].Inputs[0]; in.Source != nil || in.Hash != "" {
		t.Errorf("a pilot is told the hash %q of one that never got the file, and %+v", in.Hash, in.Source)
	}
	a := s.ran["honest"]
	s.sync("honest", "", "", func(m *taskqueue.Sync) { // with the end of its attempt
		m.Ended = []taskqueue.Result{{Job: a.Job, Attempt: a.Attempt}}
		m.CacheAdded = []taskqueue.CachedFile{{File: taskqueue.FileRef{LFN: "f", Tag: 1 << 63}, Size: 1000, Hash: "07"}}
		m.Draining = true
	})
	s.tells("liar", taskqueue.FileRef{LFN: "f", Tag: 1 << 63}, "0bad")
	s.sync("late", "h3", "a", nil)
	s.jobs(1)
	if in := s.ran["late"].Inputs[0]; in.Hash != "07" || in.Source == nil || in.Source.Pilot != "honest" ||
		!slices.Equal(s.other, []taskqueue.PilotID{"liar"}) {
		t.Errorf("hash %q, source %+v, people are told of %v", in.Hash, in.Source, s.other)
	}
}

// After a restart the hashes of those count that were there before, until all have returned.
func TestHashesAreToldAgainAfterARestart(t *testing.T) {
	s := newSharers(t)
	s.sync("before", "h1", "a", nil)
	s.reads("before", "07")
	core, e, err := Load(taskqueue.Config{Ahead: -1, ReconnectGrace: time.Hour}, s.kept)
	if err != nil {
		t.Fatal(err)
	}
	s.core, s.kept, s.last, s.seq = core, append(s.kept, e.Persist...), map[taskqueue.PilotID]uint64{},
		map[taskqueue.PilotID]uint64{}
	hash := func() string {
		return s.core.files.hash(s.core.files.version(taskqueue.FileRef{Run: 1, LFN: "f"})).text()
	}
	s.sync("new", "h2", "a", nil)
	s.has("new", "0bad")
	if got := hash(); got != "" {
		t.Errorf("a pilot that was not there before tells the hash %q", got)
	}
	s.sync("before", "h1", "a", func(m *taskqueue.Sync) {
		m.CacheAdded = []taskqueue.CachedFile{{File: taskqueue.FileRef{LFN: "f", Tag: 1 << 63}, Size: 1000, Hash: "07"}}
	})
	if got := hash(); got != "07" {
		t.Errorf("after a restart the file has the hash %q", got)
	}
}

// What a pilot tells while another one is the origin counts once that has failed.
func TestAHashOutlivesTheOrigin(t *testing.T) {
	s := newSharers(t)
	s.sync("origin", "h0", "a", nil)
	s.jobs(1)
	s.sync("reader", "h1", "a", nil)
	s.jobs(1)
	s.has("reader", "07")
	s.sync("reader", "", "", func(m *taskqueue.Sync) { m.Draining = true })
	a := s.ran["origin"]
	s.sync("origin", "", "", func(m *taskqueue.Sync) {
		m.Ended, m.Draining = []taskqueue.Result{{Job: a.Job, Attempt: a.Attempt, Outcome: taskqueue.InputChanged}}, true
	})
	s.sync("late", "h2", "a", nil)
	s.jobs(1)
	if in := s.ran["late"].Inputs[0]; in.Hash != "07" || in.Source == nil || in.Source.Pilot != "reader" {
		t.Errorf("hash %q, source %+v", in.Hash, in.Source)
	}
}

// A reader is told of a source only with the hash, or with the origin that will tell it: also
// one that asks again when the origin has gone.
func TestNoSourceWithoutAHashOrItsOrigin(t *testing.T) {
	s := newSharers(t)
	for i := range 2 {
		s.sync(taskqueue.PilotID(fmt.Sprint("p", i)), fmt.Sprint("h", i), "a", nil)
		s.jobs(1)
	}
	a := s.ran["p0"]
	if from := s.found["p1"]; from == nil || from.Origin == nil {
		t.Fatalf("%+v", from)
	}
	s.sync("p0", "", "", func(m *taskqueue.Sync) {
		m.Ended, m.Draining = []taskqueue.Result{{Job: a.Job, Attempt: a.Attempt, Outcome: taskqueue.InputChanged}}, true
	})
	if from := s.arrives("p1", "f"); from != nil {
		t.Errorf("%+v", from)
	}
	s.check()
}

// Of an output whose commit has an adler32 only, a reader that was sent to it and has found
// another hash makes the one of a liar forgotten, and the liar is no source.
func TestAFalseHashOfAnOutputIsForgotten(t *testing.T) {
	s := newSharers(t)
	s.sync("maker", "h1", "a", nil)
	copied := s.output("maker")
	reader := func(id taskqueue.PilotID) taskqueue.InputFile {
		s.sync(id, "of "+string(id), "a", nil)
		s.named++
		s.step(taskqueue.Submit{Run: 1, Jobs: []taskqueue.Job{{Name: fmt.Sprint("reads x ", s.named), Reads: []string{"x"}}}})
		return s.ran[id].Inputs[0]
	}
	reader("liar")
	s.tells("liar", copied, "0bad")
	if in := reader("honest"); in.Hash != "0bad" || in.Committed {
		t.Errorf("%+v", in)
	}
	s.tells("honest", copied, "0a")
	if in := reader("next"); in.Hash != "" || in.Source != nil || !slices.Equal(s.other, []taskqueue.PilotID{"liar"}) {
		t.Errorf("hash %q, source %+v, people are told of %v", in.Hash, in.Source, s.other)
	}
	s.tells("next", copied, "0a")
	for _, id := range []taskqueue.PilotID{"r1", "r2"} {
		if in := reader(id); in.Hash != "0a" || in.Source == nil || in.Source.Pilot == "liar" {
			t.Errorf("hash %q, source %+v", in.Hash, in.Source)
		}
		s.sync(id, "", "", func(m *taskqueue.Sync) { m.Draining = true })
	}
}

// Pilots without an address cost nothing.
func TestWithoutSharingNothingIsNoted(t *testing.T) {
	s := newSharers(t)
	for i := range 3 {
		s.sync(taskqueue.PilotID(fmt.Sprint("p", i)), fmt.Sprint("h", i), "a",
			func(m *taskqueue.Sync) { m.Hello.Address = "" })
	}
	s.jobs(3)
	s.has("p1", "07")
	if n := len(s.core.fleet.sources.arriving) + len(s.core.files.hashes); n != 0 || len(s.ran) != 3 {
		t.Error(n, len(s.ran))
	}
}

// Whatever pilots do, come and go, what is noted of arrivals stays consistent.
func TestSourcesAtRandom(t *testing.T) {
	rng := rand.New(rand.NewPCG(seed.Of(t), 0))
	for range 30 {
		s := newSharers(t)
		var live []taskqueue.PilotID
		for n := range 120 {
			switch id := taskqueue.PilotID(fmt.Sprint("p", n)); {
			case len(live) == 0 || rng.IntN(4) == 0:
				s.sync(id, fmt.Sprint("h", rng.IntN(8)), "a", nil)
				live = append(live, id)
			default:
				at := rng.IntN(len(live))
				id = live[at]
				switch a, runs := s.ran[id]; rng.IntN(6) {
				case 0:
					s.sync(id, "", "", func(m *taskqueue.Sync) { m.Leaving = true })
					live = slices.Delete(live, at, at+1)
				case 1:
					s.has(id, []string{"", "07", "08"}[rng.IntN(3)])
				case 2:
					s.sync(id, "", "", func(m *taskqueue.Sync) { m.CacheGone = []taskqueue.FileRef{{LFN: "f", Tag: 1 << 63}} })
				case 3:
					s.sync(id, "", "", func(m *taskqueue.Sync) {
						m.Unserved = []taskqueue.PilotID{live[rng.IntN(len(live))],
							"nobody"}
					})
				case 4:
					if runs {
						delete(s.ran, id)
						s.sync(id, "", "", func(m *taskqueue.Sync) {
							m.Ended = []taskqueue.Result{{Job: a.Job, Attempt: a.Attempt, Outcome: taskqueue.Outcome(rng.IntN(2)),
								ExitCode: 1}}
						})
					}
				default:
					s.jobs(1)
				}
			}
		}
		for _, id := range live {
			s.sync(id, "", "", func(m *taskqueue.Sync) { m.Leaving = true })
		}
		if n := len(s.core.fleet.sources.arriving); n != 0 {
			t.Fatal(n, "versions arrive nowhere")
		}
	}
}

// Of two files in a full cache the one that another host holds too goes first, although
// it is read sooner: it can be had from there.
func TestTheLastCopyWithinReachGoesLast(t *testing.T) {
	for address, want := range map[string]string{"p:1": "f", "": "g"} {
		s := newSharers(t)
		s.step(taskqueue.AddFiles{Run: 1, Files: []taskqueue.ExistingFile{{LFN: "g", PFN: "y", Size: 1000, Tag: 1<<63 + 1}}})
		s.sync("other", "h1", "a", func(m *taskqueue.Sync) { m.Hello.Address = address })
		s.reads("other", "07")
		s.sync("other", "", "", func(m *taskqueue.Sync) { m.Draining = true })
		s.step(taskqueue.Submit{Run: 1, Jobs: []taskqueue.Job{{Name: "reads f", Reads: []string{"f"},
			Tools: []string{"none"}}, {
			Name: "reads g", Reads: []string{"g"}, Tools: []string{"none"},
		}}})
		var order []taskqueue.FileRef
		s.evict = func(files []taskqueue.FileRef) { order = files }
		s.sync("p", "h2", "a", func(m *taskqueue.Sync) { m.Hello.Address, m.Hello.CacheSize = address, 3000 })
		s.sync("p", "", "", func(m *taskqueue.Sync) {
			m.CacheAdded = []taskqueue.CachedFile{
				{File: taskqueue.FileRef{LFN: "f", Tag: 1 << 63}, Size: 1000}, {File: taskqueue.FileRef{LFN: "g", Tag: 1<<63 + 1},
					Size: 1000},
			}
			m.Hold = false
		})
		if len(order) != 2 || order[0].LFN != want {
			t.Errorf("with the address %q: %v", address, order)
		}
	}
}

// Of two idle pilots that lack a job's input, the one gets it whose neighbours have it.
func TestAJobGoesWhereItsInputIsPassedOn(t *testing.T) {
	s := newSharers(t, taskqueue.Site{Name: "a", MaxPilots: 2}, taskqueue.Site{Name: "b", MaxPilots: 2})
	for _, id := range []taskqueue.PilotID{"a1", "b1", "a2", "b2"} {
		s.sync(id, "h"+string(id), string(id[:1]), nil)
	}
	s.reads("a1", "07")
	s.sync("a1", "", "", func(m *taskqueue.Sync) { m.Draining = true })
	s.jobs(1)
	if from := s.found["a2"]; from == nil || from.Pilot != "a1" {
		t.Errorf("pilots run %v", s.ran)
	}
}

// What reading costs is known by site, and by whether other pilots there pass the file on.
func TestReadsAreExpectedAsTheyWereThere(t *testing.T) {
	s := newSharers(t, taskqueue.Site{Name: "a", MaxPilots: 2}, taskqueue.Site{Name: "b", MaxPilots: 2})
	s.sync("a1", "ha1", "a", nil)
	s.reads("a1", "07")
	for _, id := range []taskqueue.PilotID{"a2", "b1"} {
		s.sync(id, "h"+string(id), string(id[:1]), nil)
	}
	fl := &s.core.fleet
	job := &job{requests: []request{{read: fl.pilots["a1"].copies.versions[0]}}} // of 1,000 bytes
	expect := func(when string, want map[taskqueue.PilotID]time.Duration) {
		t.Helper()
		for id, took := range want {
			if got := fl.readTime(fl.pilots[id], job); got.Round(time.Millisecond) != took {
				t.Errorf("%s: %s is expected to read for %v, not %v", when, id, got, took)
			}
		}
	}
	took := func(site string, seconds int, u taskqueue.Usage) {
		u.StageInStart, u.Start = epoch, epoch.Add(time.Duration(seconds)*time.Second)
		fl.pace.reads.Learn(&u)
		fl.monitor.byName[site].outlook.reads.Learn(&u)
	}
	expect("nothing is known", map[taskqueue.PilotID]time.Duration{"a1": 0, "a2": 0, "b1": 0})
	took("b", 4, taskqueue.Usage{BytesStaged: 1000})
	expect("one site is known", map[taskqueue.PilotID]time.Duration{"a1": 0, "a2": 4 * time.Second, "b1": 4 * time.Second})
	took("a", 2, taskqueue.Usage{BytesStaged: 1000})
	took("a", 1, taskqueue.Usage{BytesRemote: 2000})
	took("a", 9, taskqueue.Usage{BytesStaged: 1, BytesRemote: 1}) // of neither kind
	expect("all is known", map[taskqueue.PilotID]time.Duration{"a1": 0, "a2": 500 * time.Millisecond,
		"b1": 4 * time.Second})
}

// A job goes to another pilot of the host that has its input rather than to another host, also
// before that pilot has told of a link to it.
func TestAJobGoesToTheHostOfItsInput(t *testing.T) {
	s := newSharers(t)
	s.sync("a", "h1", "", nil)
	s.has("a", "07")
	s.sync("b", "h2", "", nil)
	s.sync("c", "h1", "", nil)
	s.sync("a", "", "", nil) // it was told of c
	s.jobs(2)
	if _, ok := s.ran["c"]; !ok || len(s.ran) != 2 {
		t.Errorf("assigned to %v, want a and c", s.ran)
	}
}

// Pilots that read each other's files on a host, at a site where several users do, are told the
// hash that the first of them has found of a file from outside which it was to read. One that was
// not to read it tells nothing, and neither does one of another site.
func TestPilotsOfAGroupLearnHashes(t *testing.T) {
	s := newSharers(t, taskqueue.Site{Name: "farm", GroupCache: true, MaxPilots: 9}, taskqueue.Site{Name: "plain",
		MaxPilots: 9})
	hash := strings.Repeat("07", 32)
	unserved := func(m *taskqueue.Sync) { m.Hello.Address, m.Hello.Pin = "", "" }
	copied := func(m *taskqueue.Sync) {
		m.CacheAdded = []taskqueue.CachedFile{{File: taskqueue.FileRef{LFN: "f", Tag: 1 << 63}, Size: 1000, Hash: hash}}
	}
	known := func() string {
		v := s.core.files.version(taskqueue.FileRef{Run: 1, LFN: "f"})
		return s.core.files.hash(v).text()
	}
	for _, p := range []struct{ id, site string }{{"plain", "plain"}, {"stranger", "farm"}, {"reader", "farm"}} {
		id := taskqueue.PilotID(p.id)
		s.sync(id, "h", p.site, unserved)
		if p.id != "stranger" {
			s.jobs(1)
			if s.ran[id].Attempt == 0 {
				t.Fatalf("%s was given no job", id)
			}
		}
		s.sync(id, "", "", func(m *taskqueue.Sync) {
			if copied(m); p.id != "stranger" {
				a := s.ran[id]
				m.Ended = []taskqueue.Result{{Job: a.Job, Attempt: a.Attempt, Outcome: taskqueue.Succeeded}}
			}
			m.Draining = true
		})
		if got := known(); (got == hash) != (p.id == "reader") {
			t.Errorf("when %s has told, the hash is %q", id, got)
		}
	}
	s.sync("next", "h", "farm", unserved)
	s.jobs(1)
	if in := s.ran["next"].Inputs; len(in) != 1 || in[0].Hash != hash || in[0].Source != nil {
		t.Errorf("the next one reads %+v", in)
	}
}
