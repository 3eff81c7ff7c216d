package web

import (
	"fmt"
	"html/template"
	"net/url"
	"strings"
	"time"

	"google.golang.org/protobuf/types/known/timestamppb"

	"fairway/internal/quantity"
	"fairway/internal/server/api"
	"fairway/internal/wire"
)

// functions are those of templates.
var functions = template.FuncMap{
	"bytes":    quantity.Bytes,
	"seconds":  quantity.Seconds,
	"number":   grouped,
	"percent":  func(part, all int64) float64 { return 100 * float64(part) / float64(max(all, 1)) },
	"time":     shownTime,
	"zone":     zone,
	"moment":   moment,
	"at":       func(t time.Time) string { return moment(timestamppb.New(t)) },
	"span":     span,
	"days":     quantity.Days,
	"limits":   limitsOf,
	"hours":    func(seconds float64) string { return fmt.Sprintf("%.1f", seconds/3600) },
	"file":     fileLink,
	"hundred":  func(part float64) float64 { return 100 * part },
	"path":     runPath,
	"query":    url.QueryEscape,
	"join":     strings.Join,
	"bar":      bar,
	"kind":     stepKind,
	"command":  commandOf,
	"cpus":     func(r *wire.Resources) string { return fmt.Sprintf("%g", float64(r.GetMilliCpus())/1000) },
	"states":   func() []string { return jobStates },
	"runState": func() []string { return []string{"underway", "succeeded", "failed", "stopped"} },
	"jobLink":  func(run api.Page, id uint32) string { return fmt.Sprintf("%s/jobs/%d", runPath(run), id) },
	"page":     func(n uint32) api.Page { return api.Page(n) },
	"took":     took,
	"step":     func(t *tally) *wire.StepProgress { return &t.StepProgress },
	"pilotsAt": func(r *wire.ProgressReport) int64 { return r.GetPilotsBusy() + r.GetPilotsIdle() },
	"lasted":   func(d time.Duration) string { return quantity.Seconds(d.Seconds()) },
	"share":    func(part, all time.Duration) float64 { return 100 * float64(part) / float64(max(all, 1)) },
	"add":      func(a, b int) int { return a + b },
	"plus":     func(a, b int32) int32 { return a + b },
	"sum":      func(a, b int64) int64 { return a + b },
	"hits":     func(s *wire.Summary) int64 { return s.GetCacheHits() + s.GetCacheMisses() },
	"runBar":   runBar,
}

var jobStates = []string{"waiting", "ready", "assigned", "running", "done", "failed", "blocked", "cancelled"}

func grouped(n any) string {
	digits := fmt.Sprint(n)
	for at := len(digits) - 3; at > 0 && digits[at-1] != '-'; at -= 3 {
		digits = digits[:at] + "\u202f" + digits[at:]
	}
	return digits
}

func shownTime(t *timestamppb.Timestamp) string {
	if t == nil {
		return ""
	}
	at := t.AsTime().Local()
	if time.Since(at) < 20*time.Hour {
		return at.Format("15:04:05")
	}
	return at.Format("2006-01-02 15:04")
}

// zone is that of the clock of the server, by which all times of a page are.
func zone() string {
	now := time.Now()
	switch name, _ := now.Zone(); {
	case name == "UTC":
		return name
	case strings.HasPrefix(name, "+"), strings.HasPrefix(name, "-"): // it has none
		return now.Format("UTC-07:00")
	}
	return now.Format("MST (UTC-07:00)")
}

func moment(t *timestamppb.Timestamp) string {
	if t == nil {
		return ""
	}
	return t.AsTime().Local().Format("2006-01-02 15:04:05")
}

// limitsOf tells what a group or a user may have at most, and has.
func limitsOf(s *wire.ShareSummary) (texts []string) {
	if n := s.GetMostRunning(); n > 0 {
		texts = append(texts, fmt.Sprintf("%d of %d running", s.GetRunning(), n))
	}
	if n := s.GetMostCores(); n > 0 {
		texts = append(texts, fmt.Sprintf("%v of %v cores", s.GetCores(), n))
	}
	if n := s.GetMostQueued(); n > 0 {
		texts = append(texts, fmt.Sprintf("at most %d waiting", n))
	}
	if n := s.GetMostStored(); n > 0 {
		texts = append(texts, quantity.Bytes(s.GetStored())+" of "+quantity.Bytes(n)+" stored")
	}
	return texts
}

func span(from, to *timestamppb.Timestamp) string {
	if from == nil || to == nil {
		return ""
	}
	return quantity.Seconds(max(0, to.AsTime().Sub(from.AsTime()).Seconds()))
}

func took(j *wire.JobSummary, now time.Time) string {
	switch {
	case j.GetStarted() == nil:
		return ""
	case j.GetEnded() == nil && !now.IsZero():
		return quantity.Seconds(max(0, now.Sub(j.GetStarted().AsTime()).Seconds()))
	}
	return span(j.GetStarted(), j.GetEnded())
}

func commandOf(p *wire.Payload) string {
	switch {
	case len(p.GetArgv()) > 0:
		return strings.Join(p.GetArgv(), " ")
	case p.GetReplay() != nil:
		return fmt.Sprintf("%s, as recorded: %s", p.GetReplay().GetProgram(),
			quantity.Seconds(p.GetReplay().GetCompute().AsDuration().Seconds()))
	case p.GetScript() != "":
		return strings.TrimSpace(p.GetShell() + "\n# then the script " + p.GetScript())
	}
	return strings.TrimSpace(p.GetShell())
}

func runBar(r *wire.RunSummary) []part {
	return bar(&wire.StepProgress{
		Total: r.GetJobs(), Done: r.GetDone(), Running: r.GetRunning(), Failed: r.GetFailed(),
		Waiting: max(0, r.GetJobs()-r.GetDone()-r.GetRunning()-r.GetFailed()),
	})
}
