// Package lightpilot has pilots for benchmarks of servers. They speak the real protocol of pilots,
// each over a connection and with a token of its own, but execute nothing: a job ends when it
// begins, and is said to have taken a millisecond. So thousands live in one process, and what is
// measured is the server.
package lightpilot

import (
	"context"
	"errors"
	"math/rand/v2"
	"slices"
	"time"

	"connectrpc.com/connect"
	"google.golang.org/protobuf/types/known/durationpb"
	"google.golang.org/protobuf/types/known/timestamppb"

	"fairway/internal/access"
	"fairway/internal/pilot"
	"fairway/internal/taskqueue"
	"fairway/internal/wire"
)

// Pilot is a light pilot. But for Has all may be left empty. The functions are called by the
// goroutine of Run.
type Pilot struct {
	Has   taskqueue.Resources
	Tools []string

	// Dialling has as much room as first calls of pilots may be under way at a time: they are not
	// started at once, as those of a cluster are not. It is no limit later.
	Dialling chan struct{}
	// Asks is called before each call, and Answered after one that was answered, unless the server
	// has asked for the whole state; full says that it told that.
	Asks     func()
	Answered func(full bool)
	// Outputs makes the outputs of a job that has just come. None: it has none.
	Outputs func(*wire.Assignment) ([]*wire.WrittenFile, error)
	// Ready is called before results are told, and may wait.
	Ready func()
	// Ended is called when the server has acknowledged the results of so many jobs.
	Ended func(jobs int)

	client wire.TaskQueueClient
	name   string
	hello  *wire.PilotInfo

	seq, answer uint64
	patience    time.Duration
	told        []*wire.Report // of all jobs that it got, until they are acknowledged
}

// Run serves the launch of a connection file until it is to leave.
func (p *Pilot) Run(file string) error {
	line, err := access.OpenLine(file)
	if err != nil {
		return err
	}
	at := line.Connection()
	p.name, p.patience = at.Launch+"-0", pilot.CallMargin
	p.client = wire.NewTaskQueueClient(line.Client(2), access.BaseURL, connect.WithAcceptCompression("gzip", nil, nil))
	p.hello = &wire.PilotInfo{
		Host: "node-" + at.Launch, Machine: at.Launch, Site: at.Site, Launch: at.Launch,
		Tools: p.Tools, Lease: durationpb.New(pilot.DefaultFarLease),
		Has: &wire.Resources{MilliCpus: p.Has.MilliCPUs, MemoryBytes: p.Has.Memory, DiskBytes: p.Has.Disk},
	}
	return p.converse()
}

// converse exchanges Syncs as package pilot does: it holds one, tells its whole
// state to a server that asks for it or was away, and backs off while there is none.
func (p *Pilot) converse() error {
	full, backoff := true, time.Duration(0)
	for first := true; ; first = false {
		m := p.message(full)
		m.Hold = backoff == 0 && !first
		answer, err := p.call(m, first)
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
		if p.Answered != nil {
			p.Answered(m.GetFull())
		}
		if answer.GetSeen() >= m.GetSeq() {
			if p.Ended != nil && len(p.told) > 0 {
				p.Ended(len(p.told))
			}
			p.told = nil
		}
		if answer.GetLeave() || answer.GetLeaveNow() {
			return nil
		}
		if err := p.take(answer); err != nil {
			return err
		}
	}
}

func (p *Pilot) call(m *wire.SyncRequest, first bool) (*wire.SyncAnswer, error) {
	if first && p.Dialling != nil {
		p.Dialling <- struct{}{}
		defer func() { <-p.Dialling }()
	}
	if p.Asks != nil {
		p.Asks()
	}
	ctx, cancel := context.WithTimeout(context.Background(), p.patience+pilot.CallMargin)
	defer cancel()
	return p.client.Sync(ctx, m)
}

// jobTime is how long a job is said to have taken: servers send short ones ahead.
const jobTime = time.Millisecond

// usage is what an attempt says that it used which ends now.
func usage() *wire.Usage {
	end := time.Now()
	began, ended := timestamppb.New(end.Add(-jobTime)), timestamppb.New(end)
	return &wire.Usage{StageInStart: began, Start: began, End: ended, StageOutEnd: ended}
}

// message is the next Sync.
func (p *Pilot) message(full bool) *wire.SyncRequest {
	p.seq++
	m := &wire.SyncRequest{Protocol: wire.Protocol, Pilot: p.name, Seq: p.seq, LastAnswer: p.answer, Full: full}
	if full {
		m.Hello = p.hello
	}
	m.Ended = p.told
	return m
}

// take carries an answer out.
func (p *Pilot) take(answer *wire.SyncAnswer) error {
	if answer.GetNumber() <= p.answer {
		return nil
	}
	p.answer, p.patience = answer.GetNumber(), answer.GetNextSync().AsDuration()
	for _, a := range answer.GetRun() {
		same := func(r *wire.Report) bool { return r.GetResult().GetAttempt() == a.GetAttempt() }
		if slices.ContainsFunc(p.told, same) {
			continue
		}
		result := &wire.Result{Run: a.GetRun(), Job: a.GetJob(), Attempt: a.GetAttempt(), Usage: usage()}
		if p.Outputs != nil {
			var err error
			if result.Outputs, err = p.Outputs(a); err != nil {
				return err
			}
		}
		p.told = append(p.told, &wire.Report{Result: result, Ticket: a.GetTicket()})
	}
	if len(p.told) > 0 && p.Ready != nil {
		p.Ready()
	}
	return nil
}
