package dispatch

import (
	"bytes"
	"cmp"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"time"
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

// The tables of durable records. Bodies are JSON objects; "v" is the version
// of their form.
const (
	TableMeta      = "meta"      // incarnation, number of the last run
	TableRun       = "run"       // of a run: what it is, and where it stands
	TableFile      = "file"      // of a run: files that existed before: LFN#version
	TableJob       = "job"       // of a run: submitted jobs: number
	TableCommit    = "commit"    // of a run: which attempt of a job was committed: number
	TableFate      = "fate"      // of a run: failures, cancellations: number
	TableResult    = "result"    // outputs of an earlier run under the key of their job
	TablePublished = "published" // of a run: up to which version nothing is to be published any more: LFN
	TableRemove    = "remove"    // physical files to be removed: PFN
	TablePilot     = "pilot"     // registered pilots
	TableLaunch    = "launch"    // pilots that batch systems have accepted
)

// tables are in the order in which a [Loading] takes them: what was committed and what went
// wrong comes before the jobs that it is of.
var tables = []string{
	TableMeta, TableRun, TableResult, TableFile, TableCommit, TableFate, TableJob, TablePublished, TableRemove,
	TablePilot, TableLaunch,
}

// Tables lists all tables, in the order in which a [Loading] takes them.
func Tables() []string { return slices.Clone(tables) }

const bodyVersion = 1

type metaBody struct {
	V           int    `json:"v"`
	Incarnation uint64 `json:"n"`
	Since       uint64 `json:"s,omitempty"` // first incarnation of the store
	LastRun     RunID  `json:"r,omitempty"` // number of the last run that was begun
}

// runKey is that of the one record of a run in TableRun.
const runKey = "run"

type runBody struct {
	V         int      `json:"v"`
	Name      string   `json:"n,omitempty"`
	KeepGoing bool     `json:"k,omitempty"`
	State     RunState `json:"s,omitempty"`
	Complete  bool     `json:"c,omitempty"`
	Reason    string   `json:"r,omitempty"`
}

type fileBody struct {
	V        int     `json:"v"`
	LFN      string  `json:"l"`
	Version  Version `json:"n,omitempty"`
	PFN      string  `json:"f"`
	Size     int64   `json:"s,omitempty"`
	Identity string  `json:"i,omitempty"`
	Tag      Tag     `json:"t,omitempty"`
}

type jobBody struct {
	V           int         `json:"v"`
	Name        string      `json:"n"`
	Step        string      `json:"s"`
	Payload     []byte      `json:"p"`
	Digest      string      `json:"d"`
	Reads       []string    `json:"r"`
	Access      []Access    `json:"ra"`
	Read        []Version   `json:"rv"`
	Writes      []writeBody `json:"w"`
	Needs       Resources   `json:"q"`
	Tools       []string    `json:"t"`
	Site        string      `json:"at"`
	Priority    int         `json:"pr"`
	Retry       Retry       `json:"re"`
	WaitForData int64       `json:"wd"`
	Submitted   instant     `json:"su"`

	like alike // those of the job before
}

// alike are texts that many jobs have in common. Whoever decodes one after the other takes
// them over.
type alike struct {
	step  string
	reads []string
	tools []string
}

func (b *jobBody) alike() alike { return alike{b.Step, b.Reads, b.Tools} }

type writeBody struct {
	LFN     string  `json:"l"`
	Pattern bool    `json:"p"`
	Publish bool    `json:"u"`
	Cache   bool    `json:"c"`
	Version Version `json:"v"`
}

// commitBody holds the outputs of a job, and what a later run must know to
// take them. Those of a job that took them itself stand in the result of Key; so
// do those of all jobs with a Key where Whole is not set, as earlier versions
// wrote it.
type commitBody struct {
	V       int       `json:"v"`
	Attempt AttemptID `json:"a"`
	Key     string    `json:"k"`
	Reused  bool      `json:"re"`
	Whole   bool      `json:"w"`
	Inputs  []string  `json:"i"` // identities, shortened, in the order of Reads
	Outputs []output  `json:"o"`
}

type resultBody struct {
	V       int      `json:"v"`
	Job     string   `json:"j"`
	Digest  string   `json:"d"` // why a later run does not take it
	Inputs  []string `json:"i"` // identities, shortened, in the order of Reads
	Made    uint64   `json:"n"` // incarnation; 0 in stores of before it was recorded
	Outputs []output `json:"o"`
}

type fateBody struct {
	V int `json:"v"`
	fate
}

type publishedBody struct {
	V       int     `json:"v"`
	Version Version `json:"n"`
}

type removeBody struct {
	V int `json:"v"`
}

type pilotBody struct {
	V      int    `json:"v"`
	Host   string `json:"h,omitempty"`
	Site   string `json:"s,omitempty"`
	Launch string `json:"l,omitempty"`
}

type launchBody struct {
	V    int    `json:"v"`
	Site string `json:"s"`
}

func (b *jobBody) job() Job {
	j := Job{
		Name: b.Name, Step: b.Step, Payload: b.Payload, Digest: b.Digest, Reads: b.Reads, Access: b.Access, Needs: b.Needs,
		Tools: b.Tools, Site: b.Site, Priority: b.Priority, Retry: b.Retry, WaitForData: time.Duration(b.WaitForData),
	}
	for _, w := range b.Writes {
		o := Output{LFN: w.LFN, Pattern: w.Pattern, Publish: w.Publish}
		if w.Cache {
			o.Storage = StorageCache
		}
		j.Writes = append(j.Writes, o)
	}
	return j
}

func attemptKey(id AttemptID) string { return strconv.FormatUint(uint64(id), 10) }

func fileKey(r FileRef) string { return r.LFN + "#" + strconv.FormatUint(uint64(r.Version), 10) }

func parseJobKey(run RunID, key string) (JobID, error) {
	n, err := strconv.ParseUint(key, 10, 32)
	return NewJobID(run, uint32(n)), err
}

func parseIdentity(s string) (identity, error) {
	var id identity
	b, err := hex.DecodeString(s)
	if err != nil || len(b) != len(id) {
		return id, fmt.Errorf("%q is not a key of a result", s)
	}
	copy(id[:], b)
	return id, nil
}
