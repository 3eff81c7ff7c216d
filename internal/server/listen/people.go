package listen

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"path"
	"time"

	"connectrpc.com/connect"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"

	"fairway/internal/access"
	"fairway/internal/wire"
)

// PeoplesClient makes these calls, with the same limits: a server that does not answer in
// time, or says nothing in a stream, is an error with [connect.CodeDeadlineExceeded].
func PeoplesClient(client *http.Client, baseURL string) wire.WorkflowClient {
	return wire.NewWorkflowClient(client, baseURL,
		connect.WithAcceptCompression("gzip", nil, nil), connect.WithReadMaxBytes(access.MaxAnswer),
		connect.WithInterceptors(limits{}))
}

// RightsClient is PeoplesClient for the calls about tokens and logins.
func RightsClient(client *http.Client, baseURL string) wire.RightsClient {
	return wire.NewRightsClient(client, baseURL,
		connect.WithAcceptCompression("gzip", nil, nil), connect.WithReadMaxBytes(access.MaxAnswer),
		connect.WithInterceptors(limits{}))
}

// callTime is how long a call may take in all.
func callTime(procedure string) time.Duration {
	switch procedure {
	case wire.WorkflowListFilesProcedure, wire.WorkflowRetryProcedure, wire.WorkflowSubmitWorkflowProcedure:
		return access.StorageTime
	}
	return access.CallTime
}

// About has the calls of a client be about a run, where they do not say.
func About(ctx context.Context, run uint32) context.Context {
	return context.WithValue(ctx, aboutKey{}, run)
}

type aboutKey struct{}

// setRun says in a request which run it is about, as the context of the call tells.
func setRun(ctx context.Context, request any) {
	run, _ := ctx.Value(aboutKey{}).(uint32)
	message, ok := request.(proto.Message)
	if run == 0 || !ok {
		return
	}
	m := message.ProtoReflect()
	if field := m.Descriptor().Fields().ByName("run"); field != nil && !m.Has(field) {
		m.Set(field, protoreflect.ValueOfUint32(run))
	}
}

// limits bounds calls on both sides, and streams on that of who reads them.
type limits struct{}

// WrapUnary is part of connect.Interceptor.
func (limits) WrapUnary(next connect.UnaryFunc) connect.UnaryFunc {
	return func(ctx context.Context, r connect.AnyRequest) (connect.AnyResponse, error) {
		if r.Spec().IsClient {
			setRun(ctx, r.Any())
		}
		limit := callTime(r.Spec().Procedure)
		limited, cancel := context.WithTimeout(ctx, limit)
		defer cancel()
		answer, err := next(limited, r)
		if ctx.Err() == nil && connect.CodeOf(err) == connect.CodeDeadlineExceeded {
			err = connect.NewError(connect.CodeDeadlineExceeded, fmt.Errorf(
				"the server that runs the workflow has not answered within %v (%s)", limit, path.Base(r.Spec().Procedure)))
		}
		return answer, err
	}
}

// WrapStreamingHandler is part of connect.Interceptor.
func (limits) WrapStreamingHandler(next connect.StreamingHandlerFunc) connect.StreamingHandlerFunc {
	return next
}

// WrapStreamingClient is part of connect.Interceptor.
func (limits) WrapStreamingClient(next connect.StreamingClientFunc) connect.StreamingClientFunc {
	return func(ctx context.Context, spec connect.Spec) connect.StreamingClientConn {
		ctx, cancel := context.WithCancelCause(ctx)
		silent := time.AfterFunc(access.SilentTime, func() { cancel(errSilent) })
		return &steadyStream{StreamingClientConn: next(ctx, spec), ctx: ctx, cancel: cancel, silent: silent}
	}
}

var errSilent = connect.NewError(connect.CodeDeadlineExceeded,
	fmt.Errorf("the server that runs the workflow has said nothing for %v", access.SilentTime))

// steadyStream is a stream that fails when who reads it has waited for SilentTime. The time
// that who reads it takes for a message does not count.
type steadyStream struct {
	connect.StreamingClientConn
	ctx    context.Context // of the stream
	cancel context.CancelCauseFunc
	silent *time.Timer // runs from the call to its first message, and during each Receive
}

// Send is part of connect.StreamingClientConn.
func (s *steadyStream) Send(m any) error {
	setRun(s.ctx, m)
	return s.explained(s.StreamingClientConn.Send(m))
}

// Receive is part of connect.StreamingClientConn.
func (s *steadyStream) Receive(m any) error {
	s.silent.Reset(access.SilentTime)
	defer s.silent.Stop()
	return s.explained(s.StreamingClientConn.Receive(m))
}

func (s *steadyStream) CloseResponse() error {
	s.silent.Stop()
	err := s.StreamingClientConn.CloseResponse()
	s.cancel(nil)
	return err
}

func (s *steadyStream) explained(err error) error {
	if err != nil && errors.Is(context.Cause(s.ctx), errSilent) {
		return errSilent
	}
	if errors.Is(err, io.ErrUnexpectedEOF) {
		return errBroken
	}
	return err
}

var errBroken = connect.NewError(connect.CodeUnavailable,
	errors.New("the server was killed, or its line broke; ask again when it is there"))
