package state

import (
	"math"
	"strings"
	"testing"
	"time"

	"fairway/internal/dispatch"
	"fairway/internal/taskqueue"
)

// However large the lies of a pilot are, the sums of a run do not grow by more than the work
// that it was given; the truth stays as it is.
func TestLiesDoNotFalsifyTheSums(t *testing.T) {
	now := time.Unix(1_800_000_000, 0)
	core, _ := dispatch.New(taskqueue.Config{})
	for _, in := range []taskqueue.Input{
		taskqueue.SetRun{Run: taskqueue.Run{ID: 1, Name: "w"}},
		taskqueue.AddFiles{Run: 1, Files: []taskqueue.ExistingFile{{LFN: "a", PFN: "file:/a", Size: 100, Identity: "a"}, {LFN: "b", PFN: "file:/b", Size: 50, Identity: "b"}}},
		taskqueue.Submit{Run: 1, Jobs: []taskqueue.Job{{Name: "j", Step: "s", Reads: []string{"a", "b"}, Writes: []taskqueue.Output{{LFN: "out"}}}}},
	} {
		if _, err := core.Step(now, in); err != nil {
			t.Fatal(err)
		}
	}
	c := &Cores{Run: 1, Dispatch: core}
	job := taskqueue.NewJobID(1, 1)
	// of another clock
	at := func(minutes int) time.Time { return now.Add(-24*time.Hour + time.Duration(minutes)*time.Minute) }
	honest := taskqueue.Usage{
		StageInStart: at(0), Start: at(1), End: at(5), StageOutEnd: at(6), StagedAhead: time.Minute, CacheHits: 1,
		CacheMisses: 1,
		BytesCached: 100, BytesStaged: 50, BytesWritten: 7, RemoteHits: 1, BytesRemote: 100,
	}
	result := func(change func(*taskqueue.Usage)) []taskqueue.Result {
		u := honest
		change(&u)
		return []taskqueue.Result{{Job: job, Usage: u, Outputs: []taskqueue.WrittenFile{{LFN: "out", Size: 7}}}}
	}
	later := now.Add(10 * time.Minute)
	truth := result(func(*taskqueue.Usage) {})
	want := honest // by the clock of the server
	for _, moment := range []*time.Time{&want.StageInStart, &want.Start, &want.End, &want.StageOutEnd} {
		*moment = moment.Add(later.Sub(honest.StageOutEnd))
	}
	if c.Plausible(later, truth); truth[0].Usage != want || len(truth[0].Notes) > 0 {
		t.Errorf("the truth became %+v", truth[0])
	}
	if c.Plausible(later, truth); truth[0].Usage != want {
		t.Errorf("the truth by the server's clock became %+v", truth[0])
	}
	if c.Plausible(now.Add(-2*time.Hour), truth); truth[0].Usage != want {
		t.Errorf("where the server's clock was set back, the truth became %+v", truth[0])
	}
	long := result(func(u *taskqueue.Usage) {
		u.End, u.StageOutEnd = u.End.AddDate(100, 0, 0), u.StageOutEnd.AddDate(100, 0, 0)
	})
	if c.Plausible(later, long); len(long[0].Notes) != 1 || !strings.Contains(long[0].Notes[0], "counts as so long") ||
		!long[0].Usage.StageOutEnd.Equal(later) || later.Sub(long[0].Usage.StageInStart) != 10*time.Minute+ClockSlack {
		t.Errorf("what is too long became %+v", long[0])
	}
	for name, lie := range map[string]func(*taskqueue.Usage){
		"hits":                func(u *taskqueue.Usage) { u.CacheHits = math.MaxInt32 },
		"misses":              func(u *taskqueue.Usage) { u.CacheMisses = math.MaxInt32 },
		"hits from elsewhere": func(u *taskqueue.Usage) { u.CacheHits, u.RemoteHits = math.MaxInt32, math.MaxInt32 },
		"bytes":               func(u *taskqueue.Usage) { u.BytesStaged, u.BytesCached, u.BytesRemote = 1<<50, 1<<50, 1<<50 },
		"bytes written":       func(u *taskqueue.Usage) { u.BytesWritten = 1 << 50 },
		"a long time":         func(u *taskqueue.Usage) { u.End = u.Start.Add(time.Hour * 24 * 365 * 200) },
		"no end":              func(u *taskqueue.Usage) { u.End = time.Time{} },
		"no begin":            func(u *taskqueue.Usage) { u.StageInStart = time.Time{} },
		"only an end":         func(u *taskqueue.Usage) { u.Start, u.End = time.Time{}, time.Time{} },
		"backwards":           func(u *taskqueue.Usage) { u.End = u.Start.Add(-time.Hour) },
		"staged ahead":        func(u *taskqueue.Usage) { u.StagedAhead = math.MaxInt64 },
		"all long":            func(u *taskqueue.Usage) { u.StageOutEnd = u.End.AddDate(150, 0, 0) },
	} {
		told := result(lie)
		c.Plausible(later, told)
		var s sums
		s.add(&told[0].Usage)
		if s.Hits < 0 || s.Misses < 0 || s.Hits+s.Misses > 2 || s.Remote > s.Hits || s.Cached+s.Staged > 150 ||
			s.BytesRemote > s.Cached || s.written > 7 ||
			s.staging < 0 || s.computing < 0 || s.hidden < 0 || s.staging+s.computing > 15*time.Minute ||
			s.stageIn > 30*time.Minute {
			t.Errorf("%s: %+v", name, s)
		}
	}
	unknown := []taskqueue.Result{{Job: taskqueue.NewJobID(1, 9), Usage: honest}}
	if c.Plausible(later, unknown); unknown[0].Usage != (taskqueue.Usage{}) {
		t.Error(unknown)
	}
}
