package fault

import (
	"fmt"
	"os"
	"os/signal"
	"strconv"
	"strings"
	"sync/atomic"
	"syscall"
)

type action string

const (
	kill  action = "kill"
	fail  action = "error"
	pause action = "pause"
)

// arming says what happens when a point is reached for the nth time.
type arming struct {
	name   string
	nth    int64
	action action
	count  atomic.Int64
}

func parse(spec string) ([]arming, error) {
	if spec == "" {
		return nil, nil
	}
	parts := strings.Split(spec, ",")
	armings := make([]arming, len(parts))
	for i, part := range parts {
		if err := armings[i].parse(part); err != nil {
			return nil, err
		}
	}
	return armings, nil
}

func (a *arming) parse(part string) error {
	fields := strings.Split(part, ":")
	a.name, a.nth, a.action = fields[0], 1, kill
	if a.name == "" || len(fields) > 3 {
		return fmt.Errorf("%q is not of the form name[:nth][:kill|error|pause]", part)
	}
	for _, field := range fields[1:] {
		switch act := action(field); act {
		case kill, fail, pause:
			a.action = act
		default:
			n, err := strconv.ParseInt(field, 10, 64)
			if err != nil || n < 1 {
				return fmt.Errorf("%q: %q is neither a count from 1 nor kill, error or pause", part, field)
			}
			a.nth = n
		}
	}
	return nil
}

func (a *arming) hit() error {
	if a.count.Add(1) != a.nth || !first(os.Getenv("FAIRWAY_FAULT_ONCE")) {
		return nil
	}
	switch a.action {
	case fail:
		return fmt.Errorf("%s: %w", a.name, ErrInjected)
	case pause:
		// The signal may be on its way to another thread; nothing may happen after this
		// place until the process goes on.
		goesOn := make(chan os.Signal, 1)
		signal.Notify(goesOn, syscall.SIGCONT)
		signalSelf(syscall.SIGSTOP)
		<-goesOn
		signal.Stop(goesOn)
	case kill:
		signalSelf(syscall.SIGKILL)
		select {} // the signal is on its way; nothing may happen after this place
	}
	return nil
}

// first reports whether this process is the one that creates the file.
func first(file string) bool {
	if file == "" {
		return true
	}
	f, err := os.OpenFile(file, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
	if err != nil {
		return false
	}
	return f.Close() == nil
}

func signalSelf(s syscall.Signal) {
	if err := syscall.Kill(os.Getpid(), s); err != nil {
		panic(err)
	}
}
