package pilot

import (
	"os"
	"path/filepath"
	"syscall"

	"fairway/internal/pilot/warm"
)

// Steps may name a program that is started once and begins their jobs (package warm). What it
// cannot begin is started as any other command: in a strict sandbox, which only a new program can be
// put into, the one job of a step whose files are watched, and where it fails.

// openWorkers readies what begins jobs; nothing is started yet. Workers work in the folder of the
// workflow, where the pilot has it: they may be programs of its own.
func (p *pilot) openWorkers() {
	w := &p.warm
	w.Tree, w.Log, w.Env, w.Dir = p.tree, p.log, p.base.inherited.entries, p.stage.Folder
	w.AnswerTime = warm.AnswerTime
	if info, err := os.Stat(p.cfg.Workflow); err == nil && info.IsDir() {
		w.Dir = p.cfg.Workflow
	}
	w.Find = p.base.find
}

// ownWorker gives the words of a worker that is a program of the user, which is told the words of
// the command; nil if the job has none.
func (p *pilot) ownWorker(a *attempt) []string {
	words, interpreter := warm.Words(a.Payload.GetWorker())
	if len(words) == 0 || interpreter || inContainer(a.Payload) {
		return nil
	}
	a.told = a.Payload.GetArgv()
	if text := a.Payload.GetShell(); text != "" {
		if a.told = p.expanded(a, text); a.told == nil {
			a.told = []string{text}
		}
	}
	return words
}

// startWarm has the worker of a job begin it, and reports whether it has.
func (p *pilot) startWarm(r *running, path string, argv []string, attr *syscall.ProcAttr) bool {
	a := r.attempt
	named := a.Payload.GetWorker()
	if named == "" || a.Payload.GetStrict() || r.opens != nil || !canStart(path, attr.Dir) {
		return false
	}
	if a.told != nil {
		argv = a.told
	}
	lead, err := p.warm.Start(named, &warm.Job{
		Attempt: a.GetAttempt(), Path: path, Argv: argv, Env: attr.Env,
		Decisive: a.Payload.GetDecisive(), Dir: attr.Dir,
		Files: [3]uintptr(attr.Files), Box: r.Box,
	})
	if err != nil {
		a.Note(err.Error())
		return false
	}
	r.Lead = lead
	return true
}

func canStart(path, folder string) bool {
	if !filepath.IsAbs(path) {
		path = filepath.Join(folder, path)
	}
	return executable(path)
}
