package processors

import (
	"os"
	"path/filepath"
	"runtime"
	"testing"
)

func TestTighterLimits(t *testing.T) {
	for _, c := range []struct {
		limit         int
		quota, period string
		want          int
	}{
		{0, "1", "100000", 1}, {0, "100001", "100000", 2}, {2, "300000", "100000", 2}, {3, "200000", "100000", 2},
		{4, "-1", "100000", 4}, {4, "max", "100000", 4}, {4, "100000", "0", 4}, {0, "0", "100000", 0}, {0, "2", "1", 2},
	} {
		if got := tighter(c.limit, c.quota, c.period); got != c.want {
			t.Errorf("%d, %s of %s: %d, not %d", c.limit, c.quota, c.period, got, c.want)
		}
	}
}

func TestCgroupLimits(t *testing.T) {
	root := t.TempDir()
	put := func(name, text string) {
		t.Helper()
		name = filepath.Join(root, name)
		if err := os.MkdirAll(filepath.Dir(name), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
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

func TestChosenProcessors(t *testing.T) {
	now := runtime.GOMAXPROCS(0)
	defer runtime.SetDefaultGOMAXPROCS()
	runtime.GOMAXPROCS(now + 5)
	if got := Chosen(); got != now+5 {
		t.Errorf("chosen %d, want %d", got, now+5)
	}
	runtime.GOMAXPROCS(now)
	t.Setenv("GOMAXPROCS", "")
	if want := byDefault(runtime.NumCPU(), CgroupLimit()); now == want {
		if got := Chosen(); got != 0 {
			t.Errorf("chosen %d, though nobody chose", got)
		}
	}
	for _, c := range []struct{ processors, limit, want int }{{8, 0, 8}, {8, 3, 3}, {8, 1, 2}, {1, 1, 1}, {4, 6, 4}} {
		if got := byDefault(c.processors, c.limit); got != c.want {
			t.Errorf("%d processors, limit %d: %d, want %d", c.processors, c.limit, got, c.want)
		}
	}
}
