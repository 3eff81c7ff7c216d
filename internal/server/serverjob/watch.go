package serverjob

import (
	"context"
	"fmt"
	"os"
	"strings"
	"time"

	"fairway/internal/batch"
	"fairway/internal/server/folder"
	"fairway/internal/server/term"
	"fairway/internal/site"
)

// Watch follows the jobs that are the server of a run, or are to be. One goroutine uses it.
type Watch struct {
	site   *site.Site
	layout folder.Layout
	roster *batch.Roster
	launch string         // of the job that is, or is to be, the server
	ended  chan batch.End // of jobs that the batch system has no more

	// heard is the last term as it was at heardSince, and has been at each look since then; looked
	// is when the last of these was.
	heard              term.Holder
	heardSince, looked time.Time
	silentTime         time.Duration // for so long a server may say nothing: SilentTime
}

// Announce names the job of the server, unless one waits already, and begins to have it
// started. It makes a state where there is none, and holds its lock no longer than for that: a
// job that is to be the server may begin at any time. Errors: *folder.RunningError where a
// server runs, *OtherSiteError.
func Announce(s *site.Site, dir string) (*Watch, error) {
	l, err := stateOf(dir)
	if err != nil {
		return nil, err
	}
	w, err := open(s, l)
	if err != nil {
		return nil, err
	}
	pending, fresh, err := term.Announce(l.State, term.Pending{State: l.ID, Launch: term.NewLaunch(), Site: s.Name})
	switch {
	case err != nil:
	case fresh:
		w.roster.Start(pending.Launch)
	case pending.Site != s.Name:
		err = &OtherSiteError{Site: pending.Site, Folder: dir}
	default:
		_, err = w.roster.Adopt(context.Background(), []string{pending.Launch})
	}
	if err != nil {
		w.Close()
		return nil, err
	}
	w.launch = pending.Launch
	return w, nil
}

func open(s *site.Site, l folder.Layout) (*Watch, error) {
	jobs, err := system(s, l)
	if err != nil {
		return nil, err
	}
	w := &Watch{site: s, layout: l, ended: make(chan batch.End, 16), silentTime: SilentTime}
	w.roster = batch.NewRoster(batch.RosterConfig{
		Site: s.Name, Job: "server", System: jobs, Every: s.Pace(),
		Elsewhere: func(string) bool { return true }, // other servers are no pilots
		Ended:     func(end batch.End) { w.ended <- end },
	})
	return w, nil
}

func stateOf(dir string) (folder.Layout, error) {
	l, err := folder.Of(dir)
	if err != nil {
		return l, err
	}
	if l.ID != "" {
		return l, folder.CheckFree(dir)
	}
	lock, l, err := folder.Claim(dir)
	if err == nil {
		err = lock.Release()
	}
	return l, err
}

// Close ends the watching. The jobs go on.
func (w *Watch) Close() { _ = w.roster.Leave() }

// Layout is where the state is.
func (w *Watch) Layout() folder.Layout { return w.layout }

// Launch is that of the job that is, or is to be, the server.
func (w *Watch) Launch() string { return w.launch }

// Log is the file of what that job prints.
func (w *Watch) Log() string { return logOf(w.layout, w.launch) }

// Said is the end of that, as much as a person needs.
func (w *Watch) Said() string {
	said, _ := os.ReadFile(w.Log())
	lines := strings.Split(strings.TrimSpace(string(said)), "\n")
	return strings.Join(lines[max(0, len(lines)-shownLines):], "\n")
}

const shownLines = 20

// Taken reports whether the batch system has the job.
func (w *Watch) Taken() bool {
	_, ok := w.roster.Status(w.launch)
	return ok
}

// Waiting says why the server is not there yet; nothing where that is not known.
func (w *Watch) Waiting() string {
	status, ok := w.roster.Status(w.launch)
	switch {
	case !ok || status.State == batch.Gone:
		return ""
	case status.State == batch.Queued:
		return fmt.Sprintf("the server waits as a job of %s: %s", w.site.Name, status.Reason)
	}
	return fmt.Sprintf("the server is a job of %s", w.site.Name)
}

// Lives reports whether a server has the state, as far as its beats tell.
func (w *Watch) Lives() (bool, error) {
	holder, err := term.Last(w.layout.State, w.layout.ID)
	return err == nil && holder.Lives(), err
}

// Withdraw takes the job back.
func (w *Watch) Withdraw() error { return Withdraw(w.site, w.layout, w.launch) }

// Ended returns the end of a job, if one has come since the last call.
func (w *Watch) Ended() (end batch.End, ok bool) {
	select {
	case end = <-w.ended:
		return end, true
	default:
		return end, false
	}
}

// FindSuccessor turns to the job that is to be the next server, or is it already.
func (w *Watch) FindSuccessor() {
	next := ""
	if pending, err := term.PendingOf(w.layout.State, w.layout.ID); err == nil {
		next = pending.Launch
	}
	if holder, err := term.Last(w.layout.State, w.layout.ID); err == nil && holder.Lives() && next == "" {
		next = holder.Launch // it may be dead, and counts only where none is to follow
	}
	if next != "" && next != w.launch {
		w.launch = next
		_, _ = w.roster.Adopt(context.Background(), []string{next}) // fails for Notifiers only
	}
}

// Over reports whether the end of a job leaves the run without a server: it was the one that is
// watched, and no other job is the server now, or is to be. Ended says that the run came to its
// end in that job.
func (w *Watch) Over(end batch.End) (over, ended bool, err error) {
	w.FindSuccessor()
	if end.Launch != w.launch {
		return false, false, nil
	}
	if err := term.Forget(w.layout.State, w.layout.ID, end.Launch); err != nil {
		return true, false, err
	}
	if w.FindSuccessor(); end.Launch != w.launch {
		return false, false, nil
	}
	holder, err := term.Last(w.layout.State, w.layout.ID)
	return true, holder.Ended && holder.Launch == end.Launch, err
}

// FellSilent reports whether the job that this process waits for was the server, and seems dead
// though the batch system has it: a controller that was restarted may have lost its end. What
// this process did not see, because it or a file system stood still, is no silence.
func (w *Watch) FellSilent() bool {
	at, last := time.Now(), w.looked
	now, err := term.Last(w.layout.State, w.layout.ID)
	w.looked = time.Now()
	status, _ := w.roster.Status(w.launch)
	if err != nil || now.Number != w.heard.Number || now.Beat != w.heard.Beat || status.State == batch.Queued ||
		w.looked.Sub(last) > term.BeatTime {
		w.heard, w.heardSince = now, at
	}
	return now.Lives() && now.Launch == w.launch && at.Sub(w.heardSince) > w.silentTime
}
