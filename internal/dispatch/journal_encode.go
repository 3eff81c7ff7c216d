package dispatch

import (
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"strconv"
	"unicode/utf8"
)

// The records that are written once or more for each job are encoded by hand,
// because that is most of what a commit costs. They are decoded as ordinary
// JSON, and a test compares both.

// object appends the fields of a JSON object that are not empty.
type object struct{ b []byte }

func newObject(b []byte) object { return object{append(b, `{"v":1`...)} }

func (o *object) end() []byte { return append(o.b, '}') }

func (o *object) field(name string) {
	o.b = append(o.b, ',', '"')
	o.b = append(o.b, name...)
	o.b = append(o.b, '"', ':')
}

func (o *object) string(name, s string) {
	if s != "" {
		o.field(name)
		o.b = appendString(o.b, s)
	}
}

func (o *object) int(name string, n int64) {
	if n != 0 {
		o.field(name)
		o.b = strconv.AppendInt(o.b, n, 10)
	}
}

func (o *object) bool(name string, is bool) {
	if is {
		o.field(name)
		o.b = append(o.b, "true"...)
	}
}

func (o *object) hex(name string, data []byte) {
	o.field(name)
	o.b = appendHex(o.b, data)
}

func (o *object) bytes(name string, data []byte) {
	if len(data) > 0 {
		o.field(name)
		o.b = append(o.b, '"')
		o.b = base64.StdEncoding.AppendEncode(o.b, data)
		o.b = append(o.b, '"')
	}
}

func (o *object) strings(name string, list []string) {
	if len(list) > 0 {
		o.list(name, len(list), func(i int) { o.b = appendString(o.b, list[i]) })
	}
}

func (o *object) list(name string, n int, element func(i int)) {
	o.field(name)
	o.b = append(o.b, '[')
	for i := range n {
		if i > 0 {
			o.b = append(o.b, ',')
		}
		element(i)
	}
	o.b = append(o.b, ']')
}

// any is for fields that are rare.
func (o *object) any(name string, v any) {
	if data, err := json.Marshal(v); err == nil { // plain data always encodes
		o.field(name)
		o.b = append(o.b, data...)
	}
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

func appendHex(b, data []byte) []byte {
	b = append(b, '"')
	b = hex.AppendEncode(b, data)
	return append(b, '"')
}

func appendOutput(b []byte, o *output) []byte {
	b = append(b, `{"l":`...)
	b = appendString(b, o.LFN)
	rest := object{b}
	rest.string("p", o.Pattern)
	rest.string("f", o.PFN)
	rest.bool("c", o.Cached)
	rest.int("s", o.Size)
	rest.int("r", o.Records)
	rest.int("a", int64(o.Adler32))
	rest.int("t", int64(o.Tag))
	return rest.end()
}

func (o *object) outputs(name string, list []output) {
	if len(list) > 0 {
		o.list(name, len(list), func(i int) { o.b = appendOutput(o.b, &list[i]) })
	}
}

func appendJob(b []byte, j *job, s *Job) []byte {
	o := newObject(b)
	o.string("n", s.Name)
	o.string("s", s.Step)
	o.bytes("p", s.Payload)
	o.string("d", s.Digest)
	o.strings("r", s.Reads)
	if s.Access != nil {
		o.list("ra", len(s.Access), func(i int) { o.b = strconv.AppendUint(o.b, uint64(s.Access[i]), 10) })
	}
	o.readVersions(j)
	o.writes(j)
	if n := s.Needs; n.MilliCPUs != 0 || n.Memory != 0 || n.Disk != 0 || n.Time != 0 || n.Countable != nil {
		o.any("q", n)
	}
	o.strings("t", s.Tools)
	o.string("at", s.Site)
	o.int("pr", int64(s.Priority))
	if r := s.Retry; r.Attempts != 0 || r.Backoff != 0 || r.ExitCodes != nil || r.MemoryFactor != 0 {
		o.any("re", r)
	}
	o.int("wd", int64(s.WaitForData))
	o.int("su", int64(j.submitted))
	return o.end()
}

func (o *object) readVersions(j *job) {
	n := 0
	for i := range j.requests {
		if v := j.requests[i].read; v != nil {
			o.element("rv", n)
			o.b = strconv.AppendUint(o.b, uint64(v.number), 10)
			n++
		}
	}
	o.endList(n)
}

// element begins element n of a list of which it is not known beforehand
// whether it has any.
func (o *object) element(name string, n int) {
	if n > 0 {
		o.b = append(o.b, ',')
		return
	}
	o.field(name)
	o.b = append(o.b, '[')
}

func (o *object) endList(n int) {
	if n > 0 {
		o.b = append(o.b, ']')
	}
}

func (o *object) writes(j *job) {
	if len(j.outputs) == 0 {
		return
	}
	o.list("w", len(j.outputs), func(i int) {
		w := &j.outputs[i]
		o.b = append(o.b, `{"l":`...)
		o.b = appendString(o.b, w.LFN)
		o.bool("p", w.Pattern)
		o.bool("u", w.Publish)
		o.bool("c", w.Storage == StorageCache)
		o.int("v", int64(j.writeVersion(i)))
		o.b = append(o.b, '}')
	})
}

func (j *job) writeVersion(output int) Version {
	for i := range j.requests {
		if r := &j.requests[i]; r.write != nil && int(r.output) == output {
			return r.write.number
		}
	}
	return 0
}

// appendCommit appends the body of a commit. What was reused stands in the
// result that it was taken from.
func appendCommit(b []byte, j *job, outputs []output) []byte {
	o := newObject(b)
	o.int("a", int64(j.committed))
	if j.key != (identity{}) {
		o.hex("k", j.key[:])
	}
	if j.reused {
		o.bool("re", true)
		return o.end()
	}
	o.bool("w", true)
	o.marks(j)
	o.outputs("o", outputs)
	return o.end()
}

// marks appends what inputMarks returns.
func (o *object) marks(j *job) {
	n := 0
	for i := range j.requests {
		if v := j.requests[i].read; v != nil {
			o.element("i", n)
			o.b = appendHex(o.b, v.mark())
			n++
		}
	}
	o.endList(n)
}

func appendResult(b []byte, r *resultBody) []byte {
	o := newObject(b)
	o.string("j", r.Job)
	o.string("d", r.Digest)
	o.strings("i", r.Inputs)
	o.int("n", int64(r.Made))
	o.outputs("o", r.Outputs)
	return o.end()
}
