package console

import (
	"context"
	"fmt"
	"log/slog"
	"net/http"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"connectrpc.com/connect"

	"fairway/internal/access"
	"fairway/internal/server/listen"
	"fairway/internal/wire"
)

// stillRun is a run in which no job runs, for a reason that a test changes.
type stillRun struct {
	wire.UnimplementedWorkflowHandler
	began time.Time
	mu    sync.Mutex // guards what follows
	why   string
	runs  int64  // jobs
	state string // of the one that is explained
}

func (s *stillRun) Progress(
	ctx context.Context, _ *wire.ProgressRequest, stream *connect.ServerStream[wire.ProgressReport],
) error {
	for ctx.Err() == nil {
		s.mu.Lock()
		report := &wire.ProgressReport{
			Steps: []*wire.StepProgress{{Step: "a", Total: 3, Done: 1, Ready: 2 - s.runs, Running: s.runs}},
		}
		s.mu.Unlock()
		if err := stream.Send(report); err != nil {
			return err
		}
		select {
		case <-ctx.Done():
		case <-time.After(access.KeepAlive):
		}
	}
	return nil
}

func (s *stillRun) ListJobs(_ context.Context, r *wire.ListJobsRequest) (*wire.ListJobsResponse, error) {
	if fmt.Sprint(r.States) != "[ready]" {
		return nil, fmt.Errorf("asked for %v", r.States)
	}
	return &wire.ListJobsResponse{Jobs: []*wire.JobSummary{{Name: "a/1"}}}, nil
}

func (s *stillRun) Explain(context.Context, *wire.ExplainRequest) (*wire.ExplainResponse, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return &wire.ExplainResponse{
		Summary: &wire.JobSummary{Name: "a/1", State: s.state},
		Lines:   []string{"ready", fmt.Sprintf(s.why, time.Since(s.began).Seconds())},
	}, nil
}

// Whoever watches a run in which no job runs is told why, and again when the reason is
// another one or jobs ran in between, not when it only lasts.
func TestWhyNoJobRunsIsTold(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		pass := func(d time.Duration) {
			<-time.NewTimer(d).C
			synctest.Wait()
		}
		s := &stillRun{began: time.Now(), state: "ready", why: "site farm: 1 pilot queued for %.1f s: Priority"}
		mux := http.NewServeMux()
		mux.Handle(listen.People(s))
		pipes := listen.NewPipes()
		e := listen.NewEndpoint(pipes, listen.AsOwner(mux), slog.New(slog.DiscardHandler))
		go e.Serve()
		client, transport := listen.Client(pipes.Dial)
		var said strings.Builder
		c := &Console{Err: &said}
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan struct{})
		go func() {
			defer close(ended)
			_, _ = c.Watch(ctx, client)
		}()
		told := func(reasons int) {
			t.Helper()
			c.onScreen(func() {
				if n := strings.Count(said.String(), "no job runs; job a/1: ready; site farm: 1 pilot queued for "); n != reasons {
					t.Errorf("after %v it was told %d times, not %d:\n%s", time.Since(s.began), n, reasons, said.String())
				}
			})
		}
		pass(standstillTime - clockTick)
		told(0)
		pass(2 * clockTick)
		told(1)
		pass(10 * standstillTime)
		told(1)
		s.mu.Lock()
		s.why = "site farm: 1 pilot queued for %.1f s: PartitionConfig"
		s.mu.Unlock()
		pass(20 * standstillTime)
		told(2)
		for runs := range int64(2) {
			s.mu.Lock()
			s.runs = 1 - runs
			s.mu.Unlock()
			pass(10 * standstillTime)
			told(2 + int(runs))
		}
		cancel()
		<-ended
		transport.CloseIdleConnections()
		e.Close(0)
		pass(2 * time.Second)
	})
}

// A reason is told when it is there, and when it is another one but for its numbers.
func TestReasonsAreToldOnce(t *testing.T) {
	var last Reason
	for _, one := range []struct {
		why  string
		news bool
	}{
		{"", false},
		{"queued for 1.0 s: Priority", true},
		{"queued for 5 min: Priority", false},
		{"", false},
		{"queued for 6 min 05 s: Priority", false},
		{"queued for 1 h 06 min: Priority", false},
		{"queued for 6 min: Resources", true},
	} {
		if last.IsNews(one.why) != one.news {
			t.Errorf("%q is news: %v", one.why, !one.news)
		}
	}
}

// A run stands still too where its jobs only wait for their next attempts.
func TestARunWhoseJobsWaitStandsStill(t *testing.T) {
	for _, c := range []struct {
		step  *wire.StepProgress
		still bool
	}{{&wire.StepProgress{Waiting: 1}, true}, {&wire.StepProgress{Waiting: 1, Running: 1}, false},
		{&wire.StepProgress{Ready: 1}, true}, {&wire.StepProgress{Done: 1}, false}} {
		s := standstill{pause: standstillTime}
		s.observe(&wire.ProgressReport{Steps: []*wire.StepProgress{c.step}})
		if s.since.IsZero() == c.still {
			t.Errorf("%v: it stands still: %v", c.step, !c.still)
		}
	}
}
