package dispatch

import (
	"fmt"
	"path"
	"strings"

	"fairway/internal/taskqueue"
)

// attemptName shortens the two halves of an attempt to 1.7.
func attemptName(id taskqueue.AttemptID) string { return fmt.Sprintf("%d.%d", id>>32, id&0xffffffff) }

// render keeps the records, and shows the rest of the effects.
func (s *script) render(e taskqueue.Effects) string {
	s.keep(e.Persist)
	var b strings.Builder
	for _, x := range e.Events {
		b.WriteString(showEvent(x))
	}
	for _, r := range e.Replies {
		s.showReply(&b, r)
	}
	for _, x := range e.Start {
		fmt.Fprintf(&b, "start %d at %s\n", x.Count, x.Site)
	}
	for _, x := range e.Stop {
		fmt.Fprintf(&b, "withdraw %s\n", x)
	}
	for _, x := range e.Publish {
		fmt.Fprintf(&b, "publish %s@%d from %s\n", x.File.LFN, x.File.Version, x.PFN)
	}
	for _, x := range e.Remove {
		fmt.Fprintf(&b, "remove %s\n", x)
	}
	return b.String()
}

func showEvent(x taskqueue.Event) string {
	var b strings.Builder
	fmt.Fprintf(&b, "%v", x.Kind)
	if x.Run != 0 {
		fmt.Fprintf(&b, " %d", x.Run)
	}
	if x.Name != "" {
		fmt.Fprintf(&b, " %s", x.Name)
	}
	if x.Pilot != "" {
		fmt.Fprintf(&b, " pilot=%s", x.Pilot)
	}
	for _, f := range x.Files {
		fmt.Fprintf(&b, " %s@%d", f.File.LFN, f.File.Version)
	}
	if x.Reused {
		b.WriteString(" reused")
	}
	if x.Reason != "" {
		fmt.Fprintf(&b, " (%s)", x.Reason)
	}
	b.WriteByte('\n')
	return b.String()
}

func (s *script) showReply(b *strings.Builder, r taskqueue.Reply) {
	a := r.Answer
	fmt.Fprintf(b, "reply %s seq=%d", r.Pilot, r.Seq)
	if a.Superseded {
		b.WriteString(" superseded\n")
		return
	}
	fmt.Fprintf(b, " number=%s seen=%d", attemptName(taskqueue.AttemptID(a.Number)), a.Seen)
	for _, flag := range []struct {
		on   bool
		name string
	}{{a.NeedFull, "need-full"}, {a.Leave, "leave"}, {a.LeaveNow, "leave-now"}} {
		if flag.on {
			b.WriteString(" " + flag.name)
		}
	}
	if a.TellCache != 0 {
		fmt.Fprintf(b, " tell-cache=%s", attemptName(taskqueue.AttemptID(a.TellCache)))
	}
	for _, p := range a.Peers {
		fmt.Fprintf(b, " peer=%s", path.Base(p))
	}
	b.WriteByte('\n')
	for _, x := range a.Run {
		s.given[x.Attempt] = x
		fmt.Fprintf(b, "  run %s as %s try %d", x.Name, attemptName(x.Attempt), x.Try)
		if x.Needs.Memory > 0 {
			fmt.Fprintf(b, " mem=%d", x.Needs.Memory)
		}
		for _, f := range x.Inputs {
			fmt.Fprintf(b, " %s@%d", f.File.LFN, f.File.Version)
			if f.PFN == "" {
				b.WriteString("(cache)")
			}
			if f.Access == taskqueue.AccessStream {
				b.WriteString("(stream)")
			}
		}
		if x.Private {
			b.WriteString(" (copies of its own)")
		}
		b.WriteString(" ->")
		for _, f := range x.Outputs {
			fmt.Fprintf(b, " %s@%d", f.LFN, f.Version)
			if j := s.core.jobs.find(x.Job); j.outputFor(f.LFN).Storage != f.Storage {
				b.WriteString("(stored)")
			}
		}
		b.WriteByte('\n')
	}
	for _, id := range a.End {
		fmt.Fprintf(b, "  end %s\n", attemptName(id))
	}
	for _, id := range a.GiveBack {
		fmt.Fprintf(b, "  give back %s\n", attemptName(id))
	}
	for _, f := range a.Prefetch {
		fmt.Fprintf(b, "  prefetch %s@%d\n", f.File.LFN, f.File.Version)
	}
	for i, f := range a.Evict {
		fmt.Fprintf(b, "  evict %d: %s@%d%s\n", i+1, f.LFN, f.Version, s.otherTag(f))
	}
}

func (s *script) runs() string {
	var b strings.Builder
	for _, one := range s.core.runs.inOrder {
		r := one.view()
		fmt.Fprintf(&b, "%d %v complete=%v jobs=%d done=%d failed=%d", r.ID, r.State, r.Complete, r.Totals.Jobs,
			r.Totals.ByState[taskqueue.Done], r.Totals.ByState[taskqueue.Failed])
		if r.Reason != "" {
			fmt.Fprintf(&b, " (%s)", r.Reason)
		}
		b.WriteByte('\n')
	}
	return b.String()
}

func (s *script) jobs() string {
	var b strings.Builder
	for v := range s.core.Jobs(s.current, 0) {
		fmt.Fprintf(&b, "%s %v", v.Name, v.State)
		for _, a := range v.Attempts {
			fmt.Fprintf(&b, " %s@%s", attemptName(a.Attempt), a.Pilot)
			if !a.Silent.IsZero() {
				b.WriteString(" silent")
			}
		}
		if v.Reason != "" {
			fmt.Fprintf(&b, " (%s)", v.Reason)
		}
		b.WriteByte('\n')
	}
	return b.String()
}

func (s *script) pilots() string {
	var b strings.Builder
	for _, p := range s.core.Pilots() {
		fmt.Fprintf(&b, "%s host=%s running=%d assigned=%d cached=%d parked=%v\n", p.Pilot, p.Info.Host, p.Running,
			p.Assigned, p.Cached, p.Parked)
	}
	return b.String()
}
