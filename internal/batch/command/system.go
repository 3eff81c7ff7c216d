// Package command drives batch systems through their command-line programs, as
// templates describe them. Those for Slurm, Grid Engine, ARC and HTCondor are tested against
// the real ones; those for PBS, LSF and Kubernetes on recorded output only.
//
// The name of a launch stands in the name of its job, with a part of the identity of
// the state, so one question tells of all launches of a state and of no other.
package command

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"
	"unicode"
	"unicode/utf8"

	"fairway/internal/batch"
	"fairway/internal/program"
	"fairway/lib/sched"
)

// Config describes one site.
type Config struct {
	Template *Template
	Request  Request
	// State is the identity of the state that the pilots work for.
	State string
	// Prefix begins the names of the jobs. Default: "fairway.".
	Prefix string
	// Folder holds the scripts, and is where jobs begin. Nodes must see it.
	Folder string
	// Script returns the shell commands that a launch consists of, to which the
	// header is added.
	Script func(launch string) (string, error)
	// Secret says that a script is for nobody but the batch system: none stays in Folder,
	// and none is written there unless the template uploads it.
	Secret bool
	// Sched waits for the commands. Default: sched.Default().
	Sched *sched.Scheduler
}

// Request is what is asked of the batch system for each pilot. Zero fields are left
// to its own defaults.
type Request struct {
	Partition, Queue, Account string
	ParallelEnvironment       string
	Image                     string
	CPUs                      int64
	Memory                    int64 // bytes
	Time                      time.Duration
	// Environment are the variables of this process that the job gets, as far as they are
	// set. WholeEnvironment asks for all.
	Environment      []string
	WholeEnvironment bool
	Options          []string
}

// System is a batch.System.
type System struct {
	cfg    Config
	prefix string
}

// stateLetters are so many letters of the identity of a state that two states of
// one user differ in them.
const stateLetters = 12

// maxSaid bounds what is told of the output of a command that failed.
const maxSaid = 500

// New returns a System.
func New(cfg Config) (*System, error) {
	if cfg.Sched == nil {
		cfg.Sched = sched.Default()
	}
	if err := cfg.checkFolder(); err != nil {
		return nil, err
	}
	if err := os.MkdirAll(cfg.Folder, 0o700); err != nil {
		return nil, err
	}
	return &System{cfg: cfg, prefix: prefixOf(&cfg)}, nil
}

// checkFolder refuses a folder that would mean something else in a job description, whose
// language only its batch system knows. In arguments of commands a path is as it is.
func (cfg *Config) checkFolder() error {
	t := cfg.Template
	at := strings.IndexFunc(cfg.Folder, func(r rune) bool {
		return unicode.IsControl(r) || strings.ContainsRune("\"'`\\$", r)
	})
	if at < 0 || !strings.Contains(t.Header+t.Input, "{script}") && !strings.Contains(t.Header+t.Input, "{folder}") {
		return nil
	}
	r, _ := utf8.DecodeRuneInString(cfg.Folder[at:])
	return fmt.Errorf("the template %s writes the path %q into a job description, where %q may mean something else: "+
		"rename the folder of the workflow, or name the script as {script_name}",
		cmp.Or(t.Name, "of the site"), cfg.Folder, r)
}

func prefixOf(cfg *Config) string {
	state := cfg.State
	return cmp.Or(cfg.Prefix, "fairway.") + state[:min(len(state), stateLetters)] + "."
}

// Example is what would be submitted for a launch named LAUNCH, and the script where that
// is another text.
func Example(cfg Config) (string, error) {
	script, input, err := (&System{cfg: cfg, prefix: prefixOf(&cfg)}).Text("LAUNCH")
	if input != script {
		input += "\n" + script
	}
	return input, err
}

func (s *System) values() values {
	r := &s.cfg.Request
	v := values{"folder": s.cfg.Folder}
	for name, text := range map[string]string{
		"partition": r.Partition, "queue": r.Queue, "account": r.Account, "parallel_environment": r.ParallelEnvironment,
		"image": r.Image,
	} {
		if text != "" {
			v[name] = text
		}
	}
	number := func(name string, n int64) {
		if n > 0 {
			v[name] = fmt.Sprint(n)
		}
	}
	const mib = 1 << 20
	number("cpus", r.CPUs)
	if r.CPUs == 0 && r.Memory == 0 {
		v["whole_node"] = ""
	}
	number("memory_bytes", r.Memory)
	number("memory_mb", (r.Memory+mib-1)/mib)
	number("memory_mb_per_cpu", (r.Memory/max(1, r.CPUs)+mib-1)/mib)
	seconds := int64((r.Time + time.Second - 1) / time.Second)
	number("seconds", seconds)
	number("minutes", (seconds+59)/60)
	if r.WholeEnvironment {
		v["whole_environment"] = ""
	} else {
		v["environment"] = strings.Join(setOf(r.Environment), ",")
	}
	if seconds > 0 {
		v["hms"] = fmt.Sprintf("%d:%02d:%02d", seconds/3600, seconds/60%60, seconds%60)
	}
	return v
}

// setOf are the variables of some names that are set; PATH in place of none, since no name
// would have a batch system choose.
func setOf(names []string) (set []string) {
	for _, name := range names {
		if _, ok := os.LookupEnv(name); ok && !slices.Contains(set, name) {
			set = append(set, name)
		}
	}
	if len(set) == 0 {
		return []string{"PATH"}
	}
	return set
}

// Text is the script of a launch, and what the submission reads.
func (s *System) Text(launch string) (script, input string, err error) {
	if script, err = s.script(launch); err != nil {
		return "", "", err
	}
	return script, s.input([]string{launch}, script), nil
}

func (s *System) script(launch string) (string, error) {
	body, err := s.cfg.Script(launch)
	if err != nil {
		return "", err
	}
	lines := []string{"#!/bin/sh"}
	lines = append(lines, s.of(launch).fill(splitLines(s.cfg.Template.Header), "option", s.cfg.Request.Options)...)
	return strings.Join(lines, "\n") + "\n" + body, nil
}

// input is what the submission of some launches reads, of which the last has a script.
func (s *System) input(launches []string, script string) string {
	if s.cfg.Template.Input == "" {
		return script
	}
	var lines []string
	for _, line := range splitLines(s.cfg.Template.Input) {
		each := launches
		if !slices.ContainsFunc(ofLaunches, func(of string) bool { return strings.Contains(line, of) }) {
			each = launches[:1]
		}
		for _, launch := range each {
			lines = append(lines, s.of(launch).fill([]string{line}, "option", s.cfg.Request.Options)...)
		}
	}
	return strings.Join(lines, "\n") + "\n"
}

// ofLaunches are the placeholders of which each launch has another value.
var ofLaunches = []string{"{name}", "{script}", "{script_name}"}

func (s *System) of(launch string) values {
	v := s.values()
	v["name"], v["script"], v["script_name"] = s.prefix+launch, s.scriptFile(launch), launch+scriptEnding
	return v
}

func splitLines(text string) []string {
	if text == "" {
		return nil
	}
	return strings.Split(strings.TrimRight(text, "\n"), "\n")
}

// scriptEnding is that of the name of a script in the folder.
const scriptEnding = ".sh"

func (s *System) scriptFile(launch string) string {
	return filepath.Join(s.cfg.Folder, launch+scriptEnding)
}

// Submit is part of batch.System.
func (s *System) Submit(ctx context.Context, launch string) error {
	return s.SubmitAll(ctx, []string{launch})
}

// AtOnce is part of batch.Batcher.
func (s *System) AtOnce() int { return max(1, s.cfg.Template.AtOnce) }

// SubmitAll is part of batch.Batcher.
func (s *System) SubmitAll(ctx context.Context, launches []string) error {
	var script string
	for _, launch := range launches {
		var err error
		if script, err = s.script(launch); err != nil {
			return err
		}
		if !s.cfg.Secret || s.cfg.Template.Uploads {
			if err := os.WriteFile(s.scriptFile(launch), []byte(script), 0o700); err != nil {
				return err
			}
		}
		if s.cfg.Secret {
			defer os.Remove(s.scriptFile(launch))
		}
	}
	argv := s.of(launches[0]).fill(s.cfg.Template.Submit, "option", s.cfg.Request.Options)
	_, err := s.run(ctx, argv, s.input(launches, script), s.handedOver())
	if never := s.cfg.Template.Never; err != nil && never != nil && never.MatchString(err.Error()) {
		return &batch.NeverError{Err: err}
	}
	return err
}

// handedOver is the environment of a submission that hands it over to the job.
func (s *System) handedOver() []string {
	all, inherits := os.Environ(), s.cfg.Template.Inherits
	if len(inherits) == 0 {
		return append(all, inTheirLanguage)
	}
	if s.cfg.Request.WholeEnvironment {
		return all
	}
	names := setOf(s.cfg.Request.Environment)
	return slices.DeleteFunc(all, func(entry string) bool {
		name, _, _ := strings.Cut(entry, "=")
		return !slices.Contains(names, name) && !slices.ContainsFunc(inherits, func(pattern string) bool {
			prefix, any := strings.CutSuffix(pattern, "*")
			return name == pattern || any && strings.HasPrefix(name, prefix)
		})
	})
}

// inTheirLanguage has programs answer as templates read it.
const inTheirLanguage = "LC_ALL=C"

// Status is part of batch.System.
func (s *System) Status(ctx context.Context) (map[string]batch.Status, error) {
	jobs, err := s.jobs(ctx)
	if err != nil {
		return nil, err
	}
	found := map[string]batch.Status{}
	for _, j := range jobs {
		status := batch.Status{State: j.state, Reason: j.reason}
		if never := s.cfg.Template.Never; never != nil && j.state == batch.Queued {
			status.Never = never.MatchString(j.reason)
		}
		if j.state != batch.Gone {
			status.Jobs = 1
		}
		// Of several jobs of one name the one that is most alive counts.
		if before, ok := found[j.launch]; ok {
			status.Jobs += before.Jobs
			if before.State != batch.Gone && (j.state == batch.Gone || before.State == batch.Running) {
				status.State, status.Reason, status.Never = before.State, before.Reason, before.Never
			}
		}
		found[j.launch] = status
	}
	return found, nil
}

type job struct {
	launch, id, reason string
	state              batch.State
}

func (s *System) jobs(ctx context.Context) ([]job, error) {
	out, err := s.ask(ctx, s.values().fill(s.cfg.Template.Status, "option", nil))
	if failed, ok := errors.AsType[*exec.ExitError](err); ok && slices.Contains(s.cfg.Template.Empty, failed.ExitCode()) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	if whole := s.cfg.Template.Answer; whole != nil && !whole.MatchString(out) {
		return nil, fmt.Errorf("%s: this is no whole answer: %.100q", s.cfg.Template.Status[0], out)
	}
	return s.read(out), nil
}

func (s *System) read(answer string) (jobs []job) {
	pattern := s.cfg.Template.Job
	for _, match := range pattern.FindAllStringSubmatch(answer, -1) {
		launch, ours := strings.CutPrefix(match[pattern.SubexpIndex("name")], s.prefix)
		id := match[pattern.SubexpIndex("id")]
		if !ours || launch == "" || id == "" {
			continue
		}
		j := job{launch: launch, id: id, state: s.stateOf(match[pattern.SubexpIndex("state")])}
		if i := pattern.SubexpIndex("reason"); i >= 0 {
			j.reason = strings.TrimSpace(match[i])
		}
		if j.reason == "" || j.reason == "None" {
			j.reason = match[pattern.SubexpIndex("state")]
		}
		jobs = append(jobs, j)
	}
	return jobs
}

// stateOf reads a word. One that no state of the template has counts as Running: a
// job that may run is not replaced.
func (s *System) stateOf(word string) batch.State {
	for state, words := range s.cfg.Template.States {
		if slices.Contains(words, word) {
			return state
		}
	}
	return batch.Running
}

// Withdraw is part of batch.System.
func (s *System) Withdraw(ctx context.Context, launches ...string) error {
	jobs, err := s.jobs(ctx)
	if err != nil {
		return err
	}
	var ids []string
	for _, j := range jobs {
		if j.state != batch.Gone && slices.Contains(launches, j.launch) {
			ids = append(ids, j.id)
		}
	}
	if len(ids) == 0 {
		return nil
	}
	_, err = s.ask(ctx, s.values().fill(s.cfg.Template.Cancel, "id", ids))
	return err
}

func (s *System) ask(ctx context.Context, argv []string) (string, error) {
	return s.run(ctx, argv, "", append(os.Environ(), inTheirLanguage))
}

func (s *System) run(ctx context.Context, argv []string, input string, environment []string) (string, error) {
	if len(argv) == 0 {
		return "", errors.New("the template gives no command")
	}
	cmd := exec.CommandContext(ctx, argv[0], argv[1:]...)
	cmd.WaitDelay = time.Second
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} // Ctrl-C is for the run, not for a submission under way
	cmd.Dir = s.cfg.Folder
	cmd.Env = environment
	cmd.Stdin = strings.NewReader(input)
	var out, said bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &said
	began := time.Now()
	err := cmd.Start()
	if err == nil {
		err = s.cfg.Sched.WaitCmd(context.WithoutCancel(ctx), cmd) // ctx ends the process, which must be reaped
	}
	if err = program.Failure(ctx, began, err); err == nil {
		return out.String(), nil
	}
	text := strings.TrimSpace(said.String())
	if text == "" {
		text = strings.TrimSpace(out.String())
	}
	if len(text) > maxSaid {
		text = text[:maxSaid] + " ..."
	}
	if text = strings.ReplaceAll(text, "\n", "; "); text == "" {
		return "", fmt.Errorf("%s: %w", argv[0], err)
	}
	return "", fmt.Errorf("%s: %w: %s", argv[0], err, text)
}
