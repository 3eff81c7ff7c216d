package dispatch_test

import (
	"fmt"
	"time"

	"fairway/internal/dispatch"
	"fairway/internal/taskqueue"
)

// loop is the caller's loop that the package comment shows.
func loop(core *dispatch.Core, inputs <-chan taskqueue.Input, outside world) error {
	alarm := time.NewTimer(0)
	for {
		var in taskqueue.Input
		var more bool
		select {
		case in, more = <-inputs: // 1: one input at a time
			if !more {
				return nil
			}
		case <-alarm.C:
			in = taskqueue.Tick{}
		}
		effects, err := core.Step(time.Now(), in)
		if err != nil {
			outside.refuse(in, err) // nothing has changed
			continue
		}
		if err := outside.save(effects.Persist); err != nil { // 2: one transaction
			return err // 4: nothing is let out; Load what is durable
		}
		outside.letOut(effects)       // 3: replies, publications, removals, pilots, events
		if !effects.WakeAt.IsZero() { // 5: a Tick in time
			alarm.Reset(time.Until(effects.WakeAt))
		}
	}
}

// world is what the loop acts on.
type world interface {
	save(records []taskqueue.Record) error
	letOut(effects taskqueue.Effects)
	refuse(in taskqueue.Input, err error)
}

// oneNode keeps records in memory, prints what happens, and has a pilot whose jobs succeed at once.
type oneNode struct {
	records map[string][]byte
	inputs  chan taskqueue.Input
}

func (n *oneNode) save(records []taskqueue.Record) error {
	for _, r := range records {
		n.records[fmt.Sprint(r.Table, r.Run, r.Key)] = r.Body
	}
	return nil
}

func (n *oneNode) refuse(_ taskqueue.Input, err error) { fmt.Println(err) }

func (n *oneNode) letOut(effects taskqueue.Effects) {
	for _, e := range effects.Events {
		switch e.Kind {
		case taskqueue.JobReady, taskqueue.JobCommitted:
			fmt.Println(e.Kind, e.Name)
		case taskqueue.RunOver:
			close(n.inputs)
			return
		}
	}
	for _, reply := range effects.Replies {
		next := taskqueue.Sync{Pilot: reply.Pilot, Seq: reply.Seq + 1, LastAnswer: reply.Answer.Number, Hold: true}
		for _, a := range reply.Answer.Run {
			result := taskqueue.Result{Job: a.Job, Attempt: a.Attempt, Outcome: taskqueue.Succeeded}
			for _, o := range a.Outputs {
				result.Outputs = append(result.Outputs, taskqueue.WrittenFile{LFN: o.LFN, PFN: "store/" + o.LFN})
			}
			next.Ended = append(next.Ended, result)
		}
		n.inputs <- next
	}
}

// Two jobs, of which the second reads what the first writes, on one pilot.
func Example() {
	core, effects := dispatch.New(taskqueue.Config{})
	node := &oneNode{records: make(map[string][]byte), inputs: make(chan taskqueue.Input, 8)}
	if err := node.save(effects.Persist); err != nil {
		fmt.Println(err)
		return
	}
	run := core.NextRun()
	for _, in := range []taskqueue.Input{
		taskqueue.SetRun{Run: taskqueue.Run{ID: run, Name: "words"}},
		taskqueue.Submit{Run: run, Jobs: []taskqueue.Job{
			{Name: "sort", Writes: []taskqueue.Output{{LFN: "sorted"}}},
			{Name: "count", Reads: []string{"sorted"}, Writes: []taskqueue.Output{{LFN: "counts"}}},
		}},
		taskqueue.CompleteRun{Run: run},
		taskqueue.Sync{
			Pilot: "p1", Seq: 1, Full: true, Hold: true,
			Hello: &taskqueue.PilotInfo{Host: "node1", Has: taskqueue.Resources{MilliCPUs: 1000}},
		},
	} {
		node.inputs <- in
	}
	if err := loop(core, node.inputs, node); err != nil {
		fmt.Println(err)
	}
	// Output:
	// ready sort
	// committed sort
	// ready count
	// committed count
}
