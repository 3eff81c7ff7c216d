package flow

// startTrace creates the jobs of a trace.
func (f *Flow) startTrace() {}
