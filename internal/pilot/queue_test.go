package pilot

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"google.golang.org/protobuf/types/known/durationpb"

	"fairway/internal/pilot/stage"
	"fairway/internal/wire"
	"fairway/lib/sched"
)

func TestReplay(t *testing.T) {
	q := newTaskQueue(t)
	q.start(q.config("p1"))
	a := shell("", writes("big", "empty"))
	payload(func(p *wire.Payload) {
		p.Replay = &wire.Replay{
			Compute: durationpb.New(time.Millisecond), WritesBytes: map[string]int64{"big": 1 << 20, "empty": 0},
		}
	})(a)
	r := q.run("p1", a)
	expect(t, r, wire.Outcome_OUTCOME_SUCCEEDED, "")
	if r.GetOutputs()[0].GetSize() != 1<<20 || r.GetOutputs()[1].GetSize() != 0 {
		t.Error(r.GetOutputs())
	}
	a = shell("")
	payload(func(p *wire.Payload) { p.Replay = &wire.Replay{Compute: durationpb.New(time.Hour)} })(a)
	q.assign("p1", a)
	q.started("p1", a.GetAttempt())
	q.end("p1", a.GetAttempt())
	expect(t, q.result(a.GetAttempt()), wire.Outcome_OUTCOME_ENDED, "")
}

// A pilot tells which attempts with a limit of time read inputs or store outputs, and no others.
func TestAttemptsThatMoveFilesAreTold(t *testing.T) {
	p := &pilot{duties: duties{known: map[uint64]*attempt{}}}
	limited := &wire.Resources{Time: durationpb.New(time.Hour)}
	for id, a := range []*attempt{{}, {}, {begun: true}, {begun: true, over: true}, {queued: true}} {
		a.Assignment = &wire.Assignment{Attempt: uint64(id), Needs: limited}
		if id == 0 {
			a.Needs = &wire.Resources{Time: durationpb.New(0)}
		}
		p.known[uint64(id)] = a
	}
	told := p.movingFiles()
	if slices.Sort(told); !slices.Equal(told, []uint64{1, 3}) {
		t.Errorf("told of %v", told)
	}
	p.isOver(p.known[2])
	if !p.known[2].over {
		t.Error("the end of a command is not noted")
	}
}

// Attempts ahead wait for their resources, in order, and can be recalled.
func TestQueue(t *testing.T) {
	q := newTaskQueue(t)
	cfg := q.config("p1")
	cfg.MilliCPUs = 1000
	q.start(cfg)
	file := filepath.Join(t.TempDir(), "go")
	first := shell("while ! [ -e " + file + " ]; do sleep 0.01; done")
	second, third := shell("true"), shell("true")
	q.assign("p1", first, second, third)
	q.started("p1", first.GetAttempt())
	q.end("p1", second.GetAttempt())
	expect(t, q.result(second.GetAttempt()), wire.Outcome_OUTCOME_ENDED, "recalled")
	if err := os.WriteFile(file, nil, 0o644); err != nil {
		t.Fatal(err)
	}
	expect(t, q.result(first.GetAttempt()), wire.Outcome_OUTCOME_SUCCEEDED, "")
	expect(t, q.result(third.GetAttempt()), wire.Outcome_OUTCOME_SUCCEEDED, "")
}

// What waits at a pilot starts by priority, also what came last.
func TestHigherPriorityStartsFirst(t *testing.T) {
	q := newTaskQueue(t)
	cfg := q.config("p1")
	cfg.MilliCPUs = 1000
	q.start(cfg)
	folder := t.TempDir()
	file, order := filepath.Join(folder, "go"), filepath.Join(folder, "order")
	first := shell("while ! [ -e " + file + " ]; do sleep 0.01; done")
	q.assign("p1", first)
	q.started("p1", first.GetAttempt())
	var waiting []*wire.Assignment
	for i, priority := range []int32{0, 5, 0, 9, 5} {
		waiting = append(waiting, shell(fmt.Sprintf("echo -n %d >> %s", i, order),
			func(a *wire.Assignment) { a.Priority = priority }))
	}
	before := uint64(0)
	q.change(func() { before = q.pilot("p1").number })
	q.assign("p1", waiting...)
	q.until("the answer is told to have come", func() bool {
		syncs := q.pilot("p1").syncs
		return syncs[len(syncs)-1].GetLastAnswer() > before
	})
	if err := os.WriteFile(file, nil, 0o644); err != nil {
		t.Fatal(err)
	}
	for _, a := range waiting {
		expect(t, q.result(a.GetAttempt()), wire.Outcome_OUTCOME_SUCCEEDED, "")
	}
	if got := contents(t, order); got != "31402" {
		t.Errorf("they started in the order %s", got)
	}
}

// When an attempt has failed none begins that waits at the pilot, before the TaskQueue has had a say: on a bad
// node they would all fail. One that cannot be asked holds nothing up.
func TestNothingBeginsBehindAFailureThatIsNotKnown(t *testing.T) {
	for _, away := range []bool{false, true} {
		q := newTaskQueue(t)
		cfg := q.config("p1")
		cfg.MilliCPUs = 1000
		q.start(cfg)
		marks, file := t.TempDir(), filepath.Join(t.TempDir(), "go")
		all := []*wire.Assignment{shell("while ! [ -e " + file + " ]; do sleep 0.01; done; exit 3")}
		for i := range 10 {
			all = append(all, shell(fmt.Sprintf("touch %s/%d; exit 3", marks, i)))
		}
		q.assign("p1", all...)
		q.started("p1", all[0].GetAttempt())
		for _, a := range all[1:] {
			q.suspects = append(q.suspects, a.GetAttempt())
		}
		if away {
			q.http.Close()
		}
		if err := os.WriteFile(file, nil, 0o644); err != nil {
			t.Fatal(err)
		}
		if away {
			last := filepath.Join(marks, "9")
			if _, err := sched.Default().WaitFile(t.Context(), sched.FileQuery{Path: last,
				Until: func(f sched.FileState) bool { return f.Info != nil }}); err != nil {
				t.Fatal(err)
			}
			continue
		}
		expect(t, q.result(all[0].GetAttempt()), wire.Outcome_OUTCOME_EXITED, "")
		for _, a := range all[1:] {
			expect(t, q.result(a.GetAttempt()), wire.Outcome_OUTCOME_ENDED, "")
		}
		if begun, _ := os.ReadDir(marks); len(begun) > 0 {
			t.Errorf("%d have begun", len(begun))
		}
	}
}

// An attempt that is wanted back goes on if its command has begun.
func TestABegunCommandIsNotGivenBack(t *testing.T) {
	q := newTaskQueue(t)
	cfg := q.config("p1")
	cfg.MilliCPUs = 1000
	q.start(cfg)
	begun, end := filepath.Join(t.TempDir(), "begun"), filepath.Join(t.TempDir(), "end")
	for _, pipe := range []string{begun, end} {
		if err := syscall.Mkfifo(pipe, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	first, second := shell("echo >"+begun+"; cat "+end), shell("true")
	q.assign("p1", first, second)
	if _, err := os.ReadFile(begun); err != nil {
		t.Fatal(err)
	}
	q.giveBack("p1", first.GetAttempt(), second.GetAttempt())
	expect(t, q.result(second.GetAttempt()), wire.Outcome_OUTCOME_ENDED, "recalled")
	if err := os.WriteFile(end, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	expect(t, q.result(first.GetAttempt()), wire.Outcome_OUTCOME_SUCCEEDED, "")
}

// What Fairway has made is shared by links: no command writes to it in place,
// not even one of root.
func TestInputsAreReadOnly(t *testing.T) {
	for _, mode := range []CacheMode{CacheNone, CachePilot} {
		t.Run(string(mode), func(t *testing.T) {
			q := newTaskQueue(t)
			cfg := q.config("p1")
			cfg.Cache = CacheConfig{Mode: mode, Dir: t.TempDir()}
			q.start(cfg)
			made := q.run("p1", shell("printf four > x", writes("x"))).GetOutputs()[0].GetPfn()
			input := reads("x", 1, 4, made)
			for _, command := range []string{
				"printf FOUR > x", "printf FOUR >> x", "truncate -s 0 x", "dd if=/dev/zero of=x conv=notrunc count=1",
			} {
				expect(t, q.run("p1", shell(command, input)), wire.Outcome_OUTCOME_EXITED, "ermission denied")
			}
			expect(t, q.run("p1", shell("cp x y; printf more > z; mv -f z x", input)), wire.Outcome_OUTCOME_SUCCEEDED, "")
			if got := contents(t, made); got != "four" {
				t.Error(got)
			}
		})
	}
}

// A sandbox that is prepared before its turn is made anew if the attempt before
// changes an input of it, and that one alone is blamed.
func TestInputChangedBeforeItsTurn(t *testing.T) {
	q := newTaskQueue(t)
	cfg := q.config("p1")
	cfg.MilliCPUs = 1000
	cfg.Cache = CacheConfig{Mode: CachePilot, Dir: t.TempDir()}
	q.start(cfg)
	input := reads("x", 1, 4, writeFile(t, "four"))
	expect(t, q.run("p1", shell("cat x", input)), wire.Outcome_OUTCOME_SUCCEEDED, "")
	file := filepath.Join(t.TempDir(), "go")
	first := shell("while ! [ -e "+file+" ]; do sleep 0.01; done; printf FOUR 1<>x", input)
	second := shell("cat x; : > x.copy", input)
	q.assign("p1", first, second)
	q.started("p1", first.GetAttempt())
	if err := os.WriteFile(file, nil, 0o644); err != nil {
		t.Fatal(err)
	}
	expect(t, q.result(first.GetAttempt()), wire.Outcome_OUTCOME_INPUT_CHANGED, "wrote to its input x")
	expect(t, q.result(second.GetAttempt()), wire.Outcome_OUTCOME_SUCCEEDED, "")
}

// An attempt starts while those before it are stored, and each result names its
// own outputs.
func TestOutputsOfFollowingAttempts(t *testing.T) {
	q := newTaskQueue(t)
	cfg := q.config("p1")
	cfg.MilliCPUs = 1000
	q.start(cfg)
	var all []*wire.Assignment
	for i := range 50 {
		all = append(all, shell(fmt.Sprintf("printf %d; [ -z \"$(ls)\" ]; printf %d > out%d", i, i, i),
			writes(fmt.Sprintf("out%d", i))))
	}
	q.assign("p1", all...)
	for i, a := range all {
		r := q.result(a.GetAttempt())
		expect(t, r, wire.Outcome_OUTCOME_SUCCEEDED, "")
		if path := r.GetOutputs()[0].GetPfn(); contents(t, strings.TrimPrefix(path, "file:")) != strconv.Itoa(i) ||
			contents(t, q.log(a, "out")) != strconv.Itoa(i) {
			t.Errorf("attempt %d stored %q and printed %q", i, contents(t, strings.TrimPrefix(path, "file:")),
				contents(t, q.log(a, "out")))
		}
	}
}

// An attempt does not begin beside others where less disk is free than it needs.
func TestRoomForAnAttemptIsWhatIsFree(t *testing.T) {
	for needs, want := range map[int64]bool{0: true, 1: true, 1 << 60: false} {
		p := &pilot{stage: &stage.Area{Folder: t.TempDir()}}
		if p.roomFor(&attempt{needs: resources{disk: needs}}) != want {
			t.Errorf("%d bytes have room: %t", needs, !want)
		}
		p.running, p.free, p.queue = 1, resources{disk: 1 << 62}, []*attempt{{needs: resources{disk: needs}}}
		if !want && (p.next() != nil || p.nextToPrepare() != nil) {
			t.Errorf("an attempt that needs %d bytes begins", needs)
		}
	}
}
