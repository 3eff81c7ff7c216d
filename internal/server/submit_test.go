package server

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"connectrpc.com/connect"

	"fairway/internal/server/api"
	"fairway/internal/server/listen"
	"fairway/internal/server/loop"
	"fairway/internal/wire"
	"fairway/test/files"
)

const openWorkflow = "workflow: jobs\nopen: true\n"

// whileOpen calls ask with a client of an open run in root, closes the run and returns how it ended.
func whileOpen(t *testing.T, root string, ask func(context.Context, *listen.Connection)) (Outcome, *scripted) {
	t.Helper()
	return whileOpenWith(t, root, func(name string) bool { return name == "bad" }, ask)
}

// whileOpenWith is whileOpen where it is said which jobs fail when they are executed.
func whileOpenWith(
	t *testing.T, root string, fails func(name string) bool, ask func(context.Context, *listen.Connection),
) (Outcome, *scripted) {
	t.Helper()
	r := newRun(t, root, openWorkflow, func(a *wire.Assignment, read func(string) string) (map[string]string, int) {
		if fails(a.GetName()) {
			return nil, 3
		}
		text := a.GetName() + ":"
		for _, in := range a.GetInputs() {
			text += read(in.GetFile().GetLfn())
		}
		outputs := map[string]string{}
		for _, o := range a.GetOutputs() {
			outputs[o.GetLfn()] = text
		}
		return outputs, 0
	})
	s, err := Open(t.Context(), r.config)
	if err != nil {
		t.Fatal(err)
	}
	asked := make(chan struct{})
	go func() {
		defer close(asked)
		c, err := api.Connect(t.Context(), root)
		if err != nil {
			t.Error(err)
			s.Stop(false)
			return
		}
		defer c.Close()
		ask(t.Context(), c)
		if _, err := c.CloseInput(t.Context(), &wire.CloseInputRequest{}); err != nil {
			t.Error(err)
		}
	}()
	outcome, err := s.Run(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	<-asked
	return outcome, r.pilots
}

func submitted(name string, reads []*wire.SubmittedInput, writes ...string) *wire.SubmittedJob {
	j := &wire.SubmittedJob{
		Name: name, Payload: &wire.Payload{Shell: "make it"}, Reads: reads, Retry: &wire.RetryPolicy{Attempts: 1},
	}
	for _, lfn := range writes {
		j.Writes = append(j.Writes, &wire.SubmittedOutput{Lfn: lfn})
	}
	return j
}

func from(lfn, file string) []*wire.SubmittedInput {
	return []*wire.SubmittedInput{{Lfn: lfn, File: file}}
}

// A job that is submitted again, in the same server or in a later one, runs once; one that reads
// the output of another gets it; a changed input makes another job where no name was given, and is
// refused where one was.
func TestSubmittedJobsRunOnce(t *testing.T) {
	root := files.Folder(t, map[string]string{"in.txt": "x"})
	jobs := []*wire.SubmittedJob{
		submitted("a", from("in.txt", "in.txt"), "a.txt"),
		submitted("b", from("a.txt", ""), "b.txt"),
		submitted("", from("in.txt", "in.txt"), "c.txt"),
	}
	first, pilots := whileOpen(t, root, func(ctx context.Context, c *listen.Connection) {
		for round := range 2 {
			answer, err := c.Submit(ctx, &wire.SubmitRequest{Jobs: jobs})
			if err != nil {
				t.Error(err)
				return
			}
			for i, ref := range answer.GetJobs() {
				if ref.GetId() != uint32(i+1) || ref.GetKnown() != (round == 1) {
					t.Errorf("round %d: %v", round, ref)
				}
			}
		}
	})
	if !first.Succeeded || pilots.total() != 3 {
		t.Fatalf("%+v, %d executions", first, pilots.total())
	}
	if got := files.Read(t, filepath.Join(root, "results", "b.txt")); got != "b:a:x" {
		t.Errorf("got %q", got)
	}
	if err := os.WriteFile(filepath.Join(root, "in.txt"), []byte("other"), 0o666); err != nil {
		t.Fatal(err)
	}
	second, pilots := whileOpen(t, root, func(ctx context.Context, c *listen.Connection) {
		_, err := c.Submit(ctx, &wire.SubmitRequest{Jobs: jobs})
		if connect.CodeOf(err) != connect.CodeAlreadyExists || !strings.Contains(err.Error(), "its input in.txt held") {
			t.Error(err)
		}
		answer, err := c.Submit(ctx, &wire.SubmitRequest{Jobs: jobs[1:]})
		if err != nil || !answer.GetJobs()[0].GetKnown() || answer.GetJobs()[1].GetKnown() {
			t.Error(answer, err)
		}
	})
	if !second.Succeeded || pilots.total() != 1 {
		t.Fatalf("%+v, %d executions", second, pilots.total())
	}
	if got := files.Read(t, filepath.Join(root, "results", "c.txt")); !strings.HasSuffix(got, ":other") {
		t.Errorf("got %q", got)
	}
}

// A failed job fails its run, is not tried again by the next server, but when it is submitted again.
func TestSubmittedAgainAfterFailure(t *testing.T) {
	root := t.TempDir()
	submit := func(name string) func(context.Context, *listen.Connection) {
		return func(ctx context.Context, c *listen.Connection) {
			if _, err := c.Submit(ctx, &wire.SubmitRequest{Jobs: []*wire.SubmittedJob{submitted(name, nil)}}); err != nil {
				t.Error(err)
			}
		}
	}
	for i, c := range []struct {
		name string
		good bool
	}{{"bad", false}, {"good", true}, {"bad", false}} {
		outcome, pilots := whileOpen(t, root, submit(c.name))
		if outcome.Succeeded != c.good || pilots.total() != 1 {
			t.Errorf("%d: %+v, %d executions", i, outcome, pilots.total())
		}
	}
}

// What cannot be a job is refused with a code and a reason, and the others of its call with it.
func TestSubmissionsThatAreRefused(t *testing.T) {
	root := files.Folder(t, map[string]string{"in.txt": "x", "two.txt": "y"})
	outcome, pilots := whileOpen(t, root, func(ctx context.Context, c *listen.Connection) {
		good := submitted("good", nil, "good.txt")
		if _, err := c.Submit(ctx, &wire.SubmitRequest{Jobs: []*wire.SubmittedJob{good}}); err != nil {
			t.Error(err)
		}
		other := submitted("good", nil, "other.txt")
		both := submitted("both", nil)
		both.Payload.Argv = []string{"true"}
		hidden := submitted("hidden", nil)
		hidden.Payload.Environment = map[string]string{"LD_PRELOAD": "/x.so"}
		star := submitted("star", nil, "a.txt")
		star.Writes[0].Pattern = true
		log := submitted("log", nil, "a.txt")
		log.Payload.Log = "b.txt"
		many := make([]*wire.SubmittedJob, wire.MaxSubmitted+1)
		for i := range many {
			many[i] = submitted(fmt.Sprint(i), nil)
		}
		for what, r := range map[string]struct {
			jobs []*wire.SubmittedJob
			code connect.Code
			says string
		}{
			"another job of the name": {[]*wire.SubmittedJob{other}, connect.CodeAlreadyExists, "good"},
			"two of one name":         {[]*wire.SubmittedJob{submitted("x", nil), submitted("x", nil, "x.txt")}, connect.CodeAlreadyExists, "x"},
			"two with other files":    {[]*wire.SubmittedJob{submitted("t", from("in", "in.txt")), submitted("t", from("in", "two.txt"))}, connect.CodeAlreadyExists, "t"},
			"no command":              {[]*wire.SubmittedJob{{Name: "empty"}}, connect.CodeInvalidArgument, "shell or argv"},
			"two commands":            {[]*wire.SubmittedJob{both}, connect.CodeInvalidArgument, "shell or argv"},
			"a file that is not":      {[]*wire.SubmittedJob{submitted("y", from("y", "y.txt"))}, connect.CodeInvalidArgument, "y.txt"},
			"a file that nobody made": {[]*wire.SubmittedJob{submitted("z", from("z.txt", ""))}, connect.CodeInvalidArgument, "neither exists"},
			"a name that leads out":   {[]*wire.SubmittedJob{submitted("up", nil, "../up.txt")}, connect.CodeInvalidArgument, "../up.txt"},
			"a reserved variable":     {[]*wire.SubmittedJob{hidden}, connect.CodeInvalidArgument, "LD_PRELOAD"},
			"a pattern and no star":   {[]*wire.SubmittedJob{star}, connect.CodeInvalidArgument, "pattern"},
			"a log that is no output": {[]*wire.SubmittedJob{log}, connect.CodeInvalidArgument, "b.txt"},
			"too many":                {many, connect.CodeResourceExhausted, "10000"},
		} {
			_, err := c.Submit(ctx, &wire.SubmitRequest{
				Jobs: append(r.jobs[:len(r.jobs):len(r.jobs)], submitted("beside "+what, nil)),
			})
			if connect.CodeOf(err) != r.code || !strings.Contains(err.Error(), r.says) {
				t.Errorf("%s: %v", what, err)
			}
		}
	})
	if !outcome.Succeeded || pilots.total() != 1 {
		t.Errorf("%+v, %d executions", outcome, pilots.total())
	}
}

// Only an open run takes jobs.
func TestARunOfStepsTakesNoJobs(t *testing.T) {
	root := files.Folder(t, threeTexts)
	refused := make(chan error, 4)
	r := newRun(t, root, twoSteps, func(a *wire.Assignment, read func(string) string) (map[string]string, int) {
		c, err := api.Connect(context.Background(), root)
		if err == nil {
			_, err = c.Submit(context.Background(), &wire.SubmitRequest{Jobs: []*wire.SubmittedJob{submitted("x", nil)}})
			c.Close()
		}
		refused <- err
		return twoStepsScript(a, read)
	})
	r.mustSucceed()
	if err := <-refused; connect.CodeOf(err) != connect.CodeFailedPrecondition {
		t.Error(err)
	}
}

// An open run whose failed jobs were tried again and are done has succeeded, and tells of none of them;
// of more failures than it tells, too. One that fails once more is told as it failed last.
func TestRetriedJobsOfAnOpenRunAreNoProblem(t *testing.T) {
	const jobs = loop.ProblemLimit + 5
	for _, again := range []bool{false, true} {
		t.Run(fmt.Sprintf("one fails again: %v", again), func(t *testing.T) {
			var tried sync.Map
			fails := func(name string) bool {
				_, before := tried.LoadOrStore(name, true)
				return !before || again && name == "job7"
			}
			outcome, _ := whileOpenWith(t, t.TempDir(), fails, func(ctx context.Context, c *listen.Connection) {
				request := new(wire.SubmitRequest)
				for i := range jobs {
					request.Jobs = append(request.Jobs, submitted(fmt.Sprint("job", i), nil, fmt.Sprint(i, ".txt")))
				}
				if _, err := c.Submit(ctx, request); err != nil {
					t.Error(err)
				}
				awaitStates(ctx, t, c, map[string]int{"failed": jobs})
				if _, err := c.Retry(ctx, new(wire.RetryRequest)); err != nil {
					t.Error(err)
				}
				if again {
					awaitStates(ctx, t, c, map[string]int{"failed": 1, "done": jobs - 1})
				} else {
					awaitStates(ctx, t, c, map[string]int{"done": jobs})
				}
			})
			if outcome.Succeeded == again {
				t.Errorf("%+v", outcome)
			}
			want := 0
			if again {
				want = 1
			}
			if len(outcome.Problems) != want {
				t.Errorf("problems: %q", outcome.Problems)
			}
		})
	}
}

// awaitStates waits until so many jobs are in each state.
func awaitStates(ctx context.Context, t *testing.T, c *listen.Connection, want map[string]int) {
	t.Helper()
	stream, err := c.Progress(ctx, &wire.ProgressRequest{Follow: true})
	if err != nil {
		t.Error(err)
		return
	}
	defer stream.Close()
	for stream.Receive() {
		there := true
		for state, n := range want {
			listed, err := c.ListJobs(ctx, &wire.ListJobsRequest{States: []string{state}, Limit: 1000})
			if err != nil {
				t.Error(err)
				return
			}
			there = there && len(listed.GetJobs()) == n
		}
		if there {
			return
		}
	}
	t.Error(stream.Err())
}
