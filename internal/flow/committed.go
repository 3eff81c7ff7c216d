package flow

import (
	"fairway/internal/flow/pattern"
	"fairway/internal/flow/workflow"
	"fairway/internal/taskqueue"
)

func (f *Flow) happened(e taskqueue.Event) {
	j := f.followed[e.Name]
	if e.Kind != taskqueue.JobCommitted || j == nil {
		return
	}
	delete(f.followed, e.Name)
	f.persist(logEntry{Kind: logCommitted, Name: e.Name, At: e.At, Committed: committedFiles(e.Files)})
	f.take(func() { f.committed(j, e) })
}

func (f *Flow) committed(j *job, e taskqueue.Event) {
	if j.count {
		f.counted(j, e.Files)
		return
	}
	for _, made := range j.outputs {
		if made == nil {
			continue
		}
		for _, out := range e.Files {
			if out.File.LFN == made.lfn {
				f.nowExists(made, out, e)
			}
		}
	}
	if j.chosen {
		f.chosen(j, e)
		j.state.open.remove(j.wave)
		f.touch(j.state)
		f.touchAfter(j.state)
	}
}

func (f *Flow) nowExists(made *file, out taskqueue.CommittedFile, e taskqueue.Event) {
	made.there, made.size, made.records, made.since = true, out.Size, out.Records, e.At
	takers := made.takers
	made.takers = nil
	for _, t := range takers {
		t.exists(f, made)
	}
}

// chosen makes the files known whose names the job chose.
func (f *Flow) chosen(j *job, e taskqueue.Event) {
	for i, m := range j.state.step.Found.Makers {
		if j.outputs[i] != nil {
			continue
		}
		pattern, _ := m.Pattern.Expand(j.values)
		for _, out := range e.Files {
			if out.Pattern == pattern {
				f.chosenFile(j, m, out, e)
			}
		}
	}
}

func (f *Flow) chosenFile(j *job, m *workflow.Maker, out taskqueue.CommittedFile, e taskqueue.Event) {
	lfn := out.File.LFN
	values, second := m.Pattern.Read(lfn, j.values.Of(m.Pattern.Names), nil)
	switch {
	case f.inTheWay(lfn) != "":
		f.refuse(j.state, "job %s wrote %s: %s", j.name, lfn, f.inTheWay(lfn))
		return
	case values == nil:
		f.notify("job %s wrote %s, which does not fit %s: no step takes it", j.name, lfn, m.Pattern.Text)
		return // so that names that fit are of one job, since all that tells jobs apart stands in them
	case second != nil && len(m.Consumers) > 0:
		f.refuse(j.state, "job %s wrote a file whose values are not certain: %s; put text between the placeholders that no "+
			"value contains, or a '/'",
			j.name, pattern.TwoReadings(lfn, m.Pattern, values, second))
	}
	if second != nil {
		values = j.values.Of(m.Pattern.Names)
	}
	made := &file{lfn: lfn, values: values, wave: j.wave, first: j.first, there: true, size: out.Size,
		records: out.Records, since: e.At}
	if j.state.step.Needs.Temporary && m.Read {
		f.awaitReaders(m, made)
	}
	f.know(made, "job "+j.name)
	f.occupy(lfn)
	f.makeAvailable(lfn)
	if second == nil {
		f.deliver(m, made)
	}
}
