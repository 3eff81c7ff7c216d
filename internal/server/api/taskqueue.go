package api

import (
	"context"
	"errors"
	"fmt"
	"log/slog"

	"connectrpc.com/connect"

	"fairway/internal/access"
	"fairway/internal/server/convert"
	"fairway/internal/server/loop"
	"fairway/internal/server/state"
	"fairway/internal/taskqueue"
	"fairway/internal/wire"
)

// TaskQueue is the service that pilots call.
type TaskQueue struct {
	Inbox  *loop.Inbox
	Claims access.Claims // what a pilot may say
	Log    *slog.Logger
	// Variables are those of the environment that jobs may name, with their values. They are told to
	// pilots with what these are to run, and never kept.
	Variables map[string][]byte
	// Members is asked of servers that stand by for this one; nil: none do.
	Members Members
}

// Members are the servers of a state of which one is active. Any goroutine may call the methods.
type Members interface {
	// Term is that of this server.
	Term() uint64
	// Addresses are those of all, with a number that tells these from others.
	Addresses() (all []string, number uint64)
	// Followed says that somebody has seen a later term.
	Followed()
}

// tell refuses a pilot that has seen a later term, and tells others where all servers are.
func (q *TaskQueue) tell(message *wire.SyncRequest, answer *wire.SyncAnswer) (*wire.SyncAnswer, error) {
	if message.GetTerm() > q.Members.Term() {
		q.Members.Followed()
		return nil, connect.NewError(connect.CodeUnavailable, errors.New("another server is active by now"))
	}
	if answer != nil {
		answer.Term = q.Members.Term()
		if all, number := q.Members.Addresses(); number != message.GetServersKnown() {
			answer.Servers, answer.ServersNumber = all, number
		}
	}
	return answer, nil
}

// Sync answers a pilot. What it cannot have the right to say, dispatch never
// hears. Each attempt that it is given comes with a ticket.
func (q *TaskQueue) Sync(ctx context.Context, message *wire.SyncRequest) (*wire.SyncAnswer, error) {
	if message.GetProtocol() != wire.Protocol {
		return otherProtocol(message), nil
	}
	var caller *access.Caller
	if c, ok := access.CallerOf(ctx); ok {
		caller = &c
	}
	if err := q.Claims.Check(caller, message); err != nil {
		q.refused(ctx, caller, message.GetPilot(), err)
		return nil, err
	}
	if q.Members != nil {
		if _, err := q.tell(message, nil); err != nil {
			return nil, err
		}
	}
	if access.IsLarge(ctx) {
		message.Hold = false
	}
	answer, err := q.Inbox.Sync(ctx, convert.SyncFromWire(message, state.Now()), func(n *state.Nodes) {
		pilot := taskqueue.PilotID(message.GetPilot())
		n.Stores(pilot, state.Storing{Stored: message.GetOutputsStored(), Of: message.GetOutputsToStore()})
		n.CacheTold(pilot, message.GetCounts())
	})
	site := message.GetHello().GetSite()
	if caller != nil {
		site = caller.Site
	}
	prefix := q.Claims.Stores(site)[0]
	for _, a := range answer.GetRun() {
		a.Storage = prefix // another server may have started the pilot, with another place
		a.Ticket = q.Claims.Authority.Ticket(a.GetRun(), a.GetJob(), a.GetAttempt())
	}
	if err := q.Claims.Authority.GrantGangs(answer); err != nil {
		return nil, rpcError(err)
	}
	if len(answer.GetRun()) > 0 {
		answer.Variables = q.Variables
	}
	if caller != nil {
		access.GrantFiles(q.Claims.Authority.FileKey(), caller.Launch, prefix, answer)
		if message.GetServes() {
			q.Claims.Authority.GrantSources(message.GetPilot(), state.Now(), answer)
		}
	}
	if q.Members != nil && err == nil {
		return q.tell(message, answer)
	}
	return answer, rpcError(err)
}

// refused says which pilot was refused, and why, and has its jobs given to others at once: nothing that it says is
// believed any more. One that a caller names which it cannot be keeps its own.
func (q *TaskQueue) refused(ctx context.Context, caller *access.Caller, pilot string, why error) {
	tells, is := caller.TellsOfRefusal(), caller.Is(pilot)
	if tells && is {
		q.Log.Warn("what a pilot says was refused; its jobs are given to others", "pilot", pilot, "reason", why)
	}
	if tells && !is && caller != nil {
		q.Log.Warn("a caller was refused that says it is a pilot of another launch", "launch", caller.Launch, "reason", why)
	}
	if !is {
		return
	}
	given := taskqueue.Refused{Pilot: taskqueue.PilotID(pilot)}
	// Nobody waits for it: a server that ends, or loads its state anew, forgets it, and then the pilot is silent.
	_ = q.Inbox.Send(ctx, &loop.Request{Dispatch: []taskqueue.Input{given}})
}

// otherProtocol has a pilot leave that would not understand, and would not be
// understood: it was started by another version of Fairway.
func otherProtocol(message *wire.SyncRequest) *wire.SyncAnswer {
	return &wire.SyncAnswer{
		Number: message.GetLastAnswer() + 1, Seen: message.GetSeq(), LeaveNow: true,
		Why: fmt.Sprintf("it speaks version %d of the pilot protocol, and the server version %d: it leaves, and a pilot of "+
			"the server's version is started",
			message.GetProtocol(), wire.Protocol),
	}
}

// rpcError gives an error the code by which a client decides: Unavailable may
// be tried again, what was refused may not.
func rpcError(err error) error {
	var coded *connect.Error
	switch {
	case err == nil || errors.As(err, &coded):
		return err
	case errors.Is(err, loop.ErrReloaded), errors.Is(err, loop.ErrEnded):
		return connect.NewError(connect.CodeUnavailable, err)
	case errors.Is(err, taskqueue.ErrRefused):
		return connect.NewError(connect.CodeInvalidArgument, err)
	case errors.Is(err, context.Canceled):
		return connect.NewError(connect.CodeCanceled, err)
	case errors.Is(err, context.DeadlineExceeded):
		return connect.NewError(connect.CodeDeadlineExceeded, err)
	}
	return connect.NewError(connect.CodeInternal, err)
}
