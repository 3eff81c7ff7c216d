package loop

import (
	"slices"

	"fairway/internal/flow"
	"fairway/internal/taskqueue"
)

// pieceJobs is how many jobs are submitted until questions are answered that have come meanwhile.
const pieceJobs = 500

// submit submits jobs, all or none, in pieces. Between them questions are answered: who asks need
// not wait for all, and may see some of the jobs only. The events wait for propagate.
func (l *Loop) submit(in taskqueue.Submit) error {
	if len(in.Jobs) <= pieceJobs {
		return l.stepDispatch(in)
	}
	if err := l.Dispatch.Refuses(in); err != nil {
		return err
	}
	for piece := range slices.Chunk(in.Jobs, pieceJobs) {
		in.Jobs = piece
		if err := l.stepDispatch(in); err != nil {
			return err
		}
		in.Files = nil // they came with the first piece
		l.answerQuestions()
	}
	return nil
}

// always can be received from.
var always = func() chan struct{} {
	c := make(chan struct{})
	close(c)
	return c
}()

// mayGoOn can be received from while a run has more to do. Others may gather more meanwhile, and wait for no more
// than two pieces in a transaction.
func (l *Loop) mayGoOn() <-chan struct{} {
	if len(l.unfinished) == 0 || l.busy && len(l.gathering.records) >= flow.PieceJobs {
		return nil
	}
	return always
}

// goOn has one run make a piece of the jobs that are left: others are served between. A run that is to end makes
// no more.
func (l *Loop) goOn() {
	run := l.unfinished[0]
	l.unfinished = l.unfinished[1:]
	run.listed = false
	if l.runs[run.Run] != run || run.Ending.phase != running {
		return
	}
	l.touch(run)
	if err := l.stepFlow(run, flow.Tick{}); err != nil {
		run.Ending.fail(err)
	}
	l.propagate()
}

// list has a run go on, if something is left.
func (l *Loop) list(run *Run) {
	if !run.listed && run.Flow != nil && run.Flow.Unfinished() {
		run.listed = true
		l.unfinished = append(l.unfinished, run)
	}
}
