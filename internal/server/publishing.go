package server

import (
	"context"
	"fmt"
	"time"

	"fairway/internal/dispatch"
	"fairway/internal/server/convert"
	"fairway/internal/server/folder"
	"fairway/internal/server/loop"
)

const (
	// PublishTries is how often a file is tried to be published before the run
	// gives it up; the next run tries again. What comes right after such a file
	// is tried once, or a full disk would hold the end up for each file.
	PublishTries = 6
	// PublishPause is the time after the first failure. It doubles with each
	// further one.
	PublishPause = 200 * time.Millisecond
	// publishRound bounds the files that are published before the loop is told: one
	// of its transactions takes in so many, and a job may have many thousands.
	publishRound = 512
)

// publishLoop carries out publications until ctx ends. While one fails, those
// behind it wait: publications are in order.
func (s *Server) publishLoop(ctx context.Context) {
	p := newPublisher(s.standing, func(lfn string) bool { return s.isOld(ctx, lfn) }, func(lfn, name string) {
		note := fmt.Sprintf("%s/%s was not published by this state, or was changed since: it is now %s/%s", folder.ResultsFolder, lfn, folder.ResultsFolder, name)
		_ = s.inbox.Note(ctx, note)
	})
	for {
		batch, err := s.toPublish.Take(ctx, s.sched)
		if err != nil {
			return
		}
		for tries := 0; len(batch) > 0; {
			done, failure := p.publishAll(batch[:min(len(batch), publishRound)])
			if s.tellPublished(ctx, batch[:done]) != nil {
				return
			}
			batch = batch[done:]
			if done > 0 {
				tries = 0
			}
			if failure == nil {
				continue
			}
			s.log.Warn("a result could not be published", "error", failure)
			if tries++; tries == PublishTries {
				_ = s.inbox.GiveUp(ctx, batch[0].File, failure)
				batch, tries = batch[1:], PublishTries-1
			} else if s.sched.Sleep(ctx, PublishPause<<(tries-1)) != nil {
				return
			}
		}
	}
}

func (s *Server) tellPublished(ctx context.Context, batch []dispatch.Publish) error {
	if len(batch) == 0 {
		return nil
	}
	records := make([]dispatch.Record, 0, len(batch))
	for _, b := range batch {
		r, _ := s.standing.get(b.File.LFN)
		record, err := r.record()
		if err != nil {
			return err
		}
		records = append(records, record)
	}
	return s.inbox.Deliver(ctx, func() *loop.Request {
		return &loop.Request{Records: records, Dispatch: convert.Each(batch, func(b dispatch.Publish) dispatch.Input {
			return dispatch.Published{File: b.File}
		})}
	})
}
