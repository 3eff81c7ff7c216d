package server

import (
	"context"
	"fmt"

	"google.golang.org/protobuf/proto"

	"fairway/internal/dispatch"
	"fairway/internal/server/loop"
	"fairway/internal/server/state"
	"fairway/internal/wire"
)

// cutResults removes the oldest results that no run uses, with what is known of how they were made,
// where a lasting server has a twentieth more than it keeps. So it looks through all of them once for
// many that go.
func (s *Server) cutResults(ctx context.Context) {
	keep := s.config.UnusedResults
	var gone []dispatch.UnusedResult
	err := s.inbox.Query(ctx, func(c *state.Cores) {
		if c.Dispatch.UnusedResults() > keep+keep/20 {
			gone, _ = oldest(c.Dispatch.Unused(), keep)
		}
	})
	if err == nil && len(gone) > 0 {
		err = s.forgetResults(ctx, gone)
	}
	if err != nil && ctx.Err() == nil {
		s.log.Warn("results that nobody needs could not be removed", "error", err)
	}
}

// forgetResults has the core forget results, unless a job has taken them meanwhile.
func (s *Server) forgetResults(ctx context.Context, results []dispatch.UnusedResult) error {
	attempts := make([]dispatch.AttemptID, len(results)) // that made them; 0: not known
	for i := range results {
		key := state.ProvenanceKey(results[i].Job, results[i].Record.Key)
		records, err := s.records.LoadPart(ctx, state.ProvenanceTable, 0, key, key+"\x00", 1)
		if err != nil {
			return err
		}
		for _, r := range records {
			p := new(wire.Provenance)
			if err := proto.Unmarshal(r.Body, p); err != nil {
				return fmt.Errorf("record %s %q: %w", state.ProvenanceTable, r.Key, err)
			}
			attempts[i] = dispatch.AttemptID(p.GetAttempt().GetAttempt())
		}
	}
	var unwanted []dispatch.AttemptID
	err := s.inbox.Deliver(ctx, func() *loop.Request {
		return &loop.Request{Prepare: func(c *state.Cores, r *loop.Request) error {
			unwanted = nil
			var keys []string
			for i := range results {
				key := results[i].Record.Key
				if !c.Dispatch.IsUnused(key) {
					continue
				}
				keys = append(keys, key)
				r.Records = append(r.Records, dispatch.Record{
					Table: state.ProvenanceTable, Key: state.ProvenanceKey(results[i].Job, key),
				})
				if attempts[i] != 0 {
					unwanted = append(unwanted, attempts[i])
				}
			}
			r.Dispatch = []dispatch.Input{dispatch.ForgetResults{Keys: keys}}
			return nil
		}}
	})
	if err != nil {
		return err
	}
	err = state.Logs(s.folders.Logs).Remove(unwanted)
	s.loop.Notify()
	return err
}
