package storage

import (
	"context"
	"errors"
	"io"
	"net"
	"net/http/httptrace"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"
	"time"
)

// mute is an element of a server that takes requests and answers none until a time.
type mute struct {
	Element
	until time.Time
}

func (m *mute) Stat(context.Context, string) (Info, error) {
	if left := time.Until(m.until); left > HeaderTime {
		<-time.After(HeaderTime)
		return Info{}, &net.OpError{Op: "read", Net: "tcp", Err: context.DeadlineExceeded}
	} else if left > 0 {
		<-time.After(left)
	}
	return Info{Size: 1}, nil
}

// slowAnswers is an element that asks over HTTP: it sends and gets long bodies, and the answer comes after a time.
type slowAnswers struct {
	Element
	after time.Duration
}

func (s *slowAnswers) Get(ctx context.Context, _, _ string) (int64, error) {
	trace := httptrace.ContextClientTrace(ctx)
	if trace == nil {
		return 0, errors.New("nobody looks")
	}
	trace.GetConn("se:1")
	trace.GotConn(httptrace.GotConnInfo{})
	<-time.After(time.Minute) // it is sent
	trace.WroteRequest(httptrace.WroteRequestInfo{})
	<-time.After(s.after)
	trace.GotFirstResponseByte()
	<-time.After(time.Minute) // it comes
	return 1, nil
}

// halting is an element of a server that stands still for a time in the middle of what it sends, or is sent.
type halting struct {
	Element
	stands time.Duration
}

func (h *halting) Get(ctx context.Context, pfn, _ string) (int64, error) {
	ctx, cancel := context.WithCancelCause(ctx)
	r, w := io.Pipe()
	go func() {
		_, _ = w.Write(make([]byte, 2*StallBytes))
		<-time.After(h.stands)
		_, _ = w.Write(make([]byte, 2*StallBytes))
		_ = w.Close()
	}()
	body := Steady(ctx, cancel, r, pfn)
	defer body.Close()
	return io.Copy(io.Discard, body)
}

func (h *halting) Put(ctx context.Context, _, pfn string) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	body := Watched(ctx, cancel, strings.NewReader("some and more"), pfn)
	defer body.Close()
	if _, err := body.Read(make([]byte, 4)); err != nil {
		return err
	}
	<-time.After(h.stands) // nobody takes it
	_, err := io.Copy(io.Discard, body)
	return err
}

// Those who wait are told in each SilentTime of a server that stands still in the middle of a transfer, and nobody
// is told that it did not answer.
func TestATransferThatStandsStillIsNamed(t *testing.T) {
	for way, move := range map[string]func(context.Context, Element) error{
		"in": func(ctx context.Context, e Element) error {
			_, err := e.Get(ctx, "https://se:1/file", "/file")
			return err
		},
		"out": func(ctx context.Context, e Element) error { return e.Put(ctx, "/file", "https://se:1/file") },
	} {
		for stands, times := range map[time.Duration]int{SilentTime / 2: 0, 5 * SilentTime / 2: 2} {
			synctest.Test(t, func(t *testing.T) {
				told := make(chan string, 9)
				e := Retry(&halting{stands: stands}, DefaultTries, DefaultBackoff, sleep)
				ctx := WithPatience(t.Context(), Patience, func(_ string, why error) { told <- why.Error() })
				if err := move(ctx, e); err != nil {
					t.Fatal(err)
				}
				if len(told) != times {
					t.Errorf("%s, it stands still for %v: told %d times", way, stands, len(told))
				}
				for range len(told) {
					if text := <-told; text != "a transfer from or to https://se:1 stands still for 10s" {
						t.Error(text)
					}
				}
			})
		}
	}
}

// refusing is an element of a server that refuses connections until a time.
type refusing struct {
	Element
	until time.Time
}

func (r *refusing) Stat(context.Context, string) (Info, error) {
	if time.Now().Before(r.until) {
		return Info{}, &net.OpError{Op: "dial", Net: "tcp", Err: syscall.ECONNREFUSED}
	}
	return Info{Size: 1}, nil
}

func sleep(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// Who is patient waits for a server that is away, and has it named. A person who waits at a terminal is told soon.
func TestAServerThatIsAwayIsWaitedFor(t *testing.T) {
	for _, c := range []struct {
		away, patience time.Duration
		comes          bool
	}{{10 * time.Second, Patience, true}, {4 * time.Minute, Patience, true}, {time.Hour, Patience, false},
		{10 * time.Second, 0, false}} {
		synctest.Test(t, func(t *testing.T) {
			began, told := time.Now(), 0
			e := Retry(&refusing{until: began.Add(c.away)}, DefaultTries, DefaultBackoff, sleep)
			ctx := t.Context()
			if c.patience > 0 {
				ctx = WithPatience(ctx, c.patience, func(pfn string, why error) {
					if told++; ServerOf(pfn) != "https://se:1" || !errors.Is(why, syscall.ECONNREFUSED) {
						t.Errorf("told of %s: %v", pfn, why)
					}
				})
			}
			_, err := e.Stat(ctx, "https://se:1/file")
			if c.comes != (err == nil) {
				t.Errorf("away for %v, patience %v: %v after %v", c.away, c.patience, err, time.Since(began))
			}
			if c.patience > 0 != (told > 0) {
				t.Errorf("told %d times", told)
			}
			if took := time.Since(began); took > max(c.away, c.patience)+time.Minute && c.away < time.Hour ||
				c.patience == 0 && took > 10*time.Second {
				t.Errorf("it took %v", took)
			}
		})
	}
}

// A run that begins while a server of its inputs is away waits for it, and a person is told once.
func TestARunBeginsWhenItsServerComesBack(t *testing.T) {
	for away, comes := range map[time.Duration]bool{10 * time.Second: true, 4 * time.Minute: true, time.Hour: false} {
		synctest.Test(t, func(t *testing.T) {
			began, told := time.Now(), make(chan string, 9)
			e := TellAway(Retry(&refusing{until: began.Add(away)}, DefaultTries, DefaultBackoff, sleep), Patience,
				func(host string, why error) { told <- SlowText(host, why, "5m0s") })
			_, err := e.Stat(t.Context(), "https://se:1/file")
			if took := time.Since(began); comes != (err == nil) || took > max(Patience, away)+MaxAwayPause && away < time.Hour ||
				took > Patience+time.Minute {
				t.Errorf("away for %v: %v after %v", away, err, took)
			}
			if text := <-told; len(told) != 0 || !strings.Contains(text, "https://se:1 is tried again") {
				t.Errorf("away for %v: told %d times, first %s", away, len(told)+1, text)
			}
		})
	}
}

// Who is patient waits for a server that takes requests and answers none, which costs no attempt either.
func TestASilentServerIsWaitedFor(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := Retry(&mute{until: time.Now().Add(4 * time.Minute)}, DefaultTries, DefaultBackoff, sleep)
		ctx := WithPatience(t.Context(), Patience, func(string, error) {})
		if _, err := e.Stat(ctx, "https://se:1/file"); err != nil {
			t.Error(err)
		}
	})
}

// Those who wait are told in each SilentTime of a server that answers nothing, and not of long transfers.
func TestASilentServerIsNamedWhileATryLasts(t *testing.T) {
	for after, times := range map[time.Duration]int{SilentTime / 2: 0, 5 * SilentTime / 2: 2} {
		synctest.Test(t, func(t *testing.T) {
			told := make(chan string, 9)
			e := Retry(&slowAnswers{after: after}, DefaultTries, DefaultBackoff, sleep)
			ctx := WithPatience(t.Context(), Patience, func(pfn string, why error) {
				told <- ServerOf(pfn) + ": " + why.Error()
			})
			if _, err := e.Get(ctx, "https://se:1/file", "/file"); err != nil {
				t.Fatal(err)
			}
			if len(told) != times {
				t.Errorf("it answers after %v: told %d times", after, len(told))
			}
			for range len(told) {
				if text := <-told; text != "https://se:1: https://se:1 did not answer within 10s" {
					t.Error(text)
				}
			}
		})
	}
}

// Of a server that refuses connections nobody says that it is slow to answer, or did not answer.
func TestAServerThatRefusesIsNotSaidToBeSlow(t *testing.T) {
	for name, ask := range map[string]func(context.Context, Element, Slow) error{
		"prompt": func(ctx context.Context, e Element, slow Slow) error {
			_, err := Prompt(e, 20*time.Second, slow).Stat(ctx, "https://se:1/file")
			return err
		},
		"telling": func(ctx context.Context, e Element, slow Slow) error {
			_, err := TellSlow(e, slow).Stat(ctx, "https://se:1/file")
			return err
		},
	} {
		synctest.Test(t, func(t *testing.T) {
			told := make(chan string, 9)
			slow := func(host string, why error) { told <- SlowText(host, why, "20s") }
			e := Retry(&refusing{until: time.Now().Add(time.Hour)}, 8, time.Second, sleep)
			err := ask(t.Context(), e, slow)
			if text := <-told; strings.Contains(text, "slow") || !strings.Contains(text, "connection refused") {
				t.Errorf("%s tells: %s", name, text)
			}
			if err == nil || strings.Contains(err.Error(), "did not answer") || strings.Contains(err.Error(), "context") ||
				!strings.Contains(err.Error(), "connection refused") {
				t.Errorf("%s: %v", name, err)
			}
		})
	}
}
