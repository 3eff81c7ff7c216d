package batch

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"time"

	"fairway/internal/fault"
	"fairway/lib/sched"
)

var startedPilot = fault.New("batch.local.started")

// CloseGrace is how long pilots that were sent SIGTERM may take before they are sent
// SIGKILL.
const CloseGrace = 15 * time.Second

// LocalConfig describes pilots on this machine.
type LocalConfig struct {
	// State is the identity of the state that the pilots work for. Without one
	// none is found again.
	State string
	// New says that no earlier process can have started pilots for the state, so they are not
	// looked for.
	New bool
	// Command is the program and its arguments. Default: this program, with the
	// argument "pilot".
	Command []string
	// CommandOf returns the command of a launch, in place of Command.
	CommandOf func(launch string) ([]string, error)
	// Stdin is what pilots read. Default: nothing.
	Stdin *os.File
	// EndSignal asks a pilot to end its jobs and leave. Default: SIGTERM.
	EndSignal os.Signal
	// Environment returns what a pilot's environment has besides that of this
	// process, such as its configuration.
	Environment func(launch string) ([]string, error)
	// LogDir is the folder for LAUNCH.log, what a pilot itself says. Made as
	// needed.
	LogDir string
	// Sched waits for the ends of pilots. Default: sched.Default().
	Sched *sched.Scheduler
}

// Local is a Notifier that starts pilots as processes of this machine, each in a session of its
// own, so that what ends the server from the keyboard does not end them. One
// that loses its server ends after its lease.
type Local struct {
	cfg   LocalConfig
	grace time.Duration // CloseGrace, but in tests
	ended chan End
	group sync.WaitGroup

	mu      sync.Mutex // guards what follows
	running map[string]*os.Process
	closed  bool
}

// NewLocal returns a Local without pilots.
func NewLocal(cfg LocalConfig) (*Local, error) {
	if cfg.Sched == nil {
		cfg.Sched = sched.Default()
	}
	if cfg.EndSignal == nil {
		cfg.EndSignal = syscall.SIGTERM
	}
	if len(cfg.Command) == 0 && cfg.CommandOf == nil {
		self, err := os.Executable()
		if err != nil {
			return nil, err
		}
		cfg.Command = []string{self, "pilot"}
	}
	if err := os.MkdirAll(cfg.LogDir, 0o700); err != nil {
		return nil, err
	}
	return &Local{cfg: cfg, grace: CloseGrace, ended: make(chan End), running: map[string]*os.Process{}}, nil
}

// Ended is part of Notifier.
func (l *Local) Ended() <-chan End { return l.ended }

// Submit is part of System. The pilot has been started when it returns.
func (l *Local) Submit(_ context.Context, launch string) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	switch {
	case l.closed:
		return errors.New("the local batch system is closed")
	case l.running[launch] != nil:
		return nil
	}
	cmd, err := l.command(launch)
	if err != nil {
		return fmt.Errorf("start pilot: %w", err)
	}
	err = cmd.Start()
	_ = cmd.Stdout.(*os.File).Close()
	if err != nil {
		return fmt.Errorf("start pilot: %w", err)
	}
	_ = startedPilot.Hit()
	l.running[launch] = cmd.Process
	l.group.Go(func() { l.attend(launch, cmd) })
	return nil
}

func (l *Local) command(launch string) (*exec.Cmd, error) {
	argv := l.cfg.Command
	if l.cfg.CommandOf != nil {
		var err error
		if argv, err = l.cfg.CommandOf(launch); err != nil {
			return nil, err
		}
	}
	log, err := os.OpenFile(filepath.Join(l.cfg.LogDir, launch+".log"), os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o600)
	if err != nil {
		return nil, err
	}
	cmd := exec.Command(argv[0], argv[1:]...)
	cmd.Stdout, cmd.Stderr = log, log
	if l.cfg.Stdin != nil { // and not an interface that holds a nil
		cmd.Stdin = l.cfg.Stdin
	}
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	cmd.Env = append(os.Environ(), LaunchVariable+"="+launch, StateVariable+"="+l.cfg.State)
	if l.cfg.Environment != nil {
		more, err := l.cfg.Environment(launch)
		if err != nil {
			return nil, errors.Join(err, log.Close())
		}
		cmd.Env = append(cmd.Env, more...)
	}
	return cmd, nil
}

func (l *Local) attend(launch string, cmd *exec.Cmd) {
	err := l.cfg.Sched.WaitCmd(context.Background(), cmd)
	reason := "ended"
	if err != nil {
		reason = err.Error()
		if said := l.lastWords(launch); said != "" {
			reason += ": " + said
		}
	}
	l.mu.Lock()
	delete(l.running, launch)
	l.mu.Unlock()
	l.ended <- End{launch, reason}
}

func (l *Local) lastWords(launch string) string {
	f, err := os.Open(filepath.Join(l.cfg.LogDir, launch+".log"))
	if err != nil {
		return ""
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return ""
	}
	var tail [1024]byte
	n, _ := f.ReadAt(tail[:], max(0, info.Size()-int64(len(tail))))
	text := strings.TrimRight(string(tail[:n]), "\n")
	return text[strings.LastIndexByte(text, '\n')+1:]
}

// Withdraw is part of System: EndSignal, and SIGKILL after the grace. A pilot that was stopped goes
// on, so that it heeds the signal.
func (l *Local) Withdraw(_ context.Context, launches ...string) (err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, launch := range launches {
		if p := l.running[launch]; p != nil {
			err = errors.Join(err, send(p, l.cfg.EndSignal), send(p, syscall.SIGCONT))
			time.AfterFunc(l.grace, func() { l.kill(launch, p) })
		}
	}
	return err
}

// kill ends a pilot that is still there: one that is frozen does not heed other signals.
func (l *Local) kill(launch string, p *os.Process) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.running[launch] == p {
		_ = p.Kill()
	}
}

func send(p *os.Process, s os.Signal) error {
	if err := p.Signal(s); err != nil && !errors.Is(err, os.ErrProcessDone) {
		return err
	}
	return nil
}

// Close is part of Notifier: SIGTERM, and SIGKILL to what is left after
// CloseGrace. The commands of a pilot that is killed are ended by the kernel.
func (l *Local) Close() error {
	err := l.signalAll(l.cfg.EndSignal)
	gone := make(chan struct{})
	go func() {
		l.group.Wait()
		close(l.ended)
		close(gone)
	}()
	go func() {
		for range l.ended {
			continue
		}
	}()
	ctx, cancel := context.WithTimeout(context.Background(), l.grace)
	defer cancel()
	if _, waitErr := sched.Receive(ctx, l.cfg.Sched, gone); errors.Is(waitErr, sched.ErrChannelClosed) {
		return err
	}
	err = errors.Join(err, l.signalAll(syscall.SIGKILL))
	<-gone
	return err
}

func (l *Local) signalAll(s os.Signal) (err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.closed = true
	for _, p := range l.running {
		err = errors.Join(err, send(p, s))
	}
	return err
}
