package flow

// startRecorded creates the jobs of a recorded run, once its outside files are there.
func (f *Flow) startRecorded() {
	states := map[string]*stepState{}
	for _, st := range f.steps {
		states[st.step.Name] = st
	}
	for i, new := range f.w.RecordedJobs {
		st := states[new.Job.Step]
		st.held++
		new.Job.Priority += f.w.RaisedBy
		f.ready.Push(readyJob{&job{key: key{wave: f.wave, first: i, name: new.Job.Name}, state: st, new: new}})
	}
}
