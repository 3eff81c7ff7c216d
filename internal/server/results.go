package server

import (
	"context"
	"fmt"
	"time"

	"google.golang.org/protobuf/proto"

	"fairway/internal/server/api"
	"fairway/internal/server/loop"
	"fairway/internal/server/state"
	"fairway/internal/taskqueue"
	"fairway/internal/wire"
)

// A lasting server keeps results for as long as a run that it keeps names them, and after that for as
// long as a policy says: see Core.Forgettable.

// resultsPeriod is how often a lasting server looks which results are kept no longer.
const resultsPeriod = time.Minute

// watchResults removes results whose time is over until ctx ends.
func (s *Server) watchResults(ctx context.Context) {
	if jump := s.keeping.ahead(); jump > keepingJump {
		s.log.Warn("the clock went far ahead while no server ran: results are kept longer, and go by and by", "ahead", jump)
	}
	for s.sched.Sleep(ctx, resultsPeriod) == nil {
		s.cutResults(ctx)
	}
}

// cutResults removes results that are kept no longer, with what is known of how they were made: those
// whose time is over, and the oldest of those that no group has promised to keep, where there are a
// twentieth more than the limit. So it looks through all of them once for many that go.
func (s *Server) cutResults(ctx context.Context) {
	var gone []taskqueue.UnusedResult
	at := s.keeping.now()
	err := s.inbox.Query(ctx, func(c *state.Cores) {
		keep := s.config.UnusedResults
		if c.Dispatch.Results() <= keep+keep/20 {
			keep = c.Dispatch.Results()
		}
		gone = c.Dispatch.Forgettable(at, keep, 0)
	})
	if err == nil && len(gone) > 0 {
		err = s.forgetResults(ctx, gone)
	}
	if err == nil {
		err = s.recordKeeping(ctx)
	}
	if failed(ctx, err) {
		s.log.Warn("results that nobody needs could not be removed", "error", err)
	}
}

// recordKeeping makes durable how far results were kept.
func (s *Server) recordKeeping(ctx context.Context) error {
	records, err := s.keeping.record()
	if records == nil {
		return err
	}
	return s.inbox.Deliver(ctx, func() *loop.Request { return &loop.Request{Records: records} })
}

// tellResults adds to what a removal tells which results the run names, and what would keep them.
func (s *Server) tellResults(ctx context.Context, removed *api.RemovedRun) error {
	var named []taskqueue.NamedResult
	err := s.inbox.Query(ctx, func(c *state.Cores) { named = c.Dispatch.NamedBy(removed.Run, state.Now()) })
	if err != nil {
		return err
	}
	shown := map[taskqueue.RunID]string{}
	for _, result := range named {
		told := api.RunResult{NamedResult: result}
		for _, id := range result.Others {
			if shown[id] == "" {
				if shown[id], err = s.shownRun(ctx, id); err != nil {
					return err
				}
			}
			told.NamedBy = append(told.NamedBy, shown[id])
		}
		removed.Results = append(removed.Results, told)
	}
	return nil
}

func (s *Server) shownRun(ctx context.Context, id taskqueue.RunID) (string, error) {
	run, err := state.LoadRunOf(ctx, s.records, id)
	if err != nil || run == nil || run.Account.User == "" {
		return fmt.Sprintf("run %d", id), err
	}
	return fmt.Sprintf("run %d of %s", id, run.Account.User), nil
}

// forgetResults has the core forget results, unless a job has taken them meanwhile.
func (s *Server) forgetResults(ctx context.Context, results []taskqueue.UnusedResult) error {
	attempts := make([]taskqueue.AttemptID, len(results)) // that made them; 0: not known
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
			attempts[i] = taskqueue.AttemptID(p.GetAttempt().GetAttempt())
		}
	}
	var unwanted []taskqueue.AttemptID
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
				r.Records = append(r.Records, taskqueue.Record{
					Table: state.ProvenanceTable, Key: state.ProvenanceKey(results[i].Job, key),
				})
				if attempts[i] != 0 {
					unwanted = append(unwanted, attempts[i])
				}
			}
			r.Dispatch = []taskqueue.Input{taskqueue.ForgetResults{Keys: keys}}
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
