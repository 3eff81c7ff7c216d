package dispatch

import (
	"bytes"
	"cmp"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"unicode/utf8"

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
	incarnation uint64                     // of this Core; it grows with each Load
	since       uint64                     // the first of this store
	results     map[identity]*storedResult // of earlier runs, and what jobs of several runs have
	kept        uint64                     // number of the last result that a run has left since the core was loaded
	body        []byte                     // empty: memory in which the next body is encoded
	bodies      []byte                     // of bodies that were given out; never used again, since others keep them
}

func (jn *journal) beginStore() {
	jn.since = jn.config.FirstIncarnation
	jn.incarnation = max(1, jn.since)
}

// persistMeta records the incarnation, and the number that was given to a run last.
func (jn *journal) persistMeta(last taskqueue.RunID) {
	jn.persist(TableMeta, 0, "incarnation", metaBody{bodyVersion, jn.incarnation, jn.since, last})
}

func (jn *journal) persistRun(r *run) {
	jn.persist(TableRun, r.ID, runKey, runBody{
		bodyVersion, r.Name, r.KeepGoing, r.state, r.complete, r.reason, r.Account.Group, r.Account.User, r.Limits,
		r.Scope, r.NoReuse, r.raised,
	})
}

// sharesKey is that of the one record in TableShares.
const sharesKey = "shares"

func (jn *journal) persistShares(s taskqueue.Shares) {
	jn.persist(TableShares, 0, sharesKey, sharesBody{bodyVersion, s})
}

// persistUsage records what a user has used, in slot-seconds of now.
func (jn *journal) persistUsage(s *share, used float64) {
	a := s.Account()
	jn.persist(TableUsage, 0, a.String(), usageBody{bodyVersion, a.Group, a.User, used, jn.now})
}

func (jn *journal) persistExisting(v *version, identity string) {
	jn.persist(TableFile, v.run, fileKey(v.ref()), fileBody{
		bodyVersion, v.file.lfn, v.number, v.pfn, v.size, identity, v.tag,
	})
}

func (jn *journal) persistCommit(j *job, outputs []output) {
	jn.persistBody(TableCommit, j.id.Run(), jobKey(j.id), appendCommit(jn.body, j, outputs))
}

func (jn *journal) persistResult(key identity, r *storedResult) {
	b := resultBody{
		Job: r.job, Digest: r.digest, Inputs: r.inputs, Made: r.made, Outputs: r.outputs, Scope: r.scope,
		Run: r.origin.Run, Group: r.origin.Account.Group, User: r.origin.Account.User, Runs: r.runs, Left: r.left,
	}
	jn.persistBody(TableResult, 0, key.hex(), appendResult(jn.body, &b))
}

func (jn *journal) persistFate(j *job) {
	jn.persist(TableFate, j.id.Run(), jobKey(j.id), fateBody{bodyVersion, *j.fate})
}

func (jn *journal) persistPublished(f *file, upTo taskqueue.Version) {
	jn.persist(TablePublished, f.own.run, f.lfn, publishedBody{bodyVersion, upTo})
}

func (jn *journal) forgetPilot(id taskqueue.PilotID) { jn.forget(TablePilot, 0, string(id)) }

func (jn *journal) persist(table string, run taskqueue.RunID, key string, body any) {
	b, err := json.Marshal(body)
	if err != nil {
		panic(fmt.Sprintf("dispatch: encoding a %s record: %v", table, err)) // plain data always encodes
	}
	jn.effects.Persist = append(jn.effects.Persist, taskqueue.Record{Table: table, Run: run, Key: key, Body: b})
}

// bodyBlock is how much memory is taken at once for bodies.
const bodyBlock = 1 << 16

// persistBody persists a body that was appended to jn.body.
func (jn *journal) persistBody(table string, run taskqueue.RunID, key string, body []byte) {
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

// resultKeys are the keys of all results, oldest first.
func (jn *journal) resultKeys() []identity {
	return jn.resultKeysOf(func(*storedResult) bool { return true })
}

// resultKeysOf are the keys of some results, oldest first.
func (jn *journal) resultKeysOf(which func(*storedResult) bool) (keys []identity) {
	for key, r := range jn.results {
		if which(r) {
			keys = append(keys, key)
		}
	}
	slices.SortFunc(keys, func(a, b identity) int {
		one, other := jn.results[a], jn.results[b]
		return cmp.Or(cmp.Compare(one.made, other.made), cmp.Compare(one.kept, other.kept), compareKeys(a, b))
	})
	return keys
}

func compareKeys(a, b identity) int { return bytes.Compare(a[:], b[:]) }

func sortedKeys[K ~string, V any](m map[K]V) []K {
	return slices.Sorted(maps.Keys(m))
}

// jobKey is the number of a job in its run, and sorts as that does.
func jobKey(id taskqueue.JobID) string {
	var b [10]byte
	n := id.Number()
	for i := len(b) - 1; i >= 0; i-- {
		b[i] = byte('0' + n%10)
		n /= 10
	}
	return string(b[:])
}

func fileKey(r taskqueue.FileRef) string {
	return r.LFN + "#" + strconv.FormatUint(uint64(r.Version), 10)
}

// The records that are written once or more for each job are encoded by hand,
// because that is most of what a commit costs. They are decoded as ordinary
// JSON, and a test compares both. What is empty is left out: field is the name with
// what stands before and behind it.

func appendInt(b []byte, field string, n int64) []byte {
	if n == 0 {
		return b
	}
	return strconv.AppendInt(append(b, field...), n, 10)
}

func appendFlag(b []byte, field string, is bool) []byte {
	if !is {
		return b
	}
	return append(append(b, field...), "true"...)
}

func appendText(b []byte, field, s string) []byte {
	if s == "" {
		return b
	}
	return appendString(append(b, field...), s)
}

func appendString(b []byte, s string) []byte {
	for i := range len(s) {
		if c := s[i]; c < ' ' || c >= utf8.RuneSelf || c == '"' || c == '\\' {
			if data, err := json.Marshal(s); err == nil {
				return append(b, data...)
			}
		}
	}
	b = append(b, '"')
	b = append(b, s...)
	return append(b, '"')
}

func appendStrings(b []byte, field string, list []string) []byte {
	for i, s := range list {
		if i > 0 {
			field = ","
		}
		b = appendString(append(b, field...), s)
	}
	if len(list) > 0 {
		b = append(b, ']')
	}
	return b
}

// appendAny is for fields that are rare.
func appendAny(b []byte, field string, v any) []byte {
	data, err := json.Marshal(v)
	if err != nil { // plain data always encodes
		return b
	}
	return append(append(b, field...), data...)
}

func appendOutputs(b []byte, list []output) []byte {
	before := `,"o":[{"l":`
	for i := range list {
		o := &list[i]
		b = appendString(append(b, before...), o.LFN)
		b = appendText(b, `,"p":`, o.Pattern)
		b = appendText(b, `,"f":`, o.PFN)
		b = appendFlag(b, `,"c":`, o.Cached)
		b = appendInt(b, `,"s":`, o.Size)
		b = appendInt(b, `,"r":`, o.Records)
		b = appendInt(b, `,"a":`, int64(o.Adler32))
		b = appendInt(b, `,"w":`, int64(o.Written))
		b = appendText(b, `,"h":`, o.Hash)
		b = appendInt(b, `,"t":`, int64(o.Tag))
		before = `},{"l":`
	}
	if len(list) > 0 {
		b = append(b, "}]"...)
	}
	return b
}

func appendJob(b []byte, j *job, s *taskqueue.Job) []byte {
	b = appendText(append(b, `{"v":1`...), `,"n":`, s.Name)
	b = appendText(b, `,"s":`, s.Step)
	if len(s.Payload) > 0 {
		b = base64.StdEncoding.AppendEncode(append(b, `,"p":"`...), s.Payload)
		b = append(b, '"')
	}
	b = appendText(b, `,"d":`, s.Digest)
	b = appendStrings(b, `,"r":[`, s.Reads)
	if s.Access != nil {
		b = append(b, `,"ra":[`...)
		for i, a := range s.Access {
			if i > 0 {
				b = append(b, ',')
			}
			b = strconv.AppendUint(b, uint64(a), 10)
		}
		b = append(b, ']')
	}
	before := `,"rv":[`
	for i := range j.requests {
		if v := j.requests[i].read; v != nil {
			b = strconv.AppendUint(append(b, before...), uint64(v.number), 10)
			before = ","
		}
	}
	if before == "," {
		b = append(b, ']')
	}
	before = `,"w":[{"l":`
	for i := range j.outputs {
		w := &j.outputs[i]
		b = appendString(append(b, before...), w.LFN)
		b = appendFlag(b, `,"p":`, w.Pattern)
		b = appendFlag(b, `,"u":`, w.Publish)
		b = appendFlag(b, `,"c":`, w.Storage == taskqueue.StorageCache)
		b = appendFlag(b, `,"t":`, w.Temporary)
		for k := range j.requests {
			if r := &j.requests[k]; r.write != nil && int(r.output) == i {
				b = appendInt(b, `,"v":`, int64(r.write.number))
				break
			}
		}
		before = `},{"l":`
	}
	if len(j.outputs) > 0 {
		b = append(b, "}]"...)
	}
	b = appendNeeds(b, &s.Needs)
	b = appendStrings(b, `,"t":[`, s.Tools)
	b = appendText(b, `,"at":`, s.Site)
	b = appendInt(b, `,"pl":`, int64(s.Placement))
	b = appendInt(b, `,"pr":`, int64(s.Priority))
	if r := s.Retry; r.Attempts != 0 || r.Backoff != 0 || r.ExitCodes != nil || r.MemoryFactor != 0 {
		b = appendAny(b, `,"re":`, r)
	}
	b = appendText(b, `,"ck":`, s.Checkpoint)
	b = appendInt(b, `,"ta":`, int64(s.Tasks))
	b = appendFlag(b, `,"ap":`, s.Apart)
	b = appendFlag(b, `,"on":`, s.Once)
	b = appendInt(b, `,"wd":`, int64(s.WaitForData))
	b = appendInt(b, `,"su":`, int64(j.text.submitted))
	return append(b, '}')
}

func appendNeeds(b []byte, r *taskqueue.Resources) []byte {
	if r.Countable != nil || r.GPUShare > 0 {
		return appendAny(b, `,"q":`, r)
	}
	before := `,"q":{`
	for _, x := range []struct {
		name string
		n    int64
	}{{`"MilliCPUs":`, r.MilliCPUs}, {`"Memory":`, r.Memory}, {`"Disk":`, r.Disk}, {`"Time":`, int64(r.Time)}} {
		if x.n != 0 {
			b = strconv.AppendInt(append(append(b, before...), x.name...), x.n, 10)
			before = ","
		}
	}
	if before == "," {
		b = append(b, '}')
	}
	return b
}

// appendCommit appends the body of a commit. What was taken stands in the
// result that it was taken from, and so does what was lent.
func appendCommit(b []byte, j *job, outputs []output) []byte {
	b = appendInt(append(b, `{"v":1`...), `,"a":`, int64(j.committed))
	if j.key != (identity{}) {
		b = hex.AppendEncode(append(b, `,"k":"`...), j.key[:])
		b = append(b, '"')
	}
	switch j.result {
	case takenResult:
		return append(b, `,"re":true}`...)
	case lentResult:
		return append(b, '}')
	}
	b = append(b, `,"w":true`...)
	before := `,"i":["` // what inputMarks returns
	for i := range j.requests {
		if v := j.requests[i].read; v != nil {
			b = hex.AppendEncode(append(b, before...), v.mark())
			before = `","`
		}
	}
	if before == `","` {
		b = append(b, `"]`...)
	}
	return append(appendOutputs(b, outputs), '}')
}

func appendResult(b []byte, r *resultBody) []byte {
	b = appendText(append(b, `{"v":1`...), `,"j":`, r.Job)
	b = appendText(b, `,"d":`, r.Digest)
	b = appendStrings(b, `,"i":[`, r.Inputs)
	b = appendInt(b, `,"n":`, int64(r.Made))
	b = appendText(b, `,"sc":`, r.Scope)
	b = appendInt(b, `,"ru":`, int64(r.Run))
	b = appendText(b, `,"g":`, r.Group)
	b = appendText(b, `,"u":`, r.User)
	field := `,"by":[`
	for _, id := range r.Runs {
		b = strconv.AppendUint(append(b, field...), uint64(id), 10)
		field = ","
	}
	if len(r.Runs) > 0 {
		b = append(b, ']')
	}
	b = appendInt(b, `,"le":`, int64(r.Left))
	return append(appendOutputs(b, r.Outputs), '}')
}
