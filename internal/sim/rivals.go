package sim

import (
	"fmt"
	"time"

	"fairway/internal/dispatch"
	"fairway/internal/taskqueue"
)

// rivals are other users of the TaskQueue, each with a run of jobs without files (rivals: of an
// experiment). They come within rivalTime of the workflow. All have the same jobs: those of one group
// share results, and one of them has a group of its own.
type rivals struct {
	jobs  []task
	ended map[taskqueue.JobID]bool
	made  map[string]bool // scope and job of what was executed and committed
}

const (
	rivalUsers = 3
	rivalTime  = 20 * time.Minute
)

// rivalShares are those of the workflow's user and of the rivals.
var rivalShares = taskqueue.Shares{
	HalfLife: time.Hour,
	Of: []taskqueue.Share{
		{Name: "workflow", User: true, Weight: 2},
		{Name: "rivals", Weight: 1, Of: []taskqueue.Share{{Name: "rival2", User: true, Weight: 3}}},
	},
}

// accountOf is to whom a run of the simulation belongs, if there are rivals.
func (r *run) accountOf(id taskqueue.RunID) taskqueue.Account {
	switch {
	case r.exp.Workflow.Rivals == 0:
		return taskqueue.Account{}
	case id == theRun:
		return taskqueue.Account{User: "workflow"}
	}
	group := "rivals"
	if id == theRun+rivalUsers {
		group = "others"
	}
	return taskqueue.Account{Group: group, User: fmt.Sprint("rival", id)}
}

// scopeOf says with which runs a run of a rival shares results.
func (r *run) scopeOf(id taskqueue.RunID) string { return r.accountOf(id).Group }

// beginRivals has them submit their jobs, now and then.
func (r *run) beginRivals() {
	n := r.exp.Workflow.Rivals
	if n == 0 {
		return
	}
	r.rivals.ended, r.rivals.made = map[taskqueue.JobID]bool{}, map[string]bool{}
	draw := Stream(r.seed, "rivals")
	r.server.submit(taskqueue.SetShares{Shares: rivalShares})
	for u := range rivalUsers {
		id := theRun + 1 + taskqueue.RunID(u)
		r.server.submit(taskqueue.SetRun{Run: taskqueue.Run{
			ID: id, Account: r.accountOf(id), Scope: r.scopeOf(id), KeepGoing: true,
		}})
		for i := range n {
			name := fmt.Sprint("rival/", i)
			t := task{
				job: taskqueue.Job{Name: name, Step: "rival", Digest: name, Payload: appendIndex(nil, len(r.rivals.jobs))},
				run: r.exp.Workflow.Run.Draw(draw),
			}
			if w := &r.exp.Workflow; w.Tasks > 1 && draw.Float64() < float64(w.Gangs) {
				t.job.Tasks = 2 + draw.IntN(w.Tasks-1)
			}
			r.rivals.jobs = append(r.rivals.jobs, t)
			r.after(time.Duration(draw.Int64N(int64(rivalTime))), func() {
				r.server.submit(taskqueue.Submit{Run: id, Jobs: []taskqueue.Job{t.job}})
			})
		}
	}
}

// taskOf is what an assignment is of.
func (r *run) taskOf(as *taskqueue.Assignment) *task {
	if as.Job.Run() != theRun {
		return &r.rivals.jobs[indexOf(as.Payload)]
	}
	return &r.work.jobs[indexOf(as.Payload)]
}

// rivalEvent follows the jobs of rivals: each is committed once.
func (r *run) rivalEvent(e *taskqueue.Event) {
	switch e.Kind {
	case taskqueue.JobCommitted:
		attempt := takenAttempt
		if !e.Reused {
			attempt = e.Result.Attempt
		}
		r.rivalCommitted(e.Job, e.Name, attempt, false)
	case taskqueue.JobFailed, taskqueue.JobBlocked, taskqueue.JobCancelled:
		r.fail("job %s of another user ended as %v: %s", e.Name, e.Kind, e.Reason)
	}
}

// takenAttempt is that of a job which took the result of another.
const takenAttempt taskqueue.AttemptID = 1

// rivalCommitted makes sure that a job which took a result took one that was made in its group.
func (r *run) rivalCommitted(id taskqueue.JobID, name string, attempt taskqueue.AttemptID, again bool) {
	if result := r.scopeOf(id.Run()) + " " + name; attempt != takenAttempt {
		r.rivals.made[result] = true
	} else if !r.rivals.made[result] {
		r.fail("job %s of run %d took a result that nobody in its group has made", name, id.Run())
	}
	r.checkCommit(id, name, attempt, again)
	r.rivalEnded(id)
}

func (r *run) rivalEnded(id taskqueue.JobID) {
	if !r.rivals.ended[id] {
		r.rivals.ended[id] = true
		r.checkEnd()
	}
}

// recountRivals notes what was committed unheard before a crash.
func (r *run) recountRivals(core *dispatch.Core) {
	if len(r.rivals.jobs) == 0 {
		return
	}
	for _, taken := range []bool{false, true} { // what was made comes before who took it
		for u := range rivalUsers {
			for j := range core.Jobs(theRun+1+taskqueue.RunID(u), 0) {
				if j.Committed != 0 && taken == (j.Committed == takenAttempt) {
					r.rivalCommitted(j.ID, j.Name, j.Committed, true)
				}
			}
		}
	}
}
