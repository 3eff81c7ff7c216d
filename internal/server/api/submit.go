package api

import (
	"context"
	"errors"
	"fmt"

	"connectrpc.com/connect"
	"golang.org/x/sync/errgroup"

	"fairway/internal/flow/workflow"
	"fairway/internal/logical"
	"fairway/internal/rights"
	"fairway/internal/server/convert"
	"fairway/internal/server/loop"
	"fairway/internal/server/state"
	"fairway/internal/taskqueue"
	"fairway/internal/wire"
)

// filesAtATime is how many files that jobs read are looked at side by side.
const filesAtATime = 8

// submission is one call of Submit. It is made beside the loop, as far as that needs no cores.
type submission struct {
	jobs  []taskqueue.Job
	reads [][]taskqueue.ExistingFile // of each job, in the order of its Reads; without a PFN: a job writes it

	// What prepare finds out in the loop.
	known []bool // by job: it had been submitted before
}

// Submit adds jobs to an open run, all or none, and answers when they are durable.
func (s *Service) Submit(ctx context.Context, r *wire.SubmitRequest) (*wire.SubmitResponse, error) {
	a, err := s.allowed(ctx, r.GetRun(), rights.Submit)
	if err != nil {
		return nil, err
	}
	if a.control == nil {
		return nil, s.errNotRunning(a)
	}
	if n := len(r.GetJobs()); n > wire.MaxSubmitted {
		return nil, connect.NewError(connect.CodeResourceExhausted,
			fmt.Errorf("one call submits at most %d jobs, and not %d: make several calls", wire.MaxSubmitted, n))
	}
	submitted, err := a.newSubmission(ctx, r.GetJobs(), r.GetWaitAnyway())
	if err != nil {
		return nil, err
	}
	answer := new(wire.SubmitResponse)
	err = a.run.Change(ctx, &loop.Request{
		Prepare: submitted.prepare, Ask: func(c *state.Cores) { submitted.describe(c, answer) },
	})
	return answer, rpcError(err)
}

func (a *view) newSubmission(
	ctx context.Context, jobs []*wire.SubmittedJob, waitAnyway bool,
) (*submission, error) {
	s := &submission{reads: make([][]taskqueue.ExistingFile, len(jobs)), known: make([]bool, len(jobs))}
	made := make([]workflow.NewJob, len(jobs))
	var err error
	for i, asked := range jobs {
		if made[i], err = workflow.Submitted(convert.SubmittedFromWire(asked)); err != nil {
			return nil, notAJob(i, asked.GetName(), err)
		}
		if err := a.control.Check([]workflow.Demand{workflow.DemandOf(&made[i])}, waitAnyway); err != nil {
			return nil, notAJob(i, asked.GetName(), err)
		}
	}
	if s.jobs, err = convert.JobsWithPayload(made); err != nil {
		return nil, err
	}
	var group errgroup.Group
	group.SetLimit(filesAtATime)
	for i, asked := range jobs {
		s.reads[i] = make([]taskqueue.ExistingFile, len(asked.GetReads()))
		for k, in := range asked.GetReads() {
			s.reads[i][k].LFN = in.GetLfn()
			if in.GetFile() == "" {
				continue
			}
			group.Go(func() error {
				file, err := a.control.FindFile(ctx, in.GetLfn(), in.GetFile())
				if err != nil {
					return notAJob(i, asked.GetName(), fmt.Errorf("it reads %s: %w", in.GetFile(), err))
				}
				s.reads[i][k] = file
				return nil
			})
		}
	}
	return s, group.Wait()
}

func notAJob(i int, name string, err error) error {
	if name == "" {
		name = fmt.Sprintf("number %d of this call", i+1)
	}
	return connect.NewError(connect.CodeInvalidArgument, fmt.Errorf("job %s cannot be submitted: %w", name, err))
}

var errClosed = connect.NewError(connect.CodeFailedPrecondition,
	errors.New("the run takes no jobs: it was closed, or its workflow makes them; `fairway open` opens one"))

// prepare finds out which of the jobs are new, and what is to be done for the others: what has
// failed is tried again.
func (s *submission) prepare(c *state.Cores, r *loop.Request) error {
	if !c.Flow.Accepts() {
		return errClosed
	}
	writers := map[string]string{}            // by LFN: the last job that writes it, of this call or before
	added := map[string]string{}              // what the jobs do and read that are new, by name
	var files, found []taskqueue.ExistingFile // of new jobs, and of those that are tried again
	var fresh []taskqueue.Job
	var again []taskqueue.JobID
	for i := range s.jobs {
		job := &s.jobs[i]
		marks := make([]string, len(job.Reads))
		for k, file := range s.reads[i] {
			if marks[k] = file.Identity; file.PFN == "" {
				marks[k] = lastWriter(c, writers, file.LFN)
			}
		}
		if job.Name == "" {
			job.Name = workflow.NameOf(job, job.Step, marks)
		}
		for k := range job.Writes {
			writers[job.Writes[k].LFN] = job.Name
		}
		does := job.Digest
		for _, file := range outside(s.reads[i]) {
			does += fmt.Sprintf(" %q %q", file.LFN, file.Identity)
		}
		before, twice := added[job.Name]
		id, known := c.Dispatch.JobNamed(c.Run, job.Name)
		if !known && !twice {
			added[job.Name] = does
			files = append(files, outside(s.reads[i])...)
			fresh = append(fresh, *job)
			continue
		}
		s.known[i] = true
		detail, _ := c.Dispatch.Detail(id)
		if known && detail.Digest != job.Digest || twice && before != does {
			return connect.NewError(connect.CodeAlreadyExists, fmt.Errorf("another job is called %s: it executes something "+
				"else, or has other files; give this one a name of its own", job.Name))
		}
		if lfn := otherContents(s.reads[i], detail.Reads); known && lfn != "" {
			return connect.NewError(connect.CodeAlreadyExists, fmt.Errorf("a job that is called %s was submitted when its "+
				"input %s held something else; give this one a name of its own", job.Name, lfn))
		}
		if detail.State == taskqueue.Failed || detail.State == taskqueue.Cancelled {
			again = append(again, id)
			found = append(found, outside(s.reads[i])...)
		}
	}
	if view, ok := c.Dispatch.Run(c.Run); ok && len(fresh) > 0 {
		if err := RefuseQueued(c.Dispatch, view.Account, len(fresh)); err != nil {
			return err
		}
	}
	if len(fresh) > 0 {
		r.Dispatch = append(r.Dispatch, taskqueue.Submit{Run: c.Run, Files: files, Jobs: fresh})
	}
	if len(found) > 0 { // the same contents, maybe as another file than before
		r.Dispatch = append(r.Dispatch, taskqueue.AddFiles{Run: c.Run, Files: found})
	}
	if len(again) > 0 {
		r.Dispatch = append(r.Dispatch, taskqueue.RetryJobs{Jobs: again})
	}
	return nil
}

func outside(reads []taskqueue.ExistingFile) (files []taskqueue.ExistingFile) {
	for _, file := range reads {
		if file.PFN != "" {
			files = append(files, file)
		}
	}
	return files
}

// otherContents names a file that exists and holds something else than when a job was submitted that reads
// it; empty: there is none.
func otherContents(now []taskqueue.ExistingFile, then []taskqueue.FileView) string {
	for _, file := range outside(now) {
		for _, f := range then {
			if f.File.LFN == file.LFN && f.Writer == 0 && f.Identity != logical.Known(file.LFN, file.Identity) {
				return file.LFN
			}
		}
	}
	return ""
}

func lastWriter(c *state.Cores, ofCall map[string]string, lfn string) string {
	if name, ok := ofCall[lfn]; ok {
		return name
	}
	if versions, ok := c.Dispatch.History(c.Run, lfn); ok {
		last := &versions[len(versions)-1]
		return last.MadeBy.Name + last.Mark
	}
	return ""
}

// describe tells how the jobs stand.
func (s *submission) describe(c *state.Cores, answer *wire.SubmitResponse) {
	for i := range s.jobs {
		id, ok := c.Dispatch.JobNamed(c.Run, s.jobs[i].Name)
		if !ok {
			return // the call was refused
		}
		job, _ := c.Dispatch.Job(id)
		answer.Jobs = append(answer.Jobs, &wire.SubmittedRef{
			Id: id.Number(), Name: job.Name, State: job.State.String(), Known: s.known[i],
		})
	}
}
