package histories

import (
	"encoding/json"
	"slices"
	"strings"
)

// plan is what `fairway run --dry-run --json` prints.
type plan struct {
	Begins  string
	Reasons []string
	Jobs    []struct {
		Name, Step, Why string
		Runs            bool
	}
	More bool
}

func (h *history) predict() *plan {
	h.t.Helper()
	c := do(h.t, h.folder, slices.Concat([]string{"run", "--dry-run", "--json"}, h.project.parameters())...)
	p := new(plan)
	if err := json.Unmarshal(c.output.Bytes(), p); err != nil || !c.cmd.ProcessState.Success() {
		h.fatalf("no dry run (%v):\n%s", err, c.said())
	}
	return p
}

// comparePlan looks whether exactly those jobs ran that were to run, counting
// jobs aside: they have no command that could tell.
func (h *history) comparePlan(p *plan, ran []string) {
	h.t.Helper()
	known := map[string]bool{}
	for _, job := range p.Jobs {
		known[job.Name] = true
		did := slices.Contains(ran, job.Name)
		switch {
		case strings.HasSuffix(job.Name, "/records"):
		case job.Runs && !did && !strings.Contains(job.Why, "in caches only"):
			h.fatalf("--dry-run said that %s would run, since %s; but it did not", job.Name, job.Why)
		case !job.Runs && did && !h.mayRegenerate(job.Step):
			h.fatalf("--dry-run said that %s would not run, since %s; but it did (the run begins %s, since %q)", job.Name,
				job.Why, p.Begins, p.Reasons)
		}
	}
	for _, name := range ran {
		if !known[name] && !p.More {
			h.fatalf("--dry-run did not know of %s, which ran", name)
		}
	}
}

// mayRegenerate reports whether outputs of a step may be made again, because they are in caches
// only or are replaced by others: what caches hold is not known before.
func (h *history) mayRegenerate(name string) bool {
	return slices.ContainsFunc(h.project.steps, func(s *step) bool { return s.name == name && (s.cached || s.updates()) })
}
