// Package notice tells somebody elsewhere what has become of a run: by a request to a URL, or by a
// command. What cannot be told is tried again a few times and then given up; no run waits for it but
// for [Sender.Close], which is bounded.
package notice

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"strings"
	"sync"
	"time"

	"fairway/internal/program"
)

// The kinds of notices.
const (
	Succeeded = "succeeded"
	Failed    = "failed"
	Stopped   = "stopped"
	Stuck     = "stuck" // no job has run for a while, though some could
)

// Notice is what is told, as JSON. Text is a sentence for a person, under the name that chat programs
// expect.
type Notice struct {
	Event    string   `json:"event"`
	Text     string   `json:"text"`
	Run      uint32   `json:"run"`
	Workflow string   `json:"workflow"`
	Folder   string   `json:"folder"` // of the server's state
	Problems []string `json:"problems,omitempty"`
}

// Bounds of a Sender.
const (
	// Tries is how often a notice is tried.
	Tries = 3
	// TryTime is how long one try may take.
	TryTime = 20 * time.Second
	// CloseTime is how long Close waits for notices that are under way.
	CloseTime = 30 * time.Second
	// MaxWaiting is how many notices wait to be told; more are given up.
	MaxWaiting = 100

	firstPause  = time.Second // doubled after each try
	outputShown = 500         // bytes of what a command or server answers, in the log
)

// Sender tells notices, one after the other. Any goroutine may call its methods.
type Sender struct {
	place   string
	log     *slog.Logger
	waiting chan Notice
	pause   time.Duration // after the first try
	cancel  context.CancelFunc
	done    sync.WaitGroup
	closing sync.Once
}

// CheckPlace reports whether a place is one: a URL of HTTP, or a command for the shell.
func CheckPlace(place string) error {
	if strings.TrimSpace(place) == "" {
		return errors.New("it is empty")
	}
	if !isURL(place) {
		return nil
	}
	u, err := url.Parse(place)
	if err != nil {
		return err
	}
	if u.Host == "" {
		return errors.New("the URL has no host")
	}
	return nil
}

func isURL(place string) bool {
	return strings.HasPrefix(place, "http://") || strings.HasPrefix(place, "https://")
}

// NewSender makes a Sender for a place that CheckPlace finds good.
func NewSender(place string, log *slog.Logger) *Sender {
	ctx, cancel := context.WithCancel(context.Background())
	s := &Sender{place: place, log: log, waiting: make(chan Notice, MaxWaiting), pause: firstPause, cancel: cancel}
	s.done.Go(func() {
		for n := range s.waiting {
			s.tell(ctx, &n)
		}
	})
	return s
}

// Send tells a notice soon. It does not wait. It must not be called after Close.
func (s *Sender) Send(n Notice) {
	select {
	case s.waiting <- n:
	default:
		s.log.Warn("a notice is given up: too many wait", "event", n.Event, "run", n.Run)
	}
}

// Close waits until all was told, but no longer than CloseTime.
func (s *Sender) Close() {
	s.closing.Do(func() {
		close(s.waiting)
		limit := time.AfterFunc(CloseTime, s.cancel)
		s.done.Wait()
		limit.Stop()
		s.cancel()
	})
}

func (s *Sender) tell(ctx context.Context, n *Notice) {
	var err error
	for try, pause := 0, s.pause; try < Tries && ctx.Err() == nil; try, pause = try+1, 2*pause {
		if try > 0 {
			timer := time.NewTimer(pause)
			select {
			case <-timer.C:
			case <-ctx.Done():
				timer.Stop()
			}
		}
		limited, cancel := context.WithTimeout(ctx, TryTime)
		if isURL(s.place) {
			err = s.post(limited, n)
		} else {
			err = s.run(limited, n)
		}
		cancel()
		if err == nil {
			return
		}
	}
	// The place may have a secret in it, so it is not named.
	s.log.Warn("a notice could not be told", "event", n.Event, "run", n.Run, "error", err)
}

func (s *Sender) post(ctx context.Context, n *Notice) error {
	body, err := json.Marshal(n)
	if err != nil {
		return err
	}
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, s.place, bytes.NewReader(body))
	if err != nil {
		return errors.New("the URL is none")
	}
	r.Header.Set("Content-Type", "application/json")
	answer, err := http.DefaultClient.Do(r)
	if err != nil {
		if failed, ok := errors.AsType[*url.Error](err); ok {
			return failed.Err // its own text has the URL
		}
		return err
	}
	defer func() { _ = answer.Body.Close() }()
	text, _ := io.ReadAll(io.LimitReader(answer.Body, outputShown))
	if answer.StatusCode >= 300 {
		return fmt.Errorf("it answers %s: %s", answer.Status, text)
	}
	return nil
}

func (s *Sender) run(ctx context.Context, n *Notice) error {
	body, err := json.Marshal(n)
	if err != nil {
		return err
	}
	command := exec.CommandContext(ctx, "sh", "-c", s.place)
	command.Stdin = bytes.NewReader(append(body, '\n')) // a command may append it to a file
	command.Env = append(os.Environ(), "FAIRWAY_EVENT="+n.Event, "FAIRWAY_TEXT="+n.Text,
		fmt.Sprintf("FAIRWAY_RUN=%d", n.Run), "FAIRWAY_WORKFLOW="+n.Workflow)
	command.WaitDelay = time.Second
	began := time.Now()
	out, err := command.CombinedOutput()
	if err = program.Failure(ctx, began, err); err != nil {
		return fmt.Errorf("%w: %s", err, out[:min(len(out), outputShown)])
	}
	return nil
}
