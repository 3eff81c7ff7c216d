package pilot

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"os"
	"slices"
	"strconv"
	"strings"

	"fairway/internal/pilot/launcher"
	"fairway/internal/pilot/stage"
	"fairway/internal/wire"
	"fairway/lib/sched"
)

// What the command of a job with several tasks finds in its environment besides (docs/where-jobs-run.md).
const (
	TasksVariable    = "FAIRWAY_TASKS"    // how many tasks the job has
	TaskVariable     = "FAIRWAY_TASK"     // which one this is, from 0
	HostfileVariable = "FAIRWAY_HOSTFILE" // the hosts with the processors that the job has there, as OpenMPI reads it
	// RSHVariable is, in the first task of a job with once: true, what runs a command on the node of
	// another task, as ssh does: $FAIRWAY_RSH task1 COMMAND.
	RSHVariable = "FAIRWAY_RSH"
)

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
	for range wire.MemberPorts {
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

func (p *pilot) writeGang(a *attempt) (err error) {
	p.mu.Lock()
	start := a.member.start
	p.mu.Unlock()
	f, err := a.Slot.OpenGang()
	if err != nil {
		return err
	}
	a.member.files = f
	told := launcher.Gang{
		Tasks: int(a.GetGang().GetTasks()), Task: int(a.GetGang().GetTask()), Attempt: start.GetName(),
		Certificate: f.Path("cert.pem"), Key: f.Path("key.pem"), Authority: f.Path("ca.pem"), Folder: f.Path("locations"),
	}
	for _, m := range start.GetMembers() {
		member := launcher.Member{Task: int(m.GetTask()), Host: m.GetHost()}
		for _, port := range m.GetPorts() {
			member.Ports = append(member.Ports, uint16(port))
		}
		told.Members = append(told.Members, member)
	}
	text, err := json.MarshalIndent(told, "", "  ")
	if err != nil {
		return err
	}
	return errors.Join(
		f.Mkdir("locations"), f.Write("cert.pem", start.GetCertificate()), f.Write("key.pem", start.GetKey()),
		f.Write("ca.pem", start.GetAuthority()), f.Write("hostfile", hostfile(start, a.slots())),
		f.Write(tasksFile, taskHosts(int(a.GetGang().GetTasks()), a.slots())),
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

func (a *attempt) gangVariables() []string {
	g := a.GetGang()
	if g == nil {
		return nil
	}
	f := &a.member.files
	variables := []string{
		TasksVariable + "=" + strconv.Itoa(int(g.GetTasks())), TaskVariable + "=" + strconv.Itoa(int(g.GetTask())),
		launcher.GangVariable + "=" + f.Path("gang.json"), HostfileVariable + "=" + f.Path("hostfile"),
	}
	if !g.GetOnce() || !a.isFirst() {
		return variables
	}
	// By these mpirun of OpenMPI finds the other tasks, whatever batch system there is around it.
	shell := ownProgram + " task shell"
	return append(variables, RSHVariable+"="+shell, "OMPI_MCA_plm=rsh", "OMPI_MCA_plm_rsh_agent="+shell,
		"OMPI_MCA_plm_rsh_no_tree_spawn=1", "OMPI_MCA_ras=^slurm,gridengine,tm,lsf",
		"OMPI_MCA_orte_default_hostfile="+f.Path(tasksFile))
}

// ownProgram is what the pilot runs as, also where the file has been replaced meanwhile.
var ownProgram = func() string {
	path, err := os.Executable()
	if err != nil {
		return "fairway"
	}
	return path
}()

// tasksFile is the name of a list of the tasks, as mpirun is to see them.
const tasksFile = "tasks"

// taskHosts lists the tasks as hosts in the form of OpenMPI: the first is this one, and the others
// are named for launcher.Run. So each runs what it has room for, also where several share a node.
func taskHosts(tasks, each int) []byte {
	var b strings.Builder
	fmt.Fprintf(&b, "localhost slots=%d\n", each)
	for task := 1; task < tasks; task++ {
		fmt.Fprintf(&b, "%s slots=%d\n", launcher.HostOf(task), each)
	}
	return []byte(b.String())
}

// isFirst reports whether what the attempt writes is what its job writes.
func (a *attempt) isFirst() bool { return a.GetGang().GetTask() == 0 }

// onlyServes reports whether the attempt runs no command of its own, but what the first task starts on
// its node.
func (a *attempt) onlyServes() bool { return a.GetGang().GetOnce() && !a.isFirst() }

// members tells of the members of gangs that are ready, or have begun. The caller holds the mutex.
func (p *pilot) members(m *wire.SyncRequest) {
	for _, a := range p.known {
		if a.member != nil && a.member.state != nil {
			m.Members = append(m.Members, a.member.state)
		}
	}
	slices.SortFunc(m.Members, func(a, b *wire.MemberState) int { return cmp.Compare(a.GetAttempt(), b.GetAttempt()) })
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
	m.state = &wire.MemberState{
		Attempt: m.state.GetAttempt(), Host: m.state.GetHost(), Ports: m.state.GetPorts(), Begun: true,
	}
	p.reports.News = true
	close(m.told)
}
