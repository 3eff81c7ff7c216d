package cli

import (
	"context"
	"errors"
	"time"

	"google.golang.org/protobuf/proto"

	"fairway/internal/wire"
)

// clockTick is how often the running time on the screen moves on while nothing
// else changes.
const clockTick = time.Second

// watch shows progress until the run has ended, and returns its last state.
func (c *console) watch(ctx context.Context, client wire.WorkflowClient) (*wire.ProgressReport, error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	reports, failed := streamProgress(ctx, client)
	display := c.newProgress()
	c.onScreen(func() { c.display = display })
	defer c.onScreen(func() {
		display.end()
		c.display = nil
	})
	tick := time.NewTicker(clockTick)
	defer tick.Stop()
	var last *wire.ProgressReport
	var came time.Time
	for {
		select {
		case report, ok := <-reports:
			if !ok {
				return last, <-failed
			}
			last, came = report, time.Now()
			c.onScreen(func() { display.show(last) })
			if last.Ended {
				return last, nil
			}
		case <-tick.C:
			if last != nil {
				c.onScreen(func() { display.show(later(last, time.Since(came))) })
			}
		}
	}
}

// streamProgress gives the reports of a run as they come. When reports is
// closed, failed has the reason.
func streamProgress(ctx context.Context, client wire.WorkflowClient) (reports <-chan *wire.ProgressReport, failed <-chan error) {
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
	return errors.New("the server went away before the run had ended")
}

// later is a report in which only the clock has moved on.
func later(report *wire.ProgressReport, since time.Duration) *wire.ProgressReport {
	moved := proto.CloneOf(report)
	if moved.Summary == nil {
		moved.Summary = &wire.Summary{}
	}
	moved.Summary.WallSeconds += since.Seconds()
	return moved
}
