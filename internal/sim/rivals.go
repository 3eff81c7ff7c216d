package sim

import (
	"fmt"
	"time"

	"fairway/internal/dispatch"
)

// rivals are other users of the TaskQueue, each with a run of jobs without files (rivals: of an
// experiment). They come within rivalTime of the workflow.
type rivals struct {
	jobs  []task
	ended map[dispatch.JobID]bool
}

const (
	rivalUsers = 2
	rivalTime  = 20 * time.Minute
)

// rivalShares are those of the workflow's user and of the rivals.
var rivalShares = dispatch.Shares{
	HalfLife: time.Hour,
	Of: []dispatch.Share{
		{Name: "workflow", User: true, Weight: 2},
		{Name: "rivals", Weight: 1, Of: []dispatch.Share{{Name: "rival2", User: true, Weight: 3}}},
	},
}

// accountOf is to whom a run of the simulation belongs, if there are rivals.
func (r *run) accountOf(id dispatch.RunID) dispatch.Account {
	switch {
	case r.exp.Workflow.Rivals == 0:
		return dispatch.Account{}
	case id == theRun:
		return dispatch.Account{User: "workflow"}
	}
	return dispatch.Account{Group: "rivals", User: fmt.Sprint("rival", id)}
}

// beginRivals has them submit their jobs, now and then.
func (r *run) beginRivals() {
	n := r.exp.Workflow.Rivals
	if n == 0 {
		return
	}
	r.rivals.ended = map[dispatch.JobID]bool{}
	draw := Stream(r.seed, "rivals")
	r.server.submit(dispatch.SetShares{Shares: rivalShares})
	for u := range rivalUsers {
		id := theRun + 1 + dispatch.RunID(u)
		r.server.submit(dispatch.SetRun{Run: dispatch.Run{ID: id, Account: r.accountOf(id), KeepGoing: true}})
		for i := range n {
			name := fmt.Sprintf("rival%d/%d", id, i)
			t := task{
				job: dispatch.Job{Name: name, Step: "rival", Digest: name, Payload: appendIndex(nil, len(r.rivals.jobs))},
				run: r.exp.Workflow.Run.Draw(draw),
			}
			if w := &r.exp.Workflow; w.Tasks > 1 && draw.Float64() < float64(w.Gangs) {
				t.job.Tasks = 2 + draw.IntN(w.Tasks-1)
			}
			r.rivals.jobs = append(r.rivals.jobs, t)
			r.after(time.Duration(draw.Int64N(int64(rivalTime))), func() {
				r.server.submit(dispatch.Submit{Run: id, Jobs: []dispatch.Job{t.job}})
			})
		}
	}
}

// taskOf is what an assignment is of.
func (r *run) taskOf(as *dispatch.Assignment) *task {
	if as.Job.Run() != theRun {
		return &r.rivals.jobs[indexOf(as.Payload)]
	}
	return &r.work.jobs[indexOf(as.Payload)]
}

// rivalEvent follows the jobs of rivals: each is committed once.
func (r *run) rivalEvent(e *dispatch.Event) {
	switch e.Kind {
	case dispatch.JobCommitted:
		r.checkCommit(e.Job, e.Name, e.Result.Attempt, false)
		r.rivalEnded(e.Job)
	case dispatch.JobFailed, dispatch.JobBlocked, dispatch.JobCancelled:
		r.fail("job %s of another user ended as %v: %s", e.Name, e.Kind, e.Reason)
	}
}

func (r *run) rivalEnded(id dispatch.JobID) {
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
	for u := range rivalUsers {
		for j := range core.Jobs(theRun+1+dispatch.RunID(u), 0) {
			if j.Committed != 0 {
				r.checkCommit(j.ID, j.Name, j.Committed, true)
				r.rivalEnded(j.ID)
			}
		}
	}
}
