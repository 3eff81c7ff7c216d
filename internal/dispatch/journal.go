package dispatch

import (
	"fairway/internal/dispatch/records"
	"fairway/internal/dispatch/results"
	"fairway/internal/taskqueue"
)

// journal is what is durable of a Core: it makes the records that say what has
// changed, and holds what earlier submissions left.
//
// Invariant: whatever Load needs to come to the state that a transition ends with
// is in the records of the transitions up to it. A part calls the journal where it
// changes such state, in the same transition.
type journal struct {
	*transition
	incarnation uint64             // of this Core; it grows with each Load
	since       uint64             // the first of this store
	results     results.Book[*job] // of earlier runs, and what jobs of several runs have
	body        []byte             // empty: memory in which the next body is encoded
	job         records.Job        // the last one that was recorded; here for the memory of its lists
	commit      records.Commit     // the same
	bodies      []byte             // of bodies that were given out; never used again, since others keep them
}

func (jn *journal) beginStore() {
	jn.since = jn.config.FirstIncarnation
	jn.incarnation = max(1, jn.since)
}

// persistMeta records the incarnation, and the number that was given to a run last.
func (jn *journal) persistMeta(last taskqueue.RunID) {
	jn.persist(records.TableMeta, 0, records.MetaKey, &records.Meta{
		Incarnation: jn.incarnation, Since: jn.since, LastRun: last,
	})
}

func (jn *journal) persistRun(r *run) {
	jn.persist(records.TableRun, r.ID, records.RunKey, &records.Run{
		Name: r.Name, KeepGoing: r.KeepGoing, State: r.state, Complete: r.complete, Reason: r.reason,
		Group: r.Account.Group, User: r.Account.User, Limits: r.Limits, Scope: r.Scope, NoReuse: r.NoReuse,
		Raised: r.raised,
	})
}

func (jn *journal) persistShares(s taskqueue.Shares) {
	jn.persist(records.TableShares, 0, records.SharesKey, &s)
}

// persistUsage records what a user has used, in slot-seconds of now.
func (jn *journal) persistUsage(s *share, used float64) {
	a := s.Account()
	jn.persist(records.TableUsage, 0, a.String(), &records.Usage{
		Group: a.Group, User: a.User, Used: used, At: jn.now,
	})
}

func (jn *journal) persistExisting(v *version, identity string) {
	jn.persist(records.TableFile, v.run, records.FileKey(v.ref()), &records.File{
		LFN: v.file.lfn, Version: v.number, PFN: v.pfn, Size: v.size, Identity: identity, Tag: v.tag,
	})
}

// persistJob records a job as it was submitted, with the versions that its requests have.
func (jn *journal) persistJob(j *job, s *taskqueue.Job) {
	b := &jn.job
	*b = records.Job{Job: *s, Read: b.Read[:0], Written: b.Written[:0], Submitted: j.text.submitted}
	for i := range s.Writes {
		b.Written = append(b.Written, records.Write{Output: s.Writes[i]})
	}
	for i := range j.requests {
		r := &j.requests[i]
		if r.read != nil {
			b.Read = append(b.Read, r.read.number)
		}
		if r.write != nil {
			b.Written[r.output].Version = r.write.number
		}
	}
	jn.persist(records.TableJob, j.id.Run(), records.JobKey(j.id), b)
}

// persistCommit records which attempt of a job was committed. What was taken stands in the result that
// it was taken from, and so does what was lent.
func (jn *journal) persistCommit(j *job, outputs []output) {
	b := &jn.commit
	*b = records.Commit{Attempt: j.committed, Key: j.key, Reused: j.result == takenResult, Inputs: b.Inputs[:0]}
	if !j.inJournal() {
		b.Whole, b.Inputs, b.Outputs = true, j.inputMarks(b.Inputs), outputs
	}
	jn.persist(records.TableCommit, j.id.Run(), records.JobKey(j.id), b)
}

// inputMarks appends the marks of the job's inputs.
func (j *job) inputMarks(list []records.Mark) []records.Mark {
	for v := range j.inputs {
		list = append(list, v.identity.Mark())
	}
	return list
}

func (jn *journal) persistResult(key identity, r *storedResult) {
	jn.persist(records.TableResult, 0, key.Hex(), &r.Result)
}

func (jn *journal) persistFate(j *job) {
	jn.persist(records.TableFate, j.id.Run(), records.JobKey(j.id), &j.fate.Fate)
}

func (jn *journal) persistPublished(f *file, upTo taskqueue.Version) {
	jn.persist(records.TablePublished, f.own.run, f.lfn, &records.Published{Version: upTo})
}

func (jn *journal) forgetPilot(id taskqueue.PilotID) { jn.forget(records.TablePilot, 0, string(id)) }

// bodyBlock is how much memory is taken at once for bodies.
const bodyBlock = 1 << 16

func (jn *journal) persist(table string, run taskqueue.RunID, key string, of any) {
	body := records.Append(jn.body, of)
	if cap(body) <= bodyBlock {
		jn.body = body[:0]
	}
	if len(body) > cap(jn.bodies)-len(jn.bodies) {
		jn.bodies = make([]byte, 0, max(bodyBlock, len(body)))
	}
	at := len(jn.bodies)
	jn.bodies = append(jn.bodies, body...)
	jn.effects.Persist = append(jn.effects.Persist, taskqueue.Record{
		Table: table, Run: run, Key: key, Body: jn.bodies[at:len(jn.bodies):len(jn.bodies)],
	})
}

func (jn *journal) forget(table string, run taskqueue.RunID, key string) {
	jn.effects.Persist = append(jn.effects.Persist, taskqueue.Record{Table: table, Run: run, Key: key})
}
