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

// The limit is that of the hierarchy which has one: of the second version, or of the processors in the first.
func TestLimitOfTheCgroupsOfAProcess(t *testing.T) {
	root := t.TempDir()
	for name, text := range map[string]string{
		"own/cpu.max": "300000 100000\n", "cpu/first/cpu.cfs_quota_us": "200000\n", "cpu/first/cpu.cfs_period_us": "100000\n",
	} {
		name = filepath.Join(root, name)
		if err := os.MkdirAll(filepath.Dir(name), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for text, want := range map[string]int{
		"":                                 0,
		"0::/own\n":                        3,
		"0::/none\n":                       0,
		"2:cpu,cpuacct:/first\n":           2,
		"2:cpuacct,cpu:/first\n":           2,
		"2:memory:/first\n":                0,
		"2:cpu\n":                          0,
		"cpu\n":                            0,
		"3:memory:/own\n2:cpu:/first\n":    2,
		"3:cpuset:/first\n2:cpu:/first:x":  0,
		"3:memory:/x\n0::/own\n2:cpu:/x\n": 3,
	} {
		if got := limitOf(root, text); got != want {
			t.Errorf("the limit of %q is %d, want %d", text, got, want)
		}
	}
	if got := cgroup1Limit(filepath.Join(root, "cpu"), "first/below"); got != 2 {
		t.Errorf("of a group below the limit is %d", got)
	}
}

// There are as many Ps as the scheduler wants that wants most, and then as many as before, unless somebody has
// set another number since.
func TestPsAreThoseOfWhoWantsMost(t *testing.T) {
	t.Setenv("GOMAXPROCS", "")
	defer runtime.SetDefaultGOMAXPROCS()
	person := byDefault(runtime.NumCPU(), CgroupLimit()) + 5
	runtime.GOMAXPROCS(person)
	var a, b int
	step := func(what string, want int) {
		t.Helper()
		if got := runtime.GOMAXPROCS(0); got != want {
			t.Errorf("%s there are %d Ps; want %d", what, got, want)
		}
		if got := Chosen(); got != person {
			t.Errorf("%s %d are chosen", what, got)
		}
	}
	Want(&a, 0)
	step("when nobody wanted any", person)
	Want(&a, 1)
	step("when one wants one", 1)
	Want(&b, person+2)
	step("when another wants more", person+2)
	Want(&b, person+2)
	step("when it wants them again", person+2)
	Want(&a, person+4)
	step("when the first wants most", person+4)
	Want(&a, 0)
	step("without the first", person+2)
	Want(&a, 0)
	step("without it twice", person+2)
	Want(&b, 0)
	step("without both", person)

	Want(&a, person+1)
	person += 3
	runtime.GOMAXPROCS(person)
	Want(&a, 0)
	step("when a person has set another number since", person)
	if len(shared.wanted) != 0 {
		t.Errorf("%v are wanted", shared.wanted)
	}

	runtime.SetDefaultGOMAXPROCS()
	own := runtime.GOMAXPROCS(0)
	Want(&a, own+1)
	if got := Chosen(); got != 0 {
		t.Errorf("%d are chosen by nobody", got)
	}
	Want(&a, 0)
	if got := runtime.GOMAXPROCS(0); got != own {
		t.Errorf("%d Ps are left of the runtime's own %d", got, own)
	}
}
