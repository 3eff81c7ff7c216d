package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"sync/atomic"
	"time"

	"connectrpc.com/connect"
	"google.golang.org/protobuf/types/known/durationpb"
	"google.golang.org/protobuf/types/known/timestamppb"

	"fairway/internal/access"
	"fairway/internal/pilot"
	"fairway/internal/wire"
)

// crowd are the pilots of one process.
type crowd struct {
	// dialling holds the first calls of pilots that may be under way at a time: they
	// are not started at once, as those of a cluster are not. It is no limit later.
	dialling chan struct{}
	working  chan struct{} // closed when jobs may end

	epoch  atomic.Int64 // of servers
	served atomic.Int64 // pilots that a server of this epoch has answered their whole state
	ended  atomic.Int64 // jobs whose report was acknowledged
	last   atomic.Pointer[error]
}

// bePilots is a process of pilots. Lines tell it what to do: "pilot FILE" and "busy
// FILE" start one, the second with the tool that jobs need, "work" lets jobs end, "again" is said before the server is
// killed, and "count" asks for the pilots served since then and the jobs ended.
func bePilots() error {
	c := &crowd{dialling: make(chan struct{}, 64), working: make(chan struct{})}
	in := bufio.NewScanner(os.Stdin)
	for in.Scan() {
		var file string
		switch line := in.Text(); {
		case line == "count":
			fmt.Println(c.served.Load(), c.ended.Load())
			if err := c.last.Load(); err != nil {
				return *err
			}
		case line == "work":
			close(c.working)
		case line == "again":
			c.epoch.Add(1)
			c.served.Store(0)
		case scanned(line, "busy %s", &file):
			go c.pilot(file, []string{tool})
		case scanned(line, "pilot %s", &file):
			go c.pilot(file, nil)
		default:
			return fmt.Errorf("unknown order %q", line)
		}
	}
	return in.Err()
}

func scanned(line, format string, into *string) bool {
	n, _ := fmt.Sscanf(line, format, into)
	return n == 1
}

// light is one pilot.
type light struct {
	crowd  *crowd
	client wire.TaskQueueClient
	name   string
	hello  *wire.PilotInfo

	seq, answer uint64
	patience    time.Duration
	told        []*wire.Report // of all jobs that it got, until they are acknowledged
	epoch       int64          // in which it was served
}

// pilot serves a launch until it is to leave.
func (c *crowd) pilot(file string, tools []string) {
	line, err := access.OpenLine(file)
	if err != nil {
		c.last.Store(&err)
		return
	}
	at := line.Connection()
	p := &light{
		crowd: c, name: at.Launch + "-0", epoch: -1, patience: pilot.CallMargin,
		client: wire.NewTaskQueueClient(line.Client(2), access.BaseURL, connect.WithAcceptCompression("gzip", nil, nil)),
		hello: &wire.PilotInfo{
			Host: "node-" + at.Launch, Machine: at.Launch, Site: at.Site, Launch: at.Launch,
			Tools: tools, Lease: durationpb.New(pilot.DefaultFarLease),
			Has: &wire.Resources{MilliCpus: pilotHas.MilliCPUs, MemoryBytes: pilotHas.Memory, DiskBytes: pilotHas.Disk},
		},
	}
	if err := p.converse(); err != nil {
		c.last.Store(&err)
	}
}

// converse exchanges Syncs as package pilot does: it holds one, tells its whole
// state to a server that asks for it or was away, and backs off while there is none.
func (p *light) converse() error {
	p.crowd.dialling <- struct{}{}
	full, backoff := true, time.Duration(0)
	for first := true; ; first = false {
		m := p.message(full)
		m.Hold = backoff == 0 && !first
		epoch := p.crowd.epoch.Load()
		ctx, cancel := context.WithTimeout(context.Background(), p.patience+pilot.CallMargin)
		answer, err := p.client.Sync(ctx, m)
		cancel()
		if first {
			<-p.crowd.dialling
		}
		switch sentence, refused := access.Refused(err); {
		case refused:
			return errors.New(sentence)
		case err != nil:
			backoff = min(max(2*backoff, pilot.MinBackoff), pilot.MaxFarBackoff)
			full, p.answer = true, 0
			time.Sleep(backoff/2 + rand.N(backoff/2))
			continue
		}
		backoff = 0
		if full = answer.GetNeedFull(); full {
			p.answer = 0
			continue
		}
		if m.GetFull() && p.epoch != epoch {
			p.epoch = epoch
			if p.crowd.epoch.Load() == epoch {
				p.crowd.served.Add(1)
			}
		}
		if answer.GetSeen() >= m.GetSeq() {
			p.crowd.ended.Add(int64(len(p.told)))
			p.told = nil
		}
		if answer.GetLeave() || answer.GetLeaveNow() {
			return nil
		}
		p.take(answer)
	}
}

// message is the next Sync.
func (p *light) message(full bool) *wire.SyncRequest {
	p.seq++
	m := &wire.SyncRequest{Protocol: wire.Protocol, Pilot: p.name, Seq: p.seq, LastAnswer: p.answer, Full: full}
	if full {
		m.Hello = p.hello
	}
	m.Ended = p.told
	return m
}

// take carries an answer out. Once it has a job it waits until jobs may end. It tells how long each
// took, as a pilot does: of a step whose times are unknown no job waits at a pilot.
func (p *light) take(answer *wire.SyncAnswer) {
	if answer.GetNumber() <= p.answer {
		return
	}
	p.answer, p.patience = answer.GetNumber(), answer.GetNextSync().AsDuration()
	if len(answer.GetRun()) > 0 {
		<-p.crowd.working
	}
	begun := timestamppb.Now()
	for _, a := range answer.GetRun() {
		same := func(r *wire.Report) bool { return r.GetResult().GetAttempt() == a.GetAttempt() }
		if slices.ContainsFunc(p.told, same) {
			continue
		}
		r := &wire.Result{Run: a.GetRun(), Job: a.GetJob(), Attempt: a.GetAttempt()}
		r.Usage = &wire.Usage{StageInStart: begun, Start: begun, End: timestamppb.Now()}
		r.Usage.StageOutEnd = r.Usage.End
		p.told = append(p.told, &wire.Report{Result: r, Ticket: a.GetTicket()})
	}
}
