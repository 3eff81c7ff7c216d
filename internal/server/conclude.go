package server

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"google.golang.org/protobuf/proto"

	"fairway/internal/server/convert"
	"fairway/internal/server/publish"
	"fairway/internal/server/state"
	"fairway/internal/taskqueue"
	"fairway/internal/wire"
)

// conclude finds out how the run of the folder ended, tidies up, and makes that durable. A
// lasting server has its runs go on later. The loop has ended, so the cores are at rest; failure
// is why, if not in order.
func (s *Server) conclude(failure error) Outcome {
	if s.loop.Leaving.Abandoned() || errors.Is(failure, errFolderGone) {
		// Pilots that hear nothing could store files after they were swept, and would work for nobody.
		s.pilots.Close()
	}
	if s.runs.own == nil {
		return s.restRuns(failure)
	}
	r := s.runs.own
	outcome := r.outcome(&r.room.Cores, failure)
	if failure == nil {
		r.tidy(outcome.Succeeded)
		outcome.Notes = r.room.Ending.AllNotes()
	}
	outcome.seconds = time.Since(r.began).Seconds()
	r.concluded.Store(&outcome)
	if failure == nil {
		record, err := r.endRecord(&r.room.Cores, &outcome)
		if err == nil {
			err = s.records.Apply(context.Background(), []taskqueue.Record{record})
		}
		if err != nil {
			s.log.Error("the end of the run could not be recorded; it can be gone on with", "error", err)
		}
	}
	r.tellEnd()
	s.loop.Notify()
	s.noteEnd(r, &outcome)
	return outcome
}

// outcome tells how the run ended, of which the cores are at rest.
func (r *run) outcome(c *state.Cores, failure error) Outcome {
	e := r.room.Ending
	if failure != nil {
		e.Problem(failure.Error())
		return Outcome{Problems: e.AllProblems(), Notes: e.AllNotes()}
	}
	view, _ := c.Dispatch.Run(c.Run)
	totals := &view.Totals
	good := totals.ByState[taskqueue.Done]
	if r.config.Workflow.Open() { // failures of before were told to those who submitted the jobs
		good += totals.ByState[taskqueue.Failed] + totals.ByState[taskqueue.Blocked] + totals.ByState[taskqueue.Cancelled]
	}
	done := good == totals.Jobs && c.Tally.Finished
	for _, refused := range c.Flow.Refused() {
		e.Problem(refused)
	}
	if !done && !e.Requested() && len(e.AllProblems()) == 0 {
		e.Problem(unfinished(c, totals))
	}
	return Outcome{
		Succeeded: done && !e.Failed() && (!r.config.Workflow.Open() || len(e.AllProblems()) == 0),
		Stopped:   e.Requested() && !done,
		Problems:  e.AllProblems(),
		Notes:     e.AllNotes(),
	}
}

// unfinished says what is left when nothing failed and yet not all is done.
func unfinished(c *state.Cores, totals *taskqueue.Totals) string {
	count := func(state taskqueue.State) int { return totals.ByState[state] }
	switch {
	case count(taskqueue.Failed) > 0:
		return fmt.Sprintf("jobs that failed: %d; `fairway jobs --state failed` lists them", count(taskqueue.Failed))
	case count(taskqueue.Cancelled) > 0:
		return fmt.Sprintf("jobs that were cancelled: %d; `fairway retry JOB` and `fairway run` let one run after all",
			count(taskqueue.Cancelled))
	}
	for _, held := range c.Flow.Held(1) {
		return fmt.Sprintf("nothing can run any more, though not all jobs were made: %s: %s", held.Job, held.Reason)
	}
	if count(taskqueue.Blocked) > 0 {
		for job := range c.Dispatch.Jobs(c.Run, 0) {
			if job.State == taskqueue.Blocked {
				return fmt.Sprintf("jobs that cannot run: %d; the first is %s: %s; `fairway run` tries again",
					count(taskqueue.Blocked), job.Name, job.Reason)
			}
		}
	}
	return "nothing can run any more, though not all is done; `fairway jobs` lists what is left"
}

// endRecord is the record of the run that says how it ended.
func (r *run) endRecord(c *state.Cores, outcome *Outcome) (taskqueue.Record, error) {
	run := r.opened.run
	run.State = state.Failed
	switch {
	case outcome.Succeeded:
		run.State = state.Succeeded
	case outcome.Stopped:
		run.State = state.Stopped
	}
	run.Problems, run.Notes = outcome.Problems, outcome.Notes
	run.Refused = len(c.Flow.Refused()) > 0
	run.Seconds = r.before.Seconds + outcome.seconds
	if view, ok := c.Dispatch.Run(c.Run); ok {
		run.Removed, run.BytesRemoved = r.before.Removed+int64(view.Removed), r.before.BytesRemoved+view.RemovedBytes
	}
	run.Pilots = r.before.Pilots + c.Tally.Pilots
	if r.owner != 0 { // most were there before
		run.Pilots = c.Tally.Workers()
	}
	run.Waiting = r.before.Waiting + c.Tally.Sums.Waiting.Seconds()
	run.Totals = nil
	if steps := c.Dispatch.Steps(c.Run); atRest(steps) {
		run.Totals = steps
	}
	return run.Record()
}

// atRest reports whether no attempt is under way, so that the next one who
// loads the jobs finds them in the same states.
func atRest(steps []taskqueue.StepTotals) bool {
	return !slices.ContainsFunc(steps, func(s taskqueue.StepTotals) bool {
		return s.ByState[taskqueue.Assigned]+s.ByState[taskqueue.Running] > 0
	})
}

// leavingTime is how long a server tries to say that it publishes no more. Where it
// could not, the next one takes over from it as from one that was killed.
const leavingTime = 30 * time.Second

func (r *run) endPublishing() {
	ctx, cancel := context.WithTimeout(context.Background(), leavingTime)
	defer cancel()
	if err := r.results.EndTurn(ctx); err != nil {
		r.server.log.Warn("where results get ready something stays", "at", r.results.Place(), "error", err)
	}
}

// UnusedResultLimit bounds the results of earlier runs that a run has not used
// and that are kept when it did not succeed, for a later one. Beyond it the
// oldest are removed, with their files.
const UnusedResultLimit = 100_000

// tidy removes what pilots stored and could not report any more. After success
// nothing is kept that this run doesn't use, neither stored nor among the
// results.
func (r *run) tidy(succeeded bool) {
	defer r.endPublishing()
	s, c := r.server, &r.room.Cores
	needed := publish.StoredOf(c)
	keep := UnusedResultLimit
	// The rest is needed later: by a run up to another target, by jobs that are submitted again.
	succeeded = succeeded && r.config.Workflow.Target() == "" && !r.config.Workflow.Open()
	if succeeded {
		keep = 0
	}
	gone, kept := oldest(c.Dispatch.Unused(), keep)
	for _, result := range kept {
		needed.Add(result.PFNs...)
	}
	records := convert.Each(gone, func(r taskqueue.UnusedResult) taskqueue.Record { return r.Record })
	err := s.records.Apply(context.Background(), records)
	if err == nil && succeeded {
		err = r.results.Tidy(c, r.config.KeepResults)
	}
	if err == nil {
		err = s.removeLogs(context.Background(), gone)
	}
	if err == nil {
		err = s.storage.Sweep(context.Background(), needed)
	}
	if err != nil {
		s.log.Warn("files that nobody needs could not be removed", "folder", s.folders.Storage, "error", err)
	}
}

// oldest parts results, oldest first, into those that go and the last ones, of
// which keep stay.
func oldest(results []taskqueue.UnusedResult, keep int) (gone, kept []taskqueue.UnusedResult) {
	at := max(0, len(results)-keep)
	return results[:at], results[at:]
}

// removeLogs removes the logs of results that are no longer kept. What is known
// of how they were made stays until the run is forgotten: it tells why their jobs
// ran again.
func (s *Server) removeLogs(ctx context.Context, gone []taskqueue.UnusedResult) error {
	if len(gone) == 0 {
		return nil
	}
	records, err := s.records.Load(ctx, state.ProvenanceTable)
	if err != nil {
		return err
	}
	without := make(map[string]bool, len(gone))
	for i := range gone {
		without[state.ProvenanceKey(gone[i].Job, gone[i].Record.Key)] = true
	}
	var unwanted []taskqueue.AttemptID
	for _, r := range records {
		if !without[r.Key] {
			continue
		}
		p := new(wire.Provenance)
		if err := proto.Unmarshal(r.Body, p); err != nil {
			return fmt.Errorf("record %s %q: %w", state.ProvenanceTable, r.Key, err)
		}
		unwanted = append(unwanted, taskqueue.AttemptID(p.GetAttempt().GetAttempt()))
	}
	return state.Logs(s.folders.Logs).Remove(unwanted)
}
