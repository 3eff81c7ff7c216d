package dispatch

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
)

// journal is what is durable of a Core: it makes the records that say what has
// changed, and holds what earlier submissions left.
//
// Invariant: whatever Load needs to come to the state that a transition ends with
// is in the records of the transitions up to it. A part calls the journal where it
// changes such state, in the same transition.
type journal struct {
	*transition
	incarnation uint64                    // of this Core; it grows with each Load
	since       uint64                    // the first of this store
	results     map[identity]storedResult // of earlier runs, until a job takes them
	taken       map[identity]bool         // results that a job of a run has taken
	bodies      bodies
}

func (jn *journal) beginStore() {
	jn.since = jn.config.FirstIncarnation
	jn.incarnation = max(1, jn.since)
}

// foreign reports whether an attempt belongs to a store that is lost: to another job
// that bore the same number, if any does.
func (jn *journal) foreign(id AttemptID) bool {
	incarnation := uint64(id >> 32)
	return incarnation < jn.since || incarnation > jn.incarnation
}

// persistMeta records the incarnation, and the number that was given to a run last.
func (jn *journal) persistMeta(last RunID) {
	jn.persist(TableMeta, 0, "incarnation", metaBody{bodyVersion, jn.incarnation, jn.since, last})
}

func (jn *journal) persistRun(r *run) {
	jn.persist(TableRun, r.ID, runKey, runBody{bodyVersion, r.Name, r.KeepGoing, r.state, r.complete, r.reason})
}

func (jn *journal) persistExisting(v *version, identity string) {
	jn.persist(TableFile, v.run, fileKey(v.ref()), fileBody{bodyVersion, v.file.lfn, v.number, v.pfn, v.size, identity, v.tag})
}

func (jn *journal) persistJob(j *job, s *Job) {
	jn.appendBody(TableJob, j.id.Run(), jobKey(j.id), appendJob(jn.bodies.next(), j, s))
}

func (jn *journal) persistCommit(j *job, outputs []output) {
	jn.appendBody(TableCommit, j.id.Run(), jobKey(j.id), appendCommit(jn.bodies.next(), j, outputs))
}

func (jn *journal) persistResult(key identity, r *storedResult) {
	b := resultBody{Job: r.job, Digest: r.digest, Inputs: r.inputs, Made: r.made, Outputs: r.outputs}
	jn.appendBody(TableResult, 0, key.hex(), appendResult(jn.bodies.next(), &b))
}

func (jn *journal) persistFate(j *job) {
	jn.persist(TableFate, j.id.Run(), jobKey(j.id), fateBody{bodyVersion, *j.fate})
}

func (jn *journal) persistPublished(f *file, upTo Version) {
	jn.persist(TablePublished, f.own.run, f.lfn, publishedBody{bodyVersion, upTo})
}

func (jn *journal) persistRemoval(pfn string) {
	jn.persist(TableRemove, 0, pfn, removeBody{bodyVersion})
}
func (jn *journal) forgetRemoval(pfn string) { jn.forget(TableRemove, 0, pfn) }

func (jn *journal) persistPilot(p *pilot) {
	jn.persist(TablePilot, 0, string(p.id), pilotBody{bodyVersion, p.info.Host, p.info.Site, p.info.Launch})
}

func (jn *journal) forgetPilot(id PilotID) { jn.forget(TablePilot, 0, string(id)) }

func (jn *journal) persist(table string, run RunID, key string, body any) {
	b, err := json.Marshal(body)
	if err != nil {
		panic(fmt.Sprintf("dispatch: encoding a %s record: %v", table, err)) // plain data always encodes
	}
	jn.effects.Persist = append(jn.effects.Persist, Record{table, run, key, b})
}

// appendBody persists a body that was made in jn.bodies.next().
func (jn *journal) appendBody(table string, run RunID, key string, body []byte) {
	jn.effects.Persist = append(jn.effects.Persist, Record{table, run, key, jn.bodies.take(body)})
}

func (jn *journal) forget(table string, run RunID, key string) {
	jn.effects.Persist = append(jn.effects.Persist, Record{Table: table, Run: run, Key: key})
}

// bodies is memory for the bodies of records, which are made where they stay.
// They are kept by whoever writes them, so it is never reused.
type bodies struct{ block []byte }

// A block has room for many bodies; a new one is begun when less than bodyRoom
// is left. A body that outgrows its room moves to memory of its own.
const (
	bodyBlock = 1 << 16
	bodyRoom  = 1 << 10
)

// next returns room to append a body to.
func (m *bodies) next() []byte {
	if cap(m.block)-len(m.block) < bodyRoom {
		m.block = make([]byte, 0, bodyBlock)
	}
	return m.block[len(m.block):]
}

// take returns the body, which was made by appending to next.
func (m *bodies) take(b []byte) []byte {
	if cap(b) == cap(m.block)-len(m.block) {
		m.block = m.block[:len(m.block)+len(b)]
	}
	return b[:len(b):len(b)]
}

// resultKeys are the keys of the results that no job has taken, oldest first.
func (jn *journal) resultKeys() []identity {
	return slices.SortedFunc(maps.Keys(jn.results), func(a, b identity) int {
		return cmp.Or(cmp.Compare(jn.results[a].made, jn.results[b].made), bytes.Compare(a[:], b[:]))
	})
}

func sortedKeys[K ~string, V any](m map[K]V) []K {
	return slices.Sorted(maps.Keys(m))
}

// jobKey is the number of a job in its run, and sorts as that does.
func jobKey(id JobID) string {
	var b [10]byte
	n := id.Number()
	for i := len(b) - 1; i >= 0; i-- {
		b[i] = byte('0' + n%10)
		n /= 10
	}
	return string(b[:])
}
