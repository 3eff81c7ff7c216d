package cluster

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"fairway/lib/sched"
	"fairway/test/netns"
)

// mock is a batch system of the test's own. It starts each job on the node with the
// fewest, has a command to submit, to list and to cancel, and misbehaves as it is told.
type mock struct {
	t        *testing.T
	hosts    *hosts
	nodes    []*netns.Host
	slots    int // of a node
	listener net.Listener
	program  string  // its command
	clocks   *clocks // of the jobs
	calls    sync.WaitGroup
	running  sync.WaitGroup
	begun    chan struct{} // closed when the first job has been started
	first    sync.Once

	mu       sync.Mutex // guards what follows
	jobs     []*mockJob
	submits  int
	most     int // jobs at a time, one that it started twice counting once
	limit    int
	wrong    []string
	down     bool          // as while its master starts again
	refuses  bool          // to take jobs
	mute     bool          // its list cannot be had
	doubles  int           // so many of the next jobs it starts twice
	hides    int           // so many of the next lists leave all jobs out
	drops    int           // of so many of the next submissions the answer is lost
	deaf     int           // so many of the next cancellations do nothing
	hang     time.Duration // that the next call takes
	happened map[string]int
}

// mockJob is a job that the mock knows.
type mockJob struct {
	id, name  string
	script    string
	ending    bool
	forgotten bool
	processes []*process // more than one where it was started twice
	ended     bool
}

// process is a job that was started on a node.
type process struct {
	on  *netns.Host
	cmd *exec.Cmd
}

// mockSocket is the environment variable by which the test program is the command of the
// mock: it holds where the mock listens.
const mockSocket = "FAIRWAY_TEST_MOCK"

// call is what the command tells the mock, and answer what the mock says to that.
type call struct {
	Words []string
	Input []byte
}

type answer struct {
	Said, Failed string
}

// askMock is the command of the mock.
func askMock(socket string) int {
	input, err := io.ReadAll(os.Stdin)
	var conn net.Conn
	if err == nil {
		conn, err = net.Dial("unix", socket)
	}
	var a answer
	if err == nil {
		if err = json.NewEncoder(conn).Encode(call{os.Args[1:], input}); err == nil {
			err = json.NewDecoder(conn).Decode(&a)
		}
	}
	switch {
	case err != nil:
		a.Failed = "the master of the batch system cannot be reached"
		fallthrough
	case a.Failed != "":
		fmt.Fprintln(os.Stderr, a.Failed)
		return 1
	}
	fmt.Print(a.Said)
	return 0
}

// newMock starts a batch system that no more than limit jobs should be submitted to.
func newMock(t *testing.T, hosts *hosts, nodes []*netns.Host, slots, limit int) *mock {
	t.Helper()
	m := &mock{
		t: t, hosts: hosts, nodes: nodes, slots: slots, limit: limit, begun: make(chan struct{}), happened: map[string]int{},
	}
	folder, err := os.MkdirTemp("", "fairway-mock") // with a name that is short enough for a socket
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(folder) })
	socket := filepath.Join(folder, "socket")
	if m.listener, err = net.Listen("unix", socket); err != nil {
		t.Fatal(err)
	}
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	m.program = filepath.Join(folder, "batch")
	if err := os.WriteFile(
		m.program, fmt.Appendf(nil, "#!/bin/sh\n%s=%s exec %s \"$@\"\n", mockSocket, socket, self), 0o755,
	); err != nil {
		t.Fatal(err)
	}
	m.calls.Go(m.serve)
	t.Cleanup(func() {
		_ = m.listener.Close()
		m.calls.Wait()
		for _, node := range m.nodes {
			node.Kill()
		}
		m.running.Wait()
	})
	return m
}

// site describes the mock to Fairway, under a name, with further lines.
func (m *mock) site(name string, further ...string) string {
	return fmt.Sprintf(`  %s:
    system: command
    max_pilots: %d
    poll: 300ms
    scratch: $TMPDIR
    cpus: 2
    command:
      submit: [%[3]s, submit, "{name}", "{cpus}"]
      status: [%[3]s, list]
      job: '(?m)^(?P<name>\S+) (?P<id>\d+) (?P<state>\S+)$'
      states: {queued: [waits], running: [runs], ending: [ends], gone: [ended]}
      cancel: [%[3]s, cancel, "{id}"]
`, name, m.limit, m.program) + "    " + strings.Join(further, "\n    ") + "\n"
}

func (m *mock) serve() {
	for {
		conn, err := m.listener.Accept()
		if err != nil {
			return
		}
		m.calls.Go(func() {
			defer conn.Close()
			var c call
			if json.NewDecoder(conn).Decode(&c) != nil || len(c.Words) == 0 {
				return
			}
			said, err := m.answer(c)
			a := answer{Said: said}
			if err != nil {
				a.Failed = err.Error()
			}
			_ = json.NewEncoder(conn).Encode(a) // to nobody, if the caller was killed
		})
	}
}

// did counts a kind of fault. m.mu is held.
func (m *mock) did(fault string) { m.happened[fault]++ }

func (m *mock) answer(c call) (string, error) {
	m.mu.Lock()
	pause := m.hang
	m.hang = 0
	m.mu.Unlock()
	if pause > 0 {
		_ = sched.Default().WaitUntil(m.t.Context(), time.Now().Add(pause))
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.down {
		return "", errors.New("the master does not answer")
	}
	switch c.Words[0] {
	case "submit":
		return m.submit(c.Words[1], string(c.Input))
	case "list":
		return m.list()
	case "cancel":
		return "", m.cancel(c.Words[1:])
	}
	return "", fmt.Errorf("no such command: %q", c.Words)
}

func (m *mock) submit(name, script string) (string, error) {
	if m.refuses {
		m.did("submissions refused")
		return "", errors.New("the queue takes no jobs")
	}
	m.submits++
	m.jobs = append(m.jobs, &mockJob{id: fmt.Sprint(m.submits), name: name, script: script})
	m.count()
	m.fill()
	if m.drops > 0 {
		m.drops--
		m.did("answers to submissions lost")
		return "", errors.New("the connection to the master was lost")
	}
	return "", nil
}

// count checks that Fairway keeps to the limit. What the mock has forgotten, and what it
// started a second time, it cannot blame on anybody.
func (m *mock) count() {
	n := 0
	for _, j := range m.jobs {
		if !j.ended && !j.forgotten {
			n++
		}
	}
	if m.most = max(m.most, n); n > m.limit {
		m.wrong = append(m.wrong, fmt.Sprintf("the batch system has %d jobs, and may have %d: %s", n, m.limit, m.lines()))
	}
}

func (m *mock) list() (string, error) {
	switch {
	case m.mute:
		m.did("lists that failed")
		return "", errors.New("the list cannot be had")
	case m.hides > 0:
		m.hides--
		m.did("lists that left jobs out")
		return "", nil
	}
	return m.lines(), nil
}

func (m *mock) lines() string {
	var b strings.Builder
	for _, j := range m.jobs {
		state := "waits"
		switch {
		case j.forgotten:
			continue
		case j.ended:
			state = "ended"
		case j.ending:
			state = "ends"
		case len(j.processes) > 0:
			state = "runs"
		}
		fmt.Fprintf(&b, "%s %s %s\n", j.name, j.id, state)
		if len(j.processes) > 1 && !j.ended {
			fmt.Fprintf(&b, "%s %s %s\n", j.name, j.id, state)
		}
	}
	return b.String()
}

// fill starts what waits, as far as there is room. m.mu is held.
func (m *mock) fill() {
	for _, j := range m.jobs {
		if j.ended || j.forgotten || j.ending || len(j.processes) > 0 {
			continue
		}
		node := m.free()
		if node == nil {
			return
		}
		m.start(j, node)
		if m.doubles > 0 {
			if second := m.free(); second != nil {
				m.doubles--
				m.did("jobs started twice")
				m.start(j, second)
			}
		}
	}
}

// free is the node with the fewest jobs, nil where all are full. A batch system starts
// nothing on a node that it cannot reach.
func (m *mock) free() *netns.Host {
	var best *netns.Host
	least := m.slots
	for _, node := range m.nodes {
		if n := len(m.on(node)); n < least && !node.Away() {
			best, least = node, n
		}
	}
	return best
}

// on are the processes of jobs on a node.
func (m *mock) on(node *netns.Host) (all []*process) {
	for _, j := range m.jobs {
		for _, p := range j.processes {
			if p.on == node {
				all = append(all, p)
			}
		}
	}
	return all
}

func (m *mock) start(j *mockJob, node *netns.Host) {
	script := filepath.Join(node.Folder, "job-"+j.id+".sh")
	p := &process{on: node, cmd: m.hosts.command(node, "sh", script)}
	p.cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	p.cmd.Env = append(p.cmd.Env, "NCPUS=2")
	p.cmd.Env = append(p.cmd.Env, m.clocks.of(fmt.Sprintf("job %s on %s", j.id, node.Name))...)
	if err := errors.Join(os.WriteFile(script, []byte(j.script), 0o700), p.cmd.Start()); err != nil {
		m.wrong = append(m.wrong, err.Error())
		return
	}
	j.processes = append(j.processes, p)
	m.first.Do(func() { close(m.begun) })
	m.running.Go(func() {
		_ = p.cmd.Wait()
		m.mu.Lock()
		defer m.mu.Unlock()
		j.processes = slices.DeleteFunc(j.processes, func(other *process) bool { return other == p })
		j.ended = len(j.processes) == 0
		m.fill()
	})
}

func (m *mock) cancel(ids []string) error {
	if m.deaf > 0 {
		m.deaf--
		m.did("cancellations that did nothing")
		return nil
	}
	for _, j := range m.jobs {
		if slices.Contains(ids, j.id) && !j.ended && !j.forgotten {
			m.end(j)
		}
	}
	return nil
}

// end ends a job, as batch systems do: by SIGTERM, and later by SIGKILL. m.mu is held.
func (m *mock) end(j *mockJob) {
	if len(j.processes) == 0 {
		j.ended = true
		return
	}
	if j.ending {
		return
	}
	j.ending = true
	for _, p := range j.processes {
		m.signal(j, p)
	}
}

// signal ends a process of a job on a node that can be reached. m.mu is held.
func (m *mock) signal(j *mockJob, p *process) {
	if p.on.Away() {
		return // until it is reached
	}
	_ = p.cmd.Process.Signal(syscall.SIGTERM)
	later, cancel := context.WithTimeout(m.t.Context(), killWait)
	context.AfterFunc(later, func() {
		cancel()
		m.mu.Lock()
		defer m.mu.Unlock()
		if slices.Contains(j.processes, p) && !p.on.Away() {
			_ = syscall.Kill(-p.cmd.Process.Pid, syscall.SIGKILL)
		}
	})
}

// reached has the mock end what it could not on a node that was away.
func (m *mock) reached(node *netns.Host) {
	m.change(func() {
		for _, j := range m.jobs {
			for _, p := range j.processes {
				if p.on == node && j.ending {
					m.signal(j, p)
				}
			}
		}
	})
}

// killWait is what the mock leaves to a job that it ends.
const killWait = 8 * time.Second

// forget has the mock know nothing of a job any more that it has, if there is one: what
// runs goes on.
func (m *mock) forget(random *rand.Rand) {
	m.mu.Lock()
	defer m.mu.Unlock()
	var known []*mockJob
	for _, j := range m.jobs {
		if !j.ended && !j.forgotten {
			known = append(known, j)
		}
	}
	if len(known) > 0 {
		known[random.IntN(len(known))].forgotten = true
		m.did("jobs forgotten")
	}
}

// change sets what goes wrong.
func (m *mock) change(f func()) {
	m.mu.Lock()
	defer m.mu.Unlock()
	f()
	m.fill()
}

// behave ends all misbehaviour.
func (m *mock) behave() {
	m.change(func() {
		m.down, m.refuses, m.mute, m.doubles, m.hides, m.drops, m.deaf, m.hang = false, false, false, 0, 0, 0, 0, 0
	})
}

// toPilot sends a signal to one of the pilots that run, and returns what has it go on,
// nil if there is none. A pilot that is frozen alone is on a node that can be reached.
func (m *mock) toPilot(random *rand.Rand, s syscall.Signal) (goOn func()) {
	m.mu.Lock()
	defer m.mu.Unlock()
	var all []*process
	for _, j := range m.jobs {
		all = append(all, j.processes...)
	}
	if len(all) == 0 {
		return nil
	}
	p := all[random.IntN(len(all))]
	_ = p.cmd.Process.Signal(s)
	return func() { _ = p.cmd.Process.Signal(syscall.SIGCONT) }
}
