package sweep

import (
	"context"
	"errors"
	"fmt"

	"fairway/lib/orwl"
)

// Peers are the processes that have the neighbouring blocks.
type Peers []*orwl.Peer

// Resource opens a frontier at the process that serves it.
func (ps Peers) Resource(ctx context.Context, name string) (orwl.Resource, error) {
	for _, p := range ps {
		m, err := p.Mirror(ctx, name)
		if errors.Is(err, orwl.ErrUnknown) {
			continue
		}
		return m, err
	}
	return nil, fmt.Errorf("%s: no process serves it", name)
}

// Close ends the connections, after all that was released by them has arrived.
func (ps Peers) Close() error {
	var errs []error
	for _, p := range ps {
		errs = append(errs, p.Close())
	}
	return errors.Join(errs...)
}
