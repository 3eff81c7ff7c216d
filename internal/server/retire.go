package server

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"connectrpc.com/connect"

	"fairway/internal/dispatch/records"
	"fairway/internal/fault"
	"fairway/internal/flow"
	"fairway/internal/server/api"
	"fairway/internal/server/folder"
	"fairway/internal/server/loop"
	"fairway/internal/server/publish"
	"fairway/internal/server/state"
	"fairway/internal/taskqueue"
)

// A run of a lasting server is concluded when it is over. One that has succeeded is retired then.

// over takes note, in the loop, of a run that has come to its end.
func (s *Server) over(run *loop.Run) { s.runs.ended.Put(run.Run) }

// endRuns concludes runs that are over until ctx ends.
func (s *Server) endRuns(ctx context.Context) {
	for _, r := range s.runs.all() { // whose retirement an earlier server did not complete
		if end := r.concluded.Load(); end != nil && end.Succeeded {
			s.runs.ended.Put(r.room.Run)
		}
	}
	s.sweepAll(ctx)
	for {
		ids, err := s.runs.ended.Take(ctx, s.sched)
		if err != nil {
			return
		}
		for _, id := range ids {
			r := s.runs.get(id)
			if r == nil {
				continue
			}
			err := s.endRun(ctx, r)
			r.tellPutAway()
			s.loop.Notify()
			if failed(ctx, err) {
				s.log.Error("a run that has ended could not be put away; the next server tries again", "run", id, "error", err)
			}
		}
		s.cutResults(ctx)
	}
}

// sweepAll deletes what an earlier server has left of runs that it has retired.
func (s *Server) sweepAll(ctx context.Context) {
	left, err := state.LoadSwept(ctx, s.records)
	for _, id := range left {
		err = errors.Join(err, s.sweep(ctx, id))
	}
	if failed(ctx, err) {
		s.log.Error("records of runs that were retired could not be deleted; the next server tries again", "error", err)
	}
}

// tellPutAway says of a run that has ended that it is put away, or could not be.
func (r *run) tellPutAway() {
	if r.concluded.Load() != nil && r.putAway.CompareAndSwap(false, true) {
		r.tellEnd()
	}
}

func (s *Server) endRun(ctx context.Context, r *run) error {
	if end := r.concluded.Load(); end != nil && end.Succeeded {
		return s.retire(ctx, r)
	}
	var outcome *Outcome
	var record taskqueue.Record
	var failure error
	// It waits as what changes something does: right after a load questions are answered by cores
	// that do not know yet that all is done.
	err := r.inbox.Deliver(ctx, func() *loop.Request {
		return &loop.Request{Prepare: func(c *state.Cores, _ *loop.Request) error {
			if !r.room.Ending.Over() {
				return nil // a person has it go on
			}
			ended := r.outcome(c, nil)
			ended.seconds = time.Since(r.began).Seconds()
			r.opened.run.Ended = time.Now()
			record, failure = r.endRecord(c, &ended)
			outcome = &ended
			r.concluded.Store(outcome)
			return nil
		}}
	})
	if err = errors.Join(err, failure); err != nil || outcome == nil {
		return err
	}
	if outcome.Succeeded {
		r.endPublishing()
	}
	err = r.inbox.Deliver(ctx, func() *loop.Request { return &loop.Request{Records: []taskqueue.Record{record}} })
	s.loop.Notify()
	s.noteEnd(r, outcome)
	if err == nil && outcome.Succeeded {
		err = s.retire(ctx, r)
	}
	return err
}

var (
	beforeArchive = fault.New("server.archive.before")
	beforeRetire  = fault.New("server.retire.before")
	beforeSweep   = fault.New("server.sweep.before")
)

func (s *Server) archiveOf(run taskqueue.RunID) string {
	return filepath.Join(s.folders.State, folder.ArchiveName, strconv.FormatUint(uint64(run), 10)+".db")
}

// archivedTables have the records of a run that move to its archive.
var archivedTables = []string{
	flow.TableRun, flow.TableLog, state.InputTable, state.AttemptTable, submissionTable, publish.PublishedTable,
}

// retiring says how much of a run that is retired is one transaction.
type retiring struct {
	jobs    int // that leave their results
	records int // that are deleted, or are written of its results
}

var retiredTogether = retiring{jobs: 1000, records: 2000}

// retire moves the records of a run to its archive, and has the core forget it. What grows with the run is
// done in pieces: others are served between.
func (s *Server) retire(ctx context.Context, r *run) error {
	id := r.room.Run
	_ = beforeArchive.Hit()
	provenance, err := s.archive(ctx, id)
	if err != nil {
		return fmt.Errorf("archiving run %d: %w", id, err)
	}
	_ = beforeRetire.Hit()
	run := *r.opened.run
	run.Archived = true
	if run.Stored, err = s.keepResults(ctx, id, provenance); err != nil {
		return err
	}
	record, err := run.Record()
	if err != nil {
		return err
	}
	left, err := state.NewRecord(state.SweptTable, id, state.RunKey, struct{}{})
	if err != nil {
		return err
	}
	kept := s.sharing.keep(run.Account, run.Stored)
	err = s.inbox.Drop(ctx, func() *loop.Request {
		return &loop.Request{
			Run: id, Dispatch: []taskqueue.Input{taskqueue.RetireRun{Run: id, Keep: true, Swept: true}, kept},
			Records: []taskqueue.Record{record, left},
		}
	})
	if err != nil {
		s.sharing.keep(run.Account, -run.Stored)
		return fmt.Errorf("retiring run %d: %w", id, err)
	}
	r.opened.run = &run
	s.runs.putAway(&run)
	s.runs.drop(r)
	_ = beforeSweep.Hit()
	return s.sweep(ctx, id)
}

// keepResults has a run leave its results and how they were made, and returns how many bytes it has stored.
func (s *Server) keepResults(
	ctx context.Context, id taskqueue.RunID, provenance []taskqueue.Record,
) (stored int64, err error) {
	jobs := 0
	if err := s.inbox.Query(ctx, func(c *state.Cores) {
		run, _ := c.Dispatch.Run(id)
		jobs, stored = run.Totals.Jobs, c.Dispatch.StoredBytes(id)
	}); err != nil {
		return 0, err
	}
	for from := 1; from <= jobs; from += s.retiring.jobs {
		in := taskqueue.KeepResults{Run: id, From: uint32(from), Jobs: s.retiring.jobs}
		err := s.inbox.Deliver(ctx, func() *loop.Request {
			return &loop.Request{Run: id, Dispatch: []taskqueue.Input{in}}
		})
		if err != nil {
			return 0, fmt.Errorf("keeping the results of run %d: %w", id, err)
		}
	}
	for piece := range slices.Chunk(provenance, s.retiring.records) {
		err := s.inbox.Deliver(ctx, func() *loop.Request {
			return &loop.Request{Run: id, Prepare: func(c *state.Cores, q *loop.Request) error {
				q.Records = slices.DeleteFunc(slices.Clone(piece), func(r taskqueue.Record) bool {
					job, key, _ := strings.Cut(r.Key, "\n")
					maker := c.Dispatch.MadeBy(key)
					return maker != "" && maker != job // its result is that of another job, and what it made itself goes
				})
				return nil
			}}
		})
		if err != nil {
			return 0, fmt.Errorf("keeping how the results of run %d were made: %w", id, err)
		}
	}
	return stored, nil
}

func (s *Server) sweep(ctx context.Context, id taskqueue.RunID) error {
	deleted := func(records []taskqueue.Record) error {
		for i := range records {
			records[i].Body = nil
		}
		err := s.inbox.Deliver(ctx, func() *loop.Request { return &loop.Request{Records: records} })
		if err != nil {
			return fmt.Errorf("deleting what is left of run %d: %w", id, err)
		}
		return nil
	}
	for _, table := range slices.Concat(records.Tables(), archivedTables) {
		if err := s.inPieces(ctx, table, id, s.retiring.records, deleted); err != nil {
			return err
		}
	}
	return deleted([]taskqueue.Record{{Table: state.SweptTable, Run: id, Key: state.RunKey}})
}

// inPieces calls take with the records that a table has of a run, some at a time: who writes to the store waits
// for each reader. They may be deleted meanwhile.
func (s *Server) inPieces(
	ctx context.Context, table string, id taskqueue.RunID, most int, take func([]taskqueue.Record) error,
) error {
	for from := ""; ; {
		part, err := s.records.LoadPart(ctx, table, id, from, state.LastKey, most)
		if err != nil || len(part) == 0 {
			return err
		}
		from = part[len(part)-1].Key + "\x00"
		if err := take(slices.Clone(part)); err != nil || len(part) < most {
			return err
		}
	}
}

func (s *Server) archive(ctx context.Context, id taskqueue.RunID) (provenance []taskqueue.Record, err error) {
	all, err := s.records.Load(ctx, state.HostTable)
	if err != nil {
		return nil, err
	}
	for _, table := range slices.Concat(records.Tables(), archivedTables, []string{state.RunTable}) {
		err := s.inPieces(ctx, table, id, archivePart, func(part []taskqueue.Record) error {
			all = append(all, part...)
			return nil
		})
		if err != nil {
			return nil, err
		}
	}
	taken, err := records.TakenResults(all)
	if err != nil {
		return nil, err
	}
	err = s.records.Each(ctx, records.TableResult, func(r taskqueue.Record) error {
		if taken[r.Key] {
			r.Body = bytes.Clone(r.Body)
			all = append(all, r)
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	if err := s.writeArchive(ctx, s.archiveOf(id), all); err != nil {
		return nil, err
	}
	_, made, _, err := records.Fresh(all)
	if err != nil {
		return nil, err
	}
	provenance, _, err = state.ProvenanceOf(ctx, state.Records(all), made)
	return provenance, err
}

// RemoveRun is part of api.Lasting. The record of the run goes last, so that a removal that was cut
// short is completed when it is asked for again.
func (s *Server) RemoveRun(ctx context.Context, id taskqueue.RunID, dry bool) (*api.RemovedRun, error) {
	s.runs.removing.Lock()
	defer s.runs.removing.Unlock()
	if free, _, err := spaceOf(s.folders.State); err == nil && free < maxSpare && !dry {
		s.giveSpare()
	}
	recorded, err := state.LoadRunOf(ctx, s.records, id)
	if err != nil {
		return nil, err
	}
	if recorded == nil {
		return nil, api.NoRun(uint32(id), api.ListedRuns)
	}
	r := s.runs.get(id)
	if r != nil && r.ended() == nil {
		return nil, connect.NewError(connect.CodeFailedPrecondition, fmt.Errorf("run %d is under way; `fairway stop --run "+
			"%d` ends it", id, id))
	}
	removed := &api.RemovedRun{Run: id}
	paths := append([]string{s.layoutOf(id).Results}, s.ownOf(recorded)...)
	for _, path := range append(paths, s.archiveOf(id)) {
		size, err := sizeOf(path)
		if errors.Is(err, os.ErrNotExist) {
			continue
		}
		if err != nil {
			return nil, err
		}
		removed.Paths, removed.Bytes = append(removed.Paths, path), removed.Bytes+size
	}
	if err := s.tellResults(ctx, removed); err != nil || dry {
		return removed, err
	}
	if r != nil {
		if err := s.retire(ctx, r); err != nil {
			return nil, err
		}
		recorded = r.opened.run
	}
	if err := s.removeLogsOf(ctx, id); err != nil {
		return nil, err
	}
	if err := s.role.Assert(ctx); err != nil {
		return nil, err
	}
	for _, path := range removed.Paths {
		if err := os.RemoveAll(path); err != nil {
			return nil, err
		}
	}
	if err := os.Remove(s.archiveOf(id)); err != nil && !errors.Is(err, os.ErrNotExist) {
		return nil, err
	}
	err = s.forget(ctx, recorded)
	s.cutResults(ctx)
	return removed, err
}

// forget removes the record of a run. Its key is free then, and its number is given to no other run.
func (s *Server) forget(ctx context.Context, run *state.Run) error {
	if err := s.releaseResults(ctx, run.ID); err != nil {
		return err
	}
	s.runs.submitting.Lock()
	number := s.runs.last
	s.runs.submitting.Unlock()
	last, err := state.NewRecord(lastTable, 0, lastRunKey, number)
	if err != nil {
		return err
	}
	kept := s.sharing.keep(run.Account, -run.Stored)
	err = s.inbox.Deliver(ctx, func() *loop.Request {
		return &loop.Request{
			Records:  []taskqueue.Record{{Table: state.RunTable, Run: run.ID, Key: state.RunKey}, last},
			Dispatch: []taskqueue.Input{kept, taskqueue.ReleaseRun{Run: run.ID}},
		}
	})
	if err != nil {
		s.sharing.keep(run.Account, run.Stored)
	} else {
		s.runs.submitting.Lock()
		delete(s.runs.keys, submissionOf(run))
		s.runs.submitting.Unlock()
		s.runs.remove(run.ID)
	}
	s.loop.Notify()
	return err
}

// releasedTogether is how many results are released in one transaction.
const releasedTogether = 2000

// releaseResults has no result named by a run any more, in pieces: others are served between.
func (s *Server) releaseResults(ctx context.Context, id taskqueue.RunID) error {
	var keys []string
	if err := s.inbox.Query(ctx, func(c *state.Cores) { keys = c.Dispatch.KeysNamedBy(id) }); err != nil {
		return err
	}
	for piece := range slices.Chunk(keys, releasedTogether) {
		err := s.inbox.Deliver(ctx, func() *loop.Request {
			return &loop.Request{Dispatch: []taskqueue.Input{taskqueue.ReleaseRun{Run: id, Results: piece}}}
		})
		if err != nil {
			return err
		}
	}
	return nil
}

func sizeOf(path string) (size int64, err error) {
	if _, err := os.Lstat(path); err != nil {
		return 0, err
	}
	err = filepath.WalkDir(path, func(_ string, entry fs.DirEntry, err error) error {
		if err != nil || !entry.Type().IsRegular() {
			return err
		}
		info, err := entry.Info()
		size += info.Size()
		return err
	})
	return size, err
}

// removeLogsOf removes what the attempts of an archived run printed, but for those that made a
// result which is kept.
func (s *Server) removeLogsOf(ctx context.Context, id taskqueue.RunID) error {
	attempts, err := state.ArchivedAttempts(ctx, s.archiveOf(id))
	if err != nil {
		return err
	}
	kept, err := state.ResultAttempts(ctx, s.records)
	if err != nil {
		return err
	}
	attempts = slices.DeleteFunc(attempts, func(a taskqueue.AttemptID) bool { return kept[a] })
	return state.Logs(s.folders.Logs).Remove(attempts)
}
