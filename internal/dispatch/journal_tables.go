package dispatch

import (
	"encoding/hex"
	"fmt"
	"slices"
	"strconv"
	"time"
)

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
