package server

import (
	"bytes"
	"log/slog"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"fairway/internal/access"
	"fairway/internal/wire"
	"fairway/test/files"
)

// A pilot says that a file of somebody else is the output of its job. It is told
// that this cannot be and leaves, another pilot runs the job, and that file is
// neither published nor removed.
func TestALyingPilotPublishesNothing(t *testing.T) {
	secret := filepath.Join(t.TempDir(), "secret")
	files.Write(t, secret, "secret")
	for what, lie := range map[string]func(*wire.Report){
		"a file that the server can read": func(r *wire.Report) { r.Result.Outputs[0].Pfn = "file:" + secret },
		"an input":                        func(r *wire.Report) { r.Result.Outputs[0].Pfn = "folder:in/a.txt" },
		"the attempt of another":          func(r *wire.Report) { r.Result.Attempt++ },
		"a job of another run":            func(r *wire.Report) { r.Result.Run++ },
	} {
		t.Run(what, func(t *testing.T) {
			r := newRun(t, files.Folder(t, threeTexts), twoSteps, twoStepsScript)
			r.pilots.lie = func(name string, m *wire.SyncRequest) {
				if name == "p1" && len(m.GetEnded()) > 0 {
					lie(m.GetEnded()[0])
				}
			}
			if outcome := r.run(); !outcome.Succeeded {
				t.Fatalf("%+v", outcome)
			}
			if got := r.result("joined.txt"); got != "ONE TWO THREE " {
				t.Errorf("got %q", got)
			}
			if told := slices.Collect(maps.Keys(r.pilots.refused)); !slices.Equal(told, []string{"p1"}) {
				t.Error("refused:", r.pilots.refused)
			}
			if sentence, _ := access.Refused(r.pilots.refused["p1"]); !strings.Contains(sentence, "attempt") {
				t.Error(sentence)
			}
			if files.Read(t, secret) != "secret" {
				t.Error("it is not as it was")
			}
		})
	}
}

// The jobs of a pilot that was refused are given to others at once, also if it does not leave, and a log
// says what was refused.
func TestThePilotThatWasRefusedKeepsNoJob(t *testing.T) {
	r := newRun(t, files.Folder(t, threeTexts), twoSteps, twoStepsScript)
	var log bytes.Buffer
	r.config.Log = slog.New(slog.NewTextHandler(&log, nil))
	r.pilots.stay = true
	r.config.Dispatch.Silence = time.Second // until its launch is stopped
	r.pilots.lie = func(name string, m *wire.SyncRequest) {
		if name == "p1" && len(m.GetEnded()) > 0 {
			m.GetEnded()[0].Result.Outputs[0].Pfn = "folder:in/a.txt"
		}
	}
	if outcome := r.run(); !outcome.Succeeded {
		t.Fatalf("%+v", outcome)
	}
	if text := log.String(); !strings.Contains(text, "was refused") || !strings.Contains(text, "folder:in/a.txt") {
		t.Error("no log says what was refused:", text)
	}
}

// A pilot of another version is told why it is to leave, in a way that every
// version understands.
func TestAnOlderPilotLeaves(t *testing.T) {
	t.Parallel()
	r := newRun(t, files.Folder(t, threeTexts), twoSteps, twoStepsScript)
	r.pilots.lie = func(name string, m *wire.SyncRequest) {
		if name == "p1" {
			m.Protocol = 0
		}
	}
	if outcome := r.run(); !outcome.Succeeded {
		t.Fatalf("%+v", outcome)
	}
}
