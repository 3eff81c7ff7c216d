package sched

import (
	"errors"
	"os"
	"os/signal"
	"runtime"
	"syscall"
	"testing"
	"time"

	"fairway/lib/sched/internal/processors"

	"golang.org/x/sys/unix"
)

// A descriptor that nobody waits for any more is known no more, nor one that has come and will not again.
func TestDescriptorsAreForgotten(t *testing.T) {
	p, err := newPollSet()
	if err != nil {
		t.Fatal(err)
	}
	defer p.close()
	var ends [2]int
	if err := unix.Pipe2(ends[:], unix.O_NONBLOCK|unix.O_CLOEXEC); err != nil {
		t.Fatal(err)
	}
	defer unix.Close(ends[0])
	defer unix.Close(ends[1])
	s := newTest(t, Config{})
	h := Register(s, p.kind())
	wait := func(fd FD) chan error {
		done := make(chan error, 1)
		go func() { _, err := h.Wait(patient(t), fd); done <- err }()
		return done
	}
	known := func() *pollFile {
		p.mu.Lock()
		defer p.mu.Unlock()
		return p.files[int32(ends[0])]
	}
	done := wait(FD{Num: ends[0], Want: Readable, once: true})
	until(t, s, "known", func() bool { return known() != nil })
	if _, err := unix.Write(ends[1], []byte{1}); err != nil {
		t.Fatal(err)
	}
	if err := <-done; err != nil || known() != nil {
		t.Errorf("what will not come again is known: %v", err)
	}
	if err := <-wait(FD{Num: ends[0], Want: Readable}); err != nil || known() == nil {
		t.Errorf("what may come again is not known: %v", err)
	}
	r := &Request[FD, Events]{Value: FD{Num: ends[0], Want: Writable}}
	p.group(r, true)
	if p.group(r, false); known() != nil {
		t.Error("what nobody waits for is known")
	}
	ev := unix.EpollEvent{Events: unix.EPOLLIN, Fd: int32(ends[0])}
	if err := p.control(unix.EPOLL_CTL_MOD, &ev); err != unix.ENOENT {
		t.Errorf("the kernel knows it: %v", err)
	}
}

// A poll takes what is there, without a block.
func TestPollOfDescriptors(t *testing.T) {
	p, err := newPollSet()
	if err != nil {
		t.Fatal(err)
	}
	defer p.close()
	s := newTest(t, Config{})
	h := Register(s, Kind[FD, Events]{Name: "polled", Poll: p.poll, Group: p.group, Strategy: PollOnly})
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	w.Close()
	if got, err := h.Wait(patient(t), FD{Num: int(r.Fd()), Want: Readable}); err != nil || got&Hangup == 0 {
		t.Error(got, err)
	}
}

func TestNapperIsClosed(t *testing.T) {
	n, err := newNapper()
	if err != nil {
		t.Skip(err)
	}
	if n.close(); n.set(time.Millisecond) {
		t.Error("it can be set")
	}
}

func TestEndOfNoChildIsAnError(t *testing.T) {
	if err := awaitEnd(os.Getpid()); !errors.Is(err, syscall.ECHILD) {
		t.Error(err)
	}
}

// What a scheduler sets is not what a person has chosen.
func TestProcessorsOfTasksAreNotChosen(t *testing.T) {
	before := processors.Chosen()
	s := newTest(t, Config{Slots: 3, Spare: 4})
	err := s.Run(patient(t), func(*Task) error {
		if got := processors.Chosen(); got != before {
			t.Errorf("a person has chosen %d, and beside a task %d", before, got)
		}
		return nil
	})
	if err != nil {
		t.Error(err)
	}
}

// A block ends after its limit, where nothing comes.
func TestBlockForDescriptorsIsLimited(t *testing.T) {
	p, err := newPollSet()
	if err != nil {
		t.Fatal(err)
	}
	defer p.close()
	done := make(chan struct{})
	go func() { defer close(done); p.block(time.Millisecond) }()
	select {
	case <-done:
	case <-patient(t).Done():
		t.Error("it does not end")
		p.unblock()
		<-done
	}
}

func TestThreadsBlockForProcessesOnOneProcessorOnly(t *testing.T) {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(2))
	s := &Scheduler{}
	if s.mayBlock() {
		t.Error("of two processors one is blocked")
	}
	runtime.GOMAXPROCS(1)
	for i := range maxBlockedWaits {
		if !s.mayBlock() {
			t.Errorf("no thread blocks beside %d", i)
		}
	}
	if s.mayBlock() || s.builtin.blocked.Load() != maxBlockedWaits {
		t.Errorf("%d threads block", s.builtin.blocked.Load())
	}
}

func TestSignalsEnd(t *testing.T) {
	other := make(chan os.Signal, 2)
	signal.Notify(other, syscall.SIGUSR1)
	defer signal.Stop(other)
	g := newTest(t, Config{}).Signals(syscall.SIGUSR1)
	g.Close()
	for range 2 { // when the second one comes the first has gone to all
		if err := unix.Kill(os.Getpid(), syscall.SIGUSR1); err != nil {
			t.Fatal(err)
		}
		<-other
	}
	if len(g.ch) > 0 {
		t.Error("signals come after the end")
	}
}

func TestTurnWithoutProcessorTime(t *testing.T) {
	th := &thread{p: &priorities{}, cpu: processorTime()}
	if spent := th.spent(time.Hour); spent < Grace || spent >= time.Hour {
		t.Errorf("an hour of waiting counts for %v", spent)
	}
	if spent := th.spent(Grace); spent != allOfIt {
		t.Errorf("a short turn counts for %v", spent)
	}
}

// A poll set without its descriptors is none.
func TestPollSetWithoutDescriptors(t *testing.T) {
	if err := (&pollSet{epfd: -1, wakefd: -1}).open(); !errors.Is(err, unix.EBADF) {
		t.Error(err)
	}
}

// Who is woken before it waits does not wait, once.
func TestAlarmsThatCameBefore(t *testing.T) {
	a := &descriptorAlarm{woken: true}
	if a.enter(func() {}) || !a.enter(func() {}) {
		t.Error("it does not wait once")
	}
}
