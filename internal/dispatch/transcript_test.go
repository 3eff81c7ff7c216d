package dispatch

import (
	"fmt"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/cockroachdb/datadriven"

	"fairway/internal/dispatch/records"
	"fairway/internal/explain"
	"fairway/internal/taskqueue"
)

// TestTranscripts runs the scripts of testdata. Rewrite the results with
//
//	go test ./internal/dispatch -run TestTranscripts -rewrite
func TestTranscripts(t *testing.T) {
	files, err := filepath.Glob("testdata/*.txt")
	if err != nil || len(files) == 0 {
		t.Fatalf("no transcripts: %v", err)
	}
	for _, f := range files {
		t.Run(strings.TrimSuffix(filepath.Base(f), ".txt"), func(t *testing.T) {
			s := newScript()
			datadriven.RunTest(t, f, func(t *testing.T, d *datadriven.TestData) string {
				out, err := s.run(d)
				if err != nil {
					return "error: " + err.Error() + "\n"
				}
				return out
			})
		})
	}
}

// script drives a Core and keeps what is durable.
type script struct {
	config  taskqueue.Config
	core    *Core
	current taskqueue.RunID // that commands are about
	now     time.Time
	durable map[string]taskqueue.Record
	given   map[taskqueue.AttemptID]taskqueue.Assignment
}

var epoch = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)

func newScript() *script {
	return &script{now: epoch, durable: make(map[string]taskqueue.Record),
		given: make(map[taskqueue.AttemptID]taskqueue.Assignment)}
}

func (s *script) run(d *datadriven.TestData) (string, error) {
	if s.core == nil && d.Cmd != "config" {
		core, e := New(s.config)
		s.core = core
		s.keep(e.Persist)
		if err := s.begin(); err != nil {
			return "", err
		}
	}
	switch d.Cmd {
	case "config":
		return "", s.configure(d)
	case "at":
		since, err := time.ParseDuration(d.CmdArgs[0].Key)
		s.now = epoch.Add(since)
		if err != nil {
			return "", err
		}
		return s.step(taskqueue.Tick{})
	case "load":
		core, e, err := Load(s.config, s.records())
		if err != nil {
			return "", err
		}
		s.core = core
		out := s.render(e)
		if len(core.runs.inOrder) == 0 {
			return out, s.begin()
		}
		return out, nil
	case "fresh":
		fresh, _, _, err := records.Fresh(s.records())
		if err != nil {
			return "", err
		}
		s.keep(fresh)
		core, e, err := Load(s.config, s.records())
		if err != nil {
			return "", err
		}
		s.core = core
		out := s.render(e)
		return out, s.begin()
	case "lose-store":
		s.durable = make(map[string]taskqueue.Record)
		return "", nil
	case "jobs":
		return s.jobs(), nil
	case "pilots":
		return s.pilots(), nil
	case "explain":
		id, _ := s.core.JobNamed(s.current, d.CmdArgs[0].Key)
		e, _ := s.core.Explain(id)
		return strings.Join(explain.Lines(&e), "\n") + "\n", nil
	case "runs":
		return s.runs(), nil
	case "use":
		n, err := strconv.ParseUint(d.CmdArgs[0].Key, 10, 32)
		s.current = taskqueue.RunID(n)
		return "", err
	case "records":
		var b strings.Builder
		for _, r := range s.records() {
			fmt.Fprintf(&b, "%s %d %s %s\n", r.Table, r.Run, r.Key, r.Body)
		}
		return b.String(), nil
	}
	in, err := s.input(d)
	if err != nil {
		return "", err
	}
	return s.step(in)
}

func (s *script) configure(d *datadriven.TestData) error {
	for _, a := range d.CmdArgs {
		switch a.Key {
		case "by-files":
			s.config.Placement = taskqueue.ByFiles
		case "by-bytes":
			s.config.Placement = taskqueue.ByBytes
		case "first-incarnation":
			s.config.FirstIncarnation, _ = strconv.ParseUint(a.Vals[0], 10, 64)
		case "ahead":
			s.config.Ahead, _ = strconv.Atoi(a.Vals[0])
		case "max-losses":
			s.config.MaxLosses, _ = strconv.Atoi(a.Vals[0])
		case "max-regenerations":
			s.config.MaxRegenerations, _ = strconv.Atoi(a.Vals[0])
		case "data":
			s.config.Sites.Data, _ = strconv.ParseFloat(a.Vals[0], 64)
		case "queue":
			s.config.Sites.Queue, _ = strconv.ParseFloat(a.Vals[0], 64)
		case "money":
			s.config.Sites.Money, _ = strconv.ParseFloat(a.Vals[0], 64)
		default:
			return fmt.Errorf("unknown setting %s", a.Key)
		}
	}
	return nil
}

func (s *script) step(in taskqueue.Input) (string, error) {
	e, err := s.core.Step(s.now, in)
	if err != nil {
		return "", err
	}
	return s.render(e), nil
}

func (s *script) keep(records []taskqueue.Record) {
	for _, r := range records {
		if r.Body == nil {
			delete(s.durable, durableName(r))
		} else {
			s.durable[durableName(r)] = r
		}
	}
}

// durableName sorts records as a store does.
func durableName(r taskqueue.Record) string {
	return fmt.Sprintf("%s\x00%010d\x00%s", r.Table, r.Run, r.Key)
}

// begin begins the next run, which goes on after failures.
func (s *script) begin() error {
	s.current = s.core.NextRun()
	_, err := s.step(taskqueue.SetRun{Run: taskqueue.Run{ID: s.current, KeepGoing: true}})
	return err
}

func (s *script) records() []taskqueue.Record {
	var list []taskqueue.Record
	for _, k := range sortedKeys(s.durable) {
		list = append(list, s.durable[k])
	}
	return list
}
