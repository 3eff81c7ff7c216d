package term

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"sync"
	"time"

	"fairway/internal/server/folder"
	"fairway/lib/sched"
)

const (
	// BeatTime is how often a server says that it lives.
	BeatTime = 5 * time.Second
	// TrustTime is for how long a server that has said so need not look whether another
	// one has followed it.
	TrustTime = 15 * time.Second
	// SilentTime is how long a server on another machine must say nothing until another
	// one may follow it.
	SilentTime = 30 * time.Second

	// lookTime is how often one that waits looks.
	lookTime = 250 * time.Millisecond
)

// HeldError says that another server has the state.
type HeldError struct{ Holder Holder }

func (e *HeldError) Error() string {
	if e.Holder.Launch != "" {
		return fmt.Sprintf("the workflow is being run by the batch job %s of the site %s, on %s", e.Holder.Launch,
			e.Holder.Site, e.Holder.Host)
	}
	return "the workflow is being run on " + e.Holder.Host
}

// ErrFollowed says that another server has the state by now.
var ErrFollowed = errors.New("another server has taken over the run, since this one was silent for too long")

// Await waits until a server may take the next term of a state: at once where the last
// one has ended or never was. It asks a server that has named launch as its successor to
// end, and waits for one on another machine that may be dead. It returns that server as it
// was seen last, for [Take], or a *HeldError if it lives.
func Await(ctx context.Context, s *sched.Scheduler, state, id, machine, launch string) (before Holder, err error) {
	if before, err = Last(state, id); err != nil || !before.Lives() {
		return before, err
	}
	ours := launch != "" && before.Successor == launch
	if ours {
		asks := path(state, before.Number+1, asksEnding)
		if err := write(asks, launch); err != nil {
			return before, err
		}
		defer func() { _ = os.Remove(asks) }()
	}
	for silent := time.Now(); ; {
		now, err := Last(state, id)
		switch {
		case err != nil:
			return now, err
		case now.Number != before.Number:
			return now, &HeldError{now}
		case now.Ended:
			return now, nil
		case now.Beat != before.Beat && !ours:
			return now, &HeldError{now}
		case now.Beat != before.Beat:
			before, silent = now, time.Now()
		}
		if now.Machine == machine {
			// The lock of one machine tells more than silence.
			if running, err := folder.IsRunning(state); err != nil || !running {
				return now, err
			}
			if !ours {
				return now, &HeldError{now}
			}
		} else if time.Since(silent) > SilentTime {
			return now, nil
		}
		if err := s.Sleep(ctx, lookTime); err != nil {
			return now, err
		}
	}
}

// Term is the time for which this server has a state. Any goroutine may call its methods.
type Term struct {
	state string
	// Unclean says that the server before may still run, on a machine of which this one
	// knows nothing.
	Unclean bool

	mu   sync.Mutex // guards what follows
	self Holder
	beat time.Time // when self was written last
	lost error     // why this server has the state no more
}

// Take begins the term after that of the server before, which is as [Await] saw it last. Of
// several, one takes it; the others get a *HeldError. So do all if that server has said
// since then that it lives.
func Take(state string, self, before Holder) (*Term, error) {
	if err := os.MkdirAll(filepath.Join(state, folder.ServersName), 0o700); err != nil {
		return nil, err
	}
	t := &Term{state: state, self: self, beat: time.Now(), Unclean: before.Lives() && before.Machine != self.Machine}
	t.self.Number, t.self.Beat = before.Number+1, 1
	file := path(state, t.self.Number, termEnding)
	switch err := writeNew(file, t.self); {
	case errors.Is(err, fs.ErrExist):
		other, _ := Last(state, self.State)
		return nil, &HeldError{other}
	case err != nil:
		return nil, err
	}
	if other, err := t.overtaken(before); err != nil || other.Number > 0 {
		return nil, errors.Join(&HeldError{other}, err, os.Remove(file))
	}
	if self.Launch != "" {
		if err := Forget(state, self.State, self.Launch); err != nil {
			return nil, err
		}
	}
	return t, t.clear()
}

// overtaken is the server that has the state all the same: others have taken terms since
// the one before was seen, or it spoke just before it could see that it is followed.
func (t *Term) overtaken(before Holder) (Holder, error) {
	last, err := lastNumber(t.state)
	if err != nil {
		return Holder{}, err
	}
	if last > t.self.Number {
		return Last(t.state, t.self.State)
	}
	if now, err := read(t.state, before.Number); before.Lives() && err == nil && now.Beat != before.Beat && !now.Ended {
		return now, nil
	}
	return Holder{}, nil
}

// clear removes the files of terms that have ended.
func (t *Term) clear() error {
	entries, err := os.ReadDir(filepath.Join(t.state, folder.ServersName))
	if err != nil {
		return err
	}
	keep := filepath.Base(path(t.state, t.self.Number, ""))
	for _, entry := range entries {
		name := entry.Name()
		if ending := filepath.Ext(name); (ending == termEnding || ending == asksEnding) && name < keep {
			err = errors.Join(err, os.Remove(filepath.Join(t.state, folder.ServersName, name)))
		}
	}
	return err
}

// Change changes what the file says of this server.
func (t *Term) Change(change func(*Holder)) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	change(&t.self)
	return t.beatLocked()
}

// Beat says that this server lives. The error may be ErrFollowed, which stays.
func (t *Term) Beat() error {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.beatLocked()
}

func (t *Term) beatLocked() error {
	if err := t.followed(); err != nil {
		return err
	}
	at := time.Now()
	t.self.Beat++
	if err := write(path(t.state, t.self.Number, termEnding), &t.self); err != nil {
		return err
	}
	// One that began the next term before this beat is seen now, and one that begins it
	// later sees the beat.
	if err := t.followed(); err != nil {
		return err
	}
	t.beat = at
	return nil
}

func (t *Term) followed() error {
	if t.lost != nil {
		return t.lost
	}
	last, err := lastNumber(t.state)
	if err == nil && last > t.self.Number {
		t.lost = ErrFollowed
		err = t.lost
	}
	return err
}

// Good returns nil if this server has the state, and may change it now.
func (t *Term) Good() error {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.lost != nil || time.Since(t.beat) < TrustTime {
		return t.lost
	}
	return t.beatLocked()
}

// Asked reports whether the successor has begun, and asks for the state.
func (t *Term) Asked() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	var launch string
	err := readInto(path(t.state, t.self.Number+1, asksEnding), &launch)
	return err == nil && launch != "" && launch == t.self.Successor
}

// End says that nothing of this server is left. It comes after the lock was given up.
func (t *Term) End() error {
	return t.Change(func(h *Holder) { h.Ended, h.Connection = true, nil })
}

// NewLaunch names the batch job of a server, uniquely for ever.
func NewLaunch() string {
	return fmt.Sprintf("server-%x", time.Now().UnixMicro())
}
