package experiment

import (
	"fmt"

	"fairway/internal/dispatch"
)

// check refuses what cannot be run. The error begins with the path of what is
// wrong, which Parse turns into its line.
func (e *Experiment) check() error {
	switch {
	case e.Name == "":
		return atPath("", "an experiment needs a name: add experiment: NAME")
	case e.Repetitions < 1 || e.Repetitions > MaxRepetitions:
		return atPath("repetitions", "%d repetitions: from 1 to %d are possible", e.Repetitions, MaxRepetitions)
	case len(e.Sites) == 0:
		return atPath("", "no site: add one under sites:")
	case len(e.Storage) == 0:
		return atPath("", "no storage element: add one under storage:")
	}
	if err := oneOf("submission", e.Submission, Running, Monitor, Direct); err != nil {
		return err
	}
	if err := oneOf("cache.share", e.Cache.Share, NoCache, PilotCache, HostCache, GlobalCache); err != nil {
		return err
	}
	if err := oneOf("cache.policy", dispatch.EvictionPolicy(e.Cache.Policy), dispatch.EvictionPolicies...); err != nil {
		return err
	}
	if err := oneOf("taskqueue.placement", e.TaskQueue.Placement, "", "by-bytes", "by-files", "by-gain"); err != nil {
		return err
	}
	if err := e.checkPlaces(); err != nil {
		return err
	}
	if err := e.checkInputs(); err != nil {
		return err
	}
	if err := e.checkWeights(); err != nil {
		return err
	}
	return e.Workflow.check()
}

// MaxRepetitions bounds the runs of one point of an experiment.
const MaxRepetitions = 100_000

func (e *Experiment) checkPlaces() error {
	elements := map[string]bool{}
	for _, s := range e.Storage {
		if s.Name == "" || elements[s.Name] {
			return atPath("storage", "storage element %q: every one needs a name of its own", s.Name)
		}
		if s.Capacity == 0 && !s.Fills.IsZero() {
			return atPath("storage."+s.Name+".fills", "storage element %s never fills up: give it a capacity", s.Name)
		}
		elements[s.Name] = true
	}
	return e.checkSites(elements)
}

func (e *Experiment) checkSites(elements map[string]bool) error {
	sites := map[string]bool{}
	for _, s := range e.Sites {
		switch {
		case s.Name == "" || sites[s.Name]:
			return atPath("sites", "site %q: every one needs a name of its own", s.Name)
		case !elements[s.Storage]:
			return atPath("sites."+s.Name+".storage", "site %s: no storage element is named %q", s.Name, s.Storage)
		case s.Nodes < 1 || s.Slots < 1:
			return atPath("sites."+s.Name, "site %s: needs nodes and slots", s.Name)
		case s.Started > s.Nodes*s.Slots:
			return atPath("sites."+s.Name+".started", "site %s: %d pilots do not fit on %d nodes with %d slots", s.Name, s.Started, s.Nodes, s.Slots)
		}
		sites[s.Name] = true
	}
	return nil
}

func (e *Experiment) checkWeights() error {
	if w := e.TaskQueue.Sites; w.Data < 0 || w.Queue < 0 || w.Money < 0 {
		return atPath("taskqueue.sites", "a weight cannot be negative")
	}
	for _, s := range e.Sites {
		if s.Price < 0 || s.Expects < 0 {
			return atPath("sites."+s.Name, "site %s: neither its price nor the wait that is expected there can be negative", s.Name)
		}
	}
	return nil
}

func oneOf[T ~string](path string, got T, allowed ...T) error {
	for _, a := range allowed {
		if got == a {
			return nil
		}
	}
	return atPath(path, "%q: one of %v is possible", string(got), allowed)
}

// pathError is an error at a path of the experiment file.
type pathError struct {
	path string
	text string
}

func (e *pathError) Error() string {
	if e.path == "" {
		return e.text
	}
	return e.path + ": " + e.text
}

func atPath(path, format string, args ...any) error {
	return &pathError{path, fmt.Sprintf(format, args...)}
}
