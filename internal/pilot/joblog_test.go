package pilot

import (
	"os"
	"strings"
	"testing"

	"fairway/internal/pilot/process"
	"fairway/internal/wire"
)

func logs(lfn string) func(*wire.Assignment) {
	return func(a *wire.Assignment) {
		writes(lfn)(a)
		payload(func(p *wire.Payload) { p.Log = lfn })(a)
	}
}

// The log of a job that fails is not lost with its sandbox, and says why it
// failed where standard error does not.
func TestLogOfFailedAttemptIsKept(t *testing.T) {
	q := newTaskQueue(t)
	cfg := q.config("p1")
	cfg.LogBytes = 100
	q.start(cfg)
	for name, c := range map[string]struct{ command, message, kept string }{
		"failed":         {"(echo first; echo no memory left) > l/log; exit 3", "no memory left", "first\nno memory left\n"},
		"also on stderr": {"echo here > l/log; echo there >&2; exit 3", "there", "here\n"},
		"no output":      {"echo here > l/log", "its output out is not there", "here\n"},
		"long":           {"seq 100 > l/log; exit 3", "100", ""},
		"none":           {"exit 3", "", ""},
		"link":           {"ln -s /etc/passwd l/log; exit 3", "", ""},
		"pipe":           {"mkfifo l/log; exit 3", "", ""},
	} {
		t.Run(name, func(t *testing.T) {
			a := shell(c.command, writes("out"), logs("l/log"))
			r := q.run("p1", a)
			if !strings.Contains(r.GetMessage(), c.message) || r.GetOutcome() == wire.Outcome_OUTCOME_SUCCEEDED {
				t.Errorf("%v", r)
			}
			kept, err := os.ReadFile(q.log(a, "log"))
			switch {
			case name == "long":
				begin, end, cut := strings.Cut(string(kept), process.CutNotice)
				if !cut || !strings.HasPrefix(begin, "1\n2\n") || !strings.HasSuffix(end, "99\n100\n") || len(begin+end) > 100 {
					t.Errorf("kept %q", kept)
				}
			case string(kept) != c.kept || (err == nil) != (c.kept != ""):
				t.Errorf("kept %q, want %q; %v", kept, c.kept, err)
			}
		})
	}
	a := shell("echo x > out; echo said > l/log", writes("out"), logs("l/log"))
	r := q.run("p1", a)
	expect(t, r, wire.Outcome_OUTCOME_SUCCEEDED, "")
	if got := contents(t, r.GetOutputs()[1].GetPfn()); got != "said\n" {
		t.Errorf("stored %q", got)
	}
	if _, err := os.Stat(q.log(a, "log")); err == nil {
		t.Error("kept for a job that is done")
	}
	r = q.run("p1", shell("echo x > out", writes("out"), logs("l/log")))
	expect(t, r, wire.Outcome_OUTCOME_SUCCEEDED, "")
	if r.GetOutputs()[1].GetSize() != 0 {
		t.Errorf("%v", r)
	}
}
