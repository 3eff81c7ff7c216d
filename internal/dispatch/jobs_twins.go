package dispatch

import (
	"slices"

	"fairway/internal/taskqueue"
)

// twins are jobs of runs that share results which would make the same result: they have one key.
// One of them is executed, and the others take its result. While none has an attempt each
// stands in the line of its own user, so that nobody waits for another user's turn; when a pilot
// gets one, the others wait for the end of that attempt. If it ends without a result, each goes on
// by itself, with its own retries: the failure or cancellation of one is none of the others.
//
// Invariants:
//   - listed has the jobs of such runs that are Ready, Assigned or Running, and those that were committed
//     and have made their result themselves, unless it is in the journal already.
//   - A job in behind is Waiting, and one with its key is listed that has an attempt. Some may be
//     left behind that wait no more; they are passed over.
type twins struct {
	listed map[identity]*job   // the first of each key
	more   map[identity][]*job // the others: few keys have any
	behind map[identity][]*job
}

func newTwins() twins {
	return twins{
		listed: make(map[identity]*job), more: make(map[identity][]*job), behind: make(map[identity][]*job),
	}
}

// each yields the listed jobs of a key.
func (t *twins) each(key identity) func(yield func(*job) bool) {
	return func(yield func(*job) bool) {
		first := t.listed[key]
		if first == nil || !yield(first) {
			return
		}
		for _, j := range t.more[key] {
			if !yield(j) {
				return
			}
		}
	}
}

// isListed reports whether a job in this state is to be listed.
func (j *job) isListed(s taskqueue.State) bool {
	return s == taskqueue.Ready || s == taskqueue.Assigned || s == taskqueue.Running || j.committed != 0 &&
		j.result == ownResult
}

// moved takes note of a job that changes its state. Whom that concerns is put into the worklists.
func (t *twins) moved(j *job, before, now taskqueue.State, w *worklists) {
	if j.key == (identity{}) {
		return
	}
	switch was, is := t.has(j), j.isListed(now); {
	case is && !was:
		t.add(j)
	case was && !is:
		t.remove(j)
	}
	if now == taskqueue.Assigned || now == taskqueue.Done {
		for x := range t.each(j.key) {
			if x != j && x.state == taskqueue.Ready {
				w.twins = append(w.twins, x)
			}
		}
	}
	if hasAttempt(before) && !hasAttempt(now) {
		t.release(j.key, w)
	}
}

func hasAttempt(s taskqueue.State) bool { return s == taskqueue.Assigned || s == taskqueue.Running }

// release has those looked at who wait for an attempt that has ended.
func (t *twins) release(key identity, w *worklists) {
	for _, x := range t.behind[key] {
		if x.state == taskqueue.Waiting {
			w.examine = append(w.examine, x)
		}
	}
	delete(t.behind, key)
}

func (t *twins) has(j *job) bool {
	first := t.listed[j.key]
	return first == j || first != nil && slices.Contains(t.more[j.key], j)
}

func (t *twins) add(j *job) {
	if t.listed[j.key] == nil {
		t.listed[j.key] = j
	} else {
		t.more[j.key] = append(t.more[j.key], j)
	}
}

func (t *twins) remove(j *job) {
	rest := t.more[j.key]
	if t.listed[j.key] != j {
		rest = slices.DeleteFunc(rest, func(x *job) bool { return x == j })
	} else if len(rest) == 0 {
		delete(t.listed, j.key)
		return
	} else {
		t.listed[j.key] = rest[0]
		rest = slices.Delete(rest, 0, 1)
	}
	if len(rest) == 0 {
		delete(t.more, j.key)
	} else {
		t.more[j.key] = rest
	}
}

// executed returns the twin that is executed at present, nil if none is.
func (t *twins) executed(j *job) *job {
	if !j.mayHaveTwins() {
		return nil
	}
	for x := range t.each(j.key) {
		if x != j && hasAttempt(x.state) && x.step.run.state < taskqueue.RunStopping {
			return x
		}
	}
	return nil
}

// follow has a job wait while a twin of it is executed, and reports whether one is.
func (t *twins) follow(j *job) bool {
	if t.executed(j) == nil {
		return false
	}
	if !slices.Contains(t.behind[j.key], j) {
		t.behind[j.key] = append(t.behind[j.key], j)
	}
	return true
}

// follows reports whether a job waits for a twin.
func (t *twins) follows(j *job) bool { return slices.Contains(t.behind[j.key], j) }

// done returns a twin that is done and has made its result itself, nil if there is none.
func (t *twins) done(j *job) *job {
	if !j.mayHaveTwins() {
		return nil
	}
	for x := range t.each(j.key) {
		if x.state == taskqueue.Done && x.result == ownResult {
			return x
		}
	}
	return nil
}

// committed returns the jobs of all runs that were committed under the key of a job, but for that job. None
// of them has taken a result.
func (js *jobs) committed(j *job) (list []*job) {
	if j.mayHaveTwins() {
		for x := range js.twins.each(j.key) {
			if x != j && x.committed != 0 {
				list = append(list, x)
			}
		}
		return list
	}
	for _, r := range js.runs.inOrder { // the key is of the name, too
		number, ok := js.named(r, r.names.Hash(j.name), j.name)
		if !ok || r == j.step.run {
			continue
		}
		if x := js.table.At(r.row(number)); x.committed != 0 && x.key == j.key {
			list = append(list, x)
		}
	}
	return list
}

// leave forgets a job whose run is retired.
func (t *twins) leave(j *job, w *worklists) {
	if !j.mayHaveTwins() || j.key == (identity{}) {
		return
	}
	if t.has(j) {
		t.remove(j)
	}
	if hasAttempt(j.state) {
		t.release(j.key, w)
	}
	if rest := slices.DeleteFunc(t.behind[j.key], func(x *job) bool { return x == j }); len(rest) > 0 {
		t.behind[j.key] = rest
	} else {
		delete(t.behind, j.key)
	}
}
