package dispatch

// inheritPriority raises what a newly submitted job waits for to its own
// priority. It costs nothing while all priorities are equal.
func (c *Core) inheritPriority(j *job) {
	if !c.unequal {
		if c.jobs.Len() > 2 && c.jobs.At(1).priority != j.priority {
			c.unequal = true
		}
		if !c.unequal {
			return
		}
	}
	c.raiseAhead(j)
}

// raiseAhead raises all jobs that j waits for, directly or through others.
func (c *Core) raiseAhead(j *job) {
	todo := []*job{j}
	for len(todo) > 0 {
		j := pop(&todo)
		for i := range j.requests {
			r := &j.requests[i]
			if v := r.read; v != nil && v.state != present && v.writer != nil && v.writer.live() {
				todo = c.raise(v.writer, j.effective, todo)
			}
			if r.Queued() && !r.Granted() {
				todo = c.raiseBefore(r, j.effective, todo)
			}
		}
	}
}

// maxUnraised is how many requests are walked over again before a lower
// priority takes the place of a higher one in Core.raisedTo.
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
func (c *Core) raiseBefore(r *request, priority int32, todo []*job) []*job {
	f := r.file()
	mark, marked := c.files.raisedTo[f]
	walked := 0
	for b := r.Prev(); b != nil; b = b.Prev() {
		if marked && b.Owner == mark.request && priority <= mark.priority {
			break
		}
		todo = c.raise(b.Owner.job, priority, todo)
		walked++
	}
	if prev := r.Prev(); walked > 0 && (!marked || priority >= mark.priority || walked > maxUnraised) {
		c.files.raisedTo[f] = raised{prev.Owner, priority}
	}
	return todo
}

// lowerMark is for a request that leaves its FIFO.
func (fs *files) lowerMark(f *file, r *request) {
	mark, marked := fs.raisedTo[f]
	switch p := r.Prev(); {
	case !marked || mark.request != r:
	case p == nil:
		delete(fs.raisedTo, f)
	default:
		fs.raisedTo[f] = raised{p.Owner, mark.priority}
	}
}

func (c *Core) raise(j *job, priority int32, todo []*job) []*job {
	if j.effective >= priority {
		return todo
	}
	ready := j.state == Ready
	if ready {
		c.unready(j)
	}
	j.effective = priority
	if ready {
		c.index(j)
	}
	return append(todo, j)
}

// inheritFromReaders is for a job that becomes live again: those who wait for
// its versions are not behind it in a FIFO.
func (c *Core) inheritFromReaders(j *job) {
	if !c.unequal {
		return
	}
	highest := j.effective
	for _, v := range c.files.writtenBy(j) {
		for _, w := range c.files.waiters[v] {
			highest = max(highest, w.effective)
		}
	}
	if highest > j.effective {
		j.effective = highest
		c.raiseAhead(j)
	}
}
