package server

import (
	"context"
	"testing"

	"connectrpc.com/connect"

	"fairway/internal/server/listen"
	"fairway/internal/wire"
	"fairway/test/files"
)

// Who asks for endings hears of each job that ends after that, with what it has made, and of none
// that had ended before; what a job has made can be read.
func TestEndings(t *testing.T) {
	root := files.Folder(t, nil)
	whileOpen(t, root, func(ctx context.Context, c *listen.Connection) {
		ctx, cancel := context.WithCancel(ctx)
		defer cancel()
		submit := func(jobs ...*wire.SubmittedJob) {
			if _, err := c.Submit(ctx, &wire.SubmitRequest{Jobs: jobs}); err != nil {
				t.Error(err)
			}
		}
		before, err := c.Endings(ctx, &wire.EndingsRequest{})
		if err != nil || !before.Receive() || len(before.Msg().GetJobs()) > 0 {
			t.Errorf("it begins with %v, %v", before.Msg(), err)
			return
		}
		submit(submitted("a", nil, "a.txt"))
		heard := func(stream *connect.ServerStreamForClient[wire.EndedJobs], n int) map[string]*wire.EndedJob {
			jobs := map[string]*wire.EndedJob{}
			for len(jobs) < n && stream.Receive() {
				for _, job := range stream.Msg().GetJobs() {
					jobs[job.GetSummary().GetName()] = job
				}
			}
			return jobs
		}
		a := heard(before, 1)["a"]
		if a.GetSummary().GetState() != "done" || len(a.GetWrites()) != 1 ||
			files.Read(t, a.GetWrites()[0].GetPath()) != "a:" {
			t.Errorf("a ended as %v", a)
		}
		after, err := c.Endings(ctx, &wire.EndingsRequest{})
		if err != nil || !after.Receive() {
			t.Error(err)
			return
		}
		submit(submitted("bad", nil, "bad.txt"), submitted("b", from("a.txt", ""), "b.txt"))
		jobs := heard(after, 2)
		if len(jobs) != 2 || jobs["bad"].GetSummary().GetState() != "failed" || jobs["b"].GetSummary().GetState() != "done" {
			t.Errorf("heard %v", jobs)
		}
		read, err := c.Fetch(ctx, &wire.FetchRequest{Lfn: "b.txt"})
		if err != nil || !read.Receive() || string(read.Msg().GetData()) != "b:a:" {
			t.Errorf("read %v, %v", read.Msg(), err)
		}
		none, err := c.Fetch(ctx, &wire.FetchRequest{Lfn: "bad.txt"})
		if err == nil && none.Receive() || connect.CodeOf(none.Err()) != connect.CodeNotFound {
			t.Errorf("reading what was not made: %v", none.Err())
		}
	})
}

// Who names jobs hears at once of those that have ended, however they did, and of no others.
func TestEndingsOfNamedJobs(t *testing.T) {
	root := files.Folder(t, nil)
	whileOpen(t, root, func(ctx context.Context, c *listen.Connection) {
		ends, err := c.Endings(ctx, &wire.EndingsRequest{})
		if err != nil || !ends.Receive() {
			t.Error(err)
			return
		}
		jobs := []*wire.SubmittedJob{submitted("a", nil, "a.txt"), submitted("bad", nil, "bad.txt"),
			submitted("other", nil, "other.txt")}
		if _, err := c.Submit(ctx, &wire.SubmitRequest{Jobs: jobs}); err != nil {
			t.Error(err)
			return
		}
		for ended := 0; ended < len(jobs) && ends.Receive(); {
			ended += len(ends.Msg().GetJobs())
		}
		named, err := c.Endings(ctx, &wire.EndingsRequest{Jobs: []string{"bad", "never", "a"}})
		if err != nil || !named.Receive() {
			t.Errorf("nothing is told: %v", err)
			return
		}
		told := named.Msg().GetJobs()
		if len(told) != 2 || told[0].GetSummary().GetState() != "failed" || told[1].GetSummary().GetState() != "done" ||
			files.Read(t, told[1].GetWrites()[0].GetPath()) != "a:" {
			t.Errorf("told of %v", told)
		}
		if named.Receive() || named.Err() != nil {
			t.Errorf("it goes on with %v, %v", named.Msg(), named.Err())
		}
		many, err := c.Endings(ctx, &wire.EndingsRequest{Jobs: make([]string, 1001)})
		if err == nil && many.Receive() || connect.CodeOf(many.Err()) != connect.CodeInvalidArgument {
			t.Errorf("1001 jobs: %v", many.Err())
		}
	})
}
