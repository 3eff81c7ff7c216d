package sim

import (
	"strings"
	"testing"

	"fairway/internal/eviction"
	"fairway/internal/sim/experiment"
	"fairway/internal/taskqueue"
)

// promises is a run of one job, whose output may be in caches only if that is
// said.
func promises(t *testing.T, storage taskqueue.Storage) *run {
	t.Helper()
	w := newWorkflow()
	w.add("s", "j", 0, nil, extant{"out", 10})
	w.jobs[0].job.Writes[0].Storage = storage
	exp := &experiment.Experiment{Storage: []experiment.StorageSpec{{Name: "se"}}}
	r := newRun(exp, w, 0)
	r.creator = newCreator(r, nil, nil)
	return r
}

func breach(t *testing.T, r *run, words string) {
	t.Helper()
	if r.broken == nil || !strings.Contains(r.broken.Error(), words) {
		t.Errorf("not noticed: %s; got %v", words, r.broken)
	}
}

// A commit that was heard of after a crash only counts as one that was told.
func TestSecondCommitIsNoticed(t *testing.T) {
	for _, again := range []bool{false, true} {
		r := promises(t, taskqueue.StorageElement)
		r.checkCommit(1, "j", 7, true)
		r.checkCommit(1, "j", 7, again)
		if r.broken != nil {
			t.Errorf("a repetition: %v", r.broken)
		}
		r.checkCommit(1, "j", 8, again)
		breach(t, r, "committed from attempts 7 and 8")
	}
}

func TestOutputsInCachesAreMadeAgain(t *testing.T) {
	r := promises(t, taskqueue.StorageCache)
	r.checkCommit(1, "j", 7, false)
	r.checkCommit(1, "j", 8, true)
	if r.broken != nil {
		t.Error(r.broken)
	}
	r.checkCommit(1, "j", 9, false)
	breach(t, r, "committed from attempts 8 and 9")
}

func TestCacheOverItsLimitIsNoticed(t *testing.T) {
	r := promises(t, taskqueue.StorageElement)
	s := newSpace(experiment.CacheSpec{Size: 10, Policy: string(eviction.LRU)})
	s.members = []*pilot{{}}
	s.files[taskqueue.FileRef{LFN: "a"}] = &stored{size: 9}
	s.used = 9
	r.checkLimit(s)
	r.checkHeld(s)
	if r.broken != nil {
		t.Error(r.broken)
	}
	s.used = 11
	r.checkLimit(s)
	breach(t, r, "beyond its limit of 10")
	r.broken = nil
	r.checkShrunk(s)
	if r.broken != nil {
		t.Error(r.broken)
	}
	s.order.Store(taskqueue.FileRef{LFN: "a"}, 9, 1)
	r.checkShrunk(s)
	breach(t, r, "keeps a, which nothing reads")
	r.broken = nil
	r.checkHeld(s)
	breach(t, r, "holds 9 bytes and counts 11")
}

// What the TaskQueue calls stored has to be there when all has ended.
func TestLostOutputIsNoticed(t *testing.T) {
	p := mustParse(t, small)
	exp := p.Points[0].Experiment
	w, err := workOf(&exp)
	if err != nil {
		t.Fatal(err)
	}
	r := newRun(&exp, w, 0)
	if err := r.execute(); err != nil {
		t.Fatal(err)
	}
	detail, _ := r.server.core.Detail(taskqueue.NewJobID(theRun, 1))
	r.elementOf(detail.Writes[0].PFN).remove(detail.Writes[0].PFN)
	r.checkEnded()
	breach(t, r, "is not stored")
}
