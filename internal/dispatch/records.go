package dispatch

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"time"
)

// The tables of durable records. Bodies are JSON objects; "v" is the version
// of their form.
const (
	TableMeta      = "meta"      // incarnation
	TableFile      = "file"      // files that existed before: LFN#version
	TableJob       = "job"       // submitted jobs: number
	TableCommit    = "commit"    // which attempt of a job was committed: number
	TableFate      = "fate"      // failures, cancellations: number
	TableResult    = "result"    // outputs of an earlier run under the key of their job
	TablePublished = "published" // up to which version nothing is to be published any more: LFN
	TableRemove    = "remove"    // physical files to be removed: PFN
	TablePilot     = "pilot"     // registered pilots
	TableLaunch    = "launch"    // pilots that batch systems have accepted
)

// Tables lists all tables, in the order in which Load reads them best.
func Tables() []string {
	return []string{
		TableMeta, TableResult, TableFile, TableJob, TableFate, TableCommit, TablePublished, TableRemove,
		TablePilot, TableLaunch,
	}
}

const bodyVersion = 1

type metaBody struct {
	V           int    `json:"v"`
	Incarnation uint64 `json:"n"`
	Since       uint64 `json:"s,omitempty"` // first incarnation of the submission; 0: of the store
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
	Read        []Version   `json:"rv"`
	Writes      []writeBody `json:"w"`
	Needs       Resources   `json:"q"`
	Tools       []string    `json:"t"`
	Site        string      `json:"at"`
	Priority    int         `json:"pr"`
	Retry       Retry       `json:"re"`
	WaitForData int64       `json:"wd"`
	Submitted   instant     `json:"su"`
}

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

// journal is what is durable of a Core: it makes the records that say what has
// changed, and holds what earlier submissions left.
//
// Invariant: whatever Load needs to come to the state that a step ends with is
// in the records of the steps up to it. A part calls the journal where it
// changes such state, in the same step.
type journal struct {
	*step
	incarnation uint64                    // of this Core; it grows with each Load
	since       uint64                    // the first of this submission, 0 if there was none before it
	results     map[identity]storedResult // of earlier submissions, until a job takes them
	bodies      bodies
}

func (jn *journal) persist(table, key string, body any) {
	b, err := json.Marshal(body)
	if err != nil {
		panic(fmt.Sprintf("dispatch: encoding a %s record: %v", table, err)) // plain data always encodes
	}
	jn.effects.Persist = append(jn.effects.Persist, Record{table, key, b})
}

// keep persists a body that was made in c.bodies.next.
func (jn *journal) keep(table, key string, body []byte) {
	jn.effects.Persist = append(jn.effects.Persist, Record{table, key, jn.bodies.keep(body)})
}

func (jn *journal) forget(table, key string) {
	jn.effects.Persist = append(jn.effects.Persist, Record{Table: table, Key: key})
}

// jobKey sorts as the number does.
func jobKey(id JobID) string {
	var b [10]byte
	n := uint64(id)
	for i := len(b) - 1; i >= 0; i-- {
		b[i] = byte('0' + n%10)
		n /= 10
	}
	return string(b[:])
}

func attemptKey(id AttemptID) string { return strconv.FormatUint(uint64(id), 10) }

func fileKey(r FileRef) string { return r.LFN + "#" + strconv.FormatUint(uint64(r.Version), 10) }

func (jn *journal) persistIncarnation() {
	jn.persist(TableMeta, "incarnation", metaBody{bodyVersion, jn.incarnation, jn.since})
}

func (jn *journal) persistExisting(v *version, identity string) {
	jn.persist(TableFile, fileKey(v.ref()), fileBody{bodyVersion, v.file.lfn, v.number, v.pfn, v.size, identity, v.tag})
}

func (jn *journal) persistJob(j *job, s *Job) {
	jn.keep(TableJob, jobKey(j.id), appendJob(jn.bodies.next(), j, s))
}

func (b *jobBody) job() Job {
	j := Job{
		Name: b.Name, Step: b.Step, Payload: b.Payload, Digest: b.Digest, Reads: b.Reads, Needs: b.Needs,
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

func (jn *journal) persistCommit(j *job, outputs []output) {
	jn.keep(TableCommit, jobKey(j.id), appendCommit(jn.bodies.next(), j, outputs))
}

func (jn *journal) persistResult(j *job, key string, outputs []output) {
	b := resultBody{Job: j.name, Digest: j.digest, Inputs: j.inputMarks(), Made: jn.incarnation, Outputs: outputs}
	jn.keep(TableResult, key, appendResult(jn.bodies.next(), &b))
}

// persistStored is for a result of an earlier run that has changed.
func (jn *journal) persistStored(key identity, r *storedResult) {
	b := resultBody{Job: r.job, Digest: r.digest, Inputs: r.inputs, Made: r.made, Outputs: r.outputs}
	jn.keep(TableResult, key.hex(), appendResult(jn.bodies.next(), &b))
}

// changeOutputs has the outputs of a job recorded anew, once in a step.
func (fs *files) changeOutputs(j *job) {
	if n := len(fs.work.changed); n == 0 || fs.work.changed[n-1] != j {
		fs.work.changed = append(fs.work.changed, j)
	}
}

// persistOutputs is for a committed job of whose outputs a copy came or went.
func (fs *files) persistOutputs(j *job) {
	versions := fs.writtenBy(j)
	outputs := make([]output, len(versions))
	for i, v := range versions {
		outputs[i] = output{LFN: v.file.lfn, PFN: v.pfn, Size: v.size, Records: v.records, Adler32: v.adler}
		if j.reused || v.tag != Tag(j.committed) {
			outputs[i].Tag = v.tag
		}
		outputs[i].asWanted(j.outputFor(v.file.lfn))
	}
	if j.reused {
		fs.journal.persistResult(j, j.key.hex(), outputs)
	} else {
		fs.journal.persistCommit(j, outputs)
	}
}

// persistAgain is for a job that was committed and has run again.
func (fs *files) persistAgain(j *job) {
	if j.reused {
		fs.journal.persistCommit(j, nil)
	}
	fs.persistOutputs(j)
	if j.fate != nil {
		fs.journal.persistFate(j)
	}
}

func (jn *journal) persistFate(j *job) {
	jn.persist(TableFate, jobKey(j.id), fateBody{bodyVersion, *j.fate})
}

func (jn *journal) persistPublished(r FileRef) {
	jn.persist(TablePublished, r.LFN, publishedBody{bodyVersion, r.Version})
}

func (jn *journal) persistRemoval(pfn string) { jn.persist(TableRemove, pfn, removeBody{bodyVersion}) }
func (jn *journal) forgetRemoval(pfn string)  { jn.forget(TableRemove, pfn) }

func (jn *journal) persistPilot(p *pilot) {
	jn.persist(TablePilot, string(p.id), pilotBody{bodyVersion, p.info.Host, p.info.Site, p.info.Launch})
}
func (jn *journal) forgetPilot(id PilotID) { jn.forget(TablePilot, string(id)) }

func sortedKeys[K ~string, V any](m map[K]V) []K {
	return slices.Sorted(maps.Keys(m))
}

func (fl *fleet) inOrder() []*pilot {
	list := make([]*pilot, 0, len(fl.pilots))
	for _, id := range sortedKeys(fl.pilots) {
		list = append(list, fl.pilots[id])
	}
	return list
}
