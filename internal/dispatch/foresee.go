package dispatch

// Foresee returns the jobs that are still to come to their turn and will then
// take the result of an earlier run, if nobody adds any before them: what a job
// writes is known by its key before it is written. The Core must not be stepped
// any more.
func (c *Core) Foresee() map[JobID]bool {
	will := make(map[JobID]bool)
	for j := range c.queue.all {
		if j.state == Done || j.digest == "" {
			continue
		}
		j.key = j.keyOf()
		if r, ok := c.journal.results[j.key]; ok {
			outputs := j.reusable(r.outputs)
			will[j.id] = outputs != nil && !j.cannotPublish(outputs)
		}
		for i := range j.requests {
			if v := j.requests[i].write; v != nil {
				v.identity = j.identityOf(v.file.lfn)
			}
		}
	}
	return will
}
