package pilot

import (
	"testing"

	"fairway/internal/wire"
)

func TestRunsCommands(t *testing.T) {
	q := newTaskQueue(t)
	p := q.start(q.config("p1"))
	expect(t, q.run("p1", shell("", argv("true"))), wire.Outcome_OUTCOME_SUCCEEDED, "")
	a := shell("echo hello; echo oops >&2")
	expect(t, q.run("p1", a), wire.Outcome_OUTCOME_SUCCEEDED, "")
	if got := contents(t, q.folder+"/logs/"+logName(a.GetAttempt(), "out")); got != "hello\n" {
		t.Error(got)
	}
	a = shell("tr a-z A-Z < raw/in > done/out", reads("raw/in", 0, 3, "file:"+writeFile(t, "abc")), writes("done/out"))
	r := q.run("p1", a)
	expect(t, r, wire.Outcome_OUTCOME_SUCCEEDED, "")
	if got := contents(t, r.GetOutputs()[0].GetPfn()); got != "ABC" {
		t.Error(got)
	}
	p.stop()
	if !q.pilots["p1"].left {
		t.Error("no farewell")
	}
}
