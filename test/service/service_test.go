package service

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"connectrpc.com/connect"

	"fairway/internal/dispatch/records"
	"fairway/internal/server/folder"
	"fairway/internal/store/storetest"
	"fairway/internal/wire"
	"fairway/lib/seed"
	"fairway/test/files"
	"fairway/test/program"
)

// fairway is the path of the binary under test.
var fairway string

func TestMain(m *testing.M) { program.Main(m, &fairway) }

const (
	// longest is the latest random moment for a kill, about as long as the workflows of one start
	// take.
	longest = 1200 * time.Millisecond
	// each is how many workflows are submitted to one start of the server.
	each = 3
)

// points are where the server is killed, and how often they are passed at most before that.
var points = []struct {
	name  string
	times int
}{
	{"server.archive.before", each}, {"server.retire.before", each}, {"server.sweep.before", each},
	{"server.letout.before", 40},
	{"store.commit.before", 40}, {"store.commit.after", 40},
}

const workflow = `workflow: letters
parameters: {word: }
inputs:
  texts: {files: "in/{s}.txt", as: "in/{s}.txt"}
steps:
  add:
    each: in/{s}.txt
    writes: "added/{s}.txt"
    command: |
      echo "adding to $s"
      { cat "$in"; echo ${word}; } >"$out"
  all:
    merge: "added/{s}.txt"
    writes: all.txt
    command: cat $in >"$out"
`

// inputs are those of all workflows.
var inputs = map[string]string{"in/a.txt": "one\n", "in/b.txt": "two\n"}

// wanted are the results of a run.
func wanted(word string) map[string]string {
	return map[string]string{"all.txt": "one\n" + word + "\ntwo\n" + word + "\n"}
}

// submission is a workflow that the test submits.
type submission struct {
	word string // in no other one
	key  string // empty: it is submitted once, whatever comes of it
	run  uint32 // 0: it was not acknowledged
}

// campaign is one server that is killed many times.
type campaign struct {
	t         *testing.T
	random    *rand.Rand
	state, in string
	database  *storetest.Database // nil: the store is a file
	address   string              // of the store in the database
	all       []*submission
	ended     map[uint32]bool // runs that were seen to have succeeded
	story     []string
}

// TestKills kills a server while workflows are submitted to it, and starts it again. In the end each
// submission that was acknowledged is one run, which has succeeded with the results that it should
// have, and of runs that are retired the server keeps nothing but their results: a second submission
// takes these, and they go with the runs.
func TestKills(t *testing.T) {
	newCampaign(t).run()
}

// TestKillsWithPostgres is TestKills with the records in a PostgreSQL, which crashes too.
func TestKillsWithPostgres(t *testing.T) {
	c := newCampaign(t)
	c.database = storetest.Postgres(t)
	c.address = c.database.Address()
	c.run()
}

func newCampaign(t *testing.T) *campaign {
	return &campaign{
		t: t, random: seed.Source(t), state: filepath.Join(t.TempDir(), "state"), in: files.Folder(t, inputs),
		ended: map[uint32]bool{},
	}
}

func (c *campaign) run() {
	t := c.t
	kills := 2 * len(points)
	if os.Getenv("FAIRWAY_SOAK") != "" {
		kills = 200
	}
	for n := range kills {
		c.disturb(n)
		if t.Failed() {
			t.Fatalf("after %q", c.story)
		}
	}
	c.conclude()
	if t.Failed() {
		t.Logf("after %q", c.story)
	}
}

// flags of a start: where the records are, it need be told at first only.
func (c *campaign) flags(n int) []string {
	flags := []string{"--retention", "0"}
	if c.address == "" || n > 0 && n%2 == 0 {
		return flags
	}
	return append(flags, "--store", c.address)
}

// disturb starts the server, submits workflows, and kills it: with even numbers at a fault point, or
// else at a random moment.
func (c *campaign) disturb(n int) {
	c.t.Helper()
	point := points[n/2%len(points)]
	var environment []string
	moment := context.Background()
	if n%2 == 0 {
		time := 1 + c.random.IntN(point.times)
		c.say("kill at %s, time %d", point.name, time)
		environment = []string{fmt.Sprintf("FAIRWAY_FAULT=%s:%d:kill", point.name, time)}
	} else {
		after := time.Duration(c.random.Int64N(int64(longest)))
		c.say("kill after %v", after)
		var cancel context.CancelFunc
		moment, cancel = context.WithTimeout(moment, after)
		defer cancel()
	}
	s := serve(c.t, c.state, c.flags(n), environment...)
	if c.database != nil && n%3 == 0 {
		c.say("the database crashes")
		c.database.Stop()
		c.database.Start()
	}
	worked := make(chan struct{})
	news := c.choose()
	go func() {
		defer close(worked)
		if s.client != nil && c.submit(s, news) == nil {
			_ = c.watch(s)
		}
	}()
	select {
	case <-moment.Done():
	case <-worked:
	}
	s.kill()
	<-worked
	if !s.killed() {
		c.t.Errorf("the server ended by itself: %v\n%s", s.cmd.ProcessState, s.output.String())
	}
}

// choose makes submissions, and adds some of those that were there before and have a key.
func (c *campaign) choose() (chosen []*submission) {
	for _, earlier := range c.all {
		if earlier.key != "" && (earlier.run == 0 || c.random.IntN(len(c.all)) == 0) {
			chosen = append(chosen, earlier)
		}
	}
	for range each {
		s := &submission{word: fmt.Sprintf("w%d", len(c.all))}
		if c.random.IntN(3) > 0 {
			s.key = "key of " + s.word
		}
		c.all, chosen = append(c.all, s), append(chosen, s)
	}
	return chosen
}

// submit submits workflows until the server ends, some of those with a key twice.
func (c *campaign) submit(s *server, all []*submission) error {
	for i, one := range all {
		times := 1
		if one.key != "" && i%2 == 0 {
			times = 2
		}
		for range times {
			answer, err := s.client.SubmitWorkflow(context.Background(), &wire.SubmitWorkflowRequest{
				Workflow: []byte(workflow), Folder: c.in, Parameters: map[string]string{"word": one.word}, Key: one.key,
			})
			if code := connect.CodeOf(err); err != nil && (code == connect.CodeInvalidArgument ||
				code == connect.CodeAlreadyExists || code == connect.CodeNotFound) {
				c.t.Errorf("submission %s was refused: %v", one.word, err)
			}
			if err != nil {
				return err
			}
			if run := answer.GetRun(); one.run != 0 && one.run != run {
				c.t.Errorf("the submission %q is the runs %d and %d", one.key, one.run, run)
			}
			one.run = answer.GetRun()
		}
	}
	return nil
}

// watch waits until all runs have ended, or the server has.
func (c *campaign) watch(s *server) error {
	answer, err := s.client.ListRuns(context.Background(), &wire.ListRunsRequest{Limit: 1 << 20})
	if err != nil {
		return err
	}
	for _, run := range answer.GetRuns() {
		if c.ended[run.GetRun()] {
			continue
		}
		stream, err := s.client.Progress(context.Background(), &wire.ProgressRequest{Run: run.GetRun(), Follow: true})
		if err != nil {
			return err
		}
		var last *wire.ProgressReport
		for stream.Receive() {
			last = stream.Msg()
		}
		err = errors.Join(stream.Err(), stream.Close())
		switch {
		case last.GetSucceeded():
			c.ended[run.GetRun()] = true
		case last.GetEnded():
			c.t.Errorf("run %d: %v", run.GetRun(), last.GetProblems())
		default:
			return errors.Join(err, errors.New("the server has ended"))
		}
	}
	return nil
}

// conclude lets all runs end, and looks at what they have left.
func (c *campaign) conclude() {
	c.t.Helper()
	s := serve(c.t, c.state, c.flags(0))
	var again []*submission
	for _, one := range c.all {
		if one.key != "" {
			again = append(again, one)
		}
	}
	if err := errors.Join(c.submit(s, again), c.watch(s)); err != nil {
		c.t.Fatalf("%v\n%s", err, s.output.String())
	}
	c.checkRuns(s)
	c.checkReuse(s)
	c.ask("stop")
	s.end()
	if left := program.Pilots(c.state); len(left) > 0 {
		c.t.Errorf("the server has left the pilots %v", left)
	}
	c.checkStore()
}

// checkRuns looks at all runs: each submission is one, with the results that it should have.
func (c *campaign) checkRuns(s *server) {
	c.t.Helper()
	answer, err := s.client.ListRuns(c.t.Context(), &wire.ListRunsRequest{Limit: 1 << 20})
	if err != nil {
		c.t.Fatal(err)
	}
	runs := map[string][]uint32{}
	for _, run := range answer.GetRuns() {
		word := run.GetParameters()["word"]
		runs[word] = append(runs[word], run.GetRun())
		if run.GetState() != "succeeded" || run.GetDone() != 3 || run.GetJobs() != 3 {
			c.t.Errorf("run %d: %v", run.GetRun(), run)
		}
		got := files.Below(c.t, filepath.Join(c.state, folder.ResultsFolder, fmt.Sprint(run.GetRun())))
		if want := wanted(word); !maps.Equal(got, want) {
			c.t.Errorf("run %d made %q, and not %q", run.GetRun(), got, want)
		}
		if log := c.logs(s, run.GetRun()); log != "adding to a\n" {
			c.t.Errorf("run %d printed %q", run.GetRun(), log)
		}
	}
	for _, one := range c.all {
		got := runs[one.word]
		if one.run == 0 && len(got) > 1 || one.run != 0 && !slices.Equal(got, []uint32{one.run}) {
			c.t.Errorf("submission %s is the runs %v, and was acknowledged as %d", one.word, got, one.run)
		}
		delete(runs, one.word)
	}
	if len(runs) > 0 {
		c.t.Errorf("nobody has submitted the runs %v", runs)
	}
	last := fmt.Sprint(answer.GetRuns()[0].GetRun())
	for want, arguments := range map[string][]string{
		"succeeded":   {"runs"},
		"add/b":       {"jobs", "--run", last},
		"adding to b": {"logs", "add/b", "--run", last},
	} {
		if got := c.ask(arguments...); !strings.Contains(got, want) {
			c.t.Errorf("fairway %v prints %q", arguments, got)
		}
	}
}

// checkReuse submits all workflows once more: each takes the results of the run before, which is kept. Then
// all runs are removed, and nothing that they have stored is left.
func (c *campaign) checkReuse(s *server) {
	c.t.Helper()
	for _, one := range c.all {
		if one.run == 0 {
			continue
		}
		answer, err := s.client.SubmitWorkflow(c.t.Context(), &wire.SubmitWorkflowRequest{
			Workflow: []byte(workflow), Folder: c.in, Parameters: map[string]string{"word": one.word},
		})
		if err != nil {
			c.t.Fatal(err)
		}
		stream, err := s.client.Progress(c.t.Context(), &wire.ProgressRequest{Run: answer.GetRun(), Follow: true})
		if err != nil {
			c.t.Fatal(err)
		}
		var last *wire.ProgressReport
		for stream.Receive() {
			last = stream.Msg()
		}
		_ = stream.Close()
		if n := last.GetSummary().GetAttempts(); !last.GetSucceeded() || n > 0 {
			c.t.Errorf("run %d executed %d jobs that run %d, which is kept, had executed", answer.GetRun(), n, one.run)
		}
	}
	answer, err := s.client.ListRuns(c.t.Context(), &wire.ListRunsRequest{Limit: 1 << 20})
	if err != nil {
		c.t.Fatal(err)
	}
	remove := &wire.RemoveRunsRequest{}
	for _, run := range answer.GetRuns() {
		remove.Runs = append(remove.Runs, run.GetRun())
	}
	if _, err := s.client.RemoveRuns(c.t.Context(), remove); err != nil {
		c.t.Error(err)
	}
}

// logs is what a job of a run has printed.
func (c *campaign) logs(s *server, run uint32) string {
	c.t.Helper()
	stream, err := s.client.Logs(c.t.Context(), &wire.LogsRequest{Run: run, Job: "add/a"})
	if err != nil {
		c.t.Fatal(err)
	}
	defer func() { _ = stream.Close() }()
	var text []byte
	for stream.Receive() {
		text = append(text, stream.Msg().GetData()...)
	}
	if stream.Err() != nil {
		c.t.Errorf("the log of run %d: %v", run, stream.Err())
	}
	return string(text)
}

// checkStore looks that the store of the server has nothing of runs that are retired.
func (c *campaign) checkStore() {
	c.t.Helper()
	kept, err := folder.OpenRecords(c.t.Context(), filepath.Join(c.state, folder.StateFolder))
	if err != nil {
		c.t.Fatal(err)
	}
	defer func() { _ = kept.Close() }()
	for name := range files.Below(c.t, filepath.Join(c.state, folder.StateFolder, "storage")) {
		if strings.Contains(name, ".a") {
			c.t.Errorf("%s is stored, and no run is left", name)
		}
	}
	for _, table := range records.Tables() {
		left, err := kept.Load(c.t.Context(), table)
		if err != nil {
			c.t.Fatal(err)
		}
		for _, r := range left {
			if r.Table == records.TableResult {
				c.t.Errorf("the result %s is kept, which no run names", r.Key)
			}
			if r.Run != 0 {
				c.t.Errorf("the store has the record %q in %s of run %d, which is retired", r.Key, r.Table, r.Run)
			}
		}
	}
}

// ask gives what a command prints.
func (c *campaign) ask(arguments ...string) string {
	c.t.Helper()
	out, err := exec.Command(fairway, append(arguments, "--server", c.state)...).CombinedOutput()
	if err != nil {
		c.t.Errorf("fairway %v: %v\n%s", arguments, err, out)
	}
	return string(out)
}

func (c *campaign) say(format string, values ...any) {
	c.story = append(c.story, fmt.Sprintf(format, values...))
	c.t.Log(c.story[len(c.story)-1])
}
