package pilot

import (
	"context"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/durationpb"

	"fairway/internal/access"
	"fairway/internal/beneath"
	"fairway/internal/pilot/process"
	"fairway/internal/storage"
	"fairway/internal/wire"
	"fairway/lib/sched"
	"fairway/test/files"
)

// A pilot that a test starts is this test program.
func TestMain(m *testing.M) {
	if encoded := os.Getenv(ConfigVariable); encoded != "" {
		cfg, err := DecodeConfig(encoded)
		if file := os.Getenv(connectVariable); file != "" && err == nil {
			cfg.Line, err = access.OpenLine(file)
		}
		if err == nil {
			err = Run(context.Background(), cfg)
		}
		if err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	os.Exit(m.Run())
}

// connectVariable names the connection file of a pilot that a test starts.
const connectVariable = "PILOT_TEST_CONNECT"

// patience bounds every wait of these tests; only a failure takes so long.
const patience = 60 * time.Second

// taskQueue is a server for one or more pilots with a scripted will, behind
// the real wire service on a real socket.
type taskQueue struct {
	t       *testing.T
	folder  string
	address string
	http    *http.Server
	files   http.Handler // of pilots that are far

	mu        sync.Mutex
	changed   chan struct{} // closed and replaced when something changes
	pilots    map[string]*pilotSeen
	results   map[uint64]*wire.Result
	ends      map[uint64]bool
	wanted    []uint64 // back, unless their commands have begun
	hold      time.Duration
	lease     time.Duration     // that pilots are granted; 0: what they want
	refuse    bool              // to acknowledge
	silent    bool              // there is no news for a pilot that was not known
	variables map[string][]byte // told with attempts
	term      uint64            // of the answers
	strange   bool              // it knows of a pilot only what comes with the whole state
	suspects  []uint64          // it wants back when an attempt has failed
}

// pilotSeen is what the server knows of a pilot.
type pilotSeen struct {
	hello   *wire.PilotInfo
	newest  uint64
	number  uint64
	run     []*wire.Assignment // not started as far as is known
	started map[uint64]bool
	cached  map[string]bool
	counts  *wire.CacheCounts  // as told last
	saved   []*wire.SavedState // as told last
	peers   []*wire.Peer
	evict   []*wire.FileRef
	pre     []*wire.InputFile
	syncs   []*wire.SyncRequest
	tell    uint64 // the request for all of the cache, until it was told
	news    bool
	leave   bool
	left    bool
}

func newTaskQueue(t *testing.T) *taskQueue {
	t.Helper()
	folder, err := os.MkdirTemp("", "pilot")
	if err != nil {
		t.Fatal(err)
	}
	q := &taskQueue{t: t, folder: folder, changed: make(chan struct{}), pilots: map[string]*pilotSeen{},
		results: map[uint64]*wire.Result{}, ends: map[uint64]bool{}, hold: 5 * time.Second}
	q.address = "unix:" + folder + "/socket"
	q.serve()
	t.Cleanup(func() {
		q.http.Close()
		removeAll(folder)
	})
	return q
}

func (q *taskQueue) serve() {
	q.t.Helper()
	os.Remove(q.folder + "/socket")
	listener, err := net.Listen("unix", q.folder+"/socket")
	if err != nil {
		q.t.Fatal(err)
	}
	mux := http.NewServeMux()
	mux.Handle(wire.NewTaskQueueHandler(q))
	q.http = &http.Server{Handler: mux}
	go q.http.Serve(listener)
}

// change runs f under the lock and wakes all who wait.
func (q *taskQueue) change(f func()) {
	q.mu.Lock()
	defer q.mu.Unlock()
	f()
	close(q.changed)
	q.changed = make(chan struct{})
}

// until waits for a condition.
func (q *taskQueue) until(what string, condition func() bool) {
	q.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	for {
		q.mu.Lock()
		ok, changed := condition(), q.changed
		q.mu.Unlock()
		if ok {
			return
		}
		select {
		case <-changed:
		case <-ctx.Done():
			q.t.Fatalf("waited in vain: %s\n%s", what, q.pilotLogs())
		}
	}
}

func (q *taskQueue) pilotLogs() string {
	var all strings.Builder
	logs, _ := filepath.Glob(q.folder + "/*.log")
	for _, log := range logs {
		text, _ := os.ReadFile(log)
		fmt.Fprintf(&all, "%s:\n%s\n", filepath.Base(log), text)
	}
	return all.String()
}

func (q *taskQueue) pilot(id string) *pilotSeen {
	p := q.pilots[id]
	if p == nil {
		p = &pilotSeen{started: map[uint64]bool{}, cached: map[string]bool{}, news: !q.silent}
		q.pilots[id] = p
	}
	return p
}

// Sync is the wire service.
func (q *taskQueue) Sync(ctx context.Context, m *wire.SyncRequest) (*wire.SyncAnswer, error) {
	id := strings.TrimSuffix(m.GetPilot(), q.mark())
	var hold time.Duration
	q.change(func() { q.report(id, m); hold = q.hold })
	timeout := time.NewTimer(hold)
	defer timeout.Stop()
	for {
		q.mu.Lock()
		p, changed := q.pilot(id), q.changed
		if m.GetSeq() < p.newest {
			q.mu.Unlock()
			return &wire.SyncAnswer{Superseded: true}, nil
		}
		if p.news || !m.GetHold() {
			answer := q.answer(p, m)
			q.mu.Unlock()
			return answer, nil
		}
		q.mu.Unlock()
		select {
		case <-changed:
		case <-timeout.C:
			q.change(func() { p.news = true })
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
}

func (q *taskQueue) report(id string, m *wire.SyncRequest) {
	p := q.pilot(id)
	p.syncs = append(p.syncs, proto.CloneOf(m))
	p.newest = max(p.newest, m.GetSeq())
	if m.GetHello() != nil {
		p.hello = m.GetHello()
	}
	if m.GetFull() {
		p.number = 0
		if m.GetCache() == nil {
			p.cached = map[string]bool{}
		}
	}
	if m.GetCacheTold() == p.tell {
		p.tell = 0
	}
	for _, a := range m.GetStarted() {
		p.started[a.GetAttempt()] = true
	}
	for _, r := range m.GetEnded() {
		q.results[r.GetResult().GetAttempt()] = r.GetResult()
		if r.GetResult().GetOutcome() == wire.Outcome_OUTCOME_EXITED {
			q.wanted = append(q.wanted, q.suspects...)
		}
		p.news = true
	}
	for _, c := range m.GetCacheAdded() {
		p.cached[fmt.Sprintf("%s@%d", c.GetFile().GetLfn(), c.GetFile().GetVersion())] = true
	}
	for _, c := range m.GetCacheGone() {
		delete(p.cached, fmt.Sprintf("%s@%d", c.GetFile().GetLfn(), c.GetFile().GetVersion()))
	}
	p.run = slices.DeleteFunc(p.run, func(a *wire.Assignment) bool {
		return p.started[a.GetAttempt()] || q.results[a.GetAttempt()] != nil
	})
	p.left = p.left || m.GetLeaving()
	p.counts = m.GetCounts()
	p.saved = m.GetSaved()
}

func (q *taskQueue) answer(p *pilotSeen, m *wire.SyncRequest) *wire.SyncAnswer {
	p.news = false
	p.number++
	a := &wire.SyncAnswer{Number: p.number, Seen: m.GetSeq(), Run: slices.Clone(p.run), Variables: q.variables,
		Peers: p.peers, Evict: p.evict,
		Prefetch: p.pre, Leave: p.leave, NextSync: durationpb.New(q.hold), TellCache: p.tell, Term: q.term}
	if q.lease > 0 {
		a.Lease = durationpb.New(q.lease)
	}
	if q.refuse {
		a.Seen = 0
	}
	a.NeedFull = (q.strange || p.tell != 0 && p.hello == nil) && !m.GetFull()
	for id := range q.ends {
		a.End = append(a.End, id)
	}
	a.GiveBack = slices.Clone(q.wanted)
	return a
}

// assign gives attempts to a pilot.
func (q *taskQueue) assign(pilot string, assignments ...*wire.Assignment) {
	q.change(func() {
		p := q.pilot(pilot)
		p.run = append(p.run, assignments...)
		p.news = true
	})
}

func (q *taskQueue) end(pilot string, attempt uint64) {
	q.change(func() {
		q.ends[attempt] = true
		q.pilot(pilot).news = true
	})
}

func (q *taskQueue) giveBack(pilot string, attempts ...uint64) {
	q.change(func() {
		q.wanted = append(q.wanted, attempts...)
		q.pilot(pilot).news = true
	})
}

// result waits for the end of an attempt.
func (q *taskQueue) result(attempt uint64) (r *wire.Result) {
	q.t.Helper()
	q.until(fmt.Sprintf("result of attempt %d", attempt), func() bool { r = q.results[attempt]; return r != nil })
	return r
}

// run assigns one attempt and waits for its result.
func (q *taskQueue) run(pilot string, a *wire.Assignment) *wire.Result {
	q.t.Helper()
	q.assign(pilot, a)
	return q.result(a.GetAttempt())
}

func (q *taskQueue) started(pilot string, attempt uint64) {
	q.t.Helper()
	q.until(fmt.Sprintf("start of attempt %d", attempt), func() bool { return q.pilot(pilot).started[attempt] })
}

// mark makes the names of this server's pilots unlike those of all others on the
// machine: a pilot ends all processes that one of a name has left.
func (q *taskQueue) mark() string { return "." + filepath.Base(q.folder) }

// config is that of a pilot of this server.
func (q *taskQueue) config(id string) Config {
	return Config{
		Server: q.address, Pilot: id + q.mark(), Launch: id, Site: "local", Host: "node",
		SandboxDir: q.folder + "/sandbox", LogDir: q.folder + "/logs", Storage: "file:" + q.folder + "/se",
		MilliCPUs: 2000, Memory: 1 << 30, Grace: 5 * time.Second,
	}
}

// pilotProcess is a pilot that a test has started.
type pilotProcess struct {
	*exec.Cmd
	t *testing.T
}

func (q *taskQueue) start(cfg Config, environment ...string) *pilotProcess {
	q.t.Helper()
	return q.startBy([]string{os.Args[0]}, cfg, environment...)
}

// startBy starts a pilot by words that end with its program.
func (q *taskQueue) startBy(words []string, cfg Config, environment ...string) *pilotProcess {
	q.t.Helper()
	encoded, err := cfg.Encode()
	if err != nil {
		q.t.Fatal(err)
	}
	log, err := os.OpenFile(filepath.Join(q.folder, cfg.Pilot+".log"), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o644)
	if err != nil {
		q.t.Fatal(err)
	}
	defer log.Close()
	p := &pilotProcess{exec.Command(words[0], words[1:]...), q.t}
	p.Env = append(append(os.Environ(), ConfigVariable+"="+encoded), environment...)
	p.Stdout, p.Stderr = log, log
	p.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	if err := p.Start(); err != nil {
		q.t.Fatal(err)
	}
	q.t.Cleanup(func() {
		if p.ProcessState == nil {
			p.Process.Kill()
			p.Wait()
		}
		// What its commands have started outlives it until somebody cleans up.
		if err := CleanUp(cfg.SandboxDir, slog.New(slog.DiscardHandler)); err != nil && cfg.SandboxDir != "" {
			q.t.Error("cleaning up behind a pilot:", err)
		}
	})
	return p
}

// wait waits until the pilot has ended.
func (p *pilotProcess) wait() error {
	p.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	err := sched.Default().WaitCmd(ctx, p.Cmd)
	if ctx.Err() != nil {
		p.t.Fatal("the pilot did not end")
	}
	return err
}

// stop ends the pilot in order.
func (p *pilotProcess) stop() {
	p.t.Helper()
	p.Process.Signal(syscall.SIGTERM)
	if err := p.wait(); err != nil {
		p.t.Error("the pilot ended with", err)
	}
}

// removeAll removes a folder, whatever jobs have left in it.
func removeAll(path string) error {
	above, err := beneath.Open(filepath.Dir(path))
	if err != nil {
		return err
	}
	defer above.Close()
	return above.Clear(filepath.Base(path))
}

// gone waits until a process has ended, whose parent somebody else is.
func gone(t *testing.T, pid int) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	h := sched.Register(sched.Default(),
		sched.Kind[int, struct{}]{Name: "gone", Poll: func(waiting []*sched.Request[int, struct{}]) {
			for _, r := range waiting {
				if fields := process.StatOf(r.Value); len(fields) == 0 || fields[0] == "Z" {
					r.Done(struct{}{}, nil)
				}
			}
		}})
	if _, err := h.Wait(ctx, pid); err != nil {
		t.Fatalf("process %d lives: %v", pid, err)
	}
}

// appears waits for a file and returns its contents.
func appears(t *testing.T, path string) string {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	_, err := sched.Default().WaitFile(ctx, sched.FileQuery{
		Path: path, Until: func(st sched.FileState) bool { return st.Info != nil && st.Info.Size() > 0 },
	})
	if err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

var lastAttempt uint64 = 1 << 32

// shell is an assignment of a shell command.
func shell(command string, change ...func(*wire.Assignment)) *wire.Assignment {
	lastAttempt++
	a := &wire.Assignment{Job: uint32(lastAttempt), Attempt: lastAttempt, Name: "job", Step: "step", Try: 1,
		Payload: encoded(&wire.Payload{Shell: command})}
	for _, f := range change {
		f(a)
	}
	return a
}

// encoded is a payload as an assignment has it.
func encoded(p *wire.Payload) []byte {
	text, err := proto.Marshal(p)
	if err != nil {
		panic(err)
	}
	return text
}

// payload changes that of an assignment.
func payload(change func(*wire.Payload)) func(*wire.Assignment) {
	return func(a *wire.Assignment) {
		p := new(wire.Payload)
		if err := proto.Unmarshal(a.Payload, p); err != nil {
			panic(err)
		}
		change(p)
		a.Payload = encoded(p)
	}
}

func argv(words ...string) func(*wire.Assignment) {
	return payload(func(p *wire.Payload) { p.Shell, p.Argv = "", words })
}

func names(variables ...string) func(*wire.Assignment) {
	return payload(func(p *wire.Payload) { p.Variables = variables })
}

func writes(lfns ...string) func(*wire.Assignment) {
	return func(a *wire.Assignment) {
		for _, lfn := range lfns {
			a.Outputs = append(a.Outputs, &wire.OutputFile{Lfn: lfn, Pattern: strings.Contains(lfn, "*"), Version: 1})
		}
	}
}

func reads(lfn string, version uint32, size int64, pfn string) func(*wire.Assignment) {
	return func(a *wire.Assignment) {
		a.Inputs = append(a.Inputs, &wire.InputFile{File: &wire.FileRef{Lfn: lfn, Version: version}, Size: size, Pfn: pfn})
	}
}

// made reads the first output of an attempt.
func made(r *wire.Result) func(*wire.Assignment) {
	o := r.GetOutputs()[0]
	return func(a *wire.Assignment) {
		reads(o.GetLfn(), o.GetVersion(), o.GetSize(), o.GetPfn())(a)
		in := a.Inputs[len(a.Inputs)-1]
		in.File.Tag, in.Adler32 = r.GetAttempt(), o.GetAdler32()
	}
}

// tagged has an input be the file at a path as it is now.
func tagged(t *testing.T, input func(*wire.Assignment), path string) func(*wire.Assignment) {
	t.Helper()
	info, err := os.Stat(path)
	if err != nil {
		t.Fatal(err)
	}
	tag := storage.TagOf(path, storage.InfoOf(info))
	return func(a *wire.Assignment) {
		input(a)
		a.Inputs[len(a.Inputs)-1].File.Tag = tag
	}
}

func needs(r *wire.Resources) func(*wire.Assignment) {
	return func(a *wire.Assignment) { a.Needs = r }
}

func expect(t *testing.T, r *wire.Result, outcome wire.Outcome, message string) {
	t.Helper()
	if r.GetOutcome() != outcome || !strings.Contains(r.GetMessage(), message) {
		t.Fatalf("outcome %s, message %q; want %s, %q", r.GetOutcome(), r.GetMessage(), outcome, message)
	}
}

// contents returns what a file holds, by path or PFN.
func contents(t *testing.T, path string) string {
	t.Helper()
	return files.Read(t, strings.TrimPrefix(path, "file:"))
}

func writeFile(t *testing.T, text string) string {
	t.Helper()
	return files.Write(t, filepath.Join(t.TempDir(), "file"), text)
}
