package pilot

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"fairway/internal/fault"
	"fairway/internal/pilot/process"
	"fairway/internal/pilot/report"
	"fairway/internal/quantity"
	"fairway/internal/wire"
	"fairway/lib/sched"
)

var (
	commandBefore = fault.New("pilot.command.before")
	commandAfter  = fault.New("pilot.command.after")
)

type running struct {
	*attempt
	process.Watched
	opens *process.OpenWatch // that sees which files it opens, nil if none does
}

func (p *pilot) command(a *attempt) {
	if a.lacking != "" {
		a.fail(wire.Outcome_OUTCOME_STAGE_IN_FAILED, "the server has not told the variable %s", a.lacking)
		return
	}
	if inContainer(a.Payload) || a.Payload.GetEnvironmentFolder() != "" {
		var err error
		a.inside, err = p.enter(a)
		defer p.leaveInside(a.inside)
		if err != nil {
			a.failBy(wire.Outcome_OUTCOME_STAGE_IN_FAILED, err)
			return
		}
	}
	path, argv, err := p.program(a)
	if err != nil {
		a.Result.ExitCode = exitNotFound
		a.fail(wire.Outcome_OUTCOME_EXITED, "%v", err)
		return
	}
	if err := errors.Join(
		a.Slot.Out.Begin(logName(a.GetAttempt(), "out"), a.Payload.GetWholeOutput()),
		a.Slot.Err.Begin(logName(a.GetAttempt(), "err"), a.Payload.GetWholeOutput()),
	); err != nil {
		a.failBy(wire.Outcome_OUTCOME_STAGE_IN_FAILED, err)
		return
	}
	r, err := p.start(a, path, argv)
	if err != nil {
		a.Result.ExitCode = exitNotFound
		a.fail(wire.Outcome_OUTCOME_EXITED, "start %s: %v", path, err)
		return
	}
	p.concludePrevious(a)
	exit, err := p.attend(r)
	_ = commandAfter.Hit()
	p.noteUndeclared(r, r.opens.End())
	p.judge(r, exit, err)
}

// exitNotFound is what a shell returns for a program that it cannot find.
const exitNotFound = 127

func (p *pilot) start(a *attempt, path string, argv []string) (*running, error) {
	_ = commandBefore.Hit()
	r := &running{attempt: a, Watched: p.watched(a)}
	variables, err := p.variables(a, r, path)
	if err != nil {
		return nil, err
	}
	if a.noGPUs != nil {
		return nil, a.noGPUs
	}
	if err = p.fork(a, r, path, argv, p.seesGPUs(a, variables)); err != nil {
		return nil, err
	}
	return r, nil
}

func (p *pilot) watched(a *attempt) process.Watched {
	return process.Watched{
		Since: time.Now(), Limit: a.GetNeeds().GetTime().AsDuration(), Memory: a.GetNeeds().GetMemoryBytes(),
		Disk: a.GetNeeds().GetDiskBytes(), Folder: a.Slot.Folder, Exceeds: a.stop,
		Look: p.stage.Writeback(&a.Execution, p.workers.Go).Look,
	}
}

func withVariable(variables []string, entry string) []string {
	name, _, _ := strings.Cut(entry, "=")
	at := slices.IndexFunc(variables, func(v string) bool { return strings.HasPrefix(v, name+"=") })
	if at < 0 {
		return append(variables, entry)
	}
	variables[at] = entry
	return variables
}

func (p *pilot) fork(a *attempt, r *running, path string, argv, variables []string) (err error) {
	attr := &syscall.ProcAttr{
		Dir:   a.Slot.Folder,
		Env:   variables,
		Files: []uintptr{p.base.null.Fd(), a.Slot.Out.Pipe.Fd(), a.Slot.Err.Pipe.Fd()},
	}
	if r.Memory > 0 {
		r.Box = p.boxes.Open(a.GetAttempt(), r.Memory)
	}
	r.opens = p.choose(a)
	if inContainer(a.Payload) {
		if path, argv, err = p.contained(a, argv); err != nil {
			r.opens.End()
			r.Box.Close()
			return err
		}
	} else if p.startWarm(r, path, argv, attr) {
		return nil
	}
	path, argv = r.Box.Command(path, argv)
	if a.Payload.GetStrict() {
		var made func()
		if path, argv, made, err = p.viewOf(a).Command(path, argv, attr); err != nil {
			r.opens.End()
			r.Box.Close()
			return err
		}
		defer made()
	}
	r.opens.Fork(func() { r.Lead, err = p.tree.Start(a.GetAttempt(), path, argv, r.Box.Wrap(attr)) })
	if err != nil {
		if a.Payload.GetStrict() {
			err = fmt.Errorf("sandbox: strict: %w", err)
		}
		r.opens.End()
		r.Box.Close()
		return err
	}
	return nil
}

func (p *pilot) attend(r *running) (sched.Exit, error) {
	p.watchdog.Add(&r.Watched)
	defer func() { p.noteKills(r, p.watchdog.Remove(&r.Watched)) }()
	exit, err := p.tree.Reap(r.Ctx, r.Lead)
	if err == nil {
		err = p.tree.Clear(r.GetAttempt())
	} else if r.Ctx.Err() != nil {
		exit, err = p.tree.End(r.GetAttempt(), r.Lead, p.cfg.Grace)
	}
	r.shared = !p.tree.Forget(r.GetAttempt()) || err != nil
	return exit, err
}

// noteKills says what is known of processes that the kernel ended for memory where
// an attempt has no group of its own in which they would count.
func (p *pilot) noteKills(r *running, kills int) {
	if r.Box != nil || kills <= 0 {
		return
	}
	advice := "give the step `needs: {memory: ...}` to have that seen"
	if !p.boxes.Possible() {
		advice = "it cannot be seen here, since the pilot may not make cgroups"
	}
	r.Note(fmt.Sprintf("meanwhile the kernel ended processes for lack of memory (%d); whether they were of this job is "+
		"not known: %s", kills, advice))
}

// judge turns the end of the command into an outcome.
func (p *pilot) judge(r *running, exit sched.Exit, err error) {
	a := r.attempt
	a.used(&exit.Rusage)
	a.Result.Usage.MaxRssBytes = max(a.Result.Usage.GetMaxRssBytes(), r.Peak.Load())
	outOfMemory := r.Box.Exceeded()
	r.Box.Close()
	status := exit.Status
	a.Result.ExitCode = int32(max(0, status.ExitStatus()))
	reason := a.stopReason()
	switch {
	case err != nil:
		a.fail(wire.Outcome_OUTCOME_SIGNALLED, "%v", err)
	case reason != nil:
		a.fail(reason.outcome, "%s", reason.why)
	case outOfMemory: // also if it ended well: a part of it is missing
		a.fail(wire.Outcome_OUTCOME_OUT_OF_MEMORY, "the job needed more than its %s of memory", quantity.Bytes(r.Memory))
	case status.Signaled():
		a.Result.Signal = int32(status.Signal())
		a.fail(wire.Outcome_OUTCOME_SIGNALLED, "%s", unix.SignalName(status.Signal()))
	case status.ExitStatus() != 0:
		p.explain(a, status.ExitStatus())
	}
}

// explain finds out why a command failed from what it said last. The exit code
// stands in the result beside the message, so the message does not repeat it.
func (p *pilot) explain(a *attempt, code int) {
	said := report.Legible(a.Slot.Err.Tail())
	if strings.TrimSpace(said) == "" {
		said = a.logTail()
	}
	said = a.In.Redacted(said)
	if why := noRoom(a.Slot.Folder, said); why != "" {
		message := fmt.Sprintf("exit code %d, %s", code, why)
		if last := report.LastLine(said); last != "" {
			message += ": " + last
		}
		a.fail(wire.Outcome_OUTCOME_OUT_OF_DISK, "%s", message)
		return
	}
	message := report.LastLine(said)
	if code == brokenPipe && message == "" {
		message = "a program of a pipe was ended, since the next one had stopped reading"
	}
	hint := a.In.MissedFile(said)
	if hint == "" {
		hint = p.missingIn(a, said)
	}
	if hint != "" {
		message = hint + "; it said: " + message
	}
	a.fail(wire.Outcome_OUTCOME_EXITED, "%s", message)
}

// brokenPipe is what a shell returns for a program that SIGPIPE ended.
const brokenPipe = 128 + int(unix.SIGPIPE)

// nearlyFull, in bytes, is how little is left on a file system that a failed
// command is held to have filled.
const nearlyFull = 64 << 10

// noRoom says in what way a disk has no room for what a command writes, as the command has said or as that of
// its sandbox shows; empty: it has. Which disk a command has spoken of is not known where the sandbox has room.
func noRoom(sandbox, said string) string {
	var s unix.Statfs_t
	err := unix.Statfs(sandbox, &s)
	speaks := func(errno unix.Errno) bool { // as libraries of C write it, or Go
		text := errno.Error()
		return strings.Contains(said, text) || strings.Contains(said, strings.ToUpper(text[:1])+text[1:])
	}
	switch {
	case err == nil && s.Blocks > 0 && int64(s.Bavail)*s.Bsize < nearlyFull:
		return "no space left in the sandbox"
	case err == nil && s.Files > 0 && s.Ffree == 0:
		return "no room for one more file (inode) in the sandbox"
	case speaks(unix.EDQUOT):
		return "a quota of the disk is used up"
	case speaks(unix.ENOSPC):
		return "no space left in the sandbox, or where else it wrote"
	}
	return ""
}

// closeLogs brings what the attempt has printed to its files, and closes those that are shared.
func (p *pilot) closeLogs(a *attempt) {
	if err := errors.Join(a.Slot.Out.End(), a.Slot.Err.End()); err != nil {
		p.log.Warn("what the job printed is lost", "attempt", a.GetAttempt(), "error", err)
		a.Note(fmt.Sprintf("what it printed is lost: %v", err))
	}
	if a.shared { // what is printed later is not of the next attempt
		a.Slot.Out.Close()
		a.Slot.Err.Close()
	}
}

// logName is the name of the file in LogDir that keeps a stream of an attempt.
// An attempt that printed nothing has none.
func logName(attempt uint64, stream string) string {
	return fmt.Sprintf("%d.%s", attempt, stream)
}

// base is what all commands start from.
type base struct {
	null              *os.File
	inherited, public environment // of the pilot; public ones hold no secret of it
	search            string      // PATH
	programs          programs
	binaries          sync.Map // by path: whether the kernel executes it itself
	shellReads        bool     // a variable changes what bash does, or PATH has a relative folder
}

// environment is what commands get of that of the pilot.
type environment struct {
	entries []string
	index   map[string]int // of a variable in entries
}

func (e *environment) add(name, entry string) {
	if e.index == nil {
		e.index = map[string]int{}
	}
	e.index[name] = len(e.entries)
	e.entries = append(e.entries, entry)
}

// newBase takes of the pilot's environment what commands may have of it.
func newBase(named []string) (*base, error) {
	null, err := os.Open(os.DevNull)
	if err != nil {
		return nil, err
	}
	b := &base{null: null, search: os.Getenv("PATH")}
	b.shellReads = slices.ContainsFunc(filepath.SplitList(b.search), func(f string) bool { return !filepath.IsAbs(f) })
	for _, entry := range process.Inherited(os.Environ(), named) {
		name, _, _ := strings.Cut(entry, "=")
		b.shellReads = b.shellReads || shellReads(name)
		b.inherited.add(name, entry)
		if !process.IsSecret(name) || slices.Contains(named, name) {
			b.public.add(name, entry)
		}
	}
	return b, nil
}

// find looks for a program as execvp(3) does, in the PATH of the job if it has
// one. Names with a slash are relative to the sandbox.
func (b *base) find(name, search string) (string, error) {
	if strings.Contains(name, "/") {
		return name, nil
	}
	if search == "" {
		search = b.search
	}
	if path, ok := b.programs.Load(search + "\x00" + name); ok && executable(path.(string)) {
		return path.(string), nil
	}
	for _, folder := range filepath.SplitList(search) {
		if path := filepath.Join(folder, name); filepath.IsAbs(path) && executable(path) {
			b.programs.Store(search+"\x00"+name, path)
			return path, nil
		}
	}
	return "", fmt.Errorf("program %s is not in PATH", name)
}

func executable(path string) bool {
	var st unix.Stat_t
	return unix.Stat(path, &st) == nil && st.Mode&unix.S_IFMT == unix.S_IFREG && st.Mode&0o111 != 0
}
