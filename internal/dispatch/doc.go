// Package dispatch is the TaskQueue of paper 3 (section IV) as a passive state
// machine: jobs that read and write files, pilots that pull them, one FIFO of
// read and write requests per file.
//
// The package has no goroutine, no clock, no I/O and no random source. Time
// enters as an argument of [Core.Step], and every act on the outside leaves as
// [taskqueue.Effects]. The duties of the caller, in this order:
//
//  1. Call Step for one input at a time, from one goroutine at a time.
//  2. Make every record of Effects.Persist durable, in one transaction, in
//     order. Effects of several transitions may be joined, in their order.
//  3. Only then let the rest out: replies, publications, removals, pilots to
//     start and stop, events.
//  4. If 2 fails, let nothing out, discard the Core and [Load] it from what is
//     durable.
//  5. Step a [taskqueue.Tick] no later than Effects.WakeAt.
//
// As code (the example runs it, with a world of one pilot):
//
//	alarm := time.NewTimer(0)
//	for {
//		var in taskqueue.Input
//		var more bool
//		select {
//		case in, more = <-inputs: // 1: one input at a time
//			if !more {
//				return nil
//			}
//		case <-alarm.C:
//			in = taskqueue.Tick{}
//		}
//		effects, err := core.Step(time.Now(), in)
//		if err != nil {
//			outside.refuse(in, err) // nothing has changed
//			continue
//		}
//		if err := outside.save(effects.Persist); err != nil { // 2: one transaction
//			return err // 4: nothing is let out; Load what is durable
//		}
//		outside.letOut(effects)       // 3: replies, publications, removals, pilots, events
//		if !effects.WakeAt.IsZero() { // 5: a Tick in time
//			alarm.Reset(time.Until(effects.WakeAt))
//		}
//	}
//
// docs/states.md shows the states of a job.
//
// A [Core] has any number of runs, each one submission of a workflow.
//
// A [Core] is composed of seven parts, each the owner of one kind of state:
// placement, fleet, jobs, files, runs, shares and journal. A part calls the parts after it
// in this list only. Begin with the comments of these types; docs/dispatch.md has
// their rules.
//
// Guarantees: conflicting jobs get a file in the order of their submission;
// there is no deadlock, because all requests of a job are inserted together;
// outputs of a job become visible all together and from one attempt; a reader
// gets the version of its place in the FIFO and no other.
package dispatch
