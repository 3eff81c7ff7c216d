package workflow

import (
	"slices"

	"fairway/internal/flow/pattern"
)

// Graph is how the inputs and steps of a workflow feed each other.
type Graph struct {
	Inputs []string // by their names, in the order of the file
	Steps  []string // in an order in which each comes after those that feed it
	Feeds  []Feed
}

// Feed says that a step reads what an input or another step gives.
type Feed struct {
	Input   bool   // From is one
	From    string // an input or a step
	To      string // a step
	Pattern string // of the files, as the reader names them
}

// Graph tells how the workflow hangs together, from its text alone. A rewritten file comes from all
// that write it and stand before its reader in the order of the steps.
func (w *Workflow) Graph() Graph {
	var g Graph
	for _, in := range w.Inputs {
		g.Inputs = append(g.Inputs, in.Name)
	}
	steps := slices.SortedFunc(slices.Values(w.Steps), func(a, b *Step) int { return a.Order - b.Order })
	for at, s := range steps {
		g.Steps = append(g.Steps, s.Name)
		for _, read := range slices.Concat(patternsOf(s.Data.Each), patternsOf(s.Data.Merge), s.Reads, s.Rewrites) {
			for _, in := range w.Inputs {
				if slices.ContainsFunc(in.Names, read.Pattern.Overlaps) {
					g.add(Feed{true, in.Name, s.Name, read.Pattern.Text})
				}
			}
			for _, maker := range steps[:at] {
				if slices.ContainsFunc(maker.Outputs(), func(e Entry) bool { return e.Pattern.Overlaps(read.Pattern) }) {
					g.add(Feed{false, maker.Name, s.Name, read.Pattern.Text})
				}
			}
		}
	}
	return g
}

func (g *Graph) add(f Feed) {
	if !slices.Contains(g.Feeds, f) {
		g.Feeds = append(g.Feeds, f)
	}
}

func patternsOf(patterns []*pattern.Pattern) (entries []Entry) {
	for _, p := range patterns {
		entries = append(entries, Entry{Pattern: p})
	}
	return entries
}

// Before gives for each step, in the order of the file, the steps whose files it takes or that
// it comes after, each once and by its place in that order. Of a recorded run nothing is known of
// that: its jobs say themselves what they read.
func (w *Workflow) Before() [][]int {
	before := make([][]int, len(w.Steps))
	for _, s := range w.Steps {
		for _, other := range s.Before() {
			before[s.listed] = append(before[s.listed], other.listed)
		}
	}
	return before
}
