package people

import (
	"context"
	"fmt"
	"path"
	"strings"

	"connectrpc.com/connect"

	"fairway/internal/audit"
	"fairway/internal/rights"
	"fairway/internal/wire"
)

// Interceptor writes down which calls have changed something, and which were refused.
func (d *Door) Interceptor() connect.Interceptor { return auditor{d} }

type auditor struct{ door *Door }

// WrapUnary is part of connect.Interceptor.
func (a auditor) WrapUnary(next connect.UnaryFunc) connect.UnaryFunc {
	return func(ctx context.Context, r connect.AnyRequest) (connect.AnyResponse, error) {
		answer, err := next(ctx, r)
		if isRefused(err) || rights.Calls[r.Spec().Procedure].Audited() || isLogin(r.Spec().Procedure) {
			e := audit.Entry{From: from(r.Peer().Addr), Call: callOf(r.Spec().Procedure)}
			var response any
			if err == nil {
				response = answer.Any()
			}
			e.Run, e.About = about(r.Any(), response)
			a.door.acted(rights.Of(ctx), e, err)
		}
		return answer, err
	}
}

// WrapStreamingClient is part of connect.Interceptor.
func (a auditor) WrapStreamingClient(next connect.StreamingClientFunc) connect.StreamingClientFunc {
	return next
}

// WrapStreamingHandler is part of connect.Interceptor. Streams change nothing.
func (a auditor) WrapStreamingHandler(next connect.StreamingHandlerFunc) connect.StreamingHandlerFunc {
	return func(ctx context.Context, s connect.StreamingHandlerConn) error {
		err := next(ctx, s)
		if isRefused(err) {
			a.door.acted(rights.Of(ctx), audit.Entry{From: from(s.Peer().Addr), Call: callOf(s.Spec().Procedure)}, err)
		}
		return err
	}
}

// isLogin reports whether a call proves who makes it.
func isLogin(procedure string) bool { return procedure == wire.RightsLoginProcedure }

func isRefused(err error) bool {
	code := connect.CodeOf(err)
	return err != nil && (code == connect.CodePermissionDenied || code == connect.CodeUnauthenticated)
}

// Acted writes down what a person has done by a page.
func (d *Door) Acted(ctx context.Context, remote, call string, run uint32, about string, err error) {
	d.acted(rights.Of(ctx), audit.Entry{From: from(remote), Call: call, Run: run, About: about}, err)
}

func (d *Door) acted(p rights.Principal, e audit.Entry, err error) {
	e.Outcome, e.Refused = audit.Done, err != nil
	if err != nil {
		e.Outcome = connect.CodeOf(err).String()
	}
	d.note(p, e)
}

func (d *Door) note(p rights.Principal, e audit.Entry) {
	if d.config.Audit == nil {
		return
	}
	e.At, e.User, e.Role, e.Proof, e.Token = d.config.Now().UTC(), p.Name(), string(p.Role), string(p.How), p.Token
	if err := d.config.Audit.Append(e); err != nil {
		d.config.Log.Error("what a person has done could not be written down", "call", e.Call, "user", e.User, "error", err)
	}
}

// from is where a call comes from.
func from(remote string) string {
	if remote == "" || strings.HasPrefix(remote, "@") || strings.HasPrefix(remote, "/") {
		return "socket"
	}
	return remote
}

func callOf(procedure string) string { return path.Base(procedure) }

const namesShown = 5

// about tells what a call is about, in few words. Commands, parameters and tokens are not among them.
func about(request, response any) (run uint32, text string) {
	if r, ok := request.(interface{ GetRun() uint32 }); ok {
		run = r.GetRun()
	}
	switch r := request.(type) {
	case *wire.SubmitWorkflowRequest:
		if made, ok := response.(*wire.SubmitWorkflowResponse); ok {
			run = made.GetRun()
		}
		text = r.GetFile()
		if r.GetKey() != "" {
			text += " with the key " + r.GetKey()
		}
	case *wire.RemoveRunsRequest:
		numbers := make([]string, len(r.GetRuns()))
		for i, n := range r.GetRuns() {
			numbers[i] = fmt.Sprint(n)
		}
		text = "runs " + few(numbers)
		if r.GetDryRun() {
			text += ", dry"
		}
	case *wire.CancelRequest:
		text = "jobs " + few(r.GetJobs())
	case *wire.RetryRequest:
		text = "jobs " + few(r.GetJobs())
	case *wire.PrioritizeRequest:
		text = fmt.Sprintf("priority %d", r.GetPriority())
		if len(r.GetJobs()) > 0 {
			text += " for jobs " + few(r.GetJobs())
		}
	case *wire.SubmitRequest:
		text = fmt.Sprintf("%d jobs", len(r.GetJobs()))
	case *wire.CloseInputRequest:
		text = r.GetInput()
	case *wire.StopRequest:
		if r.GetRun() == 0 {
			text = "the server"
		}
	case *wire.RevokeTokenRequest:
		text = "token " + r.GetNumber()
	case *wire.CreateTokenRequest:
		text = fmt.Sprintf("role %s for %s", r.GetRole(), r.GetUser()+r.GetSite())
	}
	if made, ok := response.(interface{ GetSummary() *wire.TokenSummary }); ok {
		text = fmt.Sprintf("token %s with the role %s for %s", made.GetSummary().GetNumber(), made.GetSummary().GetRole(),
			made.GetSummary().GetUser()+made.GetSummary().GetSite())
	}
	return run, text
}

func few(names []string) string {
	if n := len(names) - namesShown; n > 0 {
		return strings.Join(names[:namesShown], ", ") + fmt.Sprintf(" and %d more", n)
	}
	return strings.Join(names, ", ")
}
