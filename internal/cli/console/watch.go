package console

import (
	"context"
	"errors"
	"regexp"
	"slices"
	"strings"
	"time"

	"google.golang.org/protobuf/proto"

	"fairway/internal/cli/screen"
	"fairway/internal/quantity"
	"fairway/internal/taskqueue"
	"fairway/internal/wire"
)

// clockTick is how often the running time on the screen moves on while nothing
// else changes.
const clockTick = time.Second

// Watch shows progress until the run has ended, and returns its last state.
func (c *Console) Watch(ctx context.Context, client wire.WorkflowClient) (*wire.ProgressReport, error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	reports, failed := streamProgress(ctx, client)
	display := screen.NewProgress(c.Err, c.JSON)
	c.onScreen(func() { c.display = display })
	defer c.onScreen(func() {
		display.End()
		c.display = nil
	})
	tick := time.NewTicker(clockTick)
	defer tick.Stop()
	still := standstill{Console: c, pause: standstillTime, reasons: make(chan string, 1)}
	var last *wire.ProgressReport
	var came time.Time
	var ours func(*wire.ProgressReport) *wire.ProgressReport
	found := c.ofCall(ctx, client)
	show := func(report *wire.ProgressReport) {
		if ours != nil && report != nil {
			c.onScreen(func() { display.Show(ours(report)) })
		}
	}
	for {
		select {
		case ours = <-found:
			show(last)
		case why := <-still.reasons:
			still.tell(why)
		case report, ok := <-reports:
			if !ok {
				return last, <-failed
			}
			last, came = report, time.Now()
			still.observe(report)
			if last.Ended && ours == nil {
				ours = <-found
			}
			show(last)
			if last.Ended {
				return last, nil
			}
		case <-tick.C:
			still.look(ctx, client)
			if last != nil {
				show(later(last, time.Since(came)))
			}
		}
	}
}

// standstillTime is how long no job runs, although some could, until a person is told why.
// That doubles each time, up to longestPause.
const (
	standstillTime = 10 * time.Second
	longestPause   = time.Minute
)

// standstill tells why no job runs while some are ready, or wait, or run on silent pilots: pilots wait in a
// queue, or nobody has what the jobs need, or a node is dead, or a job that failed is tried later.
type standstill struct {
	*Console
	since   time.Time     // when it began, or was looked at last; zero: a job runs, or none is ready
	pause   time.Duration // until the next look
	reasons chan string   // the answer of a look
	unheard int64         // jobs that run, as far as is known, on pilots that are silent
	told    Reason        // since a job ran
}

func (s *standstill) observe(report *wire.ProgressReport) {
	total := screen.TotalOf(report.Steps)
	switch {
	case total.Running-report.RunningUnheard+total.Queued > 0 || total.Ready+total.Waiting+report.RunningUnheard == 0:
		s.since, s.pause, s.told = time.Time{}, standstillTime, ""
	case s.since.IsZero():
		s.since = time.Now()
	}
	s.unheard = report.RunningUnheard
}

func (s *standstill) look(ctx context.Context, client wire.WorkflowClient) {
	if s.since.IsZero() || time.Since(s.since) < s.pause {
		return
	}
	s.since, s.pause = time.Now(), min(2*s.pause, longestPause)
	unheard := s.unheard
	go func() {
		why := whyStill(ctx, client)
		if unheard > 0 {
			lost := quantity.Count(unheard, "job") + " ran on pilots that are silent, and others get them " +
				"when the batch system tells that the pilots have ended, or their leases are over"
			why = strings.Join(slices.DeleteFunc([]string{lost, why}, func(s string) bool { return s == "" }), "; ")
		}
		if why != "" {
			select {
			case s.reasons <- why:
			default: // one is to be told
			}
		}
	}()
}

func (s *standstill) tell(why string) {
	if !s.since.IsZero() && s.told.IsNews(why) {
		s.Announce("no job runs; " + why)
	}
}

// Reason is the last that a person was told, without its numbers.
type Reason string

var numbers = regexp.MustCompile(`[0-9.]+( ?(min|s|h|d)\b)?( [0-9.]+ (min|s)\b)*`)

// IsNews reports whether a reason is another one than the last, which it becomes then. None
// is no news.
func (r *Reason) IsNews(why string) bool {
	same := Reason(numbers.ReplaceAllString(why, ""))
	if why == "" || same == *r {
		return false
	}
	*r = same
	return true
}

// maxStill is how many waiting jobs are looked at for one that failed and is tried again.
const maxStill = 100

// whyStill explains the first job that is ready; where there is none the first that failed and waits for its next
// attempt, or else the first that waits. It is empty where there is none of these.
func whyStill(ctx context.Context, client wire.WorkflowClient) string {
	for _, state := range []string{taskqueue.Ready.String(), taskqueue.Waiting.String()} {
		list, err := client.ListJobs(ctx, &wire.ListJobsRequest{States: []string{state}, Limit: maxStill})
		if err != nil {
			return ""
		}
		if len(list.Jobs) == 0 {
			continue
		}
		failed := slices.IndexFunc(list.Jobs, func(j *wire.JobSummary) bool { return j.GetReason() != "" })
		answer, err := client.Explain(ctx, &wire.ExplainRequest{Job: list.Jobs[max(failed, 0)].Name})
		// it has gone on meanwhile
		if err != nil || len(answer.Lines) == 0 || answer.Summary.GetState() != state {
			return ""
		}
		return "job " + screen.OneLine(answer.Summary.GetName()) + ": " + strings.Join(answer.Lines, "; ")
	}
	return ""
}

// streamProgress gives the reports of a run as they come. When reports is
// closed, failed has the reason.
func streamProgress(
	ctx context.Context, client wire.WorkflowClient,
) (reports <-chan *wire.ProgressReport, failed <-chan error) {
	out, reason := make(chan *wire.ProgressReport), make(chan error, 1)
	go func() {
		reason <- receiveProgress(ctx, client, out)
		close(out)
	}()
	return out, reason
}

func receiveProgress(ctx context.Context, client wire.WorkflowClient, out chan<- *wire.ProgressReport) error {
	stream, err := client.Progress(ctx, &wire.ProgressRequest{Follow: true})
	if err != nil {
		return err
	}
	defer stream.Close()
	for stream.Receive() {
		select {
		case out <- stream.Msg():
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	if err := stream.Err(); err != nil {
		return err
	}
	return errWentAway
}

var errWentAway = errors.New("the server went away before the run had ended")

func later(report *wire.ProgressReport, since time.Duration) *wire.ProgressReport {
	moved := proto.CloneOf(report)
	if moved.Summary == nil {
		moved.Summary = &wire.Summary{}
	}
	moved.Summary.WallSeconds += since.Seconds()
	if moved.SecondsLeft > 0 {
		moved.SecondsLeft = max(1, moved.SecondsLeft-since.Seconds())
	}
	return moved
}
