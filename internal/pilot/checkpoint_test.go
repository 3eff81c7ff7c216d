package pilot

import (
	"archive/zip"
	"io"
	"os"
	"strings"
	"testing"
	"time"

	"google.golang.org/protobuf/types/known/durationpb"

	"fairway/internal/wire"
)

// counting adds a line to its state each time it starts, says so, and waits to be told to end;
// then it writes a last line, once, however often it is told.
const counting = `trap 'trap "" TERM; echo end >> "$FAIRWAY_CHECKPOINT/lines"; exit 143' TERM
echo start >> "$FAIRWAY_CHECKPOINT/lines"; : > "$mark"; while :; do sleep 0.01; done`

// saving is an attempt of a job that begins with what another has saved.
func saving(mark string, before *wire.WrittenFile, attempt uint64) *wire.Assignment {
	a := shell(counting, payload(func(p *wire.Payload) { p.Environment = map[string]string{"mark": mark} }))
	a.Checkpoint = &wire.OutputFile{Lfn: "state/"}
	if before != nil {
		a.Inputs = append(a.Inputs, &wire.InputFile{
			File: &wire.FileRef{Lfn: "state/", Tag: attempt}, Pfn: before.GetPfn(), Size: before.GetSize(),
			Adler32: before.GetAdler32(), Access: wire.Access_ACCESS_COPY,
		})
	}
	return a
}

// Where the pilot's life ends, its time is over, or the TaskQueue ends it, an attempt brings its
// state with its result, and the next one goes on from there.
func TestStateOutlivesAttempts(t *testing.T) {
	q := newTaskQueue(t)
	var before *wire.WrittenFile
	var of uint64
	want := ""
	for _, end := range []wire.Outcome{
		wire.Outcome_OUTCOME_ENDED, wire.Outcome_OUTCOME_OUT_OF_TIME, wire.Outcome_OUTCOME_LOST,
	} {
		cfg := q.config("p" + strings.ToLower(end.String()))
		cfg.Cache = CacheConfig{Mode: CachePilot, Dir: q.folder + "/cache"}
		mark := q.folder + "/" + end.String()
		a := saving(mark, before, of)
		switch end {
		case wire.Outcome_OUTCOME_OUT_OF_TIME:
			a.Needs = &wire.Resources{Time: durationpb.New(500 * time.Millisecond)}
		case wire.Outcome_OUTCOME_LOST:
			cfg.Life, cfg.Grace = 3*time.Second, time.Second
		}
		p := q.start(cfg)
		q.assign(cfg.Launch, a)
		if end == wire.Outcome_OUTCOME_ENDED {
			q.until("its start", func() bool { _, err := os.Stat(mark); return err == nil })
			q.end(cfg.Launch, a.GetAttempt())
		}
		r := q.result(a.GetAttempt())
		want += "start\nend\n"
		if r.GetOutcome() != end || len(r.GetOutputs()) != 1 || r.GetOutputs()[0].GetLfn() != "state/" {
			t.Fatalf("%v: %v", end, r)
		}
		before, of = r.GetOutputs()[0], a.GetAttempt()
		if got := archivedFile(t, before, "lines"); got != want {
			t.Fatalf("%v: the state is %q, and should be %q", end, got, want)
		}
		if end == wire.Outcome_OUTCOME_LOST {
			if err := p.wait(); err != nil {
				t.Error(err)
			}
		}
	}
}

// archivedFile is what a file of a stored folder holds.
func archivedFile(t *testing.T, o *wire.WrittenFile, name string) string {
	t.Helper()
	z, err := zip.OpenReader(strings.TrimPrefix(o.GetPfn(), "file:"))
	check(t, err)
	defer z.Close()
	f, err := z.Open(name)
	check(t, err)
	text, err := io.ReadAll(f)
	check(t, err)
	return string(text)
}

// A job that fails by itself, or is ended before its command began, brings nothing.
func TestFailuresBringNoState(t *testing.T) {
	q := newTaskQueue(t)
	q.start(q.config("p1"))
	a := shell(`echo x > "$FAIRWAY_CHECKPOINT/f"; exit 3`)
	a.Checkpoint = &wire.OutputFile{Lfn: "state/"}
	if r := q.run("p1", a); r.GetOutcome() != wire.Outcome_OUTCOME_EXITED || len(r.GetOutputs()) > 0 {
		t.Error(r)
	}
	empty := shell("sleep 1000")
	empty.Checkpoint = &wire.OutputFile{Lfn: "state/"}
	empty.Needs = &wire.Resources{Time: durationpb.New(10 * time.Millisecond)}
	if r := q.run("p1", empty); r.GetOutcome() != wire.Outcome_OUTCOME_OUT_OF_TIME || len(r.GetOutputs()) > 0 {
		t.Error(r)
	}
}

// marking saves a state as whole, twice, and is never told to end.
const marking = `cd "$FAIRWAY_CHECKPOINT"
save() { mkdir $1; echo "$1" > $1/part; echo '{"files": ["'$1'/part"]}' > new; mv new whole.json; }
echo junk > other
save 1; while [ ! -e "$mark" ]; do sleep 0.01; done; save 2; rm -r 1; sleep 1000`

// A state that a command marks as whole while it runs is stored at once, with the files that it names
// and no others.
func TestWholeStatesAreStoredWhileACommandRuns(t *testing.T) {
	q := newTaskQueue(t)
	q.start(q.config("p1"))
	mark := q.folder + "/mark"
	a := shell(marking, payload(func(p *wire.Payload) { p.Environment = map[string]string{"mark": mark} }))
	a.Checkpoint = &wire.OutputFile{Lfn: "state/"}
	q.assign("p1", a)
	for n, want := range []string{"1", "2"} {
		var saved *wire.WrittenFile
		q.until("a state", func() bool {
			p := q.pilot("p1")
			if len(p.saved) == 0 || p.saved[0].GetFile().GetVersion() != uint32(n+1) {
				return false
			}
			saved = p.saved[0].GetFile()
			return p.saved[0].GetOf().GetAttempt() == a.GetAttempt()
		})
		if got := archivedFile(t, saved, want+"/part"); got != want+"\n" {
			t.Errorf("state %s has %q", want, got)
		}
		z, err := zip.OpenReader(strings.TrimPrefix(saved.GetPfn(), "file:"))
		check(t, err)
		if len(z.File) != 3 { // the mark, a folder and its file
			t.Errorf("state %s has %d entries", want, len(z.File))
		}
		check(t, z.Close())
		check(t, os.WriteFile(mark, nil, 0o600))
	}
	q.end("p1", a.GetAttempt())
	if r := q.result(a.GetAttempt()); len(r.GetOutputs()) != 1 || r.GetOutputs()[0].GetVersion() != 3 {
		t.Error(r)
	}
}
