package flow

import (
	"slices"

	"fairway/internal/flow/workflow"
)

// queue lets the users of one rewritten file be submitted in canonical order.
// Readers pass each other; a writer waits for all before it, and all after it
// wait for the writer.
//
// A job that uses the file is first in waiting, by key; then it has passed and is in
// flight, until it is submitted. If one in flight writes, it is the only one. The
// first of waiting is held up by those in flight, or for want of a version, or waits
// for a step that may still make a job before it: waitsFor, in whose heap the queue
// then is.
type queue struct {
	lfn       string
	uses      []workflow.Use // of all steps whose names fit
	waiting   []*job         // known, not passed
	inflight  int            // passed, not submitted
	writing   bool           // one of them writes
	version   bool           // a reader would get a version; stays set
	advancing bool           // advance is at work, and looks again before it returns
	waitsFor  *stepState
	waitsWave int
}

type sharedUse struct {
	queue  *queue
	reads  bool
	writes bool
	begins bool // it makes the first version, before all others
}

// enqueue gives a job its places in the queues of the rewritten files that it
// uses.
func (f *Flow) enqueue(j *job) {
	if j.count {
		return
	}
	for _, u := range j.state.step.SharedUses() {
		lfn, _ := u.Entry.Pattern.Expand(j.values)
		q := f.queue(lfn)
		at := slices.IndexFunc(j.shared, func(s sharedUse) bool { return s.queue == q })
		if at < 0 {
			at = len(j.shared)
			j.shared = append(j.shared, sharedUse{queue: q})
			place := 0
			if !u.Begins() {
				place, _ = slices.BinarySearchFunc(q.waiting, j, func(a, b *job) int { return a.key.compare(b.key) })
			}
			q.waiting = slices.Insert(q.waiting, place, j)
			j.gates++
		}
		j.shared[at].reads = j.shared[at].reads || !u.Writes
		j.shared[at].writes = j.shared[at].writes || u.Writes
		j.shared[at].begins = j.shared[at].begins || u.Begins()
	}
}

func (f *Flow) queue(lfn string) *queue {
	q := f.queues[lfn]
	if q == nil {
		q = &queue{lfn: lfn}
		for _, u := range f.shared {
			if u.Entry.Pattern.Fits(lfn) {
				q.uses = append(q.uses, u)
			}
		}
		f.queues[lfn] = q
	}
	return q
}

func (j *job) useOf(q *queue) sharedUse {
	for _, u := range j.shared {
		if u.queue == q {
			return u
		}
	}
	panic("flow: job has no place in the queue of " + q.lfn)
}

// advance lets jobs pass as far as nobody can come before them any more.
func (f *Flow) advance(q *queue) {
	if q.advancing {
		return
	}
	q.advancing = true
	for len(q.waiting) > 0 && f.mayPass(q, q.waiting[0]) {
		j := q.waiting[0]
		q.waiting[0] = nil
		q.waiting = q.waiting[1:]
		q.inflight++
		q.writing = j.useOf(q).writes
		q.version = q.version || q.writing
		j.gates--
		f.trySubmit(j)
	}
	q.advancing = false
}

func (f *Flow) mayPass(q *queue, j *job) bool {
	u := j.useOf(q)
	if u.begins {
		return true
	}
	if q.writing || u.writes && q.inflight > 0 {
		return false
	}
	if u.reads && !q.version && f.name(q.lfn).file == nil {
		return false
	}
	return f.nobodyBefore(q, j, u.writes)
}

// nobodyBefore reports whether no job can become known any more that must come
// before j. If some can, q waits for the watermark of their step.
func (f *Flow) nobodyBefore(q *queue, j *job, writes bool) bool {
	for _, u := range q.uses {
		st := f.steps[u.Step.Order-1]
		if !writes && !u.Writes || st == j.state && st.created() {
			continue
		}
		wave := j.wave
		if st.step.Order > j.key.step {
			wave--
		}
		if st.watermark < wave {
			f.awaitWatermark(q, st, wave)
			return false
		}
	}
	return true
}

func (f *Flow) awaitWatermark(q *queue, st *stepState, wave int) {
	if q.waitsFor == st && q.waitsWave <= wave {
		return
	}
	q.waitsFor, q.waitsWave = st, wave
	st.waiting.Push(watermarkWait{wave, q})
}

// passed lets others follow a job that was submitted.
func (f *Flow) passed(j *job) {
	for _, u := range j.shared {
		u.queue.inflight--
		if u.writes {
			u.queue.writing = false
		}
	}
	for _, u := range j.shared {
		f.advance(u.queue)
	}
}
