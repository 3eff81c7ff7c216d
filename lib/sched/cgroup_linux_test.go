package sched

import (
	"os"
	"testing"

	"golang.org/x/sys/unix"
)

func TestLimitFollowsTheAffinityOfTheProcess(t *testing.T) {
	s := newTest(t, Config{})
	var before unix.CPUSet
	if err := unix.SchedGetaffinity(os.Getpid(), &before); err != nil {
		t.Fatal(err)
	}
	all := s.limit()
	defer func() {
		if err := unix.SchedSetaffinity(os.Getpid(), &before); err != nil {
			t.Error(err)
		}
	}()
	first := 0
	for !before.IsSet(first) {
		first++
	}
	var one unix.CPUSet
	one.Set(first)
	if err := unix.SchedSetaffinity(os.Getpid(), &one); err != nil {
		t.Fatal(err)
	}
	if got := s.limit(); got != 1 {
		t.Errorf("limit %d on one processor", got)
	}
	if err := unix.SchedSetaffinity(os.Getpid(), &before); err != nil {
		t.Fatal(err)
	}
	if got := s.limit(); got != all {
		t.Errorf("limit %d, want %d again", got, all)
	}
}

// A second scheduler must not take for a person's choice what the first one set.
func TestASecondSchedulerSeesThroughTheFirst(t *testing.T) {
	first := newTest(t, Config{})
	if err := first.Run(patient(t), func(*Task) error {
		if second := newTest(t, Config{}); second.limit() != first.limit() {
			t.Errorf("limits %d and %d", second.limit(), first.limit())
		}
		return nil
	}); err != nil {
		t.Fatal(err)
	}
}
