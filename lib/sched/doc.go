// Package sched answers events at once, however much is being computed.
//
// A goroutine that waits for something outside the program asks the scheduler
// to detect it, and the scheduler chooses how: by active polling, by blocking a
// thread, or by first polling and then blocking. Requests of one kind are
// detected together. (Bougé, Danjean, Namyst, "Improving Reactivity to I/O
// Events in Multithreaded Environments Using a Uniform, Scheduler-Centric API",
// 2002, is the source of the idea; [Kind] adds the arm step, the way to unblock
// a group and the adaptive choice.)
//
// # Waiting
//
//	s := sched.Default()
//	state, err := s.WaitProcess(ctx, process)          // end of a process
//	info, err := s.WaitFile(ctx, sched.FileQuery{...}) // a file appears or changes
//	err = s.WaitReadable(ctx, fd)                      // readiness of a descriptor
//	err = s.Sleep(ctx, d); err = s.WaitUntil(ctx, t)   // time
//	v, err := sched.Receive(ctx, s, ch)                // completion of a channel
//	v, err := sched.Call(ctx, s, start)                // completion of a callback
//	h := sched.Register(s, sched.Kind[Req, Res]{...})  // a kind of one's own
//	res, err := h.Wait(ctx, req)
//
// Guarantees:
//
//   - Any goroutine may wait; none needs to be a task. Waits end with the event,
//     with the error of ctx, or with [ErrClosed].
//   - An event is never lost, whenever it comes relative to the request, to a
//     poll, to arming, to a block, to the cancellation of another request or to
//     a change of the group. A request that is made after its event ends at once
//     wherever the source still shows the event (descriptors, processes, files).
//   - When a wait has returned, its kind no longer knows the request: Group has
//     been told, and what the request refers to may be closed.
//   - An event that was detected before ctx ended is returned, not dropped. So is
//     what BlockEach has taken when it is asked to return, by ctx or by Close.
//   - A panic in a callback ends all waits of that kind, now and later, with a
//     [*PanicError], and nothing else; a callback that ends its goroutine does so with
//     [ErrExited]. docs/sched.md says what a callback may call. A condition that belongs to one wait (of
//     a file, of a status) ends only that wait.
//   - Requests of one kind end in the order in which their events are detected;
//     there is no order between kinds.
//
// Without computing tasks a Scheduler has at most the goroutines that detect
// events somebody waits for: one for all descriptors and processes, which holds
// no thread, one for all polled kinds, one per blocking kind. A goroutine that
// waits alone does it itself. They end when nobody has waited for a while.
// Nothing polls when nobody waits. While a slot is idle, a kind that can only be polled is
// polled without a pause for a while (Kind.Eager, Config.IdlePolling).
//
// Timers and channels involve only the waiting goroutine, so they work with
// testing/synctest: make the Scheduler inside the bubble.
//
// # How to wait
//
// Try, wait, and try again:
//
//	for {
//		n, err := unix.Read(fd, buffer)
//		if err != unix.EAGAIN {
//			return n, err
//		}
//		if err := s.WaitReadable(ctx, fd); err != nil {
//			return 0, err
//		}
//	}
//
// An event between the try and the wait is not lost, since the descriptor still shows it
// when the wait begins. A wait that has ended says that the event has come, and not that
// it is still there: somebody else may have read the data, so the loop tries again.
//
// A [Kind] is watched by the same pattern. The scheduler calls Poll, Arm, Poll and Block in
// this order: the second Poll finds an event that came before Arm, and a later one ends Block.
//
// # Computing
//
//	t := s.Go(ctx, func(t *sched.Task) error { ...; t.Checkpoint(); ... })
//	err := t.Wait(ctx)
//
// A task computes only while it holds one of the scheduler's slots. There are as
// many as the process may use processors, and the Go runtime also gets
// spare processors (Ps), so a goroutine that an event wakes finds one free.
//
//   - A waiting task has given its slot back. When its event comes, a task that
//     has used less than others runs at once, over the number of slots if need be
//     (up to the spare processors less one); a checkpoint of another task, or its
//     own, pays the debt. A task that has used more waits for its turn.
//   - Tasks of higher priority get slots first and take them at checkpoints of
//     lower ones. Among equals the one goes first that has used slots for the
//     least time; a task that runs lets it go after a quantum. So equals get equal
//     shares, whether they wait or compute all the time. The longest time that the
//     others compute between two checkpoints bounds the wait for a slot (see
//     docs/sched.md). A task that never passes a checkpoint keeps
//     its slot until it waits or ends.
//   - The reaction to an event does not depend on checkpoints: threads that
//     compute are told from those that react by scheduling attributes that need
//     no privilege (see [Priorities]), and a woken task does not wait behind others
//     for slots that their holders have had for 20 ms and more.
//   - A task must not hold a lock across a checkpoint or a wait, since those who
//     get its slot may want that lock. [Task.Block] gives the slot back for a call
//     that is known to block. Where tasks have threads of their own, a task that
//     blocks with a slot while others wait for one, once for long or often for a
//     moment, lends it to them after 0.1 to 0.2 s, and the log says so once; so
//     they don't wait for ever.
//   - These guarantees do not cover computing outside tasks: goroutines that
//     keep every P busy delay reactions as they do in any Go program.
//
// A task waits as itself by passing [Task.Context] (or a context made from it)
// to the wait. Other goroutines that wait with that context leave the slot alone.
//
// # Systems
//
// The full guarantees hold on Linux 6.12 and later. On an older Linux
// the package works without the missing features (short slices, pidfds, inotify)
// and says so once in the log. On
// other systems waits work, by poll(2) where there is one, by a thread for each
// process, and by polling for files; slots work; thread priorities don't, so a
// reaction may take as long as the system lets a computing thread run.
//
// # The way through the package
//
//   - Waiting: kind.go takes a request into its source. source.detect (source.go) decides
//     who looks for the event, by wantsBlock (strategy.go), which chooses between polling
//     and blocking. Where the source blocks, one of the waiting goroutines leads
//     (source.lead), or a thread of the pool does (source.follow); both are in leader.go,
//     which argues why no event is lost. Where it is polled, the poller does that
//     (poller.serve), and tasks at their checkpoints (checkpoint.go); on an idle machine
//     the waiter itself does, without a pause (eager.go).
//   - Descriptors on Linux: the leader is parked in pollSet.block (fd_linux.go), and holds
//     no thread; the Go runtime's own poller waits for the epoll descriptor of all.
//   - Computing: slot.go gives out the slots, and argues how long a task may wait.
//   - Kinds that come with the package: fd, file, process, signal, timer, channel,
//     status, each in a file of that name.
package sched
