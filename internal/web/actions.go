package web

import (
	"context"
	"errors"
	"net/http"
	"net/url"
	"strconv"
	"strings"

	"connectrpc.com/connect"

	"fairway/internal/quantity"
	"fairway/internal/server/api"
	"fairway/internal/wire"
)

// action is what a person may want of a run. It is asked for by a form that is sent to
// /runs/{run}/NAME, and what cannot be undone by a page with a question before it, which is also where
// a person is led who had to log in first: /runs/{run}/ask/NAME.
type action struct {
	call     string // in the audit log
	title    string
	question string
	button   string
	undone   bool // it can be
	do       func(context.Context, *api.Service, target) error
	// detail tells what it would do; nil: the question says it.
	detail func(context.Context, *api.Service, target) ([]string, error)
	gone   bool // there is no run any more then
}

type target struct {
	run     api.Page
	job     string // its number; empty: the run
	message string // a group of failures; empty: none
}

// actions are all of them, by their names.
var actions = map[string]action{
	"retry": {
		call: "Retry", title: "Try again", question: "Let what failed run again?", button: "Try again", undone: true,
		do: func(ctx context.Context, s *api.Service, t target) (err error) {
			if t.message != "" {
				_, err = s.RetryFailures(ctx, t.run, t.message)
				return err
			}
			_, err = s.Retry(ctx, &wire.RetryRequest{Run: uint32(t.run), Jobs: t.jobs()})
			return err
		},
	},
	"cancel": {
		call: "Cancel", title: "Cancel a job", button: "Cancel the job",
		question: "Cancel this job? If it runs, its work is lost. What waits for its files cannot run then.",
		do: func(ctx context.Context, s *api.Service, t target) error {
			if t.job == "" {
				return connect.NewError(connect.CodeInvalidArgument, errors.New("no job is named"))
			}
			_, err := s.Cancel(ctx, &wire.CancelRequest{Run: uint32(t.run), Jobs: t.jobs()})
			return err
		},
	},
	"stop": {
		call: "Stop", title: "Stop the run", button: "Stop the run",
		question: "Stop the run when what runs has ended? No further job begins.",
		do:       func(ctx context.Context, s *api.Service, t target) error { return stop(ctx, s, t, true) },
	},
	"end": {
		call: "Stop", title: "End the run at once", button: "End it at once",
		question: "End the run at once? What runs is killed, and its work is lost.",
		do:       func(ctx context.Context, s *api.Service, t target) error { return stop(ctx, s, t, false) },
	},
	"remove": {
		call: "RemoveRuns", title: "Remove the run", button: "Remove it for good", gone: true,
		question: "Remove the run with its records, its logs and its results folder? Nothing brings them back.",
		do: func(ctx context.Context, s *api.Service, t target) error {
			_, err := s.RemoveRuns(ctx, &wire.RemoveRunsRequest{Runs: []uint32{uint32(t.run)}})
			return err
		},
		detail: whatGoes,
	},
}

// stop ends a run: with drain when what runs has ended, else at once.
func stop(ctx context.Context, s *api.Service, t target, drain bool) error {
	number, err := s.Number(ctx, t.run) // 0 would be the server itself
	if err == nil {
		_, err = s.Stop(ctx, &wire.StopRequest{Run: uint32(number), Drain: drain})
	}
	return err
}

func whatGoes(ctx context.Context, s *api.Service, t target) (lines []string, err error) {
	answer, err := s.RemoveRuns(ctx, &wire.RemoveRunsRequest{Runs: []uint32{uint32(t.run)}, DryRun: true})
	if err != nil {
		return nil, err
	}
	for _, run := range answer.GetRuns() {
		for _, path := range run.GetPaths() {
			lines = append(lines, path+" goes")
		}
		if n := run.GetResultsGone(); n > 0 {
			lines = append(lines, "stored outputs of "+quantity.Count(n, "job")+" go: "+
				quantity.Bytes(run.GetResultBytesGone()))
		}
		if n := run.GetResultsKept(); n > 0 {
			lines = append(lines, "stored outputs of "+quantity.Count(n, "job")+" stay, since other runs have them or they "+
				"are kept for a time: "+quantity.Bytes(run.GetResultBytesKept()))
		}
		lines = append(lines, "together "+quantity.Bytes(run.GetBytes())+" of files of the run go")
	}
	return lines, nil
}

func (t target) jobs() []string {
	if t.job == "" {
		return nil
	}
	return []string{numbered(t.job)}
}

func (t target) path() string {
	switch {
	case t.job != "":
		return runPath(t.run) + "/jobs/" + t.job
	case t.message != "":
		return runPath(t.run) + "/failures"
	}
	return runPath(t.run)
}

func (t target) asking(name string) string {
	q := url.Values{}
	if t.job != "" {
		q.Set("job", t.job)
	}
	if t.message != "" {
		q.Set("message", t.message)
	}
	to := runPath(t.run) + "/ask/" + name
	if len(q) > 0 {
		to += "?" + q.Encode()
	}
	return to
}

func targetOf(r *http.Request) (t target, err error) {
	if t.run, err = runOf(r); err != nil {
		return t, err
	}
	if err := r.ParseForm(); err != nil {
		return t, connect.NewError(connect.CodeInvalidArgument, err)
	}
	t.message = r.Form.Get("message")
	if job := r.Form.Get("job"); job != "" {
		number, err := strconv.ParseUint(job, 10, 32)
		if err != nil {
			return t, connect.NewError(connect.CodeInvalidArgument, errors.New("a job is named by its number"))
		}
		t.job = strconv.FormatUint(number, 10)
	}
	return t, nil
}

// formLimit bounds what a form sends, in bytes.
const formLimit = 4 << 10

// act carries out what a person wants, and leads back to where it was wanted.
func (s *site) act(a action) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		r.Body = http.MaxBytesReader(w, r.Body, formLimit)
		t, err := targetOf(r)
		if err == nil {
			err = a.do(r.Context(), s.Service, t)
		}
		if s.Door != nil {
			about := ""
			if t.job != "" {
				about = "jobs " + t.job
			}
			s.Door.Acted(r.Context(), r.RemoteAddr, a.call, uint32(t.run), about, err)
		}
		if err != nil {
			s.fail(w, err)
			return
		}
		back := t.path()
		if a.gone {
			back = "/"
		}
		http.Redirect(w, r, back, http.StatusSeeOther)
	}
}

type askBody struct {
	Question, Button string
	Detail           []string
	Danger           bool
	To, Back         string
	Job, Message     string
}

func (s *site) ask(r *http.Request) (*content, error) {
	c, _, err := s.about(r)
	if err != nil {
		return nil, err
	}
	name := r.PathValue("action")
	a, ok := actions[name]
	if !ok {
		return nil, errNoPage
	}
	t, err := targetOf(r)
	if err != nil {
		return nil, err
	}
	body := &askBody{
		Question: a.question, Button: a.button, Danger: !a.undone, To: runPath(t.run) + "/" + name, Back: t.path(),
		Job: t.job, Message: t.message,
	}
	if t.job != "" {
		job, err := s.Service.ShowJob(r.Context(), &wire.ShowJobRequest{Run: uint32(t.run), Job: numbered(t.job)})
		if err != nil {
			return nil, err
		}
		body.Detail = []string{"Job " + job.GetSummary().GetName() + " is " + job.GetSummary().GetState() + "."}
	}
	if t.message != "" {
		body.Detail = []string{"Those that failed with: " + t.message}
	}
	if a.detail != nil {
		if body.Detail, err = a.detail(r.Context(), s.Service, t); err != nil {
			return nil, err
		}
	}
	c.Title, c.Body, c.Over = a.title, body, true
	return c, nil
}

// asked is the question of the action that a request is about which nobody was known by; empty: it is
// about none.
func asked(w http.ResponseWriter, r *http.Request) string {
	rest, ok := strings.CutPrefix(r.URL.Path, "/runs/")
	run, name, _ := strings.Cut(rest, "/")
	if _, known := actions[name]; !ok || !known || r.Method != http.MethodPost {
		return ""
	}
	r.Body = http.MaxBytesReader(w, r.Body, formLimit)
	r.SetPathValue("run", run)
	t, err := targetOf(r)
	if err != nil {
		return ""
	}
	return t.asking(name)
}
