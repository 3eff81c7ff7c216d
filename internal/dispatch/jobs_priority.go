package dispatch

// inheritPriority raises what a newly submitted job waits for to its own
// priority, and returns the ready jobs that moved. It costs nothing while all
// priorities are equal.
func (js *jobs) inheritPriority(j *job) (moved []*job) {
	if !js.unequal {
		if js.totals.Jobs == 1 {
			js.common = j.priority
		}
		js.unequal = js.common != j.priority
		if !js.unequal {
			return nil
		}
	}
	return js.raiseAhead(j)
}

// inheritFromReaders is for a job that becomes live again: those who wait for
// its versions are not behind it in a FIFO. It returns the ready jobs that moved.
func (js *jobs) inheritFromReaders(j *job) (moved []*job) {
	if !js.unequal {
		return nil
	}
	highest := j.effective
	for _, v := range js.files.writtenBy(j) {
		for _, w := range js.files.waiters[v] {
			highest = max(highest, w.effective)
		}
	}
	if highest > j.effective {
		j.effective = highest
		moved = js.raiseAhead(j)
	}
	return moved
}

// raiseAhead raises all jobs that j waits for, directly or through others, and
// returns those of them that were ready.
func (js *jobs) raiseAhead(j *job) []*job {
	w := raising{todo: []*job{j}}
	for len(w.todo) > 0 {
		j := pop(&w.todo)
		for i := range j.requests {
			r := &j.requests[i]
			if v := r.read; v != nil && v.state != present && v.writer != nil && v.writer.live() {
				js.raise(v.writer, j.effective, &w)
			}
			if r.Queued() && !r.Granted() {
				js.raiseBefore(r, j.effective, &w)
			}
		}
	}
	return w.moved
}

// raising is a walk over the jobs that one waits for.
type raising struct {
	todo  []*job // were raised, and what they wait for was not yet
	moved []*job // were ready, and stand in another group now
}

// maxUnraised is how many requests are walked over again before a lower
// priority takes the place of a higher one in files.raisedTo.
const maxUnraised = 64

// raised says of a file up to which request all that are queued have at least
// a priority.
type raised struct {
	request  *request
	priority int32
}

// raiseBefore raises the jobs whose requests stand before r. Up to where that
// was done is kept in mind for each file, so that a long queue is not walked for
// each job that joins it.
func (js *jobs) raiseBefore(r *request, priority int32, w *raising) {
	f := r.file()
	mark, ok := js.files.raisedTo[f]
	walked := 0
	for b := r.Prev(); b != nil; b = b.Prev() {
		if ok && b.Owner == mark.request && priority <= mark.priority {
			break
		}
		js.raise(b.Owner.job, priority, w)
		walked++
	}
	if prev := r.Prev(); walked > 0 && (!ok || priority >= mark.priority || walked > maxUnraised) {
		js.files.raisedTo[f] = raised{prev.Owner, priority}
	}
}

func (js *jobs) raise(j *job, priority int32, w *raising) {
	if j.effective >= priority {
		return
	}
	ready := js.unindex(j)
	j.effective = priority
	if ready {
		js.index(j)
		w.moved = append(w.moved, j)
	}
	w.todo = append(w.todo, j)
}
