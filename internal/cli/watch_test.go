package cli

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
	mu    sync.Mutex // guards why
	why   string
}

func (s *stillRun) Progress(ctx context.Context, _ *wire.ProgressRequest, stream *connect.ServerStream[wire.ProgressReport]) error {
	for ctx.Err() == nil {
		if err := stream.Send(&wire.ProgressReport{Steps: []*wire.StepProgress{{Step: "a", Total: 3, Done: 1, Ready: 2}}}); err != nil {
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
		Summary: &wire.JobSummary{Name: "a/1"}, Lines: []string{"ready", fmt.Sprintf(s.why, time.Since(s.began).Seconds())},
	}, nil
}

// Whoever watches a run in which no job runs is told why, and again when the reason is
// another one, not when it only lasts.
func TestWhyNoJobRunsIsTold(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		pass := func(d time.Duration) {
			<-time.NewTimer(d).C
			synctest.Wait()
		}
		s := &stillRun{began: time.Now(), why: "site farm: 1 pilot queued for %.1f s: Priority"}
		mux := http.NewServeMux()
		mux.Handle(listen.People(s))
		pipes := listen.NewPipes()
		e := listen.NewEndpoint(pipes, mux, slog.New(slog.DiscardHandler))
		go e.Serve()
		client, transport := listen.Client(pipes.Dial)
		var said strings.Builder
		c := &console{err: &said}
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan struct{})
		go func() {
			defer close(ended)
			_, _ = c.watch(ctx, client)
		}()
		told := func(reasons int) {
			t.Helper()
			c.onScreen(func() {
				if n := strings.Count(said.String(), "no job runs: a/1 is ready; site farm: 1 pilot queued for "); n != reasons {
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
		cancel()
		<-ended
		transport.CloseIdleConnections()
		e.Close(0)
		pass(2 * time.Second)
	})
}
