package pilot

import (
	"context"
	"fmt"
	"log/slog"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/protobuf/proto"

	"fairway/internal/access"
	"fairway/internal/pilot/report"
	"fairway/internal/pilot/stage"
	"fairway/internal/storage/served"
	"fairway/internal/wire"
)

// A pilot finishes a job while there is no server, and is killed. The next one on
// the host tells the result, with the ticket of the first; then nobody does.
func TestResultsOutliveTheirPilot(t *testing.T) {
	q := newTaskQueue(t)
	first := q.start(q.config("first"))
	proceed := filepath.Join(t.TempDir(), "go")
	a := shell("while ! [ -e "+proceed+" ]; do sleep 0.01; done; echo result > out", writes("out"))
	a.Ticket = []byte("ticket")
	q.assign("first", a)
	q.started("first", a.GetAttempt())
	q.http.Close()
	if err := os.WriteFile(proceed, nil, 0o644); err != nil {
		t.Fatal(err)
	}
	spooled := filepath.Join(q.folder, "sandbox", report.SpoolFolder, fmt.Sprintf("%016x.result", a.GetAttempt()))
	appears(t, spooled)
	if info, err := os.Stat(spooled); err != nil || info.Mode() != 0o600 {
		t.Error(info.Mode(), err)
	}
	if told := report.Spooled(filepath.Join(q.folder, "sandbox")); len(told) != 1 || told[0].GetRun() != a.GetRun() ||
		told[0].GetJob() != a.GetJob() {
		t.Error("attempts with a result in the spool:", told)
	}
	first.Process.Kill()
	first.wait()
	q.serve()
	q.start(q.config("second"))
	r := q.result(a.GetAttempt())
	expect(t, r, wire.Outcome_OUTCOME_SUCCEEDED, "")
	q.mu.Lock()
	told := q.pilot("second").syncs[0]
	q.mu.Unlock()
	if len(told.GetEnded()) != 1 || !told.GetFull() || string(told.GetEnded()[0].GetTicket()) != "ticket" {
		t.Error("the first Sync was", told)
	}
	if contents(t, r.GetOutputs()[0].GetPfn()) != "result\n" {
		t.Error(r)
	}
	q.run("second", shell("true")) // by then the first answer has come
	if _, err := os.Stat(spooled); err == nil {
		t.Error("it is told, and still there")
	}
}

// What is told while the pilot lives leaves nothing.
func TestTheSpoolIsEmptyWhenAllIsTold(t *testing.T) {
	q := newTaskQueue(t)
	p := q.start(q.config("p1"))
	proceed := filepath.Join(t.TempDir(), "go")
	a := shell("while ! [ -e " + proceed + " ]; do sleep 0.01; done")
	failing := shell("exit 3")
	q.assign("p1", a, failing)
	q.started("p1", a.GetAttempt())
	q.http.Close()
	if err := os.WriteFile(proceed, nil, 0o644); err != nil {
		t.Fatal(err)
	}
	folder := filepath.Join(q.folder, "sandbox", report.SpoolFolder)
	appears(t, filepath.Join(folder, fmt.Sprintf("%016x.result", a.GetAttempt())))
	q.serve()
	expect(t, q.result(a.GetAttempt()), wire.Outcome_OUTCOME_SUCCEEDED, "")
	expect(t, q.result(failing.GetAttempt()), wire.Outcome_OUTCOME_EXITED, "")
	p.stop()
	if left, err := os.ReadDir(folder); err != nil || len(left) != 0 {
		t.Error(left, err)
	}
}

// More results than one message holds come in several, and in a whole state the
// others count as running meanwhile.
func TestManyResultsComeInSeveralMessages(t *testing.T) {
	large := func(id uint64) *wire.Result {
		return &wire.Result{Attempt: id, Outputs: []*wire.WrittenFile{{Lfn: strings.Repeat("x", report.MaxReported/3)}}}
	}
	p := &pilot{exchange: exchange{jitter: jitter("p")}, stage: &stage.Area{}}
	p.known = map[uint64]*attempt{7: {Execution: stage.Execution{Assignment: &wire.Assignment{Attempt: 7}}}}
	for id := range uint64(6) {
		p.reports.End(large(id+1), nil)
	}
	p.reports.StartOver()
	told := map[uint64]bool{}
	for round := 0; len(told) < 6; round++ {
		m := &wire.SyncRequest{}
		p.fullState(m)
		if proto.Size(m) > report.MaxReported*3/2 || len(m.GetEnded()) == 0 {
			t.Fatal(round, proto.Size(m), len(m.GetEnded()))
		}
		if all := len(m.GetEnded()) + len(m.GetStarted()) + len(told); all != 7 {
			t.Error(all, "attempts in round", round)
		}
		for _, r := range m.GetEnded() {
			told[r.GetResult().GetAttempt()] = true
		}
		p.reports.Acknowledge(m.GetSeq())
	}
}

// A start that is told late is told with the time since then, to the server that did not hear of it and to the one
// that takes its place.
func TestAStartThatIsToldLateIsToldWithItsTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := &pilot{exchange: exchange{jitter: jitter("p")}, stage: &stage.Area{}}
		p.known = map[uint64]*attempt{
			7: {Execution: stage.Execution{Assignment: &wire.Assignment{Attempt: 7}}, turn: time.Now()},
		}
		p.reports.Start(p.known[7].ref(), time.Now())
		tells := func(full bool, want time.Duration) {
			m := &wire.SyncRequest{}
			if full {
				p.fullState(m)
			} else {
				p.reports.Carry(m)
			}
			if len(m.GetStarted()) != 1 || m.GetStarted()[0].GetRunning().AsDuration() != want {
				t.Errorf("full %v: %v, want %v", full, m.GetStarted(), want)
			}
		}
		tells(false, 0)
		<-time.After(time.Minute)
		tells(false, time.Minute)
		<-time.After(time.Hour)
		tells(true, time.Hour+time.Minute)
	})
}

// far serves the TaskQueue over TLS too, and returns the connection file of a
// launch.
func (q *taskQueue) far(tokens *access.Tokens, launch string, before int) (file string, server *http.Server) {
	q.t.Helper()
	authority, err := access.OpenAuthority(filepath.Join(q.folder, "authority"), "id")
	if err != nil {
		q.t.Fatal(err)
	}
	listener, addresses, err := access.Listen("127.0.0.1:0", before, authority)
	if err != nil {
		q.t.Fatal(err)
	}
	path, handler := wire.NewTaskQueueHandler(q)
	if q.files == nil {
		q.files = served.NewHandler(served.Config{Launch: launchOf})
	}
	server = access.NewServer(access.Handler(tokens, map[string]http.Handler{
		path: access.Timed(handler), served.Prefix: q.files,
	}), slog.New(slog.DiscardHandler))
	go server.Serve(listener)
	q.t.Cleanup(func() { server.Close() })
	file = filepath.Join(q.folder, launch+".connect")
	if _, err := access.Move(file, addresses, authority.Pin()); err == nil {
		return file, server
	}
	c := access.Connection{
		Addresses: addresses, Pin: authority.Pin(), Launch: launch, Token: access.NewToken(), Site: "cluster",
	}
	tokens.Allow(c.Grant())
	if err := c.Write(file); err != nil {
		q.t.Fatal(err)
	}
	return file, server
}

func launchOf(ctx context.Context) (string, bool) {
	caller, known := access.CallerOf(ctx)
	return caller.Launch, known
}

// The server moves while a job runs, and forgets the launch after that.
func TestAPilotFollowsItsServerAndLeavesWhenItIsRefused(t *testing.T) {
	q := newTaskQueue(t)
	tokens := access.NewTokens()
	file, server := q.far(tokens, "cluster.1", 0)
	cfg := q.config("x")
	cfg.Server, cfg.Pilot, cfg.Launch, cfg.Site = "", "", "", ""
	p := q.start(cfg, connectVariable+"="+file)
	name := ""
	q.until("a pilot", func() bool {
		for name = range q.pilots {
		}
		return name != ""
	})
	if !strings.HasPrefix(name, "cluster.1-") {
		t.Error(name)
	}
	proceed := filepath.Join(t.TempDir(), "go")
	a := shell("while ! [ -e " + proceed + " ]; do sleep 0.01; done")
	q.assign(name, a)
	q.started(name, a.GetAttempt())
	server.Close()
	q.far(tokens, "cluster.1", 0)
	if err := os.WriteFile(proceed, nil, 0o644); err != nil {
		t.Fatal(err)
	}
	expect(t, q.result(a.GetAttempt()), wire.Outcome_OUTCOME_SUCCEEDED, "")
	q.mu.Lock()
	hello := q.pilot(name).hello
	q.mu.Unlock()
	if hello.GetSite() != "cluster" || hello.GetLaunch() != "cluster.1" || hello.GetMachine() == "" ||
		hello.GetLease().AsDuration() != DefaultFarLease {
		t.Error(hello)
	}
	pid := filepath.Join(t.TempDir(), "pid")
	q.assign(name, shell("echo $$ > "+pid+"; sleep 1000"))
	job := number(t, pid)
	tokens.Revoke("cluster.1")
	q.change(func() { q.pilot(name).news = true })
	if err := p.wait(); err == nil {
		t.Error("it ended as if all were well")
	}
	gone(t, job)
	if said := q.pilotLogs(); !strings.Contains(said, "not wanted any more") {
		t.Error(said)
	}
	for _, where := range []string{q.pilotLogs(), fmt.Sprint(p.Args), fmt.Sprint(p.Env)} {
		if c, err := access.ReadConnection(file); err != nil || strings.Contains(where, string(c.Token)) {
			t.Error("the token is shown", err)
		}
	}
}

// A pilot that a connection file was taken from is not wanted, and does not wait
// for the end of its lease.
func TestAPilotEndsWhenItsConnectionFileIsGone(t *testing.T) {
	q := newTaskQueue(t)
	file, server := q.far(access.NewTokens(), "cluster.1", 0)
	cfg := q.config("x")
	cfg.Server, cfg.Pilot, cfg.Launch, cfg.Site = "", "", "", ""
	p := q.start(cfg, connectVariable+"="+file)
	q.until("a pilot", func() bool { return len(q.pilots) > 0 })
	if err := os.Remove(file); err != nil {
		t.Fatal(err)
	}
	server.Close()
	if err := p.wait(); err == nil {
		t.Error("it ended as if all were well")
	}
}

// A server may shorten the lease that a pilot asks for.
func TestTheLeaseIsThatOfTheServer(t *testing.T) {
	q := newTaskQueue(t)
	q.lease, q.hold = 200*time.Millisecond, 100*time.Millisecond
	cfg := q.config("p1")
	cfg.Lease = 1000 * time.Hour
	p := q.start(cfg)
	file := filepath.Join(t.TempDir(), "pid")
	q.assign("p1", shell("echo $$ > "+file+"; sleep 1000"))
	pid := number(t, file)
	q.http.Close()
	if err := p.wait(); err == nil {
		t.Error("the pilot ended as if all were well")
	}
	gone(t, pid)
}
