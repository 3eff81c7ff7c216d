package web

import (
	"context"
	"fmt"
	"net/url"
	"strings"
	"time"

	"fairway/internal/quantity"
	"fairway/internal/server/api"
	"fairway/internal/taskqueue"
	"fairway/internal/wire"
)

// when is what a page says of the end of a run.
type when struct {
	Head string // in few words
	Text string
	Kind string // done, failed, soon or unknown
}

// whenDone tells when a run is done, as far as can be said.
func whenDone(o *api.Overview, total *tally) when {
	took := quantity.Seconds(o.Report.GetSummary().GetWallSeconds())
	switch {
	case o.Report.GetEnded() && o.Report.GetSucceeded():
		return when{"Done", "It took " + took + ".", "done"}
	case o.Report.GetEnded() && total.Failed > 0:
		return when{"Failed", "It ended after " + took + ".", "failed"}
	case o.Report.GetEnded():
		return when{"Stopped", "It ended after " + took + ", and can be gone on with.", "failed"}
	case len(o.Open) > 0:
		return when{"Open", "It goes on until " + listed(o.Open) + " is closed.", "unknown"}
	case total.Total > 0 && left(&total.StepProgress) == 0 && total.TotalFinal && o.Report.GetToPublish() > 0:
		return when{"Any moment", quantity.Count(o.Report.GetToPublish(), "result") + " are being published.", "soon"}
	case o.Report.GetSecondsLeft() > 0:
		seconds := o.Report.GetSecondsLeft()
		return when{"About " + clock(o.Now, seconds), "In " + quantity.Seconds(seconds) + ", if its jobs go on as they did.",
			"soon"}
	case o.AtLeast > time.Minute:
		return when{"Not before " + clock(o.Now, o.AtLeast.Seconds()), "In " + quantity.Seconds(o.AtLeast.Seconds()) +
			" at the least: that is the rest of the steps of which jobs have ended.", "unknown"}
	case !o.Finished:
		return when{"Not known yet", "Jobs are still being made from what others write.", "unknown"}
	}
	return when{"Not known yet", "Too few jobs of some step have ended to tell.", "unknown"}
}

// clock is the time in so many seconds, by the clock of the server.
func clock(now time.Time, seconds float64) string {
	at, today := now.Add(time.Duration(seconds*float64(time.Second))).Local(), now.Local()
	if at.Year() != today.Year() || at.YearDay() != today.YearDay() {
		return at.Format("Mon 2 Jan 15:04")
	}
	return at.Format("15:04")
}

func listed(names []string) string {
	if len(names) <= 1 {
		return strings.Join(names, "")
	}
	return strings.Join(names[:len(names)-1], ", ") + " and " + names[len(names)-1]
}

type reason struct {
	Kind   string // good, busy, wait or bad
	Text   string
	Detail []string
	Link   string // where more stands
}

// stuckOn tells what a run is stuck on, the worst first.
func (s *site) stuckOn(ctx context.Context, o *api.Overview, total *tally) (all []reason) {
	run := api.Page(o.Run)
	jobs := func(state string) string { return runPath(run) + "/jobs?" + url.Values{"state": {state}}.Encode() }
	add := func(kind, link, text string, detail ...string) {
		all = append(all, reason{kind, text, detail, link})
	}
	if o.Report.GetEnded() && o.Report.GetSucceeded() {
		return nil
	}
	if total.Failed > 0 {
		text := quantity.Count(total.Failed, "job") + " failed"
		if total.Blocked > 0 {
			text += ", and " + quantity.Count(total.Blocked, "job") + " cannot run without them"
		}
		add("bad", runPath(run)+"/failures", text+".")
	} else if total.Blocked > 0 {
		add("bad", jobs("blocked"), quantity.Count(total.Blocked, "job")+" cannot run: what they read will not come.")
	}
	for _, problem := range o.Report.GetProblems() {
		if total.Failed == 0 {
			add("bad", "", problem)
		}
	}
	if o.Report.GetEnded() {
		return all
	}
	if n := o.Report.GetPilotsSilent(); n > 0 {
		add("bad", "/pilots", quantity.Count(n, "pilot")+" "+is(n)+" silent: nothing is heard of them, and others get their "+
			"jobs when their leases are over.")
	}
	active := total.Running + total.Queued - o.Report.GetRunningUnheard()
	switch {
	case active <= 0 && total.Ready > 0:
		detail := append(s.explained(ctx, run, "ready"), o.Waiting...)
		add("bad", jobs("ready"), "No job runs, and "+quantity.Count(total.Ready, "job")+" "+is(total.Ready)+" ready.",
			unique(detail)...)
	case total.Ready > 0:
		add("busy", "/pilots", fmt.Sprintf("%s %s ready and %s for a free slot: %s.", quantity.Count(total.Ready, "job"),
			is(total.Ready), waits(total.Ready), pilotsText(o.Report)), siteLimits(o.Sites)...)
	case active > 0 && total.Waiting > 0:
		step := largest(runningSteps(o.Report.GetSteps()))
		add("busy", jobs("running"), fmt.Sprintf("%s %s for what running jobs write, most of them of step %s.",
			quantity.Count(total.Waiting, "job"), waits(total.Waiting), step.GetStep()))
	case active > 0:
		add("good", jobs("running"), "All jobs that are left run ("+quantity.Count(total.Running+total.Queued, "job")+").")
	case total.Waiting > 0 && total.Failed == 0:
		add("wait", jobs("waiting"), quantity.Count(total.Waiting, "job")+" "+waits(total.Waiting)+" for files.",
			s.explained(ctx, run, "waiting")...)
	}
	if n := o.Report.GetOutputsToStore() - o.Report.GetOutputsStored(); n > 0 {
		add("busy", "", "Jobs that have computed store "+quantity.Count(n, "output")+".")
	}
	if n := o.Report.GetToPublish(); n > 0 {
		add("busy", "", quantity.Count(n, "result")+" "+is(n)+" to be published.")
	}
	if len(o.Open) > 0 {
		add("wait", "", "More may come until "+listed(o.Open)+" is closed (fairway close).")
	}
	return all
}

func is(n int64) string {
	if n == 1 {
		return "is"
	}
	return "are"
}

func waits(n int64) string {
	if n == 1 {
		return "waits"
	}
	return "wait"
}

func pilotsText(r *wire.ProgressReport) string {
	text := fmt.Sprintf("%d of %s %s busy", r.GetPilotsBusy(),
		quantity.Count(r.GetPilotsBusy()+r.GetPilotsIdle(), "pilot"), is(r.GetPilotsBusy()))
	if n := r.GetPilotsInactive(); n > 0 {
		text += fmt.Sprintf(", and %d more %s asked for", n, is(n))
	}
	return text
}

func siteLimits(sites []taskqueue.SiteView) (lines []string) {
	for _, site := range sites {
		switch have := site.Idle + site.Busy + site.Inactive; {
		case site.Failures > 0 && !site.NotBefore.IsZero():
			lines = append(lines, fmt.Sprintf("Site %s: the last %s could not work; another is tried later.", site.Name,
				quantity.Count(int64(site.Failures), "pilot")))
		case have >= site.Max:
			lines = append(lines, fmt.Sprintf("Site %s has all %d pilots that it may have.", site.Name, site.Max))
		case site.Inactive > 0:
			lines = append(lines, fmt.Sprintf("Site %s: %s in its queue.", site.Name,
				quantity.Count(int64(site.Inactive), "pilot")))
		}
	}
	return lines
}

func runningSteps(steps []*wire.StepProgress) (running []*wire.StepProgress) {
	for _, s := range steps {
		if s.GetRunning()+s.GetQueued() > 0 {
			running = append(running, s)
		}
	}
	return running
}

// explained says why the first job in a state does not run.
func (s *site) explained(ctx context.Context, run api.Page, state string) []string {
	found, err := s.Service.SearchJobs(ctx, run, api.JobSearch{State: state, Limit: 1})
	if err != nil || len(found.Jobs) == 0 {
		return nil
	}
	job := found.Jobs[0]
	why, err := s.Service.Explain(ctx, &wire.ExplainRequest{Run: uint32(run), Job: job.GetName()})
	if err != nil || why.GetSummary().GetState() != state {
		return nil
	}
	lines := make([]string, len(why.GetLines()))
	for i, line := range why.GetLines() {
		lines[i] = line
		if i == 0 {
			lines[i] = "Job " + job.GetName() + ": " + line
		}
	}
	return lines
}

func unique(lines []string) (each []string) {
	seen := map[string]bool{}
	for _, line := range lines {
		if !seen[line] {
			seen[line] = true
			each = append(each, line)
		}
	}
	return each
}
