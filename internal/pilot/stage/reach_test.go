package stage

import (
	"context"
	"errors"
	"sync"
	"testing"
	"time"

	"fairway/internal/storage"
)

// A server on the pilot's machine makes as many transfers with a host as it is asked for, though
// the pilot waits for all of them.
func TestTransfersThroughAServerOnTheSameMachine(t *testing.T) {
	none := func(context.Context, string) error { return nil }
	server := storage.Limit(getting{do: none}, storage.DefaultTransfers, func(context.Context, time.Duration) error {
		return errors.New("the server has to wait for transfers of the pilot")
	})
	var asked sync.WaitGroup
	asked.Add(storage.DefaultTransfers)
	through := throughServer(getting{do: func(ctx context.Context, pfn string) error {
		asked.Done()
		asked.Wait()
		_, err := server.Get(ctx, pfn, "")
		return err
	}}, nil)
	var transfers sync.WaitGroup
	for range storage.DefaultTransfers {
		transfers.Go(func() {
			if _, err := through.Get(t.Context(), "s3://through-a-server-on-the-same-machine/x", ""); err != nil {
				t.Error(err)
			}
		})
	}
	transfers.Wait()
}

// getting is an element from which files are got.
type getting struct {
	counting
	do func(ctx context.Context, pfn string) error
}

func (g getting) Get(ctx context.Context, pfn, _ string) (int64, error) { return 0, g.do(ctx, pfn) }
