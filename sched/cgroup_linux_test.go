package sched

import (
	"os"
	"path/filepath"
	"testing"
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
