package console

import (
	"context"

	"fairway/internal/wire"
)

// ProgressNow is how the run stands.
func ProgressNow(ctx context.Context, client wire.WorkflowClient) (*wire.ProgressReport, error) {
	stream, err := client.Progress(ctx, &wire.ProgressRequest{})
	if err != nil {
		return nil, err
	}
	defer stream.Close()
	if !stream.Receive() {
		return nil, stream.Err()
	}
	return stream.Msg(), nil
}
