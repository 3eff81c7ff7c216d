package storage

import (
	"context"
	"net/http/httptrace"
	"sync"
	"time"
)

// attend does an operation on a file of a server, and tells those who are patient while that gives no answer.
func (p *patience) attend(ctx context.Context, pfn string, operation func(context.Context) error) error {
	if p.limit <= 0 || HostOf(pfn) == "" {
		return operation(ctx)
	}
	s := &silence{told: func(amid bool) { p.tell(pfn, &AwayError{Host: ServerOf(pfn), Limit: SilentTime, Amid: amid}) }}
	defer s.end()
	ctx = context.WithValue(ctx, silenceKey{}, s)
	return operation(httptrace.WithClientTrace(ctx, &httptrace.ClientTrace{
		GetConn:              func(string) { s.wait(false) },
		GotConn:              func(httptrace.GotConnInfo) { s.heard() }, // what is sent then may take long
		WroteRequest:         func(httptrace.WroteRequestInfo) { s.wait(false) },
		GotFirstResponseByte: s.heard,
	}))
}

type silenceKey struct{}

// Asked is for elements that do not speak HTTP, in an operation of [Retry]: from the call on, a server is to say
// something, and who is patient ([WithPatience]) is told while it does not. answered is for when it has begun to, or
// the question has ended. Any goroutine may call both.
func Asked(ctx context.Context) (answered func()) {
	s, _ := ctx.Value(silenceKey{}).(*silence)
	if s == nil {
		return func() {}
	}
	s.wait(false)
	return s.heard
}

// moving is Asked, for a server that is to send more of a file, or to take more.
func moving(ctx context.Context) (moved func()) {
	s, _ := ctx.Value(silenceKey{}).(*silence)
	if s == nil {
		return func() {}
	}
	s.wait(true)
	return s.heard
}

// silence is of a server that was asked and gives no answer. Any goroutine may call its methods.
type silence struct {
	told func(amid bool) // in each SilentTime

	mu    sync.Mutex // guards what follows
	timer *time.Timer
	amid  bool // a transfer: it has answered
	over  bool
}

// wait is for a server that is to say something now, or to go on with a transfer.
func (s *silence) wait(amid bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.amid = amid
	switch {
	case s.over:
	case s.timer == nil:
		s.timer = time.AfterFunc(SilentTime, s.tell)
	default:
		s.timer.Reset(SilentTime)
	}
}

func (s *silence) tell() {
	s.mu.Lock()
	amid := s.amid
	s.mu.Unlock()
	s.told(amid)
	s.wait(amid)
}

func (s *silence) heard() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.timer != nil {
		s.timer.Stop()
	}
}

func (s *silence) end() {
	s.heard()
	s.mu.Lock()
	defer s.mu.Unlock()
	s.over = true
}
