package command

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"fairway/internal/batch"
)

// recorded are answers as the batch systems give them, in testdata, with what they say
// of the launches of this state.
var recorded = map[string]map[string]batch.Status{
	"slurm": {
		"farm-a.1": {State: batch.Running, Reason: "RUNNING", Jobs: 1},
		"farm-a.2": {State: batch.Queued, Reason: "QOSMaxJobsPerUserLimit", Jobs: 1},
		"farm-a.3": {State: batch.Gone, Reason: "TIMEOUT"},
		"farm-a.4": {State: batch.Ending, Reason: "COMPLETING", Jobs: 1},
		"farm-a.5": {State: batch.Gone, Reason: "NODE_FAIL"},
	},
	"gridengine": {
		"farm-a.1": {State: batch.Running, Reason: "r", Jobs: 1},
		"farm-a.2": {State: batch.Queued, Reason: "qw", Jobs: 2},
		"farm-a.3": {State: batch.Ending, Reason: "dr", Jobs: 1},
	},
	"arc": {
		"farm-a.1": {State: batch.Running, Reason: "Running", Jobs: 1},
		"farm-a.2": {State: batch.Queued, Reason: "Accepted", Jobs: 1},
		"farm-a.3": {State: batch.Gone, Reason: "Failed"},
		"farm-a.4": {State: batch.Running, Reason: "Undefined", Jobs: 1},
		"farm-a.5": {State: batch.Gone, Reason: "Unknown to the element"},
	},
	"htcondor": {
		"l-1": {State: batch.Running, Reason: "2", Jobs: 1},
		"l-2": {State: batch.Queued, Reason: "via condor_hold (by user games)", Jobs: 1},
		"l-3": {State: batch.Queued, Reason: "1", Jobs: 1},
	},
	"pbs": {
		"farm-a.1": {State: batch.Running, Reason: "R", Jobs: 1},
		"farm-a.2": {State: batch.Queued, Reason: "Q", Jobs: 1},
	},
	"lsf": {
		"farm-a.1": {State: batch.Running, Reason: "RUN", Jobs: 1},
		"farm-a.2": {State: batch.Queued, Reason: "PEND", Jobs: 1},
		"farm-a.3": {State: batch.Gone, Reason: "EXIT"},
	},
	"kubernetes": {
		"farm-a.1": {State: batch.Running, Reason: "Running", Jobs: 1},
		"farm-a.2": {State: batch.Queued, Reason: "Pending", Jobs: 1},
		"farm-a.3": {State: batch.Gone, Reason: "Failed"},
	},
}

// request has every key that a site may have.
var request = Request{
	Partition: "batch", Queue: "long", Account: "phys", ParallelEnvironment: "smp", Image: "debian:12",
	CPUs: 4, Memory: 4 << 30, Time: 90 * time.Minute, Options: []string{"--one", "--two"}, WholeEnvironment: true,
}

func system(t *testing.T, name string) *System {
	t.Helper()
	template, err := Ready(name)
	if err != nil {
		t.Fatal(err)
	}
	s, err := New(Config{
		Template: template, Request: request, State: "0123456789abcdef", Folder: t.TempDir(),
		Script: func(launch string) (string, error) { return "exec fairway pilot " + launch + "\n", nil },
	})
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// An answer that is read wrongly would have pilots started without end, or none.
func TestRecordedAnswers(t *testing.T) {
	for _, name := range Names() {
		answer, err := os.ReadFile(filepath.Join("testdata", name+".answer"))
		if err != nil {
			t.Fatal(err)
		}
		s := system(t, name)
		fake(t, s, string(answer), 0)
		got, err := s.Status(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if fmt.Sprint(got) != fmt.Sprint(recorded[name]) {
			t.Errorf("%s: got  %v\n  want %v", name, got, recorded[name])
		}
		if empty := s.read(""); len(empty) != 0 {
			t.Errorf("%s: an empty answer has jobs: %v", name, empty)
		}
	}
}

// fake has the status command print an answer, and end with a code.
func fake(t *testing.T, s *System, answer string, code int) {
	t.Helper()
	file := filepath.Join(t.TempDir(), "answer")
	if err := os.WriteFile(file, []byte(answer), 0o600); err != nil {
		t.Fatal(err)
	}
	template := *s.cfg.Template
	template.Status = []string{"/bin/sh", "-c", fmt.Sprintf("cat '%s'; exit %d", file, code)}
	s.cfg.Template = &template
}

// A submission that hands its environment over has what the job is to get, and what
// programs of the batch system read.
func TestHandedOver(t *testing.T) {
	for name, value := range map[string]string{"FAMILIAR": "f", "HIDDEN": "h", "SLURM_CONF": "c"} {
		t.Setenv(name, value)
	}
	for _, test := range []struct {
		whole bool
		want  string
	}{{false, "f--c"}, {true, "f-h-c"}} {
		s := system(t, "slurm")
		said := filepath.Join(t.TempDir(), "said")
		s.cfg.Request.Environment, s.cfg.Request.WholeEnvironment = []string{"PATH", "FAMILIAR", "ABSENT"}, test.whole
		s.cfg.Template.Submit = []string{"/bin/sh", "-c", `echo "$FAMILIAR-$HIDDEN-$SLURM_CONF" > ` + said}
		if err := s.Submit(t.Context(), "l-1"); err != nil {
			t.Fatal(err)
		}
		if got, _ := os.ReadFile(said); string(got) != test.want+"\n" {
			t.Errorf("whole %v: %q, want %q", test.whole, got, test.want)
		}
	}
}

// What is refused for ever is told apart from what may be taken later.
func TestNever(t *testing.T) {
	for name, said := range map[string]map[string]bool{
		"slurm": {
			"sbatch: error: invalid partition specified: nowhere":                                              true,
			"sbatch: error: Batch job submission failed: Requested node configuration is not available":        true,
			"sbatch: error: Batch job submission failed: Required partition not available (inactive or drain)": false,
			"sbatch: error: QOSMaxSubmitJobPerUserLimit":                                                       false,
			"PartitionTimeLimit": true, "PartitionDown": false, "Priority": false, "Resources": false,
		},
		"gridengine": {
			`Unable to run job: Job was rejected because job requests unknown queue "nowhere.q"`: true,
			"Unable to run job: error: no suitable queues":                                       true,
			"error: commlib error: got select error (Connection refused)":                        false,
		},
	} {
		for text, want := range said {
			if got := system(t, name).cfg.Template.Never.MatchString(text); got != want {
				t.Errorf("%s: %q counts as impossible: %v", name, text, got)
			}
		}
	}
}

// What is asked of a batch system for each key, with values and without.
func TestScripts(t *testing.T) {
	for _, name := range Names() {
		var all strings.Builder
		for _, r := range []Request{request, {}} {
			s := system(t, name)
			s.cfg.Request, s.cfg.Folder = r, "/w/.fairway/pilots"
			script, input, err := s.Text("farm-a.1")
			if err != nil {
				t.Fatal(err)
			}
			all.WriteString(script)
			if input != script {
				all.WriteString("--- submitted\n" + input)
			}
			all.WriteString("=====\n")
		}
		golden := filepath.Join("testdata", name+".script")
		want, _ := os.ReadFile(golden)
		if all.String() != string(want) {
			if os.Getenv("UPDATE") != "" {
				if err := os.WriteFile(golden, []byte(all.String()), 0o644); err != nil {
					t.Fatal(err)
				}
				continue
			}
			t.Errorf("%s: got\n%s\nwant\n%s", name, all.String(), want)
		}
	}
}

// Jobs of other states and other people are no business of this one.
func TestWithdrawEndsOnlyItsOwn(t *testing.T) {
	s := system(t, "slurm")
	fake(t, s,
		"fairway.0123456789ab.l-1|11|RUNNING|None\nfairway.0123456789ab.l-2|12|RUNNING|None\n"+
			"fairway.ffffffffffff.l-1|13|RUNNING|None\nl-1|14|RUNNING|None\n"+
			"fairway.0123456789ab.l-1|15|PENDING|None\nfairway.0123456789ab.l-1|16|FAILED|None\n", 0)
	said := filepath.Join(t.TempDir(), "said")
	s.cfg.Template.Cancel = []string{"/bin/sh", "-c", `echo "$@" > ` + said, "cancel", "{id}"}
	if err := s.Withdraw(t.Context(), "l-1", "l-9"); err != nil {
		t.Fatal(err)
	}
	if got, _ := os.ReadFile(said); string(got) != "11 15\n" {
		t.Errorf("ended %q", got)
	}
}

// A command that fails says nothing about the pilots, but where the template says
// that it means no jobs.
func TestFailedStatus(t *testing.T) {
	s := system(t, "slurm")
	fake(t, s, "slurm_load_jobs error: Unable to contact slurm controller", 1)
	if got, err := s.Status(t.Context()); err == nil || !strings.Contains(err.Error(), "Unable to contact") {
		t.Error(got, err)
	}
	s.cfg.Template.Empty = []int{1}
	if got, err := s.Status(t.Context()); err != nil || len(got) != 0 {
		t.Error(got, err)
	}
}

// Garbage, and an answer that was cut short, would have pilots count as gone, and as many
// more be started.
func TestAnswersThatAreNone(t *testing.T) {
	for name, answers := range map[string][]string{
		"slurm":      {"slurm_load_jobs: retrying\n", "a|1|RUNNING|None\nfairway.0123456789ab.l-1|1", "a|1|RUNNING|None", "\x00\n", "<html>503</html>\n"},
		"htcondor":   {"1.0 fairway.0123456789ab.l-1 2 \n2.0 fairway.01"},
		"pbs":        {"Job Id: 1.host\n    Job_Name = fairway.0123456789ab.l-1\n    job_state = R\n\nJob Id: 2.ho"},
		"lsf":        {"fairway.0123456789ab.l-1|1|RUN\nfairway.0123"},
		"kubernetes": {"fairway-0123456789ab-l-1   Running\nfairway-0123"},
		"gridengine": {"", "error: commlib error\n", "<?xml version='1.0'?>\n<job_info><queue_info><job_list>"},
	} {
		for _, answer := range answers {
			s := system(t, name)
			fake(t, s, answer, 0)
			if got, err := s.Status(t.Context()); err == nil {
				t.Errorf("%s: %q is taken for an answer with %v", name, answer, got)
			}
		}
	}
	s := system(t, "slurm")
	fake(t, s, "", 0)
	if got, err := s.Status(t.Context()); err != nil || len(got) != 0 {
		t.Error("a queue without jobs:", got, err)
	}
}

// A program that hangs must not hold the site up for longer than it is given.
func TestProgramsThatHang(t *testing.T) {
	s := system(t, "slurm")
	hang := []string{"/bin/sh", "-c", "exec sleep 1000"}
	s.cfg.Template = &Template{
		Submit: hang, Status: hang, Cancel: hang, Job: s.cfg.Template.Job, States: s.cfg.Template.States,
	}
	ctx, cancel := context.WithTimeout(t.Context(), 200*time.Millisecond)
	defer cancel()
	for what, err := range map[string]error{
		"a submission": s.Submit(ctx, "l-1"),
		"a question":   second(s.Status(ctx)),
		"a withdrawal": s.Withdraw(ctx, "l-1"),
	} {
		if err == nil || !strings.Contains(err.Error(), "did not answer") || strings.Contains(err.Error(), "killed") {
			t.Errorf("%s that hangs: %v", what, err)
		}
	}
}

func second[T any](_ T, err error) error { return err }

// A path is not written into a job description in which it would mean something else. Into
// those for which no path is needed, and into arguments, all go.
func TestFoldersInJobDescriptions(t *testing.T) {
	refused := map[string]bool{"kubernetes": true}
	for _, name := range Names() {
		template, err := Ready(name)
		if err != nil {
			t.Fatal(err)
		}
		for _, folder := range []string{"plain", "two words", "a\"b", "$(HOME)", "back\\slash", "new\nline"} {
			folder = filepath.Join(t.TempDir(), folder)
			_, err := New(Config{Template: template, State: "0123456789abcdef", Folder: folder})
			switch plain := !strings.ContainsAny(folder, "\"$\\\n"); {
			case plain || !refused[name]:
				if err != nil {
					t.Errorf("%s: %v", name, err)
				}
			case err == nil || !strings.Contains(err.Error(), "rename the folder of the workflow"):
				t.Errorf("%s, %q: %v", name, folder, err)
			}
		}
	}
}

func TestFill(t *testing.T) {
	v := values{"name": "{cpus}", "folder": "/w"}
	got := v.fill([]string{"a {name} {name}", "b {cpus}", "c {option}", "d {folder} {option}", "{ e }", "f {unknown}"},
		"option", []string{"{name}", "y"})
	want := []string{"a {cpus} {cpus}", "c {name}", "c y", "d /w {name}", "d /w y", "{ e }"}
	if !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}

// No answer of a batch system may stop the server, and no job of another state may be
// taken for one of this.
func FuzzAnswer(f *testing.F) {
	for _, name := range Names() {
		answer, _ := os.ReadFile(filepath.Join("testdata", name+".answer"))
		f.Add(name, string(answer))
	}
	f.Fuzz(func(t *testing.T, name, answer string) {
		template, err := Ready(name)
		if err != nil {
			return
		}
		s := &System{cfg: Config{Template: template}, prefix: "fairway.0123456789ab."}
		for _, j := range s.read(answer) {
			if !strings.Contains(answer, s.prefix+j.launch) || j.id == "" || j.launch == "" {
				t.Fatalf("%+v", j)
			}
		}
	})
}

// The help lists templates by what each says of itself.
func TestTemplatesSayWhatTheyCall(t *testing.T) {
	for _, name := range Names() {
		if about := About(name); !strings.Contains(about, ", tested ") || strings.HasSuffix(about, ".") {
			t.Errorf("the template %s begins with %q: say what it calls, and on what it was tested", name, about)
		}
	}
}
