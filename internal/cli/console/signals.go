package console

import (
	"context"
	"os"
	"os/signal"
	"sync/atomic"
	"syscall"

	"fairway/lib/sched"
)

// QuitQuietly has Ctrl-\ end the process without a word, unless signalled attends to it. Go would
// print all goroutines; SIGABRT still has it do so.
func QuitQuietly() {
	quits := make(chan os.Signal, 1)
	signal.Notify(quits, syscall.SIGQUIT)
	go func() {
		for range quits {
			if attending.Load() == 0 {
				os.Exit(ExitQuit)
			}
		}
	}()
}

var attending atomic.Int32

// Signalled calls each of its functions at the next signal that asks the program to
// end, in order, the last one from then on. The returned function ends that.
//
// A terminal that is closed sends SIGHUP more than once: its shell does, and the kernel when the
// shell ends. What ends a session may send SIGTERM besides. So SIGHUP asks only where nothing has
// asked before, and what comes after it is no repetition. Ctrl-\ (SIGQUIT) wants what a repetition
// does.
func Signalled(actions ...func(os.Signal)) (stop func()) {
	asked := []os.Signal{os.Interrupt, syscall.SIGTERM, syscall.SIGQUIT}
	if !signal.Ignored(syscall.SIGHUP) { // by nohup
		asked = append(asked, syscall.SIGHUP)
	}
	signals := sched.Default().Signals(asked...)
	attending.Add(1)
	go func() {
		var a asks
		for {
			s, err := signals.Wait(context.Background())
			if err != nil {
				return // closed
			}
			if i := a.next(s); i >= 0 {
				actions[min(i, len(actions)-1)](s)
			}
		}
	}()
	return func() {
		attending.Add(-1)
		signals.Close()
	}
}

// asks are the wishes that signals have brought.
type asks struct {
	n    int  // how many there were
	hung bool // the first was that the terminal is closed, and nothing was asked since then
}

// next is the number of the wish that a signal is, from 0, or -1 where it is none.
func (a *asks) next(s os.Signal) int {
	switch {
	case s == syscall.SIGHUP && a.n > 0:
		return -1
	case s == syscall.SIGHUP:
		a.hung = true
	case s == syscall.SIGQUIT:
		a.n, a.hung = max(a.n, 1), false
	case a.hung:
		a.hung = false
		return -1
	}
	a.n++
	return a.n - 1
}
