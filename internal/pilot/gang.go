package pilot

import (
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"slices"
	"strconv"
	"strings"

	"fairway/internal/pilot/stage"
	"fairway/internal/wire"
	"fairway/lib/sched"
)

// What the command of a job with several tasks finds in its environment besides (docs/gangs.md).
const (
	TasksVariable    = "FAIRWAY_TASKS"    // how many tasks the job has
	TaskVariable     = "FAIRWAY_TASK"     // which one this is, from 0
	GangVariable     = "FAIRWAY_GANG"     // a file that says where the others are: a gangFile
	HostfileVariable = "FAIRWAY_HOSTFILE" // the hosts with the processors that the job has there, for mpirun
)

// memberPorts is how many ports a member of a gang gets.
const memberPorts = 2

// gangFile is what a member is told, as JSON. Others read it: its names never change.
type gangFile struct {
	Tasks   int          `json:"tasks"`
	Task    int32        `json:"task"`
	Attempt string       `json:"attempt"` // of the gang; no other has the same
	Members []gangMember `json:"members"`
	// Paths of files in PEM by which members know each other over TLS.
	Certificate string `json:"cert"`
	Key         string `json:"key"`
	Authority   string `json:"ca"`
	Folder      string `json:"folder"` // for versions of locations
}

type gangMember struct {
	Task  int32    `json:"task"`
	Host  string   `json:"host"`
	Ports []uint32 `json:"ports"`
}

// membership is that of an attempt in a gang. The pilot's mutex guards state and start.
type membership struct {
	state *wire.MemberState // nil until it is ready
	start *wire.GangStart   // nil until it has been told of the others
	told  chan struct{}     // closed when it has

	ports []net.Listener // which keep others from its ports until its command begins
	files stage.GangFiles
}

// joinGang has an attempt wait for the other members of its gang, and keeps what it is told of them
// for its command. It reports whether that may begin.
func (p *pilot) joinGang(a *attempt) bool {
	p.concludePrevious(a) // which is not to wait for others
	m := a.member
	defer m.freePorts()
	state, err := p.claimPorts(a, m)
	if err != nil {
		a.fail(wire.Outcome_OUTCOME_STAGE_IN_FAILED, "ports for its part of the job: %v", err)
		return false
	}
	p.mu.Lock()
	m.state = state
	p.reports.News = true
	p.poke()
	p.mu.Unlock()
	if _, err := sched.Receive(a.Ctx, p.sched, m.told); !errors.Is(err, sched.ErrChannelClosed) {
		reason := a.stopReason()
		if reason == nil {
			reason = &stopped{wire.Outcome_OUTCOME_LOST, err.Error()}
		}
		a.fail(reason.outcome, "%s", reason.why)
		return false
	}
	if err := p.writeGang(a); err != nil {
		a.fail(wire.Outcome_OUTCOME_STAGE_IN_FAILED, "what it is told of the other tasks: %v", err)
		return false
	}
	return true
}

// claimPorts finds ports that are free, and the address at which others reach them.
func (p *pilot) claimPorts(a *attempt, m *membership) (*wire.MemberState, error) {
	at := net.IPv4(127, 0, 0, 1)
	if p.cfg.Line != nil {
		var err error
		if at, err = stage.OwnAddress(p.cfg.Line); err != nil {
			return nil, err
		}
	}
	state := &wire.MemberState{Attempt: a.GetAttempt(), Host: at.String()}
	for range memberPorts {
		l, err := net.Listen("tcp", net.JoinHostPort(at.String(), "0"))
		if err != nil {
			return nil, err
		}
		m.ports = append(m.ports, l)
		state.Ports = append(state.Ports, uint32(l.Addr().(*net.TCPAddr).Port))
	}
	return state, nil
}

func (m *membership) freePorts() {
	for _, l := range m.ports {
		_ = l.Close()
	}
	m.ports = nil
}

// writeGang writes what an attempt is told of its gang.
func (p *pilot) writeGang(a *attempt) (err error) {
	p.mu.Lock()
	start := a.member.start
	p.mu.Unlock()
	f, err := a.Slot.OpenGang()
	if err != nil {
		return err
	}
	a.member.files = f
	told := gangFile{
		Tasks: int(a.GetGang().GetTasks()), Task: a.GetGang().GetTask(), Attempt: start.GetName(),
		Certificate: f.Path("cert.pem"), Key: f.Path("key.pem"), Authority: f.Path("ca.pem"), Folder: f.Path("locations"),
	}
	for _, m := range start.GetMembers() {
		told.Members = append(told.Members, gangMember{m.GetTask(), m.GetHost(), m.GetPorts()})
	}
	text, err := json.MarshalIndent(told, "", "  ")
	if err != nil {
		return err
	}
	return errors.Join(f.Mkdir("locations"), f.Write("cert.pem", start.GetCertificate()), f.Write("key.pem", start.GetKey()),
		f.Write("ca.pem", start.GetAuthority()), f.Write("hostfile", hostfile(start, a.slots())),
		f.Write("gang.json", append(text, '\n')))
}

// slots is how many processes of one processor each the attempt may run.
func (a *attempt) slots() int { return int(max(1, a.GetNeeds().GetMilliCpus()/1000)) }

// hostfile is a list of hosts in the form of OpenMPI: each once, in the order of its first member.
func hostfile(start *wire.GangStart, each int) []byte {
	var hosts []string
	slots := map[string]int{}
	for _, m := range start.GetMembers() {
		if slots[m.GetHost()] == 0 {
			hosts = append(hosts, m.GetHost())
		}
		slots[m.GetHost()] += each
	}
	var b strings.Builder
	for _, h := range hosts {
		fmt.Fprintf(&b, "%s slots=%d\n", h, slots[h])
	}
	return []byte(b.String())
}

// gangVariables are the variables of a member of a gang.
func (a *attempt) gangVariables() []string {
	g := a.GetGang()
	if g == nil {
		return nil
	}
	return []string{
		TasksVariable + "=" + strconv.Itoa(int(g.GetTasks())), TaskVariable + "=" + strconv.Itoa(int(g.GetTask())),
		GangVariable + "=" + a.member.files.Path("gang.json"), HostfileVariable + "=" + a.member.files.Path("hostfile"),
	}
}

// isFirst reports whether what the attempt writes is what its job writes.
func (a *attempt) isFirst() bool { return a.GetGang().GetTask() == 0 }

// onlyHolds reports whether the attempt runs no command, and is there for that of the first task.
func (a *attempt) onlyHolds() bool { return a.GetGang().GetOnce() && !a.isFirst() }

// hold keeps what an attempt has been given until it is ended.
func (p *pilot) hold(a *attempt) {
	_, err := sched.Receive(a.Ctx, p.sched, make(chan struct{}))
	reason := a.stopReason()
	if reason == nil {
		reason = &stopped{wire.Outcome_OUTCOME_LOST, err.Error()}
	}
	a.fail(reason.outcome, "%s", reason.why)
}

// members tells of the members of gangs that are ready, or have begun. The caller holds the mutex.
func (p *pilot) members(m *wire.SyncRequest) {
	for _, a := range p.known {
		if a.member != nil && a.member.state != nil {
			m.Members = append(m.Members, a.member.state)
		}
	}
	slices.SortFunc(m.Members, func(a, b *wire.MemberState) int { return int(int64(a.GetAttempt()) - int64(b.GetAttempt())) })
}

// beginMember lets the command of a member begin, which has been told of the others. The caller
// holds the mutex.
func (p *pilot) beginMember(start *wire.GangStart) {
	a := p.known[start.GetAttempt()]
	if a == nil || a.member == nil || a.member.state == nil || a.member.start != nil {
		return
	}
	m := a.member
	m.start = start
	m.state = &wire.MemberState{Attempt: m.state.GetAttempt(), Host: m.state.GetHost(), Ports: m.state.GetPorts(), Begun: true}
	p.reports.News = true
	close(m.told)
}
