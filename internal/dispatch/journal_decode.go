package dispatch

import (
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"math"
	"slices"
	"strconv"
	"time"
	"unicode/utf8"

	"fairway/internal/dispatch/rows"
	"fairway/internal/taskqueue"
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
	TableShares    = "shares"    // what SetShares said
	TableUsage     = "usage"     // what users have used: account
)

// tables are in the order in which a [Loading] takes them: what was committed and what went
// wrong comes before the jobs that it is of.
var tables = []string{
	TableMeta, TableShares, TableUsage, TableRun, TableResult, TableFile, TableCommit, TableFate, TableJob,
	TablePublished, TableRemove, TablePilot, TableLaunch,
}

// Tables lists all tables, in the order in which a [Loading] takes them.
func Tables() []string { return slices.Clone(tables) }

const bodyVersion = 1

type metaBody struct {
	V           int             `json:"v"`
	Incarnation uint64          `json:"n"`
	Since       uint64          `json:"s,omitempty"` // first incarnation of the store
	LastRun     taskqueue.RunID `json:"r,omitempty"` // number of the last run that was begun
}

// runKey is that of the one record of a run in TableRun.
const runKey = "run"

type runBody struct {
	V         int                `json:"v"`
	Name      string             `json:"n,omitempty"`
	KeepGoing bool               `json:"k,omitempty"`
	State     taskqueue.RunState `json:"s,omitempty"`
	Complete  bool               `json:"c,omitempty"`
	Reason    string             `json:"r,omitempty"`
	Group     string             `json:"g,omitempty"`
	User      string             `json:"u,omitempty"`
	Limits    map[string]int64   `json:"l,omitempty"`
	Scope     string             `json:"sc,omitempty"`
	NoReuse   bool               `json:"nr,omitempty"`
	Raised    int32              `json:"ra,omitempty"`
}

type sharesBody struct {
	V int `json:"v"`
	taskqueue.Shares
}

type usageBody struct {
	V     int     `json:"v"`
	Group string  `json:"g,omitempty"`
	User  string  `json:"u"`
	Used  float64 `json:"s"` // slot-seconds
	At    instant `json:"t"`
}

type fileBody struct {
	V        int               `json:"v"`
	LFN      string            `json:"l"`
	Version  taskqueue.Version `json:"n,omitempty"`
	PFN      string            `json:"f"`
	Size     int64             `json:"s,omitempty"`
	Identity string            `json:"i,omitempty"`
	Tag      taskqueue.Tag     `json:"t,omitempty"`
}

type jobBody struct {
	V           int                 `json:"v"`
	Name        string              `json:"n"`
	Step        string              `json:"s"`
	Payload     []byte              `json:"p"`
	Digest      string              `json:"d"`
	Reads       []string            `json:"r"`
	Access      []taskqueue.Access  `json:"ra"`
	Read        []taskqueue.Version `json:"rv"`
	Writes      []writeBody         `json:"w"`
	Needs       taskqueue.Resources `json:"q"`
	Tools       []string            `json:"t"`
	Site        string              `json:"at"`
	Placement   taskqueue.Placement `json:"pl"`
	Priority    int                 `json:"pr"`
	Retry       taskqueue.Retry     `json:"re"`
	Checkpoint  string              `json:"ck"`
	Tasks       int                 `json:"ta"`
	Apart       bool                `json:"ap"`
	Once        bool                `json:"on"`
	WaitForData int64               `json:"wd"`
	Submitted   instant             `json:"su"`

	like  alike               // those of the job before
	texts *rows.Text          // where its own texts are to stand; nil: anywhere
	one   [1]taskqueue.Output // of job, if it is the only one
}

// alike are texts that many jobs have in common. Whoever decodes one after the other takes
// them over.
type alike struct {
	step  string
	reads []string
	tools []string
}

type writeBody struct {
	LFN     string            `json:"l"`
	Pattern bool              `json:"p"`
	Publish bool              `json:"u"`
	Cache   bool              `json:"c"`
	Temp    bool              `json:"t,omitempty"`
	Version taskqueue.Version `json:"v"`
}

// commitBody holds the outputs of a job, and what a later run must know to
// take them. Those of a job that took them itself stand in the result of Key, and so
// do those that others have taken: Whole is not set then.
type commitBody struct {
	V       int                 `json:"v"`
	Attempt taskqueue.AttemptID `json:"a"`
	Key     string              `json:"k"`
	Reused  bool                `json:"re"`
	Whole   bool                `json:"w"`
	Inputs  []string            `json:"i"` // identities, shortened, in the order of Reads
	Outputs []output            `json:"o"`
}

type resultBody struct {
	V       int      `json:"v"`
	Job     string   `json:"j"`
	Digest  string   `json:"d"` // why a later run does not take it
	Inputs  []string `json:"i"` // identities, shortened, in the order of Reads
	Made    uint64   `json:"n"` // incarnation; 0 in stores of before it was recorded
	Outputs []output `json:"o"`

	// Where runs share results, or have done so.
	Scope string            `json:"sc"`
	Run   taskqueue.RunID   `json:"ru"` // that made it
	Group string            `json:"g"`  // of that
	User  string            `json:"u"`
	Runs  []taskqueue.RunID `json:"by"` // that were retired, are kept, and name it
	Left  instant           `json:"le"` // since when no run that is kept names it
}

type fateBody struct {
	V int `json:"v"`
	fate
}

type publishedBody struct {
	V       int               `json:"v"`
	Version taskqueue.Version `json:"n"`
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

func (b *jobBody) job() taskqueue.Job {
	j := taskqueue.Job{
		Name: b.Name, Step: b.Step, Payload: b.Payload, Digest: b.Digest, Reads: b.Reads, Access: b.Access, Needs: b.Needs,
		Tools: b.Tools, Site: b.Site, Placement: b.Placement, Priority: b.Priority, Retry: b.Retry,
		WaitForData: time.Duration(b.WaitForData),
		Checkpoint:  b.Checkpoint, Tasks: b.Tasks, Apart: b.Apart, Once: b.Once,
	}
	if len(b.Writes) > 0 {
		j.Writes = b.one[:0] // of which newJob makes a copy
	}
	for _, w := range b.Writes {
		o := taskqueue.Output{LFN: w.LFN, Pattern: w.Pattern, Publish: w.Publish, Temporary: w.Temp}
		if w.Cache {
			o.Storage = taskqueue.StorageCache
		}
		j.Writes = append(j.Writes, o)
	}
	return j
}

func parseJobKey(run taskqueue.RunID, key string) (taskqueue.JobID, error) {
	n, err := strconv.ParseUint(key, 10, 32)
	return taskqueue.NewJobID(run, uint32(n)), err
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

// The records of which there is one or more for each job or file are decoded by hand too,
// as far as they are what this program writes: that takes a sixth of the time, and loading a
// store is mostly decoding. All else is left to encoding/json, so that there is one meaning
// of a record: names with escapes or without ASCII, and what other programs have written.

// scan reads one JSON text. When it meets what it does not know, it is lost, and what was
// read so far means nothing.
type scan struct {
	text []byte
	at   int
	lost bool
}

// scanned decodes a body by hand, and reports whether it could.
func scanned(body []byte, into any) bool {
	s := scan{text: body}
	switch b := into.(type) {
	case *jobBody:
		s.job(b)
	case *commitBody:
		s.commit(b)
	case *resultBody:
		s.result(b)
	case *fileBody:
		s.file(b)
	case *publishedBody:
		s.published(b)
	default:
		return false
	}
	return !s.lost && s.at == len(body)
}

// next reports whether the text goes on with this byte, and passes over it.
func (s *scan) next(c byte) bool {
	if s.at < len(s.text) && s.text[s.at] == c {
		s.at++
		return true
	}
	return false
}

func (s *scan) expect(c byte) {
	if !s.next(c) {
		s.lost = true
	}
}

// object reads an object. The field is called for each value, after its name.
func (s *scan) object(field func(name []byte)) {
	s.expect('{')
	for more := !s.next('}'); more && !s.lost; more = !s.next('}') {
		if s.text[s.at-1] != '{' {
			s.expect(',')
		}
		name := s.raw()
		s.expect(':')
		if !s.lost {
			field(name)
		}
	}
}

// list reads a list. The element is called for each value.
func (s *scan) list(element func()) {
	s.expect('[')
	for first := true; !s.lost && !s.next(']'); first = false {
		if !first {
			s.expect(',')
		}
		if !s.lost {
			element()
		}
	}
}

// raw reads a string of plain ASCII and returns it where it stands.
func (s *scan) raw() []byte {
	s.expect('"')
	begin := s.at
	for ; !s.lost && s.at < len(s.text); s.at++ {
		switch c := s.text[s.at]; {
		case c == '"':
			s.at++
			return s.text[begin : s.at-1]
		case c < ' ' || c >= utf8.RuneSelf || c == '\\':
			s.lost = true
		}
	}
	s.lost = true
	return nil
}

func (s *scan) string() string { return string(s.raw()) }

// stringIn reads a string, which is to stand in texts.
func (s *scan) stringIn(texts *rows.Text) string {
	raw := s.raw()
	if texts == nil {
		return string(raw)
	}
	return texts.StringOf(raw)
}

// as reads a string, and returns the other one if it is the same.
func (s *scan) as(other string) string {
	if text := s.raw(); string(text) != other {
		return string(text)
	}
	return other
}

func (s *scan) strings() []string { return s.stringsAs(nil) }

// stringsAs reads a list, with those of another one that are the same in its place.
func (s *scan) stringsAs(others []string) []string {
	list := make([]string, 0, len(others))
	s.list(func() {
		other := ""
		if len(list) < len(others) {
			other = others[len(list)]
		}
		list = append(list, s.as(other))
	})
	return list
}

func (s *scan) bytes(texts *rows.Text) (data []byte) {
	text := s.raw()
	if n := base64.StdEncoding.DecodedLen(len(text)); texts == nil {
		data = make([]byte, n)
	} else {
		data = texts.Take(n)
	}
	n, err := base64.StdEncoding.Strict().Decode(data, text)
	if err != nil {
		s.lost = true
	}
	return data[:n]
}

// digits reads a number without sign, which is at most the greatest.
func (s *scan) digits(greatest uint64) uint64 {
	begin := s.at
	for s.at < len(s.text) && s.text[s.at] >= '0' && s.text[s.at] <= '9' {
		s.at++
	}
	text := s.text[begin:s.at]
	n, err := strconv.ParseUint(string(text), 10, 64)
	if err != nil || n > greatest || len(text) > 1 && text[0] == '0' {
		s.lost = true
	}
	return n
}

func (s *scan) int() int64 {
	if s.next('-') {
		return -int64(s.digits(math.MaxInt64))
	}
	return int64(s.digits(math.MaxInt64))
}

func (s *scan) bool() bool {
	for _, c := range []byte("true") { // false is not written
		s.expect(c)
	}
	return true
}

// other reads an object that encoding/json decodes.
func (s *scan) other(into any) {
	begin, depth := s.at, 0
	for ; s.at < len(s.text) && !s.lost; s.at++ {
		switch s.text[s.at] {
		case '"':
			s.raw()
			s.at--
		case '{', '[':
			depth++
		case '}', ']':
			depth--
		}
		if depth == 0 {
			s.at++
			s.lost = s.lost || json.Unmarshal(s.text[begin:s.at], into) != nil
			return
		}
	}
	s.lost = true
}

func (s *scan) version() int {
	if n := s.int(); n == bodyVersion {
		return int(n)
	}
	s.lost = true
	return 0
}

func (s *scan) job(b *jobBody) {
	s.object(func(name []byte) {
		switch string(name) {
		case "v":
			b.V = s.version()
		case "n":
			b.Name = s.stringIn(b.texts)
		case "s":
			b.Step = s.as(b.like.step)
		case "p":
			b.Payload = s.bytes(b.texts)
		case "d":
			b.Digest = s.stringIn(b.texts)
		case "r":
			b.Reads = s.stringsAs(b.like.reads)
		case "ra":
			b.Access = []taskqueue.Access{}
			s.list(func() { b.Access = append(b.Access, taskqueue.Access(s.digits(math.MaxUint8))) })
		case "rv":
			b.Read = cleared(b.Read)
			s.list(func() { b.Read = append(b.Read, taskqueue.Version(s.digits(math.MaxUint32))) })
		case "w":
			b.Writes = cleared(b.Writes)
			s.list(func() { b.Writes = append(b.Writes, s.write(b.texts)) })
		case "q":
			s.needs(&b.Needs)
		case "t":
			b.Tools = s.stringsAs(b.like.tools)
		case "at":
			b.Site = s.string()
		case "pl":
			b.Placement = taskqueue.Placement(s.digits(math.MaxUint8))
		case "pr":
			b.Priority = int(s.int())
		case "re":
			s.other(&b.Retry)
		case "ck":
			b.Checkpoint = s.string()
		case "ta":
			b.Tasks = int(s.int())
		case "ap":
			b.Apart = s.bool()
		case "on":
			b.Once = s.bool()
		case "wd":
			b.WaitForData = s.int()
		case "su":
			b.Submitted = instant(s.int())
		default:
			s.lost = true
		}
	})
}

// cleared is an empty list, with the memory of another one. As encoding/json has it, it is not nil.
func cleared[T any](list []T) []T {
	if list == nil {
		return []T{}
	}
	return list[:0]
}

func (s *scan) needs(r *taskqueue.Resources) {
	s.object(func(name []byte) {
		switch string(name) {
		case "MilliCPUs":
			r.MilliCPUs = s.int()
		case "Memory":
			r.Memory = s.int()
		case "Disk":
			r.Disk = s.int()
		case "Time":
			r.Time = time.Duration(s.int())
		case "GPUShare":
			r.GPUShare = s.int()
		case "Countable":
			if s.at < len(s.text) && s.text[s.at] == '{' {
				s.other(&r.Countable)
				return
			}
			for _, c := range []byte("null") { // as earlier versions wrote it
				s.expect(c)
			}
		default:
			s.lost = true
		}
	})
}

func (s *scan) write(texts *rows.Text) (w writeBody) {
	s.object(func(name []byte) {
		switch string(name) {
		case "l":
			w.LFN = s.stringIn(texts)
		case "p":
			w.Pattern = s.bool()
		case "u":
			w.Publish = s.bool()
		case "c":
			w.Cache = s.bool()
		case "t":
			w.Temp = s.bool()
		case "v":
			w.Version = taskqueue.Version(s.digits(math.MaxUint32))
		default:
			s.lost = true
		}
	})
	return w
}

func (s *scan) commit(b *commitBody) {
	s.object(func(name []byte) {
		switch string(name) {
		case "v":
			b.V = s.version()
		case "a":
			b.Attempt = taskqueue.AttemptID(s.digits(math.MaxUint64))
		case "k":
			b.Key = s.string()
		case "re":
			b.Reused = s.bool()
		case "w":
			b.Whole = s.bool()
		case "i":
			b.Inputs = s.strings()
		case "o":
			b.Outputs = s.outputs()
		default:
			s.lost = true
		}
	})
}

func (s *scan) result(b *resultBody) {
	s.object(func(name []byte) {
		switch string(name) {
		case "v":
			b.V = s.version()
		case "j":
			b.Job = s.string()
		case "d":
			b.Digest = s.string()
		case "i":
			b.Inputs = s.strings()
		case "n":
			b.Made = s.digits(math.MaxUint64)
		case "sc":
			b.Scope = s.string()
		case "ru":
			b.Run = taskqueue.RunID(s.digits(math.MaxUint32))
		case "g":
			b.Group = s.string()
		case "u":
			b.User = s.string()
		case "by":
			b.Runs = []taskqueue.RunID{}
			s.list(func() { b.Runs = append(b.Runs, taskqueue.RunID(s.digits(math.MaxUint32))) })
		case "le":
			b.Left = instant(s.int())
		case "o":
			b.Outputs = s.outputs()
		default:
			s.lost = true
		}
	})
}

func (s *scan) file(b *fileBody) {
	s.object(func(name []byte) {
		switch string(name) {
		case "v":
			b.V = s.version()
		case "l":
			b.LFN = s.string()
		case "n":
			b.Version = taskqueue.Version(s.digits(math.MaxUint32))
		case "f":
			b.PFN = s.string()
		case "s":
			b.Size = s.int()
		case "i":
			b.Identity = s.string()
		case "t":
			b.Tag = taskqueue.Tag(s.digits(math.MaxUint64))
		default:
			s.lost = true
		}
	})
}

func (s *scan) published(b *publishedBody) {
	s.object(func(name []byte) {
		switch string(name) {
		case "v":
			b.V = s.version()
		case "n":
			b.Version = taskqueue.Version(s.digits(math.MaxUint32))
		default:
			s.lost = true
		}
	})
}

func (s *scan) outputs() (list []output) {
	list = []output{}
	s.list(func() {
		var o output
		s.object(func(name []byte) {
			switch string(name) {
			case "l":
				o.LFN = s.string()
			case "p":
				o.Pattern = s.string()
			case "f":
				o.PFN = s.string()
			case "c":
				o.Cached = s.bool()
			case "s":
				o.Size = s.int()
			case "r":
				o.Records = s.int()
			case "a":
				o.Adler32 = uint32(s.digits(math.MaxUint32))
			case "w":
				o.Written = uint32(s.digits(math.MaxUint32))
			case "h":
				o.Hash = s.string()
			case "t":
				o.Tag = taskqueue.Tag(s.digits(math.MaxUint64))
			default:
				s.lost = true
			}
		})
		list = append(list, o)
	})
	return list
}
