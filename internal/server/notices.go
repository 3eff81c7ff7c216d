package server

import (
	"context"
	"fmt"
	"strings"
	"time"

	"fairway/internal/notice"
	"fairway/internal/server/state"
	"fairway/internal/taskqueue"
)

// StuckTime is for how long no job of a run may run, though some could, before a notice says so.
const StuckTime = 10 * time.Minute

func (s *Server) noteEnd(r *run, end *Outcome) {
	if s.notices == nil || end.HandedOver {
		return
	}
	event, text := notice.Failed, "has failed"
	switch {
	case end.Succeeded:
		event, text = notice.Succeeded, "has succeeded"
	case end.Stopped:
		event, text = notice.Stopped, "was stopped"
	}
	text += " after " + (time.Duration(end.seconds) * time.Second).String()
	if len(end.Problems) > 0 {
		text += ": " + end.Problems[0]
	}
	s.note(r, event, text, end.Problems)
}

func (s *Server) note(r *run, event, text string, problems []string) {
	name := r.config.Workflow.Name
	s.notices.Send(notice.Notice{
		Event: event, Run: uint32(r.room.Run), Workflow: name, Folder: s.folders.Workflow, Problems: problems,
		Text: fmt.Sprintf("Run %d of %s %s.", r.room.Run, name, strings.TrimSuffix(text, ".")),
	})
}

// watchStuck tells of runs that are stuck, once until they go on, until ctx ends.
func (s *Server) watchStuck(ctx context.Context) {
	since, told := map[taskqueue.RunID]time.Time{}, map[taskqueue.RunID]bool{}
	tick := time.NewTicker(StuckTime / 10)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		now := time.Now()
		for _, r := range s.runs.all() {
			id := r.room.Run
			switch {
			case !s.stands(ctx, r):
				delete(since, id)
				delete(told, id)
			case since[id].IsZero():
				since[id] = now
			case now.Sub(since[id]) >= StuckTime && !told[id]:
				told[id] = true
				s.note(r, notice.Stuck, "is stuck: no job runs, though some are ready: "+
					strings.Join(s.pilots.Waiting(), "; "), nil)
			}
		}
	}
}

// stands reports whether no job of a run runs, though some are ready.
func (s *Server) stands(ctx context.Context, r *run) (stands bool) {
	_ = r.inbox.Query(ctx, func(c *state.Cores) {
		view, _ := c.Dispatch.Run(c.Run)
		n := &view.Totals.ByState
		stands = n[taskqueue.Ready] > 0 && n[taskqueue.Running]+n[taskqueue.Assigned] == 0
	})
	return stands
}
