package dispatch

import (
	"encoding/hex"
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
	TableResult    = "result"    // outputs under the key of their job
	TablePublished = "published" // the version under the plain name: LFN
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
}

type fileBody struct {
	V        int     `json:"v"`
	LFN      string  `json:"l"`
	Version  Version `json:"n,omitempty"`
	PFN      string  `json:"f"`
	Size     int64   `json:"s,omitempty"`
	Identity string  `json:"i,omitempty"`
}

type jobBody struct {
	V           int        `json:"v"`
	Name        string     `json:"n"`
	Step        string     `json:"s,omitempty"`
	Payload     []byte     `json:"p,omitempty"`
	Digest      string     `json:"d,omitempty"`
	Reads       []string   `json:"r,omitempty"`
	Read        []Version  `json:"rv,omitempty"`
	Writes      []Output   `json:"w,omitempty"`
	Write       []Version  `json:"wv,omitempty"`
	Needs       *Resources `json:"q,omitempty"`
	Tools       []string   `json:"t,omitempty"`
	Site        string     `json:"at,omitempty"`
	Priority    int        `json:"pr,omitempty"`
	Retry       *Retry     `json:"re,omitempty"`
	WaitForData int64      `json:"wd,omitempty"`
	Submitted   instant    `json:"su,omitempty"`
}

type commitBody struct {
	V       int       `json:"v"`
	Attempt AttemptID `json:"a"`
	Key     string    `json:"k,omitempty"` // the outputs stand in the result of this key
	Reused  bool      `json:"re,omitempty"`
	Outputs []output  `json:"o,omitempty"`
}

type resultBody struct {
	V       int      `json:"v"`
	Job     string   `json:"j"`
	Outputs []output `json:"o,omitempty"`
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

func (c *Core) persist(table, key string, body any) {
	b, err := json.Marshal(body)
	if err != nil {
		panic(fmt.Sprintf("dispatch: encoding a %s record: %v", table, err)) // plain data always encodes
	}
	c.effects.Persist = append(c.effects.Persist, Record{table, key, b})
}

func (c *Core) forget(table, key string) {
	c.effects.Persist = append(c.effects.Persist, Record{Table: table, Key: key})
}

// jobKey sorts as the number does.
func jobKey(id JobID) string { return fmt.Sprintf("%010d", uint64(id)) }

func attemptKey(id AttemptID) string { return strconv.FormatUint(uint64(id), 10) }

func fileKey(r FileRef) string { return r.LFN + "#" + strconv.FormatUint(uint64(r.Version), 10) }

func (c *Core) persistIncarnation() {
	c.persist(TableMeta, "incarnation", metaBody{bodyVersion, c.incarnation})
}

func (c *Core) persistExisting(v *version, identity string) {
	c.persist(TableFile, fileKey(v.ref()), fileBody{bodyVersion, v.file.lfn, v.number, v.pfn, v.size, identity})
}

func (c *Core) persistJob(j *job, s *Job) {
	b := jobBody{
		V: bodyVersion, Name: s.Name, Step: s.Step, Payload: s.Payload, Digest: s.Digest, Reads: s.Reads,
		Writes: s.Writes, Tools: s.Tools, Site: s.Site, Priority: s.Priority,
		WaitForData: int64(s.WaitForData), Submitted: j.submitted,
	}
	if n := s.Needs; n.MilliCPUs != 0 || n.Memory != 0 || n.Disk != 0 || n.Time != 0 || n.Countable != nil {
		b.Needs = &n
	}
	if r := s.Retry; r.Attempts != 0 || r.Backoff != 0 || r.ExitCodes != nil || r.MemoryFactor != 0 {
		b.Retry = &r
	}
	b.Write = make([]Version, len(s.Writes))
	for i := range j.requests {
		r := &j.requests[i]
		if r.read != nil {
			b.Read = append(b.Read, r.read.number)
		}
		if r.write != nil {
			b.Write[r.output] = r.write.number
		}
	}
	c.persist(TableJob, jobKey(j.id), b)
}

func (b *jobBody) job() Job {
	j := Job{
		Name: b.Name, Step: b.Step, Payload: b.Payload, Digest: b.Digest, Reads: b.Reads, Writes: b.Writes,
		Tools: b.Tools, Site: b.Site, Priority: b.Priority, WaitForData: time.Duration(b.WaitForData),
	}
	if b.Needs != nil {
		j.Needs = *b.Needs
	}
	if b.Retry != nil {
		j.Retry = *b.Retry
	}
	return j
}

func (c *Core) persistCommit(j *job, outputs []output) {
	b := commitBody{V: bodyVersion, Attempt: j.committed, Reused: j.reused}
	if j.key == (identity{}) {
		b.Outputs = outputs
	} else {
		b.Key = hex.EncodeToString(j.key[:])
		if !j.reused {
			c.persist(TableResult, b.Key, resultBody{bodyVersion, j.name, outputs})
		}
	}
	c.persist(TableCommit, jobKey(j.id), b)
}

// persistOutputs is for a committed job of whose outputs a copy came or went.
func (c *Core) persistOutputs(j *job) {
	versions := c.written(j)
	outputs := make([]output, len(versions))
	for i, v := range versions {
		outputs[i] = output{LFN: v.file.lfn, PFN: v.pfn, Size: v.size, Records: v.records, Adler32: v.adler}
		if o := j.outputFor(v.file.lfn); o.Pattern {
			outputs[i].Pattern = o.LFN
		}
	}
	if j.key == (identity{}) {
		c.persist(TableCommit, jobKey(j.id), commitBody{V: bodyVersion, Attempt: j.committed, Reused: j.reused, Outputs: outputs})
		return
	}
	c.persist(TableResult, hex.EncodeToString(j.key[:]), resultBody{bodyVersion, j.name, outputs})
}

// persistAgain is for a job that was committed and has run again.
func (c *Core) persistAgain(j *job) {
	if j.key != (identity{}) {
		c.persist(TableCommit, jobKey(j.id), commitBody{
			V: bodyVersion, Attempt: j.committed, Key: hex.EncodeToString(j.key[:]), Reused: j.reused,
		})
	}
	c.persistOutputs(j)
	if j.fate != nil {
		c.persistFate(j)
	}
}

func (c *Core) persistFate(j *job) {
	c.persist(TableFate, jobKey(j.id), fateBody{bodyVersion, *j.fate})
}

func (c *Core) persistPublished(r FileRef) {
	c.persist(TablePublished, r.LFN, publishedBody{bodyVersion, r.Version})
}

func (c *Core) persistRemoval(pfn string) { c.persist(TableRemove, pfn, removeBody{bodyVersion}) }
func (c *Core) forgetRemoval(pfn string)  { c.forget(TableRemove, pfn) }

func (c *Core) persistPilot(p *pilot) {
	c.persist(TablePilot, string(p.id), pilotBody{bodyVersion, p.info.Host, p.info.Site, p.info.Launch})
}
func (c *Core) forgetPilot(id PilotID) { c.forget(TablePilot, string(id)) }

func sortedKeys[K ~string, V any](m map[K]V) []K {
	return slices.Sorted(maps.Keys(m))
}

func (c *Core) pilotsInOrder() []*pilot {
	list := make([]*pilot, 0, len(c.pilots))
	for _, id := range sortedKeys(c.pilots) {
		list = append(list, c.pilots[id])
	}
	return list
}
