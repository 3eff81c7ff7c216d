package batch

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"fairway/lib/sched"
	"fairway/lib/seed"
)

// queue is a batch system in memory that refuses, forgets and repeats as a test
// says. It counts how many jobs it ever had at once.
type queue struct {
	mu        sync.Mutex
	jobs      map[string]int // by launch
	refuse    error
	unclear   bool // it takes a submission, and says that it did not
	silent    error
	hidden    map[string]bool // not in its answers
	deaf      bool            // withdrawals are lost
	most      int
	submitted []string
}

func newQueue() *queue { return &queue{jobs: map[string]int{}, hidden: map[string]bool{}} }

func (q *queue) Submit(_ context.Context, launch string) error {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.refuse != nil {
		return q.refuse
	}
	q.submitted = append(q.submitted, launch)
	q.jobs[launch]++
	n := 0
	for _, jobs := range q.jobs {
		n += jobs
	}
	q.most = max(q.most, n)
	if q.unclear {
		return errors.New("timed out")
	}
	return nil
}

func (q *queue) Status(context.Context) (map[string]Status, error) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.silent != nil {
		return nil, q.silent
	}
	found := map[string]Status{}
	for launch, n := range q.jobs {
		if n > 0 && !q.hidden[launch] {
			found[launch] = Status{State: Running, Jobs: n}
		}
	}
	return found, nil
}

func (q *queue) Withdraw(_ context.Context, launches ...string) error {
	q.mu.Lock()
	defer q.mu.Unlock()
	if !q.deaf {
		for _, launch := range launches {
			delete(q.jobs, launch)
		}
	}
	return nil
}

func (q *queue) submittedSoFar() []string {
	q.mu.Lock()
	defer q.mu.Unlock()
	return append([]string(nil), q.submitted...)
}

func (q *queue) do(change func()) {
	q.mu.Lock()
	defer q.mu.Unlock()
	change()
}

// roster is one in a bubble of virtual time, with the ends that it told.
type roster struct {
	*Roster
	mu        sync.Mutex
	ended     []string
	withdrawn []string
	said      []string
}

func inBubble(t *testing.T, q System, most int, test func(r *roster)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		s := sched.New(sched.Config{})
		r := &roster{}
		r.Roster = NewRoster(RosterConfig{
			Site: "farm", System: q, MaxPilots: most, Sched: s, Log: slog.New(slog.NewTextHandler(io.Discard, nil)),
			Ended: func(e End) { r.mu.Lock(); r.ended = append(r.ended, e.Launch); r.mu.Unlock() },
			Withdrawn: func(launch string) {
				r.mu.Lock()
				defer r.mu.Unlock()
				if !slices.Contains(r.withdrawn, launch) {
					r.withdrawn = append(r.withdrawn, launch)
				}
			},
			Tell: func(text string) { r.mu.Lock(); r.said = append(r.said, text); r.mu.Unlock() },
		})
		test(r)
		if err := r.Close(); err != nil {
			t.Error(err)
		}
		s.Close()
	})
}

// pass lets virtual time pass until all is at rest.
func pass(d time.Duration) {
	timer := time.NewTimer(d)
	<-timer.C
	synctest.Wait()
}

func (r *roster) endedSoFar() []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return append([]string(nil), r.ended...)
}

func (r *roster) withdrawnSoFar() []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Clone(r.withdrawn)
}

// A submission that timed out may have been taken. Without a look at the list the
// batch system would have two jobs of one name.
func TestUnclearSubmissionIsNotRepeated(t *testing.T) {
	q := newQueue()
	q.unclear = true
	inBubble(t, q, 5, func(r *roster) {
		r.Start("l1")
		pass(10 * time.Minute)
		if len(q.submitted) != 1 || len(r.endedSoFar()) != 0 {
			t.Errorf("submitted %v, ended %v", q.submitted, r.endedSoFar())
		}
		if status, known := r.Status("l1"); !known || status.State != Running {
			t.Error("the launch is not known, although the batch system has it:", status, known)
		}
	})
}

// The answer that would tell may leave the job out, as any may once.
func TestUnclearSubmissionIsLeftOutOnce(t *testing.T) {
	q := newQueue()
	q.unclear, q.hidden["l1"] = true, true
	inBubble(t, q, 1, func(r *roster) {
		r.Start("l1")
		for r.missedOf("l1") == 0 && len(q.submittedSoFar()) < 2 {
			pass(time.Second)
		}
		q.do(func() { delete(q.hidden, "l1") })
		pass(10 * time.Minute)
		if fmt.Sprint(q.submittedSoFar(), r.endedSoFar()) != "[l1] []" {
			t.Errorf("submitted %v, ended %v", q.submittedSoFar(), r.endedSoFar())
		}
	})
}

// A batch system that can neither take a pilot nor tell of any, as while it starts again,
// must not block one of max_pilots: when it is back, the pilot is submitted.
func TestSubmissionFailedWhileTheStatusFailed(t *testing.T) {
	q := newQueue()
	q.refuse = errors.New("slurmctld is down")
	inBubble(t, q, 1, func(r *roster) {
		r.Start("l1")
		pass(MinPause / 2)
		q.do(func() { q.silent = q.refuse })
		pass(5 * time.Minute)
		q.do(func() { q.refuse, q.silent = nil, nil })
		pass(MaxPause)
		if fmt.Sprint(q.submitted) != "[l1]" || len(r.endedSoFar()) != 0 {
			t.Errorf("submitted %v, ended %v", q.submitted, r.endedSoFar())
		}
	})
}

// A launch that is withdrawn while it is not known whether it was taken counts until
// that is known.
func TestWithdrawnInDoubt(t *testing.T) {
	q := newQueue()
	inBubble(t, q, 1, func(r *roster) {
		q.do(func() { q.unclear = true })
		r.Start("l1")
		pass(MinPause / 2)
		q.do(func() { q.silent, q.deaf, q.unclear = errors.New("no answer"), true, false })
		r.Withdraw("l1")
		r.Start("l2")
		pass(10 * time.Minute)
		if len(r.withdrawnSoFar()) > 0 {
			t.Errorf("withdrawn %v, which may come yet", r.withdrawnSoFar())
		}
		q.do(func() { q.silent = nil })
		pass(5 * time.Minute)
		if fmt.Sprint(q.submittedSoFar()) != "[l1]" {
			t.Errorf("submitted %v beside one that may be there, of at most 1", q.submittedSoFar())
		}
		q.do(func() { q.deaf = false })
		pass(5 * time.Minute)
		if fmt.Sprint(q.submittedSoFar(), r.endedSoFar()) != "[l1 l2] [l1]" {
			t.Errorf("submitted %v, ended %v", q.submittedSoFar(), r.endedSoFar())
		}
	})
	if q.most > 1 {
		t.Errorf("the batch system had %d jobs, of at most 1", q.most)
	}
}

// A full queue must not end a run: the launch is submitted when the batch system
// takes it, and the person is told once.
func TestRefusedSubmissionIsRepeatedWithPauses(t *testing.T) {
	q := newQueue()
	q.refuse = errors.New("QOSMaxSubmitJobPerUserLimit")
	inBubble(t, q, 5, func(r *roster) {
		r.Start("l1")
		r.Start("l2")
		pass(time.Hour)
		if len(r.said) != 1 {
			t.Errorf("the person was told %d times: %q", len(r.said), r.said)
		}
		q.do(func() { q.refuse = nil })
		pass(MaxPause)
		if fmt.Sprint(q.submitted) != "[l1 l2]" {
			t.Errorf("submitted %v", q.submitted)
		}
	})
}

// A batch system that could never start a pilot is told of once, by a refusal or by the
// reason of a job that waits, but not when a pilot has run.
func TestNeverIsToldOnce(t *testing.T) {
	reason := errors.New("Invalid partition name specified")
	for name, test := range map[string]struct {
		system func(*queue) System
		before bool // a launch has run before
		told   []string
	}{
		"refused": {func(q *queue) System { return q }, false, []string{reason.Error()}},
		"waits":   {func(q *queue) System { return impossible{q} }, false, []string{"PartitionTimeLimit"}},
		"has run": {func(q *queue) System { return q }, true, nil},
	} {
		t.Run(name, func(t *testing.T) {
			q := newQueue()
			inBubble(t, test.system(q), 5, func(r *roster) {
				var told []string
				r.cfg.Never = func(reason string) { told = append(told, reason) }
				if test.before {
					r.Start("l0")
					pass(2 * DefaultEvery)
				}
				if name != "waits" {
					q.do(func() { q.refuse = &NeverError{reason} })
				}
				r.Start("l1")
				r.Start("l2")
				pass(10 * time.Minute)
				if fmt.Sprint(told) != fmt.Sprint(test.told) {
					t.Errorf("told %q, want %q", told, test.told)
				}
				if want := 1 - len(test.told); len(r.said) != want { // what ends the run is no warning besides
					t.Errorf("a person was told %d times besides, want %d: %q", len(r.said), want, r.said)
				}
			})
		})
	}
}

// impossible is a batch system that takes jobs which it can never start.
type impossible struct{ *queue }

func (i impossible) Status(ctx context.Context) (map[string]Status, error) {
	found, err := i.queue.Status(ctx)
	for launch := range found {
		found[launch] = Status{State: Queued, Reason: "PartitionTimeLimit", Never: true, Jobs: 1}
	}
	return found, err
}

// What is told to a person is not logged, too: both come out at the same place.
func TestRefusalHasOneVoice(t *testing.T) {
	q := newQueue()
	q.refuse = errors.New("QOSMaxSubmitJobPerUserLimit")
	q.silent = errors.New("slurmctld is down")
	inBubble(t, q, 5, func(r *roster) {
		var logged bytes.Buffer
		r.cfg.Log = slog.New(slog.NewTextHandler(&logged, nil))
		r.Start("l1")
		pass(10 * time.Minute)
		q.do(func() { q.silent = nil })
		pass(10 * time.Minute)
		if len(r.said) != 2 || logged.Len() > 0 {
			t.Errorf("told %q, and logged %q", r.said, logged.String())
		}
	})
}

// patient is a batch system whose jobs wait, for a reason.
type patient struct{ *queue }

func (p patient) Status(ctx context.Context) (map[string]Status, error) {
	found, err := p.queue.Status(ctx)
	for launch := range found {
		found[launch] = Status{State: Queued, Reason: "Priority", Jobs: 1}
	}
	return found, err
}

// A person who waits must be told why, in the words of the batch system.
func TestWaitingIsExplained(t *testing.T) {
	q := newQueue()
	inBubble(t, patient{q}, 5, func(r *roster) {
		if lines := r.Waiting(nil); len(lines) != 0 {
			t.Errorf("without pilots: %q", lines)
		}
		r.Start("l1")
		r.Start("l2")
		pass(3 * time.Minute)
		if lines := fmt.Sprint(r.Waiting(nil)); lines != "[site farm: 2 pilots queued for 3 min 00 s: Priority]" {
			t.Error(lines)
		}
		q.do(func() { q.refuse = errors.New("sbatch: error:\nQOSMaxSubmitJobPerUserLimit") })
		r.Start("l3")
		pass(10 * time.Second)
		lines := r.Waiting(nil)
		if len(lines) != 2 ||
			!strings.HasPrefix(lines[1], "site farm: refused: sbatch: error:; QOSMaxSubmitJobPerUserLimit; tried again in ") {
			t.Errorf("%q", lines)
		}
		q.do(func() { q.silent = errors.New("slurmctld is down") })
		for _, after := range []time.Duration{2 * DefaultEvery, 5 * time.Minute} {
			pass(after)
			if lines := r.Waiting(nil); len(lines) == 0 || !strings.HasSuffix(lines[len(lines)-1],
				"it does not say which jobs it has: slurmctld is down") {
				t.Errorf("after %v: %q", after, lines)
			}
		}
		q.do(func() { q.silent, q.refuse = nil, nil })
		pass(30 * time.Minute)
		if lines := fmt.Sprint(r.Waiting(nil)); !strings.HasPrefix(lines, "[site farm: 3 pilots queued for ") {
			t.Error(lines)
		}
	})
}

// Pilots that are there are not queued: those that a Notifier has started, and those that
// were heard, although the batch system was not asked since.
func TestPilotsThatAreThereAreNotQueued(t *testing.T) {
	n := &notifying{queue: newQueue(), ended: sync.OnceValue(func() chan End { return make(chan End) })}
	inBubble(t, n, 5, func(r *roster) {
		r.Start("l1")
		pass(time.Minute)
		if lines := r.Waiting(nil); len(lines) != 0 {
			t.Errorf("started at once: %q", lines)
		}
		n.do(func() { n.refuse = errors.New("no such program") })
		r.Start("l2")
		pass(time.Minute)
		if lines := r.Waiting(nil); len(lines) != 1 || !strings.Contains(lines[0], "refused: no such program") {
			t.Errorf("refused: %q", lines)
		}
	})
	inBubble(t, patient{newQueue()}, 5, func(r *roster) {
		r.Start("l1")
		r.Start("l2")
		pass(3 * time.Minute)
		if lines := fmt.Sprint(
			r.Waiting(map[string]bool{"l1": true}),
		); lines != "[site farm: 1 pilot queued for 3 min 00 s: Priority]" {
			t.Error(lines)
		}
	})
}

// What the batch system has and nobody knows counts, and is withdrawn: else a
// restart would double the pilots of a site.
func TestStrangersCountAndAreWithdrawn(t *testing.T) {
	q := newQueue()
	q.jobs["old1"], q.jobs["old2"], q.most = 1, 1, 2
	q.deaf = true
	inBubble(t, q, 2, func(r *roster) {
		r.Start("l1")
		pass(time.Minute)
		if len(q.submitted) != 0 {
			t.Errorf("submitted %v beside two others, of at most 2", q.submitted)
		}
		q.do(func() { q.deaf = false })
		pass(time.Minute)
		if fmt.Sprint(q.submitted) != "[l1]" || q.jobs["old1"]+q.jobs["old2"] != 0 {
			t.Errorf("submitted %v, jobs %v", q.submitted, q.jobs)
		}
	})
}

// While a batch system says nothing, nobody may conclude that its pilots are gone.
func TestSilenceIsNoEnd(t *testing.T) {
	q := newQueue()
	inBubble(t, q, 1, func(r *roster) {
		r.Start("l1")
		pass(time.Minute)
		q.do(func() { q.silent = errors.New("slurmctld is down"); delete(q.jobs, "l1") })
		r.Start("l2")
		pass(time.Hour)
		if len(r.endedSoFar()) != 0 || len(q.submitted) != 1 {
			t.Errorf("ended %v, submitted %v", r.endedSoFar(), q.submitted)
		}
		q.do(func() { q.silent = nil })
		pass(10 * time.Minute)
		if fmt.Sprint(r.endedSoFar()) != "[l1]" || fmt.Sprint(q.submitted) != "[l1 l2]" {
			t.Errorf("ended %v, submitted %v", r.endedSoFar(), q.submitted)
		}
	})
}

// One answer without a launch may be a slip of the batch system.
func TestLeftOutOnce(t *testing.T) {
	q := newQueue()
	inBubble(t, q, 1, func(r *roster) {
		r.Start("l1")
		pass(time.Minute)
		q.do(func() { q.hidden["l1"] = true })
		for r.missedOf("l1") == 0 {
			pass(time.Second)
		}
		q.do(func() { delete(q.hidden, "l1") })
		pass(time.Minute)
		if len(r.endedSoFar()) != 0 {
			t.Errorf("ended %v", r.endedSoFar())
		}
		q.do(func() { q.hidden["l1"] = true })
		pass(time.Minute)
		if fmt.Sprint(r.endedSoFar()) != "[l1]" {
			t.Errorf("ended %v", r.endedSoFar())
		}
	})
}

func (r *roster) missedOf(name string) int {
	r.Roster.mu.Lock()
	defer r.Roster.mu.Unlock()
	if l := r.launches[name]; l != nil {
		return l.missed
	}
	return -1
}

// A launch that was named and not submitted before the server was killed is not in
// the list, and never will be.
func TestAdoptedButNeverSubmitted(t *testing.T) {
	q := newQueue()
	q.jobs["l1"] = 1
	inBubble(t, q, 5, func(r *roster) {
		if gone, err := r.Adopt(t.Context(), []string{"l1", "l2"}); err != nil || len(gone) != 0 {
			t.Error(gone, err)
		}
		pass(UnseenTime / 2)
		if len(r.endedSoFar()) != 0 {
			t.Errorf("ended %v before the batch system could show it", r.endedSoFar())
		}
		pass(UnseenTime)
		if fmt.Sprint(r.endedSoFar()) != "[l2]" || q.jobs["l1"] != 1 {
			t.Errorf("ended %v, jobs %v", r.endedSoFar(), q.jobs)
		}
	})
}

// A run that ends need not wait for the next answer, when the batch system has taken the
// order to end a launch. The launch counts all the same, until it is sure that it does not
// appear.
func TestWithdrawnBeforeItWasSeen(t *testing.T) {
	q := newQueue()
	inBubble(t, q, 1, func(r *roster) {
		if _, err := r.Adopt(t.Context(), []string{"l1"}); err != nil {
			t.Error(err)
		}
		r.Start("l2")
		r.Withdraw("l1")
		synctest.Wait()
		if fmt.Sprint(r.withdrawnSoFar(), r.endedSoFar()) != "[l1] []" {
			t.Errorf("withdrawn %v, ended %v", r.withdrawnSoFar(), r.endedSoFar())
		}
		pass(UnseenTime / 2)
		if fmt.Sprint(r.endedSoFar(), q.submittedSoFar()) != "[] []" {
			t.Errorf("ended %v, submitted %v", r.endedSoFar(), q.submittedSoFar())
		}
		pass(UnseenTime)
		if fmt.Sprint(r.endedSoFar(), q.submittedSoFar()) != "[l1] [l2]" {
			t.Errorf("ended %v, submitted %v", r.endedSoFar(), q.submittedSoFar())
		}
	})
}

// Of two pilots of one launch nobody could tell which is meant.
func TestStartedTwice(t *testing.T) {
	q := newQueue()
	inBubble(t, q, 5, func(r *roster) {
		r.Start("l1")
		pass(time.Minute)
		q.do(func() { q.jobs["l1"] = 2 })
		pass(time.Minute)
		if fmt.Sprint(r.endedSoFar()) != "[l1]" || q.jobs["l1"] != 0 {
			t.Errorf("ended %v, jobs %v", r.endedSoFar(), q.jobs)
		}
	})
}

// The jobs of a launch that was started twice count as two, until they are gone.
func TestStartedTwiceCountsTwice(t *testing.T) {
	q := newQueue()
	q.deaf = true
	inBubble(t, q, 2, func(r *roster) {
		r.Start("l1")
		pass(time.Minute)
		q.do(func() { q.jobs["l1"] = 2 })
		pass(time.Minute)
		r.Start("l2")
		pass(time.Minute)
		if fmt.Sprint(q.submittedSoFar()) != "[l1]" {
			t.Errorf("submitted %v beside two jobs, of at most 2", q.submittedSoFar())
		}
		q.do(func() { q.deaf = false })
		pass(time.Minute)
		if fmt.Sprint(q.submittedSoFar(), r.endedSoFar()) != "[l1 l2] [l1]" {
			t.Errorf("submitted %v, ended %v", q.submittedSoFar(), r.endedSoFar())
		}
	})
}

// A call that withdraws may be lost; the pilot must not stay for ever.
func TestLostWithdrawalIsRepeated(t *testing.T) {
	q := newQueue()
	q.deaf = true
	inBubble(t, q, 5, func(r *roster) {
		r.Start("l1")
		pass(time.Minute)
		r.Withdraw("l1")
		pass(time.Minute)
		q.do(func() { q.deaf = false })
		pass(time.Minute)
		if fmt.Sprint(r.endedSoFar()) != "[l1]" {
			t.Errorf("ended %v", r.endedSoFar())
		}
	})
}

// Whatever a batch system does, it never has more jobs than it may, unless it starts
// some twice itself, and each launch ends once.
func TestRosterUnderFaults(t *testing.T) {
	random := seed.Source(t)
	for range 20 {
		const most = 4
		q := newQueue()
		inBubble(t, q, most, func(r *roster) {
			faults := rand.New(rand.NewPCG(random.Uint64(), 0))
			started := 0
			for range 200 {
				q.do(func() {
					switch faults.IntN(10) {
					case 0:
						q.refuse = errors.New("refused")
					case 1:
						q.refuse, q.silent, q.unclear, q.deaf = nil, nil, false, false
					case 2:
						q.silent = errors.New("no answer")
					case 3:
						q.unclear = true
					case 4:
						q.deaf = true
					case 5:
						for launch := range q.jobs {
							delete(q.jobs, launch)
							break
						}
					}
				})
				if faults.IntN(2) == 0 {
					started++
					r.Start(fmt.Sprintf("l%d", started))
				}
				if faults.IntN(4) == 0 && started > 0 {
					r.Withdraw(fmt.Sprintf("l%d", 1+faults.IntN(started)))
				}
				pass(time.Duration(faults.IntN(20000)) * time.Millisecond)
			}
			q.do(func() { q.refuse, q.silent, q.unclear, q.deaf = nil, nil, false, false })
			for i := range started {
				r.Withdraw(fmt.Sprintf("l%d", i+1))
			}
			pass(time.Hour)
			if q.most > most {
				t.Errorf("the batch system had %d jobs, of at most %d", q.most, most)
			}
			ended := map[string]int{}
			for _, name := range r.endedSoFar() {
				ended[name]++
			}
			for i := range started {
				if name := fmt.Sprintf("l%d", i+1); ended[name] != 1 {
					t.Errorf("launch %s ended %d times", name, ended[name])
				}
			}
			if len(q.jobs) != 0 {
				t.Errorf("jobs are left: %v", q.jobs)
			}
		})
	}
}

// notifying is a queue that tells of ends by itself.
type notifying struct {
	*queue
	ended func() chan End // made in the bubble
}

func (n *notifying) Ended() <-chan End { return n.ended() }

func (n *notifying) Close() error { close(n.ended()); return nil }

// Of a pilot that is heard after its end was told, the end is told again; else its jobs
// would wait for its lease.
func TestTheEndOfAnExpectedLaunchIsTold(t *testing.T) {
	n := &notifying{queue: newQueue(), ended: sync.OnceValue(func() chan End { return make(chan End) })}
	inBubble(t, n, 5, func(r *roster) {
		r.Start("l1")
		synctest.Wait()
		r.Expect("l1") // it has that one
		n.do(func() { delete(n.jobs, "l1") })
		n.ended() <- End{Launch: "l1"}
		synctest.Wait()
		if fmt.Sprint(r.endedSoFar()) != "[l1]" {
			t.Errorf("ended %v", r.endedSoFar())
		}
		r.Expect("l1")
		synctest.Wait() // else a look that this asks for may take l2 for one that nobody expects
		n.do(func() { n.jobs["l2"] = 1 })
		r.Expect("l2")
		synctest.Wait()
		if fmt.Sprint(r.endedSoFar()) != "[l1 l1]" || n.jobs["l2"] != 1 {
			t.Errorf("ended %v, jobs %v", r.endedSoFar(), n.jobs)
		}
		n.ended() <- End{Launch: "l2"}
		synctest.Wait()
		if fmt.Sprint(r.endedSoFar()) != "[l1 l1 l2]" {
			t.Errorf("ended %v", r.endedSoFar())
		}
	})
}

// A launch that nobody wanted is withdrawn no more when a pilot of it has come, and
// counts once.
func TestAnExpectedStrangerStays(t *testing.T) {
	q := newQueue()
	q.jobs["old"], q.most, q.deaf = 1, 1, true
	inBubble(t, q, 2, func(r *roster) {
		if _, err := r.Adopt(t.Context(), nil); err != nil {
			t.Error(err)
		}
		synctest.Wait()
		r.Expect("old")
		r.Start("l1")
		q.do(func() { q.deaf = false })
		pass(time.Minute)
		if q.jobs["old"] != 1 || fmt.Sprint(q.submitted) != "[l1]" {
			t.Errorf("jobs %v, submitted %v", q.jobs, q.submitted)
		}
		q.do(func() { delete(q.jobs, "old") })
		pass(time.Minute)
		if fmt.Sprint(r.endedSoFar()) != "[old]" {
			t.Errorf("ended %v", r.endedSoFar())
		}
	})
}

// several is a queue that takes some launches at once.
type several struct {
	*queue
	calls [][]string
}

func (s *several) AtOnce() int { return 3 }

func (s *several) SubmitAll(ctx context.Context, launches []string) (err error) {
	s.do(func() { s.calls = append(s.calls, slices.Clone(launches)) })
	for _, launch := range launches {
		err = errors.Join(err, s.Submit(ctx, launch))
	}
	return err
}

// Launches that may go together go together, in their order, up to the number of pilots and to
// what the system takes at once; also those that it did not take, however it tells.
func TestLaunchesAreSubmittedTogether(t *testing.T) {
	q := &several{queue: newQueue()}
	q.refuse = errors.New("busy")
	inBubble(t, q, 4, func(r *roster) {
		for i := range 6 {
			r.Start(fmt.Sprint("l-", i))
		}
		pass(5 * DefaultEvery)
		q.do(func() { q.refuse = nil })
		pass(time.Hour)
		q.do(func() { delete(q.jobs, "l-1") })
		pass(time.Hour)
		if got := fmt.Sprint(q.submittedSoFar()); got != "[l-0 l-1 l-2 l-3 l-4]" {
			t.Error("submitted", got)
		}
		if got := fmt.Sprint(q.calls[len(q.calls)-3:]); got != "[[l-0 l-1 l-2] [l-3] [l-4]]" {
			t.Error("the calls were", q.calls)
		}
	})
}
