package flow

import (
	"fairway/internal/flow/workflow"
	"fairway/internal/logical"
	"fairway/internal/taskqueue"
)

func (f *Flow) accessOf(s *workflow.Step, name, lfn string) taskqueue.Access {
	if a, ok := s.Data.Access.Named[name]; ok && name != "" {
		return a
	}
	if s.Data.Access.All != nil {
		return *s.Data.Access.All
	}
	if n := f.names.Find(lfn); n != nil && n.file != nil {
		return n.file.access
	}
	return taskqueue.AccessLink
}

// fillAccess says how a job gets each of the files that it reads. Where Fairway counts the
// records of a file itself it reads from a file, to which it does not write.
func (f *Flow) fillAccess(j *job, c *commandSource) {
	if !f.w.SaysAccess() {
		return
	}
	s := j.state.step
	own := j.count && s.Data.Split.Unit != workflow.RecordCounted
	access := map[string]taskqueue.Access{}
	say := func(name, lfn string) {
		a := f.accessOf(s, name, lfn)
		if a != taskqueue.AccessLink && (a != taskqueue.AccessStream || !logical.IsFolder(lfn)) && (!own || lfn != c.in[0]) {
			access[lfn] = a
		}
	}
	if !s.Plain() {
		for i, lfn := range c.in {
			name := ""
			if i < len(s.Data.EachNames) {
				name = s.Data.EachNames[i]
			}
			say(name, lfn)
		}
	}
	for i, lfn := range namedReads(c.step, c.reads) {
		say(c.step.Reads[i].Name, lfn)
	}
	if len(access) == 0 {
		return
	}
	c.access = access
	j.new.Job.Access = make([]taskqueue.Access, len(j.new.Job.Reads))
	for i, lfn := range j.new.Job.Reads {
		j.new.Job.Access[i] = access[lfn]
	}
}
