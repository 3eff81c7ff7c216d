package flow

// Before gives for each step, in the order of the file, the steps whose files it takes or that
// it comes after, each once and by its place in that order. Of a recorded run nothing is known of
// that: its jobs say themselves what they read.
func (w *Workflow) Before() [][]int {
	before := make([][]int, len(w.steps))
	for _, s := range w.steps {
		for _, other := range s.before() {
			before[s.listed] = append(before[s.listed], other.listed)
		}
	}
	return before
}
