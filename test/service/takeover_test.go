package service

import (
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"math/rand/v2"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"fairway/internal/disk"
	"fairway/internal/server/folder"
	"fairway/internal/server/listen"
	"fairway/internal/store/storetest"
	"fairway/internal/wire"
	"fairway/lib/sched"
	"fairway/lib/seed"
	"fairway/test/files"
	"fairway/test/program"
	"fairway/test/published"
)

const (
	// takeoverLease is the lease of the servers.
	takeoverLease = 2 * time.Second
	// settleTime bounds how long it takes until a server is active and the other one stands by.
	settleTime = time.Minute
	// clientTime bounds how long a client is without an answer.
	clientTime = 4 * time.Minute
	// diskSize is that of the disk of the database.
	diskSize = 220 << 20
)

// armed are the fault points at which an active server kills or freezes itself, and how often they are
// passed at most before that.
var armed = []struct {
	name  string
	times int
}{
	{"publish.before", 4}, {"publish.linked", 4}, {"publish.asserted", 4}, {"publish.renamed", 4},
	{"server.archive.before", 3}, {"server.retire.before", 3}, {"server.sweep.before", 3}, {"server.letout.before", 40},
	{"remove.before", 2},
	{"store.commit.before", 40}, {"store.commit.after", 40},
}

// batchSystem starts each job as a process of this machine, which knows nothing of servers.
const batchSystem = `#!/bin/sh
cd "$(dirname "$0")"
case $1 in
submit)
	cat >"$2.script"
	setsid sh "$2.script" </dev/null >/dev/null 2>&1 &
	echo $! >"$2.new" && mv "$2.new" "$2.pid" ;;
list)
	for f in *.pid; do
		[ -e "$f" ] || continue
		read -r pid <"$f"
		kill -0 "$pid" 2>/dev/null && echo "${f%.pid} $pid runs" || echo "${f%.pid} $pid ended"
	done ;;
cancel) kill "$2" 2>/dev/null ;;
esac
true
`

// member is one of the servers.
type member struct {
	address string
	server  *server
}

// takeover is two servers of one state, of which the active one is killed and frozen again and again.
type takeover struct {
	t        *testing.T
	random   *rand.Rand
	state    string
	in       string
	batch    string // the folder of the batch system
	service  string // a copy of the file by which clients reach the servers
	database *storetest.Database
	address  string // of the store
	full     string // a file that fills the disk of the database; empty: the disk is not its own
	members  []*member
	watcher  *published.Watcher
	clients  sync.WaitGroup
	story    []string
	lived    map[string]int // of pilots of the batch system: in how many rounds each was there
	counts   map[string]int // of what happened
	longest  time.Duration  // until a server was active, and the other one stood by

	mu  sync.Mutex // guards what follows
	all []*submission
}

// TestTakeover kills and freezes the active one of two servers while workflows are submitted, crashes
// their PostgreSQL, and fills its disk. The other one goes on, and in the end each submission that was
// acknowledged is one run, which has succeeded with the results that it should have; each result has
// appeared once; no connection to the database has written in two terms; all commands that people had
// begun have come to a good end; and pilots have outlived their servers.
func TestTakeover(t *testing.T) {
	rounds := 4
	if text := os.Getenv("FAIRWAY_TAKEOVERS"); text != "" {
		var err error
		if rounds, err = strconv.Atoi(text); err != nil {
			t.Fatal(err)
		}
	}
	c := newTakeover(t)
	for n := range rounds {
		c.round(n)
		if t.Failed() {
			t.Fatalf("after %q\n%s", c.story, c.outputs())
		}
	}
	c.conclude(rounds)
	if t.Failed() {
		t.Logf("after %q\n%s", c.story, c.outputs())
	}
}

func newTakeover(t *testing.T) *takeover {
	c := &takeover{
		t: t, random: seed.Source(t), state: filepath.Join(t.TempDir(), "state"), in: files.Folder(t, inputs),
		lived: map[string]int{}, counts: map[string]int{},
	}
	c.openDatabase()
	c.address = c.database.Address()
	batch := filepath.Join(files.Folder(t, map[string]string{"batch": batchSystem}), "batch")
	if err := os.Chmod(batch, 0o755); err != nil {
		t.Fatal(err)
	}
	c.batch = filepath.Dir(batch)
	files.Write(t, filepath.Join(c.in, "workflow.yaml"), workflow)
	files.Write(t, filepath.Join(c.state, "sites.yaml"), fmt.Sprintf(`sites:
  cluster:
    system: command
    max_pilots: 2
    min_pilots: 1
    poll: 300ms
    scratch: $TMPDIR
    command:
      submit: [%[1]s, submit, "{name}"]
      status: [%[1]s, list]
      job: '(?m)^(?P<name>\S+) (?P<id>\d+) (?P<state>\S+)$'
      states: {running: [runs], gone: [ended]}
      cancel: [%[1]s, cancel, "{id}"]
`, batch))
	runs := make([]string, 1000)
	for i := range runs {
		runs[i] = strconv.Itoa(i + 1)
	}
	c.watcher = published.Watch(t, c.state, runs...)
	for range 2 {
		c.members = append(c.members, &member{address: freeAddress(t)})
	}
	t.Cleanup(c.end)
	c.start(c.members[0], "")
	c.settle()
	c.start(c.members[1], "")
	c.settle()
	c.auditTerms()
	c.service = filepath.Join(t.TempDir(), "service")
	var text []byte
	c.until(folder.ServiceName+" names both servers", settleTime, func() bool {
		var err error
		text, err = os.ReadFile(filepath.Join(c.state, folder.StateFolder, folder.ServiceName))
		return err == nil && !slices.ContainsFunc(c.members, func(m *member) bool {
			return !strings.Contains(string(text), m.address)
		})
	})
	if err := os.WriteFile(c.service, text, 0o600); err != nil {
		t.Fatal(err)
	}
	return c
}

func freeAddress(t *testing.T) string {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	return l.Addr().String()
}

// openDatabase starts a PostgreSQL, on a disk of its own where this user may make one.
func (c *takeover) openDatabase() {
	at, err := os.MkdirTemp("", "fairway-takeover") // short, and for its user to look into
	if err != nil {
		c.t.Fatal(err)
	}
	c.t.Cleanup(func() { _ = os.RemoveAll(at) })
	if syscall.Mount("tmpfs", at, "tmpfs", 0, fmt.Sprintf("size=%d", diskSize)) == nil {
		c.t.Cleanup(func() { _ = syscall.Unmount(at, syscall.MNT_DETACH) })
		c.full = filepath.Join(at, "full")
	}
	c.database = storetest.PostgresIn(c.t, at)
}

// auditTerms has the database note which connection writes in which term.
func (c *takeover) auditTerms() {
	for _, statement := range []string{
		`CREATE TABLE written (pid int, begun timestamptz, term bigint, PRIMARY KEY (pid, begun, term))`,
		`CREATE FUNCTION note() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
			INSERT INTO written SELECT pid, backend_start, (SELECT term FROM store)
				FROM pg_stat_get_activity(pg_backend_pid()) ON CONFLICT DO NOTHING;
			RETURN NULL; END $$`,
		`CREATE TRIGGER note AFTER INSERT OR UPDATE OR DELETE ON record FOR EACH STATEMENT EXECUTE FUNCTION note()`,
	} {
		c.query(statement, nil)
	}
}

// query asks the database; with into, for one row.
func (c *takeover) query(statement string, into ...any) {
	c.t.Helper()
	address, schema, _ := strings.Cut(c.address, "?schema=")
	conn, err := pgx.Connect(c.t.Context(), address+"?search_path="+schema)
	if err != nil {
		c.t.Fatal(err)
	}
	defer conn.Close(context.Background())
	if into[0] == nil {
		_, err = conn.Exec(c.t.Context(), statement)
	} else {
		err = conn.QueryRow(c.t.Context(), statement).Scan(into...)
	}
	if err != nil {
		c.t.Fatal(statement, err)
	}
}

// start starts a server, which ends itself at a fault point if one is named.
func (c *takeover) start(m *member, fault string) {
	c.t.Helper()
	s := &server{t: c.t, ended: make(chan struct{})}
	s.cmd = exec.Command(fairway, "serve", "--state", c.state, "--store", c.address, "--listen", m.address, "--standby",
		"--lease", takeoverLease.String(), "--site", "local", "--site", "cluster", "--pilots", "1", "--retention", "0")
	s.cmd.Env = os.Environ()
	if fault != "" {
		s.cmd.Env = append(s.cmd.Env, "FAIRWAY_FAULT="+fault)
	}
	reading, writing, err := os.Pipe()
	if err != nil {
		c.t.Fatal(err)
	}
	s.cmd.Stdout, s.cmd.Stderr = writing, writing
	if err := errors.Join(s.cmd.Start(), writing.Close()); err != nil {
		c.t.Fatal(err)
	}
	go s.read(reading, make(chan struct{}))
	go func() {
		_ = s.cmd.Wait()
		close(s.ended)
	}()
	m.server = s
}

// end ends all servers, however the test has ended.
func (c *takeover) end() {
	for _, m := range c.members {
		if m.server != nil {
			m.signal(syscall.SIGKILL)
			<-m.server.ended
		}
	}
	for _, pid := range program.Pilots(c.state) {
		_ = syscall.Kill(pid, syscall.SIGKILL)
	}
	jobs, _ := filepath.Glob(filepath.Join(c.batch, "*.pid"))
	for _, job := range jobs {
		text, _ := os.ReadFile(job)
		if pid, err := strconv.Atoi(strings.TrimSpace(string(text))); err == nil {
			_ = syscall.Kill(-pid, syscall.SIGKILL) // a session of its own
		}
	}
}

func (c *takeover) outputs() string {
	var all strings.Builder
	for _, m := range c.members {
		if m.server == nil {
			continue
		}
		fmt.Fprintf(&all, "--- %s\n%s", m.address, m.server.output.String())
	}
	return all.String()
}

func (m *member) signal(signal os.Signal) { _ = m.server.cmd.Process.Signal(signal) }

func (m *member) dead() bool {
	select {
	case <-m.server.ended:
		return true
	default:
		return false
	}
}

func (m *member) frozen() bool { return disk.IsStopped(m.server.cmd.Process.Pid) }

// asking asks servers whether they are ready. Who they are does not matter here.
var asking = &http.Client{
	Timeout:   time.Second,
	Transport: &http.Transport{TLSClientConfig: &tls.Config{InsecureSkipVerify: true}, DisableKeepAlives: true},
}

// readiness is what a server says of itself: active, standby, or nothing.
func (m *member) readiness() string {
	answer, err := asking.Get("https://" + m.address + "/readyz")
	if err != nil {
		return ""
	}
	defer answer.Body.Close()
	text, _ := io.ReadAll(answer.Body)
	switch {
	case answer.StatusCode == http.StatusOK:
		return "active"
	case strings.Contains(string(text), "stands by"):
		return "standby"
	}
	return ""
}

// until waits until something holds.
func (c *takeover) until(what string, limit time.Duration, holds func() bool) {
	c.t.Helper()
	for began := time.Now(); !holds(); {
		if time.Since(began) > limit {
			c.t.Fatalf("%s: not within %v, after %q\n%s", what, limit, c.story, c.outputs())
		}
		_ = sched.Default().Sleep(c.t.Context(), 50*time.Millisecond)
	}
}

// active is the active server, and the other one; nil: none is.
func (c *takeover) active() (active, other *member) {
	for i, m := range c.members {
		if m.server != nil && !m.dead() && !m.frozen() && m.readiness() == "active" {
			return m, c.members[1-i]
		}
	}
	return nil, nil
}

// settle waits until one server is active, and the other one, if it has been started, stands by. Servers that
// were killed are started again, frozen ones go on.
func (c *takeover) settle() {
	c.t.Helper()
	began := time.Now()
	c.until("no server is active", settleTime, func() bool {
		a, _ := c.active()
		return a != nil || !slices.ContainsFunc(c.members, func(m *member) bool {
			return m.server != nil && !m.dead() && !m.frozen() // else the other one has reached its fault point
		})
	})
	for _, m := range c.members {
		switch {
		case m.server == nil:
		case m.dead():
			if !m.server.killed() {
				c.t.Errorf("a server ended by itself: %v", m.server.cmd.ProcessState)
			}
			c.start(m, c.fault())
		case m.frozen():
			m.signal(syscall.SIGCONT)
		}
	}
	c.until("the servers do not settle", settleTime, func() bool {
		said := map[string]int{}
		for _, m := range c.members {
			if m.server != nil {
				if m.frozen() { // at a fault point, as it became active
					m.signal(syscall.SIGCONT)
				}
				if m.dead() {
					c.start(m, "")
				}
				said[m.readiness()]++
			}
		}
		return said["active"] == 1 && said[""] == 0
	})
	c.longest = max(c.longest, time.Since(began))
}

// fault is where a server that is started ends itself; mostly nowhere.
func (c *takeover) fault() string {
	if c.random.IntN(2) == 0 {
		return ""
	}
	point := armed[c.random.IntN(len(armed))]
	how := []string{"kill", "pause"}[c.random.IntN(2)]
	return fmt.Sprintf("%s:%d:%s", point.name, 1+c.random.IntN(point.times), how)
}

// round has clients work, and disturbs a server or the database.
func (c *takeover) round(n int) {
	c.t.Helper()
	c.work(n)
	active, other := c.active()
	if active == nil { // it has reached its fault point
		c.say("round %d: by itself", n)
		c.settle()
		return
	}
	pause := time.Duration(c.random.Int64N(int64(longest)))
	what := []string{"kill", "freeze", "kill", "freeze", "freeze briefly", "kill the other", "freeze the other",
		"crash database", "crash database and kill", "crash database and freeze", "fill disk",
		"fill disk and kill"}[c.random.IntN(12)]
	if n < 2 {
		what = []string{"kill", "freeze"}[n]
	}
	if c.full == "" && strings.HasPrefix(what, "fill") {
		what = "kill"
	}
	c.say("round %d: %s after %v", n, what, pause)
	c.counts[what]++
	_ = sched.Default().Sleep(c.t.Context(), pause)
	switch {
	case strings.HasPrefix(what, "fill"):
		c.fill(func() {
			if what == "fill disk and kill" {
				active.signal(syscall.SIGKILL)
			}
		})
	case strings.HasPrefix(what, "crash"):
		c.database.Stop()
		_ = sched.Default().Sleep(c.t.Context(), time.Duration(c.random.Int64N(int64(2*takeoverLease))))
		c.database.Start()
	}
	switch what {
	case "kill", "crash database and kill":
		active.signal(syscall.SIGKILL)
	case "freeze", "crash database and freeze":
		active.signal(syscall.SIGSTOP)
	case "freeze briefly":
		active.signal(syscall.SIGSTOP)
		_ = sched.Default().Sleep(c.t.Context(), time.Duration(c.random.Int64N(int64(takeoverLease))))
		active.signal(syscall.SIGCONT)
	case "kill the other":
		other.signal(syscall.SIGKILL)
	case "freeze the other":
		other.signal(syscall.SIGSTOP)
	}
	c.settle()
	c.during(c.seePilots)
}

// during has the servers settle until something has ended that asks them: one that reaches its fault point then is
// frozen, or has ended.
func (c *takeover) during(something func()) {
	c.t.Helper()
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		something()
	}()
	for {
		select {
		case <-ended:
			return
		default:
			c.settle()
			_ = sched.Default().Sleep(c.t.Context(), 50*time.Millisecond)
		}
	}
}

// fill fills the disk of the database for a while.
func (c *takeover) fill(meanwhile func()) {
	c.t.Helper()
	file, err := os.Create(c.full)
	if err != nil {
		c.t.Fatal(err)
	}
	for part := make([]byte, 64<<10); err == nil; {
		_, err = file.Write(part)
	}
	_ = file.Close()
	if !errors.Is(err, syscall.ENOSPC) {
		c.t.Fatal(err)
	}
	_ = sched.Default().Sleep(c.t.Context(), time.Duration(c.random.Int64N(int64(2*takeoverLease))))
	meanwhile()
	if err := os.Remove(c.full); err != nil {
		c.t.Fatal(err)
	}
	if !c.database.Running() {
		c.counts["ended with a full disk"]++
		c.database.Start()
	}
}

// add makes a submission with a key.
func (c *takeover) add() *submission {
	c.mu.Lock()
	defer c.mu.Unlock()
	one := &submission{word: fmt.Sprintf("w%d", len(c.all))}
	one.key = "key of " + one.word
	c.all = append(c.all, one)
	return one
}

// work has clients begin: programs that use the API, a command, and now and then one in Python.
func (c *takeover) work(n int) {
	for range 2 {
		c.clients.Go(func() { c.callAPI(c.add(), c.add()) })
	}
	c.clients.Go(func() { c.runCommand(c.add()) })
	if n%5 == 1 {
		c.clients.Go(func() { c.runPython(c.add()) })
	}
}

// callAPI submits workflows by a program that repeats a call until it is answered.
func (c *takeover) callAPI(all ...*submission) {
	for _, one := range all {
		for began := time.Now(); ; {
			run, err := c.callOnce(one)
			if err == nil {
				c.acknowledge(one, run)
				break
			}
			if time.Since(began) > clientTime {
				c.t.Errorf("submission %s: no answer within %v: %v", one.word, clientTime, err)
				return
			}
			_ = sched.Default().Sleep(context.Background(), 100*time.Millisecond)
		}
	}
}

func (c *takeover) callOnce(one *submission) (uint32, error) {
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	connection, err := listen.DialService(ctx, c.service)
	if err != nil {
		return 0, err
	}
	defer connection.Close()
	answer, err := connection.SubmitWorkflow(ctx, &wire.SubmitWorkflowRequest{
		Workflow: []byte(workflow), Folder: c.in, Parameters: map[string]string{"word": one.word}, Key: one.key,
	})
	return answer.GetRun(), err
}

func (c *takeover) acknowledge(one *submission, run uint32) {
	c.mu.Lock()
	defer c.mu.Unlock()
	one.run = run
}

// runCommand runs a workflow as a person does, who knows nothing of several servers.
func (c *takeover) runCommand(one *submission) {
	file := filepath.Join(c.in, "workflow.yaml")
	at := c.service
	if len(one.word)%2 == 0 {
		at = c.state
	}
	ctx, cancel := context.WithTimeout(context.Background(), clientTime)
	defer cancel()
	out, err := exec.CommandContext(ctx, fairway, "run", file, "--server", at, "--set", "word="+one.word).CombinedOutput()
	if err != nil {
		c.t.Errorf("fairway run --server %s (%s): %v\n%s", at, one.word, err, out)
	}
	_, rest, _ := strings.Cut(string(out), "fairway: run ")
	var run uint32
	if _, err := fmt.Sscan(rest, &run); err != nil {
		c.t.Errorf("fairway run (%s) printed no number:\n%s", one.word, out)
	}
	c.acknowledge(one, run)
}

// inPython submits a workflow and waits for its end.
const inPython = `
import base64, sys
import fairway
at, file, folder, word = sys.argv[1:]
with open(file, "rb") as f:
    text = base64.b64encode(f.read()).decode()
asked = {"workflow": text, "folder": folder, "parameters": {"word": word}}
number = fairway.Client(at).call("SubmitWorkflow", asked)["run"]
run = fairway.Run(at, number).wait()
assert run.progress()["succeeded"], run.progress()
print(number)
`

func (c *takeover) runPython(one *submission) {
	ctx, cancel := context.WithTimeout(context.Background(), clientTime)
	defer cancel()
	cmd := exec.CommandContext(ctx, "python3", "-c", inPython, c.service, filepath.Join(c.in, "workflow.yaml"), c.in,
		one.word)
	source, _ := filepath.Abs("../../python/src")
	cmd.Env = append(os.Environ(), "PYTHONPATH="+source)
	out, err := cmd.CombinedOutput()
	run, bad := strconv.ParseUint(strings.TrimSpace(string(out)), 10, 32)
	if err != nil || bad != nil {
		c.t.Errorf("in Python (%s): %v\n%s", one.word, err, out)
	}
	c.acknowledge(one, uint32(run))
}

// seePilots counts the rounds in which each pilot of the batch system was there. One always is: the site has
// min_pilots; a server that has just become the active one hears of it in a moment.
func (c *takeover) seePilots() {
	for began := time.Now(); ; _ = sched.Default().Sleep(c.t.Context(), 50*time.Millisecond) {
		switch seen, err := c.pilotsOfCluster(); {
		case err != nil:
			c.t.Error(err)
			return
		case len(seen) > 0:
			for _, name := range seen {
				c.lived[name]++
			}
			return
		case time.Since(began) > settleTime:
			c.t.Errorf("the site with min_pilots has none for %v", settleTime)
			return
		}
	}
}

// pilotsOfCluster are the names of the pilots of the batch system that the active server has heard of.
func (c *takeover) pilotsOfCluster() (names []string, err error) {
	out, err := exec.Command(fairway, "pilots", "--server", c.service, "--json").Output()
	var answer struct {
		Pilots []struct{ Name, Site string }
	}
	if err == nil {
		err = json.Unmarshal(out, &answer)
	}
	if err != nil {
		return nil, fmt.Errorf("fairway pilots: %w\n%s", err, out)
	}
	for _, p := range answer.Pilots {
		if p.Site == "cluster" && p.Name != "" {
			names = append(names, p.Name)
		}
	}
	return names, nil
}

// conclude lets all clients and runs end, and looks at what is left.
func (c *takeover) conclude(rounds int) {
	c.t.Helper()
	c.during(c.clients.Wait)
	c.settle()
	c.until("not all runs end", settleTime, func() bool {
		runs, err := c.listed()
		return err == nil && !slices.ContainsFunc(runs, func(r *wire.RunSummary) bool { return r.GetState() == "underway" })
	})
	runs, err := c.listed()
	if err != nil {
		c.t.Fatal(err)
	}
	of := map[string][]uint32{}
	for _, run := range runs {
		word := run.GetParameters()["word"]
		of[word] = append(of[word], run.GetRun())
		if run.GetState() != "succeeded" || run.GetDone() != 3 || run.GetJobs() != 3 {
			c.t.Errorf("run %d: %v", run.GetRun(), run)
		}
		got := files.Below(c.t, filepath.Join(c.state, folder.ResultsFolder, fmt.Sprint(run.GetRun())))
		if want := wanted(word); !maps.Equal(got, want) {
			c.t.Errorf("run %d made %q, and not %q", run.GetRun(), got, want)
		}
	}
	for _, one := range c.all {
		if got := of[one.word]; !slices.Equal(got, []uint32{one.run}) {
			c.t.Errorf("submission %s is the runs %v, and was acknowledged as %d", one.word, got, one.run)
		}
		delete(of, one.word)
	}
	if len(of) > 0 {
		c.t.Errorf("nobody has submitted the runs %v", of)
	}
	sizes, wrong := c.watcher.Stop()
	for _, run := range runs {
		name := fmt.Sprintf("%d/all.txt", run.GetRun())
		if len(sizes[name]) != 1 {
			c.t.Errorf("%s was published %d times", name, len(sizes[name]))
		}
	}
	for _, what := range wrong {
		c.t.Error(what)
	}
	var connections, terms, twice int
	c.query(`SELECT count(DISTINCT (pid, begun)), count(DISTINCT term), count(*) - count(DISTINCT (pid, begun))
		FROM written`, &connections, &terms, &twice)
	if twice > 0 {
		c.t.Errorf("%d connections have written in more than one term", twice)
	}
	most := 0
	for _, n := range c.lived {
		most = max(most, n)
	}
	if rounds >= 4 && most < 2 {
		c.t.Errorf("no pilot has outlived its server: %v", c.lived)
	}
	c.t.Logf("%d rounds %v: %d runs, %d terms that wrote over %d connections, %d pilots of which one lived through "+
		"%d rounds; at the longest %v until one was active and one stood by", rounds, c.counts, len(runs), terms,
		connections, len(c.lived), most, c.longest.Round(time.Millisecond))
}

func (c *takeover) listed() ([]*wire.RunSummary, error) {
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	connection, err := listen.DialService(ctx, c.service)
	if err != nil {
		return nil, err
	}
	defer connection.Close()
	answer, err := connection.ListRuns(ctx, &wire.ListRunsRequest{Limit: 1 << 20})
	return answer.GetRuns(), err
}

func (c *takeover) say(format string, values ...any) {
	c.story = append(c.story, fmt.Sprintf(format, values...))
	c.t.Log(c.story[len(c.story)-1])
}
