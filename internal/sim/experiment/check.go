package experiment

import (
	"fmt"
	"slices"

	"fairway/internal/eviction"
	"fairway/internal/yamlfile"
)

// check finds what cannot be run, though each value is right for itself.
func (r *reader) check(e *Experiment) {
	if e.Name == "" {
		r.wrong("", "add the line `experiment: NAME`", "the experiment has no name")
	}
	if e.Repetitions > MaxRepetitions {
		r.wrong("repetitions", fmt.Sprintf("write a number from 1 to %d", MaxRepetitions), "%d repetitions are too many",
			e.Repetitions)
	}
	oneOf(r, "submission", e.Submission, Running, Monitor, Direct)
	oneOf(r, "cache.share", e.Cache.Share, NoCache, PilotCache, HostCache, GlobalCache)
	oneOf(r, "cache.policy", eviction.Policy(e.Cache.Policy), eviction.Policies...)
	if e.TaskQueue.Placement != "" {
		oneOf(r, "taskqueue.placement", e.TaskQueue.Placement, "by-bytes", "by-files", "by-gain")
	}
	elements := r.checkStorage(e.Storage)
	r.checkSites(e.Sites, elements)
	r.checkWorkflow(&e.Workflow)
	for _, home := range e.Workflow.Home {
		oneOf(r, "workflow.home", home, elements...)
	}
	for name, in := range e.Workflow.Inputs {
		if in.Storage != "" {
			oneOf(r, "workflow.inputs."+name+".storage", in.Storage, elements...)
		}
	}
}

// MaxRepetitions bounds the runs of one point of an experiment.
const MaxRepetitions = 100_000

// checkStorage returns the names of the storage elements.
func (r *reader) checkStorage(elements []StorageSpec) (names []string) {
	if len(elements) == 0 {
		r.wrong("storage", "add one: `storage: [{name: se}]`", "there is no storage element")
	}
	for _, s := range elements {
		if s.Name == "" || slices.Contains(names, s.Name) {
			r.wrong("storage", "give each a name of its own", "two storage elements are named %q", s.Name)
		}
		if s.Capacity == 0 && !s.Fills.IsZero() {
			r.wrong("storage."+s.Name+".fills", "give it a capacity", "storage element %s never fills up", s.Name)
		}
		names = append(names, s.Name)
	}
	return names
}

func (r *reader) checkSites(sites []SiteSpec, elements []string) {
	if len(sites) == 0 {
		r.wrong("sites", "add one: `sites: [{name: here, nodes: 2}]`", "there is no site")
	}
	var names []string
	for _, s := range sites {
		path := "sites." + s.Name
		if s.Name == "" || slices.Contains(names, s.Name) {
			r.wrong("sites", "give each a name of its own", "two sites are named %q", s.Name)
		}
		oneOf(r, path+".storage", s.Storage, elements...)
		if s.Nodes < 1 {
			r.wrong(path, "add nodes: NUMBER", "site %s has no nodes", s.Name)
		} else if s.Started > s.Nodes*s.Slots {
			r.wrong(path+".started", "give it more nodes or slots, or start fewer",
				"%d pilots do not fit on %d nodes with %d slots", s.Started, s.Nodes, s.Slots)
		}
		names = append(names, s.Name)
	}
}

// oneOf refuses what is none of allowed.
func oneOf[T ~string](r *reader, path string, got T, allowed ...T) {
	if slices.Contains(allowed, got) {
		return
	}
	words := make([]string, len(allowed))
	for i, a := range allowed {
		words[i] = string(a)
	}
	r.wrong(path, yamlfile.DidYouMean(string(got), words), "there is no %q", string(got))
}
