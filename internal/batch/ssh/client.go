package ssh

import (
	"bytes"
	"context"
	"crypto/rand"
	_ "embed" // host.sh, note.sh
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"time"

	"fairway/internal/disk"
	"fairway/lib/sched"
)

var (
	//go:embed host.sh
	hostScript string
	//go:embed note.sh
	noteScript string
)

func (s *System) text(h *host, verb ...string) string {
	return noteScript + hostScript + "fairway_host " + quoted(append([]string{s.folderOn(h)}, verb...)) + "\n"
}

func (s *System) startText(h *host, launch, script string) string {
	end := "end of " + rand.Text()
	return "fairway_script() {\ncat <<'" + end + "'\n" + noteScript + "fairway_note \"$1\" $$ own || exit\nshift\n" +
		strings.TrimSuffix(script, "\n") + "\n" + end + "\n}\n" + s.text(h, "start", launch)
}

func quoted(words []string) string {
	var all []string
	for _, word := range words {
		all = append(all, "'"+strings.ReplaceAll(word, "'", `'\''`)+"'")
	}
	return strings.Join(all, " ")
}

type client struct {
	options []string // before the host
	sched   *sched.Scheduler

	mu     sync.Mutex // guards shared
	shared map[string][]string
}

func newClient(options []string, s *sched.Scheduler) *client {
	c := &client{sched: s, shared: map[string][]string{}}
	for _, o := range []string{
		"BatchMode=yes", "RemoteCommand=none", "RequestTTY=no", "ClearAllForwardings=yes", "PermitLocalCommand=no",
		"ForwardX11=no",
	} {
		c.options = append(c.options, "-o", o)
	}
	for _, o := range append(append([]string(nil), options...), "ConnectTimeout=10", "ServerAliveInterval=5",
		"ServerAliveCountMax=2") {
		c.options = append(c.options, "-o", o) // of several values the first counts
	}
	return c
}

// sharing are options by which all calls of a host share one connection. Where the
// person's own configuration has that, it stays as it is: a connection that somebody
// has opened with a password serves too.
func (c *client) sharing(ctx context.Context, host string) []string {
	c.mu.Lock()
	options, ok := c.shared[host]
	c.mu.Unlock()
	if ok {
		return options
	}
	out, err := exec.CommandContext(ctx, "ssh", append(append([]string{"-G"}, c.options...), "--", host)...).Output()
	if err == nil && !strings.Contains(string(out), "\ncontrolpath ") {
		if folder, err := socketFolder(); err == nil {
			options = []string{
				"-o", "ControlMaster=auto", "-o", "ControlPersist=60", "-o", "ControlPath=" + filepath.Join(folder, "%C"),
			}
		}
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.shared[host] = options
	return options
}

// socketFolder is one with a short name that nobody else may open.
func socketFolder() (string, error) {
	folder := filepath.Join(os.Getenv("XDG_RUNTIME_DIR"), "fairway-ssh")
	if !filepath.IsAbs(folder) {
		folder = fmt.Sprintf("/tmp/fairway-%d/ssh", os.Getuid())
	}
	if err := os.MkdirAll(folder, 0o700); err != nil {
		return "", err
	}
	for _, path := range []string{filepath.Dir(folder), folder} {
		if err := disk.CheckPrivate(path); err != nil {
			return "", err
		}
	}
	return folder, nil
}

// Lines by which a host answers begin so. What else comes, the host's own start of the
// shell has printed.
const answerPrefix = "fairway: "

// call has a host run a text by its shell, and returns what that says. asked tells that
// the host got the text, and so may have done what it says, also where there is an error.
func (c *client) call(ctx context.Context, host, text string) (words []string, asked bool, err error) {
	ctx, cancel := context.WithTimeout(ctx, HostTime)
	defer cancel()
	arguments := append(append([]string{"-T"}, c.options...), c.sharing(ctx, host)...)
	cmd := exec.CommandContext(ctx, "ssh", append(arguments, "--", host, "exec /bin/sh -s")...)
	cmd.WaitDelay = time.Second                           // a shared connection stays, with what it has inherited
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} // Ctrl-C is for the run, not for this
	answer := &answer{ready: make(chan struct{})}
	var said bytes.Buffer
	cmd.Stdout, cmd.Stderr = answer, &said
	in, err := cmd.StdinPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		return nil, false, err
	}
	over := make(chan struct{})
	sent := make(chan bool, 1)
	go func() { sent <- converse(in, text, answer.ready, over) }()
	err = c.sched.WaitCmd(context.WithoutCancel(ctx), cmd) // ctx ends the process, which must be reaped
	close(over)
	asked = <-sent
	words, done := answer.words()
	switch {
	case done && len(words) > 0 && strings.HasPrefix(words[0], "refused "):
		return nil, asked, errors.New(strings.TrimPrefix(words[0], "refused "))
	case done:
		return words, asked, nil
	case ctx.Err() != nil:
		return words, asked, fmt.Errorf("no answer within %v; try `ssh -o BatchMode=yes %s true`", HostTime, host)
	case err != nil:
		return words, asked, explained(host, err, said.String())
	}
	return words, asked, errors.New("the answer is cut short" + withLine(said.String()))
}

// converse writes what the host is to run, once the host has said that it listens.
func converse(in io.WriteCloser, text string, ready, over <-chan struct{}) (sent bool) {
	defer func() { _ = in.Close() }()
	if _, err := io.WriteString(in, "echo '"+answerPrefix+"ready'\n"); err != nil {
		return false
	}
	select {
	case <-ready:
	case <-over:
		return false
	}
	_, _ = io.WriteString(in, text) // that it came whole, the answer tells
	return true
}

// answer gathers what a host prints.
type answer struct {
	mu    sync.Mutex
	text  []byte
	ready chan struct{}
	heard bool
}

// maxAnswer bounds the answer of a host, in bytes.
const maxAnswer = 1 << 20

// Write is part of io.Writer.
func (a *answer) Write(p []byte) (int, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if len(a.text)+len(p) > maxAnswer {
		return 0, fmt.Errorf("the host printed more than %d bytes", maxAnswer)
	}
	a.text = append(a.text, p...)
	if !a.heard && bytes.Contains(a.text, []byte(answerPrefix+"ready\n")) {
		a.heard = true
		close(a.ready)
	}
	return len(p), nil
}

// words are the lines of the answer after the first, and whether it is complete.
func (a *answer) words() (words []string, done bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	for line := range strings.Lines(string(a.text)) {
		word, ours := strings.CutPrefix(strings.TrimRight(line, "\r\n"), answerPrefix)
		switch {
		case !ours || word == "ready":
		case word == "done":
			return words, true
		default:
			words = append(words, word)
		}
	}
	return words, false
}

// advice says what to do where ssh says something.
var advice = []struct{ says, do string }{
	{"REMOTE HOST IDENTIFICATION HAS CHANGED", "the host has another key than before; ask who runs it, and then `ssh-keygen -R HOST`"},
	{"Host key verification failed", "its key is not known here; log in once with `ssh HOST`, and compare the key"},
	{"Permission denied", "it asks for a password or refuses the key; `ssh-copy-id HOST`, or a key in ssh-agent, lets you in without one"},
	{"Could not resolve hostname", "there is no host of that name; mend `hosts`, or ~/.ssh/config"},
	{"Bad configuration option", "mend `options` of the site, or ~/.ssh/config"},
	{"", "try `ssh -o BatchMode=yes HOST true`"},
}

func explained(host string, err error, said string) error {
	for _, a := range advice {
		if strings.Contains(said, a.says) {
			return fmt.Errorf("%w%s; %s", err, withLine(said), strings.ReplaceAll(a.do, "HOST", host))
		}
	}
	return err
}

func withLine(said string) string {
	said = strings.TrimSpace(said)
	if said == "" {
		return ""
	}
	return ": " + strings.TrimSpace(said[strings.LastIndexByte(said, '\n')+1:])
}
