package server

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"connectrpc.com/connect"

	"fairway/internal/server/api"
	"fairway/internal/server/state"
	"fairway/internal/taskqueue"
	"fairway/internal/wire"
	"fairway/test/files"
)

// cohort aligns samples, which each person has under other names.
const cohort = `
workflow: NAME
inputs:
  samples: {files: "PATTERN", as: "reads/{sample}.fq"}
steps:
  STEP:
    each: "reads/{sample}.fq"
    writes: "bam/{sample}.bam"
    command: align
  call:
    merge: "bam/{sample}.bam"
    writes: calls.vcf
    command: call
`

// cohorts is a lasting server that several people use. aligned are the samples that were executed, by the
// number of the run.
type cohorts struct {
	*service
	mu      sync.Mutex
	aligned []string
}

func startPeople(t *testing.T, shares string, change func(*Config)) *cohorts {
	t.Helper()
	p := &cohorts{}
	file := filepath.Join(t.TempDir(), "shares.yaml")
	if err := os.WriteFile(file, []byte(shares), 0o600); err != nil {
		t.Fatal(err)
	}
	run := func(a *wire.Assignment, read func(string) string) (map[string]string, int) {
		if strings.HasPrefix(a.GetOutputs()[0].GetLfn(), "bam/") {
			p.mu.Lock()
			p.aligned = append(p.aligned, fmt.Sprintf("%d:%s", a.GetRun(), a.GetOutputs()[0].GetLfn()))
			p.mu.Unlock()
		}
		return twoStepsScript(a, read)
	}
	p.service = startServiceAs(t, t.TempDir(), run, func(c *Config) {
		c.Shares = file
		change(c)
	})
	return p
}

// executed are the samples that were aligned since it was asked before.
func (p *cohorts) executed() (list []string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	list, p.aligned = p.aligned, nil
	slices.Sort(list)
	return list
}

// begin submits the cohort of a person in a group.
func (p *cohorts) begin(user, group, step, pattern string, samples map[string]string, noReuse bool) uint32 {
	p.t.Helper()
	folder := files.Folder(p.t, samples)
	for name := range samples {
		when := time.Unix(int64(1e9+len(folder)), 0)
		if err := os.Chtimes(filepath.Join(folder, name), when, when); err != nil {
			p.t.Fatal(err)
		}
	}
	text := strings.NewReplacer("NAME", user, "PATTERN", pattern, "STEP", step).Replace(cohort)
	run, _, err := p.server.SubmitWorkflow(p.t.Context(), &api.SubmittedWorkflow{
		File: "w.yaml", Text: []byte(text), Folder: folder, User: user, Certain: true, Group: group, NoReuse: noReuse,
	})
	if err != nil {
		p.t.Fatal(err)
	}
	return uint32(run)
}

// do is begin, and waits for the end.
func (p *cohorts) do(user, group, step, pattern string, samples map[string]string, noReuse bool) uint32 {
	p.t.Helper()
	run := p.begin(user, group, step, pattern, samples, noReuse)
	if end := p.await(run); !end.GetSucceeded() {
		p.t.Fatal(end)
	}
	p.retired(taskqueue.RunID(run))
	return run
}

func (p *cohorts) explain(run uint32, job string) string {
	p.t.Helper()
	answer, err := p.client.Explain(p.t.Context(), &wire.ExplainRequest{Run: run, Job: job})
	if err != nil {
		p.t.Fatal(err)
	}
	return strings.Join(answer.GetLines(), "\n") + answer.GetTakenFrom().String()
}

// A second person's cohort of the same samples aligns nothing again, in whatever files they are; one of
// another group aligns all, and hears of nobody; and what is known of a result outlasts its run.
func TestASecondCohortRunsNoAlignment(t *testing.T) {
	const labs = "groups:\n  lab: {users: {ann: 1, bob: 1}}\n  other: {users: {cid: 1, ann: 1}}\nusers: {dan: 1, eve: 1}\n"
	p := startPeople(t, labs, func(c *Config) { c.CompareInputs = 1 << 30 })
	defer p.stop()
	big := strings.Repeat("x", 5<<20) // too large for what a run in a folder compares
	anns := map[string]string{"in/a.fq": "one " + big, "in/b.fq": "two ", "in/c.fq": "three "}
	bobs := map[string]string{
		"x/y/s_a.gz": "one " + big, "x/y/s_b.gz": "two ", "x/y/s_c.gz": "three ", "x/y/s_d.gz": "four ",
	}

	first := p.do("ann", "lab", "align", "in/{sample}.fq", anns, false)
	if got := p.executed(); len(got) != 3 {
		t.Fatalf("%v were aligned", got)
	}
	second := p.do("bob", "lab", "map", "x/y/s_{sample}.gz", bobs, false)
	if got := p.executed(); !slices.Equal(got, []string{fmt.Sprint(second, ":bam/d.bam")}) {
		t.Errorf("of a second cohort %v were aligned", got)
	}
	whose := fmt.Sprintf("its result is that of job align/a of run %d of ann", first)
	for _, want := range []string{whose, "user:\"ann\""} {
		if text := p.explain(second, "map/a"); !strings.Contains(text, want) {
			t.Errorf("explain says %q, and not %q", text, want)
		}
	}
	if text := p.explain(second, "map/d"); strings.Contains(text, "ann") {
		t.Errorf("of what was executed explain says %q", text)
	}
	for user, group := range map[string]string{"cid": "other", "dan": "", "eve": ""} {
		third := p.do(user, group, "align", "in/{sample}.fq", anns, false)
		if got := p.executed(); len(got) != 3 {
			t.Errorf("in the group %q only %v were aligned", group, got)
		}
		for _, name := range []string{"ann", "bob", "earlier"} {
			if text := p.explain(third, "align/a"); strings.Contains(text, name) {
				t.Errorf("in the group %q explain says %q", group, text)
			}
		}
	}
	if p.do("bob", "lab", "align", "in/{sample}.fq", anns, true); len(p.executed()) != 3 {
		t.Error("a run took results although it was not to")
	}
	if p.do("ann", "lab", "align", "in/{sample}.fq", anns, false); len(p.executed()) != 0 {
		t.Error("a run took nothing, or what was made only for another run")
	}

	removed, err := p.server.RemoveRun(t.Context(), taskqueue.RunID(first), true)
	if err != nil {
		t.Fatal(err)
	}
	var named []string
	for _, r := range removed.Results {
		named = append(named, fmt.Sprintf("%s %v", r.Job, r.NamedBy))
	}
	slices.Sort(named)
	want := []string{
		"align/a [run 2 of bob run 7 of ann]", "align/b [run 2 of bob run 7 of ann]",
		"align/c [run 2 of bob run 7 of ann]", "call [run 7 of ann]",
	}
	if !slices.Equal(named, want) {
		t.Errorf("with the first run would go %q, and not %q", named, want)
	}
	for _, id := range []taskqueue.RunID{1, 7} {
		if _, err := p.server.RemoveRun(t.Context(), id, false); err != nil {
			t.Fatal(err)
		}
	}
	if p.do("ann", "lab", "align", "in/{sample}.fq", anns, false); len(p.executed()) != 0 {
		t.Error("what another run names went with the first")
	}
	if stream, err := p.client.Logs(t.Context(), &wire.LogsRequest{Run: second, Job: "map/a"}); err == nil {
		for stream.Receive() {
		}
		if connect.CodeOf(stream.Err()) == connect.CodeInternal {
			t.Error(stream.Err())
		}
		_ = stream.Close()
	}
}

// Of a disk that fills people are told before. Then what nobody names or has promised to keep goes, then
// no further job starts and no further run is taken.
func TestAFullDiskIsForeseen(t *testing.T) {
	var mu sync.Mutex
	const mb, all = 1_000_000, 1_000_000_000
	free := int64(900 * mb)
	p := startPeople(t, "groups:\n  lab: {users: {ann: 1}}\n  safe: {retention: 30d, users: {bob: 1}}\n", func(c *Config) {
		c.Dispatch.Retention = time.Hour
		c.Space = func(string) (int64, int64, error) {
			mu.Lock()
			defer mu.Unlock()
			return free, all, nil
		}
	})
	defer p.stop()
	look := func(n int64, now time.Time) {
		t.Helper()
		mu.Lock()
		free = n * mb
		mu.Unlock()
		if err := p.server.lookAtSpace(t.Context(), now); err != nil {
			t.Fatal(err)
		}
	}
	now := time.Now().Add(time.Hour)
	for i, user := range []string{"ann", "bob"} {
		p.do(user, []string{"lab", "safe"}[i], "align", "in/{sample}.fq", map[string]string{"in/a.fq": user}, false)
		if _, err := p.server.RemoveRun(t.Context(), taskqueue.RunID(i+1), false); err != nil {
			t.Fatal(err)
		}
	}
	results := func() (n int) {
		t.Helper()
		if err := p.server.inbox.Query(t.Context(), func(c *state.Cores) { n = c.Dispatch.Results() }); err != nil {
			t.Fatal(err)
		}
		return n
	}
	if n := results(); n != 4 {
		t.Fatalf("%d results are kept", n)
	}
	open := p.submit("workflow: w\nopen: true\n", t.TempDir(), nil)
	look(90, now)
	look(60, now.Add(5*time.Minute))
	stream, err := p.client.Progress(t.Context(), &wire.ProgressRequest{Run: open})
	if err != nil || !stream.Receive() {
		t.Fatal(err)
	}
	if notes := strings.Join(stream.Msg().GetNotes(), "\n"); !strings.Contains(notes, "will be full in about") {
		t.Errorf("a disk that fills is told of by %q", notes)
	}
	_ = stream.Close()
	if n := results(); n != 4 {
		t.Errorf("%d results are left while there is room", n)
	}
	look(10, now.Add(6*time.Minute))
	if n := results(); n != 2 {
		t.Errorf("%d results are left, and not the two that a group has promised to keep", n)
	}
	_, _, err = p.server.SubmitWorkflow(t.Context(), &api.SubmittedWorkflow{
		File: "w.yaml", Text: []byte("workflow: w\nopen: true\n"), Folder: t.TempDir(), User: "ann", Certain: true,
	})
	if refused := new(connect.Error); !errors.As(err, &refused) || refused.Code() != connect.CodeResourceExhausted ||
		!strings.Contains(err.Error(), "`fairway rm RUN`") {
		t.Errorf("a run on a full disk is refused by %v", err)
	}
	submitted := &wire.SubmitRequest{Run: open, Jobs: []*wire.SubmittedJob{{
		Name: "one", Payload: &wire.Payload{Shell: "one"}, Writes: []*wire.SubmittedOutput{{Lfn: "one"}},
	}}}
	if _, err := p.client.Submit(t.Context(), submitted); err != nil {
		t.Fatal(err)
	}
	if text := p.explain(open, "one"); !strings.Contains(text, "no further job is started: of the disk of") {
		t.Errorf("a job that is not started is explained by %q", text)
	}
	look(500, now.Add(time.Hour))
	if _, err := p.client.CloseInput(t.Context(), &wire.CloseInputRequest{Run: open}); err != nil {
		t.Fatal(err)
	}
	if end := p.await(open); !end.GetSucceeded() {
		t.Error(end)
	}
}
