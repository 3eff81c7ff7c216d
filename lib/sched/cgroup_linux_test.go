package sched

import (
	"os"
	"path/filepath"
	"runtime"
	"testing"

	"golang.org/x/sys/unix"
)

func TestCgroupLimits(t *testing.T) {
	root := t.TempDir()
	put := func(name, text string) {
		t.Helper()
		name = filepath.Join(root, name)
		if err := os.MkdirAll(filepath.Dir(name), 0o700); err != nil {
			t.Fatal(err)
		}
		write(t, name, text)
	}
	put("a/b/cpu.max", "max 100000\n")
	put("a/cpu.max", "150000 100000\n")
	put("a/c/cpu.max", "50000 100000\n")
	for own, want := range map[string]int{"/a/b": 2, "/a/c": 1, "/": 0, "/a/none": 2} {
		if got := cgroup2Limit(root, own); got != want {
			t.Errorf("limit of %s is %d, want %d", own, got, want)
		}
	}
	put("v1/cpu.cfs_quota_us", "-1\n")
	put("v1/cpu.cfs_period_us", "100000\n")
	put("v1/x/cpu.cfs_quota_us", "310000\n")
	put("v1/x/cpu.cfs_period_us", "100000\n")
	if got := cgroup1Limit(root, "/v1/x"); got != 4 {
		t.Errorf("limit %d", got)
	}
	if got := cgroup1Limit(root, "/v1"); got != 0 {
		t.Errorf("limit %d", got)
	}
}

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

func TestChosenProcessors(t *testing.T) {
	now := runtime.GOMAXPROCS(0)
	defer runtime.SetDefaultGOMAXPROCS()
	runtime.GOMAXPROCS(now + 5)
	if got := chosenProcessors(); got != now+5 {
		t.Errorf("chosen %d, want %d", got, now+5)
	}
	runtime.GOMAXPROCS(now)
	t.Setenv("GOMAXPROCS", "")
	if want := defaultProcessors(runtime.NumCPU(), cgroupLimit()); now == want {
		if got := chosenProcessors(); got != 0 {
			t.Errorf("chosen %d, though nobody chose", got)
		}
	}
	for _, c := range []struct{ processors, limit, want int }{{8, 0, 8}, {8, 3, 3}, {8, 1, 2}, {1, 1, 1}, {4, 6, 4}} {
		if got := defaultProcessors(c.processors, c.limit); got != c.want {
			t.Errorf("%d processors, limit %d: %d, want %d", c.processors, c.limit, got, c.want)
		}
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
