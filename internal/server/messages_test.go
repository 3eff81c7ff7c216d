package server

import (
	"context"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"net"
	"net/http"
	"os"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"connectrpc.com/connect"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/types/known/durationpb"
	"google.golang.org/protobuf/types/known/timestamppb"

	"fairway/internal/access"
	"fairway/internal/batch"
	"fairway/internal/rights"
	"fairway/internal/server/api"
	"fairway/internal/server/folder"
	"fairway/internal/storage"
	"fairway/internal/wire"
	"fairway/lib/seed"
	"fairway/test/files"
)

// liedTo is a workflow that does not end, with jobs of every kind of which a pilot tells something.
const liedTo = `
workflow: liedto
inputs:
  texts: {files: "in/{name}.txt", as: "in/{name}.txt"}
  more: {watch: "more/{name}.txt", as: "more/{name}.txt", may_be_empty: true, close: manual}
steps:
  plain:
    each: "in/{name}.txt"
    writes: "plain/{name}"
    storage: cache
    publish: false
    needs: {time: 1h, memory: 1MB}
    retry: {attempts: 1000000}
    command: "true"
  saving:
    each: "in/{name}.txt"
    writes: "saving/{name}"
    storage: cache
    publish: false
    checkpoint: state/
    retry: {attempts: 1000000}
    command: "true"
  gang:
    each: "in/{name}.txt"
    writes: "gang/{name}"
    storage: temporary
    publish: false
    tasks: 2
    retry: {attempts: 1000000}
    command: "true"
  chosen:
    each: "plain/{name}"
    writes: "chosen/{name}/{part}"
    storage: cache
    publish: false
    may_be_empty: true
    retry: {attempts: 1000000}
    command: "true"
  parts:
    each: "saving/{name}"
    split: {records: 1000000, of: lines}
    writes: "parts/{name}/{chunk}"
    storage: cache
    publish: false
    retry: {attempts: 1000000}
    command: "true"
  merged:
    merge: "gang/{name}"
    size: 1GB
    writes: "merged/{merge}"
    storage: cache
    publish: false
    command: "true"
  late:
    each: "more/{name}.txt"
    writes: "late/{name}"
    command: "true"
`

// Whatever a pilot says to which jobs were given, the server answers, also after a restart.
func TestNoMessageOfAPilotStopsTheServer(t *testing.T) {
	messages, restarts := int64(10_000), 4
	if os.Getenv("FAIRWAY_SOAK") != "" {
		messages, restarts = 1_000_000, 40
	}
	random := seed.Source(t)
	texts := map[string]string{"more/.keep": ""}
	for i := range 40 {
		texts[fmt.Sprintf("in/%d.txt", i)] = "text"
	}
	root := files.Folder(t, texts)
	var known sayings
	for range restarts {
		r := newRun(t, root, liedTo, nil)
		r.config.Log, r.config.KeepGoing = nil, true
		r.config.LeaveTime = 10 * time.Millisecond // a pilot may have said that it is of a launch that there is not
		r.config.Dispatch.Backoff, r.config.Dispatch.MaxBackoff = time.Millisecond, time.Millisecond
		address := ""
		r.config.System = func(at string, _ folder.Layout) (batch.System, error) {
			address = strings.TrimPrefix(at, "unix:")
			return idleSystem{}, nil
		}
		s, err := Open(t.Context(), r.config)
		if err != nil {
			t.Fatal("the server does not start again: ", err)
		}
		ctx, end := context.WithCancel(t.Context())
		left := new(atomic.Int64)
		left.Store(messages / int64(restarts))
		var server, liars sync.WaitGroup
		server.Go(func() {
			if outcome, err := s.Run(ctx); left.Load() >= 0 {
				t.Errorf("the run ended: %+v, %v", outcome, err)
			}
		})
		for range 8 {
			l := newLiar(t, rand.New(rand.NewPCG(random.Uint64(), 0)), address, &known)
			liars.Go(func() {
				for left.Add(-1) >= 0 && !t.Failed() {
					l.tell()
				}
				l.farewell()
			})
		}
		liars.Wait()
		mustAnswer(t, s, address)
		end()
		server.Wait()
		if t.Failed() {
			return
		}
	}
	t.Logf("%d messages were taken, %d refused; %d results counted, %d jobs were given", known.taken.Load(),
		known.refused.Load(), known.results.Load(), known.given.Load())
	if known.taken.Load() == 0 || known.refused.Load() == 0 || known.results.Load() == 0 {
		t.Error("nothing was tried")
	}
}

// mustAnswer asks the server all that people ask.
func mustAnswer(t *testing.T, s *Server, address string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(rights.With(t.Context(), rights.Owner), 2*time.Minute)
	defer cancel()
	client := wire.NewWorkflowClient(overSocket(t, address), "http://fairway")
	listed, err := client.ListJobs(ctx, &wire.ListJobsRequest{})
	if err != nil {
		t.Fatal(err)
	}
	for _, job := range listed.GetJobs()[:min(20, len(listed.GetJobs()))] {
		if _, err := client.ShowJob(ctx, &wire.ShowJobRequest{Job: job.GetName()}); err != nil {
			t.Error(err)
		}
		if _, err := client.Explain(ctx, &wire.ExplainRequest{Job: job.GetName()}); err != nil {
			t.Error(err)
		}
	}
	service := s.service()
	_, report := s.Report(ctx)
	_, overview := service.Overview(ctx, api.Page(0))
	_, slots := service.Slots(ctx, api.Page(0), 0, 100)
	_, flows := service.Flows(ctx, api.Page(0))
	_, failures := service.Failures(ctx, api.Page(0))
	_, pilots := client.ListPilots(ctx, &wire.ListPilotsRequest{})
	_, caches := client.ListCaches(ctx, &wire.ListCachesRequest{})
	_, stored := client.ListFiles(ctx, &wire.ListFilesRequest{})
	if err := errors.Join(report, overview, slots, flows, failures, pilots, caches, stored); err != nil {
		t.Error(err)
	}
}

func overSocket(t *testing.T, address string) *http.Client {
	transport := &http.Transport{DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
		return new(net.Dialer).DialContext(ctx, "unix", address)
	}}
	t.Cleanup(transport.CloseIdleConnections)
	return &http.Client{Transport: transport}
}

// sayings count what all liars have said.
type sayings struct{ taken, refused, results, given, named atomic.Int64 }

// liar is a pilot that says what it was given, with a few fields at their limits.
type liar struct {
	t      *testing.T
	random *rand.Rand
	client wire.TaskQueueClient
	known  *sayings

	id   string
	seq  uint64
	last *wire.SyncAnswer
	has  []*wire.Assignment
}

func newLiar(t *testing.T, random *rand.Rand, address string, known *sayings) *liar {
	client := wire.NewTaskQueueClient(overSocket(t, address), "http://fairway")
	return &liar{t: t, random: random, client: client, known: known}
}

// tell makes one call, and fails the test if it is not answered.
func (l *liar) tell() {
	if l.id == "" || l.random.IntN(100) == 0 {
		l.farewell()
		l.id, l.seq, l.last, l.has = fmt.Sprintf("local-%x", l.known.named.Add(1)), 0, nil, nil
	}
	l.seq++
	m := l.truth()
	ended := len(m.GetEnded())
	for range l.random.IntN(4) {
		l.lie(m)
	}
	answer, ok := l.call(m)
	if !ok {
		return
	}
	l.known.results.Add(int64(ended))
	if answer.GetSuperseded() || answer.GetLeaveNow() {
		l.id = ""
		return
	}
	l.last = answer
	if ended > 0 {
		l.has = l.has[ended:]
	}
	for _, a := range answer.GetRun() {
		if !slices.ContainsFunc(l.has, func(b *wire.Assignment) bool { return a.GetAttempt() == b.GetAttempt() }) {
			l.has = append(l.has, a)
			l.known.given.Add(1)
		}
	}
	l.has = slices.DeleteFunc(l.has, func(a *wire.Assignment) bool {
		return slices.Contains(answer.GetEnd(), a.GetAttempt())
	})
}

// call makes a call; ok is false if it was refused, as a lie may be.
func (l *liar) call(m *wire.SyncRequest) (answer *wire.SyncAnswer, ok bool) {
	ctx, cancel := context.WithTimeout(l.t.Context(), 2*time.Minute)
	defer cancel()
	answer, err := l.client.Sync(ctx, m)
	if _, refused := access.Refused(err); refused || connect.CodeOf(err) == connect.CodeInternal &&
		strings.Contains(err.Error(), "invalid UTF-8") {
		l.known.refused.Add(1)
		return nil, false
	}
	if err != nil {
		if !l.t.Failed() {
			l.t.Errorf("the server does not answer: %v\n%v", err, m)
		}
		return nil, false
	}
	l.known.taken.Add(1)
	return answer, true
}

// farewell has the pilot of before leave, so that its jobs are given to others.
func (l *liar) farewell() {
	if l.id != "" {
		l.call(&wire.SyncRequest{
			Protocol: wire.Protocol, Pilot: l.id, Seq: math.MaxUint64, Full: true, Hello: l.hello(), Leaving: true,
		})
	}
}

func (l *liar) hello() *wire.PilotInfo {
	return &wire.PilotInfo{
		Host: fmt.Sprint("node", l.random.IntN(4)), Machine: "m", Site: LocalSite, Launch: "",
		Has: &wire.Resources{MilliCpus: 8000, MemoryBytes: 1 << 30, DiskBytes: 1 << 30,
			Countable: map[string]int64{"gpu": 2}},
		CacheDir: "/cache", CacheSize: 1 << 30, Remaining: durationpb.New(10 * time.Hour), Lease: durationpb.New(time.Second),
		ShareAddress: "127.0.0.1:4000", SharePin: "pin",
	}
}

// truth is what an honest pilot could say.
func (l *liar) truth() *wire.SyncRequest {
	m := &wire.SyncRequest{
		Protocol: wire.Protocol, Pilot: l.id, Seq: l.seq, Full: l.last == nil || l.last.GetNeedFull(),
		Counts: &wire.CacheCounts{}, LastAnswer: l.last.GetNumber(), Serves: true,
	}
	if m.Full || l.random.IntN(20) == 0 {
		m.Hello = l.hello()
	}
	ends := min(len(l.has), l.random.IntN(6))
	for _, a := range l.has[:ends] {
		m.Ended = append(m.Ended, &wire.Report{Ticket: a.GetTicket(), Result: l.result(a)})
	}
	for _, a := range l.has[ends:] {
		ref := &wire.AttemptRef{
			Run: a.GetRun(), Job: a.GetJob(), Attempt: a.GetAttempt(), Ticket: a.GetTicket(), Leader: a.GetGang().GetLeader(),
			Task: a.GetGang().GetTask(), Running: durationpb.New(time.Duration(l.random.IntN(int(time.Hour)))),
		}
		switch l.random.IntN(3) {
		case 0:
			m.Queued = append(m.Queued, ref)
		case 1:
			m.Started = append(m.Started, ref)
		}
		if a.GetGang() != nil {
			m.Members = append(m.Members, &wire.MemberState{
				Attempt: a.GetAttempt(), Host: "127.0.0.1", Ports: []uint32{1, 2}, Begun: l.random.IntN(2) == 0,
			})
		}
		if a.GetCheckpoint() != nil && l.random.IntN(2) == 0 {
			m.Saved = append(m.Saved, &wire.SavedState{Of: ref, File: written(a, a.GetCheckpoint().GetLfn(), uint32(l.seq))})
		}
	}
	for range l.random.IntN(3) {
		f := &wire.FileRef{Lfn: fmt.Sprintf("in/%d.txt", l.random.IntN(40)), Version: uint32(l.random.IntN(2))}
		m.CacheAdded = append(m.CacheAdded, &wire.CachedFile{File: f, Size: 4})
		m.CacheGone = append(m.CacheGone, &wire.CacheGone{File: f})
	}
	return m
}

func written(a *wire.Assignment, lfn string, version uint32) *wire.WrittenFile {
	return &wire.WrittenFile{
		Lfn: lfn, Version: version, Size: 4, Records: 4, Blake3: slices.Repeat([]byte{1}, 32),
		Pfn: storage.OutputPFN(a.GetStorage(), lfn, version, a.GetAttempt()),
	}
}

func (l *liar) result(a *wire.Assignment) *wire.Result {
	now := time.Now()
	if l.random.IntN(4) == 0 { // by another clock
		now = now.AddDate([]int{-250, -56, -1, 1, 250, 7000, -2000}[l.random.IntN(7)], 0, 0)
	}
	r := &wire.Result{
		Run: a.GetRun(), Job: a.GetJob(), Attempt: a.GetAttempt(),
		Leader: a.GetGang().GetLeader(), Task: a.GetGang().GetTask(),
		Usage: &wire.Usage{
			StageInStart: timestamppb.New(now.Add(-3 * time.Millisecond)),
			Start:        timestamppb.New(now.Add(-2 * time.Millisecond)),
			End:          timestamppb.New(now.Add(-time.Millisecond)), StageOutEnd: timestamppb.New(now),
			Cpu: durationpb.New(time.Millisecond), MaxRssBytes: 1 << 20, CacheHits: 1, BytesCached: 4, CacheMisses: 1,
			BytesStaged: 4,
		},
	}
	retried := []wire.Outcome{
		wire.Outcome_OUTCOME_EXITED, wire.Outcome_OUTCOME_SIGNALLED, wire.Outcome_OUTCOME_OUT_OF_MEMORY,
		wire.Outcome_OUTCOME_OUT_OF_TIME, wire.Outcome_OUTCOME_STAGE_IN_FAILED, wire.Outcome_OUTCOME_ENDED,
	}
	switch n := l.random.IntN(400); {
	case n == 0:
		r.Outcome = wire.Outcome(l.random.IntN(len(wire.Outcome_name)))
	case n > 20: // jobs that have come to their ends give nothing more to lie about
		r.Outcome, r.ExitCode = retried[l.random.IntN(len(retried))], 1
	}
	if r.Outcome == wire.Outcome_OUTCOME_INPUT_LOST {
		for _, in := range a.GetInputs() {
			r.Lost = append(r.Lost, &wire.LostFile{File: in.GetFile(), Pfn: in.GetPfn(), Why: "it is away"})
		}
	}
	for _, o := range a.GetOutputs() {
		lfn := strings.Replace(o.GetLfn(), "*", "x", 1)
		w := written(a, lfn, o.GetVersion())
		if o.GetCacheOnly() {
			w.Pfn = ""
		}
		r.Outputs = append(r.Outputs, w)
	}
	return r
}

// lie changes one field somewhere in a message. Most lies are about what attempts used.
func (l *liar) lie(m *wire.SyncRequest) {
	if n := len(m.GetEnded()); n > 0 && l.random.IntN(4) > 0 {
		if used := m.GetEnded()[l.random.IntN(n)].GetResult().GetUsage(); used != nil {
			l.change(used.ProtoReflect())
		}
		return
	}
	before := proto.CloneOf(m)
	l.change(m.ProtoReflect())
	if m.GetPilot() != before.GetPilot() || m.GetProtocol() != before.GetProtocol() || m.GetSeq() != before.GetSeq() {
		// else nothing would be looked at
		m.Pilot, m.Protocol, m.Seq = before.GetPilot(), before.GetProtocol(), before.GetSeq()
	}
	m.Hold = false // it would be answered when there is news
}

func (l *liar) change(m protoreflect.Message) {
	fields := m.Descriptor().Fields()
	f := fields.Get(l.random.IntN(fields.Len()))
	switch {
	case f.IsMap():
		m.Mutable(f).Map().Set(protoreflect.ValueOf(l.text()).MapKey(), l.limit(f.MapValue()))
	case f.IsList():
		l.changeList(m.Mutable(f).List(), f)
	case f.Message() == nil:
		m.Set(f, l.limit(f))
	case m.Has(f) && l.random.IntN(8) == 0:
		m.Clear(f)
	default:
		l.change(m.Mutable(f).Message())
	}
}

func (l *liar) changeList(list protoreflect.List, f protoreflect.FieldDescriptor) {
	switch n := list.Len(); {
	case n > 0 && l.random.IntN(4) > 0 && f.Message() != nil:
		l.change(list.Get(l.random.IntN(n)).Message())
	case n > 0 && l.random.IntN(4) == 0:
		list.Append(list.Get(l.random.IntN(n))) // twice
	case n > 0 && l.random.IntN(4) == 0:
		list.Truncate(l.random.IntN(n))
	case f.Message() != nil:
		l.change(list.AppendMutable().Message())
	default:
		list.Append(l.limit(f))
	}
}

func (l *liar) text() string {
	texts := []string{
		"", "gpu", "a", "..", "/", "\x00", "\n", "in/0.txt", "plain/0", strings.Repeat("x", access.MaxName+1),
		"127.0.0.1:0", "\u2028", "*", "@",
	}
	return texts[l.random.IntN(len(texts))]
}

// limit is a value of a field at one of its limits, or near one that Fairway has.
func (l *liar) limit(f protoreflect.FieldDescriptor) protoreflect.Value {
	numbers := []int64{
		0, 1, -1, 2, 1000, math.MaxInt32, math.MinInt32, math.MaxInt64, math.MinInt64, math.MaxInt64 - 1, 1 << 40, 1 << 50,
		1<<50 + 1, 999_999_999, 1_000_000_000, int64(250 * 365.25 * 86400), -int64(250 * 365.25 * 86400), 1 << 33, 1 << 62,
		253402300799, -62135596800, time.Now().Unix(), time.Now().Unix() - 100*365*86400, time.Now().Unix() + 100*365*86400,
	}
	n := numbers[l.random.IntN(len(numbers))]
	if l.random.IntN(4) == 0 {
		n = int64(l.random.Uint64()) >> l.random.IntN(64)
	}
	switch f.Kind() {
	case protoreflect.BoolKind:
		return protoreflect.ValueOf(n&1 == 0)
	case protoreflect.EnumKind:
		return protoreflect.ValueOf(protoreflect.EnumNumber(int32(n)))
	case protoreflect.Int32Kind:
		return protoreflect.ValueOf(int32(n))
	case protoreflect.Uint32Kind, protoreflect.Fixed32Kind:
		return protoreflect.ValueOf(uint32(n))
	case protoreflect.Int64Kind:
		return protoreflect.ValueOf(n)
	case protoreflect.Uint64Kind, protoreflect.Fixed64Kind:
		return protoreflect.ValueOf(uint64(n))
	case protoreflect.StringKind:
		return protoreflect.ValueOf(l.text())
	case protoreflect.BytesKind:
		return protoreflect.ValueOf([]byte(l.text()))
	}
	l.t.Errorf("%s is a kind of field of which this test knows no limits", f.FullName())
	return f.Default()
}
