package access

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/durationpb"
	"google.golang.org/protobuf/types/known/timestamppb"

	"fairway/internal/wire"
)

func claims(t testing.TB) *Claims {
	t.Helper()
	a, err := OpenAuthority(t.TempDir()+"/authority", "id")
	if err != nil {
		t.Fatal(err)
	}
	return &Claims{Authority: a, Stores: func(site string) []string {
		if site == "cluster" {
			return []string{"state:", "root://se//data/"}
		}
		return []string{"state:"}
	}}
}

// honest is what a pilot says of the attempt 9 of job 3 of run 2, which it was given.
func honest(c *Claims) *wire.SyncRequest {
	ticket := c.Authority.Ticket(2, 3, 9)
	return &wire.SyncRequest{
		Pilot: "cluster.1-ab12", Seq: 1, Full: true,
		Hello: &wire.PilotInfo{
			Host: "node1", Site: "cluster", Launch: "cluster.1", Tools: []string{"sh"},
			Has:       &wire.Resources{MilliCpus: 4000, MemoryBytes: 1 << 30, Countable: map[string]int64{"gpu": 1}},
			Remaining: durationpb.New(time.Hour), Lease: durationpb.New(time.Hour),
			ShareAddress: "192.0.2.7:4000", SharePin: "sha256:00",
		},
		Queued:  []*wire.AttemptRef{{Run: 2, Job: 3, Attempt: 9, Ticket: ticket}},
		Started: []*wire.AttemptRef{{Run: 2, Job: 3, Attempt: 9, Ticket: ticket}},
		Ended: []*wire.Report{{Ticket: ticket, Result: &wire.Result{
			Run: 2, Job: 3, Attempt: 9, Usage: &wire.Usage{},
			Outputs: []*wire.WrittenFile{
				{Lfn: "bam/p1.bam", Version: 2, Size: 5, Pfn: "state:bam/p1.bam.v2.a9"},
				{Lfn: "far", Version: 1, Size: 5, Pfn: "root://se//data/far.v1.a9"},
				{Lfn: "cached", Version: 1},
			},
		}}},
		Saved: []*wire.SavedState{{
			Of:   &wire.AttemptRef{Run: 2, Job: 3, Attempt: 9, Ticket: ticket},
			File: &wire.WrittenFile{Lfn: "state/", Version: 4, Size: 5, Pfn: "state:state/.v4.a9"},
		}},
		CacheAdded: []*wire.CachedFile{{File: &wire.FileRef{Lfn: "raw/x"}, Size: 1}},
		CacheGone:  []*wire.CacheGone{{File: &wire.FileRef{Lfn: "raw/y"}}},
		Counts:     &wire.CacheCounts{EvictedFiles: 1, EvictedBytes: 1 << 40},
	}
}

var caller = &Caller{Launch: "cluster.1", Site: "cluster"}

// A launch has so many pilots and no more, also one after the other; each may go on calling.
func TestALaunchHasFewPilots(t *testing.T) {
	c, tokens, secret := claims(t), NewTokens(), NewToken()
	at := Connection{Launch: "cluster.1", Site: "cluster", Token: secret}
	tokens.Allow(at.Grant())
	call := func(pilot int) error {
		by, err := tokens.Check("cluster.1", secret)
		if err != nil {
			t.Fatal(err)
		}
		tokens.Allow(at.Grant()) // as when its connection file is written again
		return c.Check(&by, &wire.SyncRequest{Pilot: fmt.Sprintf("cluster.1-%d", pilot)})
	}
	for range 2 {
		for pilot := range MaxLaunchPilots {
			if err := call(pilot); err != nil {
				t.Fatal(pilot, err)
			}
		}
		if err := call(MaxLaunchPilots); err == nil || !strings.Contains(err.Error(), "MaxLaunchPilots") {
			t.Error(err)
		}
	}
}

// Each lie alone is refused, with a sentence that names it.
func TestLiesAreRefused(t *testing.T) {
	c := claims(t)
	if err := c.Check(caller, honest(c)); err != nil {
		t.Fatal("the truth is refused:", err)
	}
	other := claims(t).Authority
	long := strings.Repeat("x", MaxName+1)
	output := func(change func(*wire.WrittenFile)) func(*wire.SyncRequest) {
		return func(m *wire.SyncRequest) { change(m.Ended[0].Result.Outputs[0]) }
	}
	stored := func(pfn string) func(*wire.SyncRequest) {
		return output(func(o *wire.WrittenFile) { o.Pfn = pfn })
	}
	named := func(lfn string) func(*wire.SyncRequest) {
		return output(func(o *wire.WrittenFile) { o.Lfn, o.Pfn = lfn, "state:"+lfn+".v2.a9" })
	}
	for what, lie := range map[string]struct {
		tell func(*wire.SyncRequest)
		said string
	}{
		"a file that the server can read":   {stored("file:/etc/passwd"), "was not assigned"},
		"a state of another attempt":        {func(m *wire.SyncRequest) { m.Saved[0].File.Pfn = "state:state/.v4.a8" }, "was not assigned"},
		"a state that is nowhere":           {func(m *wire.SyncRequest) { m.Saved[0].File.Pfn = "" }, "stored nowhere"},
		"a state without a ticket":          {func(m *wire.SyncRequest) { m.Saved[0].Of.Ticket = nil }, "was not given"},
		"a path":                            {stored("/etc/passwd"), "was not assigned"},
		"an input":                          {stored("folder:raw/x"), "was not assigned"},
		"the output of another attempt":     {stored("state:bam/p1.bam.v2.a8"), "was not assigned"},
		"another version":                   {stored("state:bam/p1.bam.v1.a9"), "was not assigned"},
		"another name":                      {stored("state:bam/p2.bam.v2.a9"), "was not assigned"},
		"a line break in a name":            {named("bam/p1\nbam/p2"), "cannot be one"},
		"a way around":                      {stored("state:bam/../bam/p1.bam.v2.a9"), "was not assigned"},
		"a server of its own":               {stored("https://evil/bam/p1.bam.v2.a9"), "was not assigned"},
		"the storage of another site":       {stored("root://other//bam/p1.bam.v2.a9"), "was not assigned"},
		"an output above the results":       {named("../x"), "cannot be one"},
		"an output on the way up":           {named("parts/../../x"), "cannot be one"},
		"an output without a name":          {named(""), "cannot be one"},
		"an output with a NUL":              {named("a\x00b"), "cannot be one"},
		"an output with a long name":        {named(long), "cannot be one"},
		"a negative size":                   {output(func(o *wire.WrittenFile) { o.Size = -1 }), "has -1 bytes"},
		"a huge size":                       {output(func(o *wire.WrittenFile) { o.Size = 1 << 62 }), "bytes"},
		"negative records":                  {output(func(o *wire.WrittenFile) { o.Records = -1 }), "-1 records"},
		"an outcome that there is not":      {func(m *wire.SyncRequest) { m.Ended[0].Result.Outcome = 99 }, "outcome"},
		"negative usage":                    {func(m *wire.SyncRequest) { m.Ended[0].Result.Usage.BytesStaged = -1 }, "less than nothing"},
		"a result of another attempt":       {func(m *wire.SyncRequest) { m.Ended[0].Result.Attempt = 10 }, "was not given"},
		"a result for another job":          {func(m *wire.SyncRequest) { m.Ended[0].Result.Job = 4 }, "was not given"},
		"a result for another run":          {func(m *wire.SyncRequest) { m.Ended[0].Result.Run = 3 }, "was not given"},
		"to have what another run has":      {func(m *wire.SyncRequest) { m.Queued[0].Run = 3 }, "was not given"},
		"a result without a ticket":         {func(m *wire.SyncRequest) { m.Ended[0].Ticket = nil }, "was not given"},
		"a ticket of another state":         {func(m *wire.SyncRequest) { m.Ended[0].Ticket = other.Ticket(2, 3, 9) }, "was not given"},
		"a part of a ticket":                {func(m *wire.SyncRequest) { m.Ended[0].Ticket = m.Ended[0].Ticket[:4] }, "was not given"},
		"to run what another runs":          {func(m *wire.SyncRequest) { m.Started[0].Attempt = 10 }, "was not given"},
		"to have run longer than anything":  {func(m *wire.SyncRequest) { m.Started[0].Running = durationpb.New(1 << 62) }, "cannot have run"},
		"to have run less than nothing":     {func(m *wire.SyncRequest) { m.Started[0].Running = durationpb.New(-1) }, "cannot have run"},
		"to read from what draws":           {func(m *wire.SyncRequest) { m.Waiting = []*wire.WaitingInput{{Lfn: "a", Source: "\x1b[2J"}} }, "no pilot or server"},
		"to read from a long name":          {func(m *wire.SyncRequest) { m.Waiting = []*wire.WaitingInput{{Lfn: "a", Source: long}} }, "no pilot or server"},
		"to have what another has":          {func(m *wire.SyncRequest) { m.Queued[0].Attempt = 10 }, "was not given"},
		"a lost file with a long name":      {func(m *wire.SyncRequest) { m.Ended[0].Result.Lost = []*wire.LostFile{{Pfn: long}} }, "lost file"},
		"too many attempts":                 {func(m *wire.SyncRequest) { m.Queued = make([]*wire.AttemptRef, MaxAttempts+1) }, "at most"},
		"too many results":                  {func(m *wire.SyncRequest) { m.Ended = make([]*wire.Report, MaxAttempts+1) }, "at most"},
		"too many outputs":                  {func(m *wire.SyncRequest) { m.Ended[0].Result.Outputs = make([]*wire.WrittenFile, MaxOutputs+1) }, "more than"},
		"a cache with a NUL":                {func(m *wire.SyncRequest) { m.Hello.CacheDir = "/c\x00" }, "path of its cache"},
		"a cache with a long path":          {func(m *wire.SyncRequest) { m.Hello.CacheDir = long }, "path of its cache"},
		"too many cached files":             {func(m *wire.SyncRequest) { m.CacheAdded = make([]*wire.CachedFile, MaxCached+1) }, "at most"},
		"half a hash of an output":          {output(func(o *wire.WrittenFile) { o.Blake3 = make([]byte, 16) }), "32 bytes"},
		"a hash that says nothing":          {func(m *wire.SyncRequest) { m.CacheAdded[0].Blake3 = make([]byte, 32) }, "zero bytes"},
		"half a hash of a cached file":      {func(m *wire.SyncRequest) { m.CacheAdded[0].Blake3 = make([]byte, 16) }, "32 bytes"},
		"a cached file of negative size":    {func(m *wire.SyncRequest) { m.CacheAdded[0].Size = -1 }, "cannot have -1 bytes"},
		"a cached file of no name":          {func(m *wire.SyncRequest) { m.CacheAdded[0].File = nil }, "no name of a file"},
		"a file that left, above the cache": {func(m *wire.SyncRequest) { m.CacheGone[0].File.Lfn = "../x" }, "no name of a file"},
		"a lost file in two lines":          {func(m *wire.SyncRequest) { m.Ended[0].Result.Lost = []*wire.LostFile{{Pfn: "a\nb"}} }, "several lines"},
		"a lost file without a name":        {func(m *wire.SyncRequest) { m.Ended[0].Result.Lost = []*wire.LostFile{{Pfn: "a"}} }, "cannot be one"},
		"more records than there are":       {output(func(o *wire.WrittenFile) { o.Records = 1 << 50 }), "records"},
		"large files together":              {func(m *wire.SyncRequest) { m.CacheAdded = largeFiles() }, "cannot have"},
		"large outputs together":            {output(func(o *wire.WrittenFile) { o.Size = 1 << 50 }), "together"},
		"too many sources of no use":        {func(m *wire.SyncRequest) { m.Unserved = make([]string, MaxUnserved+1) }, "at most"},
	} {
		refusedLie(t, c, what, lie.tell, lie.said)
	}
}

// largeFiles are more than a number holds, and none of them alone is.
func largeFiles() (files []*wire.CachedFile) {
	for i := range MaxCached {
		files = append(files, &wire.CachedFile{File: &wire.FileRef{Lfn: fmt.Sprint("raw/", i)}, Size: 1 << 50})
	}
	return files
}

// refusedLie checks that a lie is refused by a sentence.
func refusedLie(t *testing.T, c *Claims, what string, tell func(*wire.SyncRequest), said string) {
	t.Run(what, func(t *testing.T) {
		m := honest(c)
		tell(m)
		if err := c.Check(caller, m); err == nil || !strings.Contains(err.Error(), said) || len(err.Error()) > 1000 {
			t.Errorf("got %v, want %q", err, said)
		}
	})
}

// The same for what a pilot says of itself.
func TestLiesOfPilotsAboutThemselvesAreRefused(t *testing.T) {
	c := claims(t)
	long := strings.Repeat("x", MaxName+1)
	hello := func(change func(*wire.PilotInfo)) func(*wire.SyncRequest) {
		return func(m *wire.SyncRequest) { change(m.Hello) }
	}
	serves := func(at string) func(*wire.SyncRequest) {
		return hello(func(h *wire.PilotInfo) { h.ShareAddress = at })
	}
	for what, lie := range map[string]struct {
		tell func(*wire.SyncRequest)
		said string
	}{
		"to be a pilot of another launch":      {func(m *wire.SyncRequest) { m.Pilot = "cluster.2-ab12" }, "good for pilots of the launch"},
		"to be a pilot of a longer launch":     {func(m *wire.SyncRequest) { m.Pilot = "cluster.1-2-ab12" }, "good for pilots of the launch"},
		"to be the launch itself":              {func(m *wire.SyncRequest) { m.Pilot = "cluster.1" }, "good for pilots of the launch"},
		"to be nobody":                         {func(m *wire.SyncRequest) { m.Pilot = "" }, "names the pilot"},
		"to have registered as another launch": {hello(func(h *wire.PilotInfo) { h.Launch = "cluster.2" }), "its own launch"},
		"to be at another site":                {hello(func(h *wire.PilotInfo) { h.Site = "local" }), "its own launch"},
		"a long name of its host":              {hello(func(h *wire.PilotInfo) { h.Host = long }), "host"},
		"negative memory":                      {hello(func(h *wire.PilotInfo) { h.Has.MemoryBytes = -1 }), "cannot have -1"},
		"all processors of the world":          {hello(func(h *wire.PilotInfo) { h.Has.MilliCpus = 1 << 60 }), "cannot have"},
		"negative things":                      {hello(func(h *wire.PilotInfo) { h.Has.Countable["gpu"] = -1 }), "cannot have"},
		"too many tools":                       {hello(func(h *wire.PilotInfo) { h.Tools = make([]string, MaxTools+1) }), "at most"},
		"a tool with a line break":             {hello(func(h *wire.PilotInfo) { h.Tools = []string{"a\nJob b is done"} }), "control characters"},
		"a host that moves the cursor":         {hello(func(h *wire.PilotInfo) { h.Host = "\x1b[2J" }), "control characters"},
		"a thing with a NUL":                   {hello(func(h *wire.PilotInfo) { h.Has.Countable["a\x00"] = 1 }), "control characters"},
		"many long tools":                      {hello(func(h *wire.PilotInfo) { h.Tools = slices.Repeat([]string{long[:MaxName]}, 17) }), "MaxHello"},
		"a long name of its own":               {func(m *wire.SyncRequest) { m.Pilot += long[:MaxPilotName] }, "names the pilot"},
		"two lines as its name":                {func(m *wire.SyncRequest) { m.Pilot += "\n" }, "names the pilot"},
		"a long tool":                          {hello(func(h *wire.PilotInfo) { h.Tools = []string{long} }), "tool"},
		"to live for ever":                     {hello(func(h *wire.PilotInfo) { h.Remaining = durationpb.New(2 * MaxLife) }), "no time"},
		"to serve at a name":                   {serves("node2:4000"), "is none"},
		"to serve at no port":                  {serves("192.0.2.7:"), "is none"},
		"to serve at a port of its own":        {serves("192.0.2.7:http"), "is none"},
		"to serve everywhere":                  {serves("0.0.0.0:22"), "is none"},
		"to serve where metadata is":           {serves("169.254.169.254:443"), "is none"},
		"to serve many":                        {serves("224.0.0.1:4000"), "is none"},
		"a long certificate":                   {hello(func(h *wire.PilotInfo) { h.SharePin = long }), "certificate"},
		"to wait less than nothing":            {hello(func(h *wire.PilotInfo) { h.Lease = durationpb.New(-time.Second) }), "no time"},
	} {
		refusedLie(t, c, what, lie.tell, lie.said)
	}
}

// What a pilot counts of its cache can be summed, and no part is more than the whole.
func TestCountsOfCachesAreSane(t *testing.T) {
	c := claims(t)
	for said, counts := range map[string]struct {
		used   *wire.Usage
		counts *wire.CacheCounts
	}{
		"read or wrote":                {used: &wire.Usage{BytesCached: 1 << 51}},
		"more came from other":         {used: &wire.Usage{CacheHits: 2, RemoteHits: 2, PrefetchHits: 1}},
		"prefetched than it read":      {used: &wire.Usage{BytesPrefetched: 1}},
		"less than nothing":            {used: &wire.Usage{RemoteHits: -1}},
		"which no clock shows":         {used: &wire.Usage{End: &timestamppb.Timestamp{Seconds: 1 << 40}}},
		"a processor time":             {used: &wire.Usage{Cpu: &durationpb.Duration{Seconds: 1 << 40}}},
		"bytes of memory":              {used: &wire.Usage{MaxRssBytes: math.MaxInt64}},
		"cannot have evicted":          {counts: &wire.CacheCounts{EvictedFiles: -1}},
		"or prefetched 11529215046068": {counts: &wire.CacheCounts{PrefetchedBytes: 1 << 60}},
	} {
		m := honest(c)
		m.Ended[0].Result.Usage, m.Counts = counts.used, counts.counts
		if err := c.Check(caller, m); err == nil || !strings.Contains(err.Error(), said) {
			t.Errorf("got %v, want %q", err, said)
		}
	}
}

// A pilot beside the server has no launch to prove, but its word counts no more.
func TestThePilotBesideTheServerIsCheckedToo(t *testing.T) {
	c := claims(t)
	m := honest(c)
	m.Pilot, m.Hello.Launch = "anything", "other"
	if err := c.Check(nil, m); err != nil {
		t.Error(err)
	}
	m.Ended[0].Result.Outputs[0].Pfn = "file:/etc/passwd"
	if c.Check(nil, m) == nil {
		t.Error("it published /etc/passwd")
	}
}

// Whatever comes over the wire is checked or refused, never a panic, and nothing
// passes that names a file of others.
func FuzzSyncRequest(f *testing.F) {
	c := claims(f)
	for _, m := range []*wire.SyncRequest{honest(c), {}, {Pilot: "cluster.1-1", Ended: []*wire.Report{nil, {}}}} {
		text, err := proto.Marshal(m)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		m := new(wire.SyncRequest)
		if proto.Unmarshal(data, m) != nil || c.Check(caller, m) != nil {
			return
		}
		if n := m.GetCounts(); min(n.GetEvictedFiles(), n.GetEvictedBytes(), n.GetPrefetchedFiles(),
			n.GetPrefetchedBytes()) < 0 {
			t.Fatal(n)
		}
		for _, report := range m.GetEnded() {
			r := report.GetResult()
			if r.GetJob() != 3 || r.GetAttempt() != 9 {
				t.Fatal("a ticket was guessed:", r)
			}
			if u := r.GetUsage(); u.GetRemoteHits()+u.GetPrefetchHits() > u.GetCacheHits() ||
				u.GetBytesRemote()+u.GetBytesPrefetched() > u.GetBytesCached() {
				t.Fatal("a part is more than the whole:", u)
			}
			for _, o := range r.GetOutputs() {
				if o.GetPfn() != "" && (!strings.HasSuffix(o.GetPfn(), ".a9") || strings.Contains(o.GetPfn(), "/../")) {
					t.Fatal(o)
				}
			}
		}
	})
}
