package pilot

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"fairway/internal/shelltext"
)

// What a shell does before the first line of a command: it stops at the first
// failure, also within $(...) and within a pipe, and at a variable that is not
// set. The startup file that BASH_ENV names was read before; where it went, or is to go by CDPATH, does
// not count. Where bash is too old for one of them, the others hold.
const (
	strictBash = "shopt -s inherit_errexit 2>/dev/null||:;" +
		`[ -z "${BASH_ENV-}" ]||{ unset -v CDPATH GLOBIGNORE;cd -- "$FAIRWAY_SANDBOX";unset -v OLDPWD;};` +
		"set -euo pipefail;"
	strictSh = "set -eu;"
)

// maxArgument is, in bytes, the longest text that is given to a shell as an
// argument; the kernel refuses those of 128 KiB. A longer one goes by a file.
const maxArgument = 100_000

// maxScript bounds the file that a step names as its script, in bytes.
const maxScript = 16 << 20

func (p *pilot) program(a *attempt) (string, []string, error) {
	if a.onlyServes() {
		return ownProgram, []string{ownProgram, "task", "serve"}, nil
	}
	payload := a.Payload
	argv := payload.GetArgv()
	if words := p.ownWorker(a); words != nil {
		path, err := p.base.find(words[0], payload.GetEnvironment()["PATH"])
		return path, append(append(words, "--"), a.told...), err
	}
	if payload.GetShell() != "" && payload.GetScript() == "" && !inContainer(payload) {
		argv = p.direct(a, payload.GetShell())
		a.direct = argv != nil
	}
	if !a.direct && (payload.GetShell() != "" || payload.GetScript() != "") {
		var err error
		if argv, err = p.interpreted(a); err != nil {
			return "", nil, err
		}
	}
	if len(argv) == 0 {
		return "", nil, errors.New("the job has no command")
	}
	if inContainer(payload) { // its runtime finds it
		return argv[0], argv, nil
	}
	path, err := p.base.find(argv[0], payload.GetEnvironment()["PATH"])
	return path, argv, err
}

// interpreted gives the words that run a text: its own first line says how, or
// else the payload does.
func (p *pilot) interpreted(a *attempt) ([]string, error) {
	payload := a.Payload
	text, file := payload.GetShell(), ""
	if payload.GetScript() != "" {
		var err error
		if text, file, err = script(a); err != nil {
			return nil, fmt.Errorf("script %s: %w", payload.GetScript(), err)
		}
	}
	words := shelltext.Interpreter(text)
	if len(words) == 0 {
		words = strings.Fields(payload.GetInterpreter())
	}
	if len(words) == 0 {
		words = p.anyShell(a, text)
	}
	isShell := len(words) == 1 && (words[0] == "bash" || words[0] == "sh")
	if isShell && file != "" {
		text = payload.GetShell() + text
	}
	if isShell && len(text) <= maxArgument {
		return append(words, "-c", strictly(words[0], text)), nil
	}
	if file == "" || isShell {
		var err error
		if file, err = a.Slot.KeepScript(text); err != nil {
			return nil, fmt.Errorf("file for the command: %w", err)
		}
	}
	if isShell {
		return append(words, "-c", strictly(words[0], `. "$0"`), file), nil
	}
	return append(words, file), nil
}

func strictly(interpreter, text string) string {
	if interpreter == "sh" {
		return strictSh + text
	}
	return strictBash + shelltext.GuardPipes(text)
}

// anyShell is bash, or sh where there is none. Then a person is told what that
// leaves out.
func (p *pilot) anyShell(a *attempt, text string) []string {
	if inContainer(a.Payload) {
		if !a.inside.has("bash") {
			return []string{"sh"}
		}
		return []string{"bash"}
	}
	if _, err := p.base.find("bash", a.Payload.GetEnvironment()["PATH"]); err == nil {
		return []string{"bash"}
	}
	if strings.Contains(text, "|") && !p.toldNoBash.Swap(true) {
		a.Note(p.cfg.Host + " has no bash: sh runs its commands, and of a pipe it sees only the failure of the last " +
			"program; install bash")
	}
	return []string{"sh"}
}

func script(a *attempt) (text, file string, err error) {
	path, err := a.PathOf(a.Payload.GetScript())
	if err != nil {
		return "", "", err
	}
	info, err := os.Stat(filepath.Join(a.Slot.Folder, path))
	if err == nil && info.Size() > maxScript {
		err = fmt.Errorf("it has %d bytes, the limit is %d", info.Size(), maxScript)
	}
	if err != nil {
		return "", "", err
	}
	data, err := os.ReadFile(filepath.Join(a.Slot.Folder, path))
	if err == nil && len(data) == 0 {
		err = errors.New("it is empty")
	}
	return string(data), "./" + path, err
}
