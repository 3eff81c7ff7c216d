package storage

import (
	"context"
	"errors"
	"fmt"
	"io"
	"sync"
	"sync/atomic"
	"time"
)

const (
	// SlowTime is how long a server may take for an answer before Prompt and TellSlow tell of it.
	SlowTime = time.Second
	// HeaderTime is how long a server may take for the header of an answer, with all answers of
	// status 1xx before it. Where it may read a whole file first, the time counts from the first
	// byte of the answer on.
	HeaderTime = 30 * time.Second
	// AwayTime is how long a server is waited for that gives no answer, all tries of [Retry]
	// together: after that, none begins.
	AwayTime = time.Minute
)

// AwayError says that a server gave no answer in time. Whether it has a file is not
// known.
type AwayError struct {
	Host  string        // scheme and host, or bucket
	Limit time.Duration // how long it was waited for
	Why   error         // how the last try failed; nil: none has ended
	Amid  bool          // it has answered, and a transfer does not go on
}

func (e *AwayError) Error() string {
	if e.Why != nil {
		return fmt.Sprintf("%s was asked for %s, and the last try ended with: %v", e.Host, e.Limit, e.Why)
	}
	if e.Amid {
		return fmt.Sprintf("a transfer from or to %s stands still for %s", e.Host, e.Limit)
	}
	return fmt.Sprintf("%s did not answer within %s", e.Host, e.Limit)
}

// Timeout and Temporary make it a net.Error.
func (e *AwayError) Timeout() bool { return true }

// Temporary is part of net.Error.
func (e *AwayError) Temporary() bool { return true }

type prompt struct {
	Element
	limit time.Duration
	slow  slowServers

	mu    sync.Mutex // guards hosts
	hosts map[string]*promptHost
}

type promptHost struct {
	err   error
	until time.Time // when it may be asked again after err
}

// Slow tells of a server that takes longer than SlowTime. why is how the last try failed; where it is nil, none has
// ended, and the server gives no answer.
type Slow func(host string, why error)

// SlowText says for a person what Slow is told, and how long such a server is waited for.
func SlowText(host string, why error, limit string) string {
	if why != nil {
		return fmt.Sprintf("%s is tried again, as the last try ended with: %v", host, why)
	}
	return fmt.Sprintf("%s is slow to answer: it is waited for, up to %s", host, limit)
}

// lastTry is how the last try of a question to a server failed. Any goroutine may call its methods, and those of nil
// do nothing.
type lastTry struct{ err atomic.Pointer[error] }

type lastTryKey struct{}

func (l *lastTry) failed(err error) {
	if l != nil && err != nil && !errors.Is(err, context.DeadlineExceeded) && !errors.Is(err, context.Canceled) {
		l.err.Store(&err)
	}
}

func (l *lastTry) why() error {
	if err := l.err.Load(); err != nil {
		return *err
	}
	return nil
}

type slowServers struct {
	tell Slow

	mu   sync.Mutex // guards told
	told map[string]bool
}

// ask begins a question to the server of a PFN, which is asked with the context that is returned and ends when
// answered is called.
func (s *slowServers) ask(
	ctx context.Context, pfn string,
) (asked context.Context, last *lastTry, answered func() bool) {
	last = new(lastTry)
	if HostOf(pfn) == "" {
		return ctx, last, func() bool { return true }
	}
	return context.WithValue(ctx, lastTryKey{}, last), last, time.AfterFunc(SlowTime, func() {
		host := ServerOf(pfn)
		s.mu.Lock()
		told := s.told[host]
		if s.told == nil {
			s.told = map[string]bool{}
		}
		s.told[host] = true
		s.mu.Unlock()
		if !told {
			s.tell(host, last.why())
		}
	}).Stop
}

// ServerOf is the server or bucket of a PFN, with the scheme, as it may be shown.
func ServerOf(pfn string) string { return Scheme(pfn) + "://" + HostOf(Shown(pfn)) }

type telling struct {
	Element
	slow     slowServers
	patience time.Duration // zero: none
}

// TellSlow decorates an element for a person who waits: slow is told of each server once, when
// Open, Stat, Remove or List takes longer than SlowTime for an answer. It may be called from any
// goroutine.
func TellSlow(e Element, slow Slow) Element {
	return &telling{Element: e, slow: slowServers{tell: slow}}
}

// TellAway is TellSlow for what must not fail because a server is away for a while: these operations wait so long for
// it ([WithPatience]), where the element tries again ([Retry]).
func TellAway(e Element, limit time.Duration, slow Slow) Element {
	return &telling{Element: e, slow: slowServers{tell: slow}, patience: limit}
}

func (t *telling) ask(ctx context.Context, pfn string) (asked context.Context, answered func() bool) {
	ctx, _, answered = t.slow.ask(ctx, pfn)
	if t.patience > 0 { // slow is told
		ctx = WithPatience(ctx, t.patience, func(string, error) {})
	}
	return ctx, answered
}

func (t *telling) Open(ctx context.Context, pfn string) (io.ReadCloser, error) {
	ctx, answered := t.ask(ctx, pfn)
	defer answered()
	return t.Element.Open(ctx, pfn)
}

func (t *telling) Stat(ctx context.Context, pfn string) (Info, error) {
	ctx, answered := t.ask(ctx, pfn)
	defer answered()
	return t.Element.Stat(ctx, pfn)
}

func (t *telling) Remove(ctx context.Context, pfn string) error {
	ctx, answered := t.ask(ctx, pfn)
	defer answered()
	return t.Element.Remove(ctx, pfn)
}

func (t *telling) List(ctx context.Context, pfn string) ([]Entry, error) {
	ctx, answered := t.ask(ctx, pfn)
	defer answered()
	return t.Element.List(ctx, pfn)
}

// Prompt decorates an element for questions that are not worth a long wait: Stat and
// Remove end with an [AwayError] if there is no answer within limit, all tries together.
// List asks so first whether the server answers at all. After a server has failed for a
// while (see [Temporary]), these operations fail at once there until limit has passed. slow
// is told of each server once, when an answer takes longer than SlowTime; it may be called
// from any goroutine. Local files are as without decoration.
func Prompt(e Element, limit time.Duration, slow Slow) Element {
	return &prompt{Element: e, limit: limit, slow: slowServers{tell: slow}, hosts: map[string]*promptHost{}}
}

func (p *prompt) away(host string) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	h := p.hosts[host]
	if h == nil || h.err == nil || time.Now().After(h.until) {
		return nil
	}
	return h.err
}

func (p *prompt) change(host string, change func(*promptHost)) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.hosts[host] == nil {
		p.hosts[host] = new(promptHost)
	}
	change(p.hosts[host])
}

func (p *prompt) ask(ctx context.Context, pfn string, operation func(context.Context) error) error {
	if HostOf(pfn) == "" {
		return operation(ctx)
	}
	host := ServerOf(pfn)
	if err := p.away(host); err != nil {
		return err
	}
	trying, last, answered := p.slow.ask(ctx, pfn)
	defer answered()
	asked := time.Now()
	limited, cancel := context.WithTimeout(trying, p.limit)
	defer cancel()
	err := operation(limited)
	switch {
	case err == nil:
		return nil
	case ctx.Err() != nil:
		if time.Since(asked) < SlowTime { // there was no time for an answer
			return err
		}
		err = &AwayError{Host: host, Limit: SlowTime, Why: last.why()}
	case limited.Err() != nil:
		err = &AwayError{Host: host, Limit: p.limit, Why: last.why()}
	case !Temporary(err):
		return err
	}
	p.change(host, func(h *promptHost) { h.err, h.until = err, time.Now().Add(p.limit) })
	return err
}

func (p *prompt) Stat(ctx context.Context, pfn string) (info Info, err error) {
	err = p.ask(ctx, pfn, func(ctx context.Context) error { info, err = p.Element.Stat(ctx, pfn); return err })
	return info, err
}

func (p *prompt) Remove(ctx context.Context, pfn string) error {
	return p.ask(ctx, pfn, func(ctx context.Context) error { return p.Element.Remove(ctx, pfn) })
}

func (p *prompt) List(ctx context.Context, pfn string) ([]Entry, error) {
	// A list may have many parts, each an answer of its own.
	if _, err := p.Stat(ctx, pfn); Temporary(err) {
		return nil, err
	}
	return p.Element.List(ctx, pfn)
}
