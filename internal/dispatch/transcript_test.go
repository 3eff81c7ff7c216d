package dispatch

import (
	"fmt"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/cockroachdb/datadriven"
)

// TestTranscripts runs the scripts of testdata. Rewrite the results with
//
//	go test ./internal/dispatch -run TestTranscripts -rewrite
func TestTranscripts(t *testing.T) {
	files, err := filepath.Glob("testdata/*.txt")
	if err != nil || len(files) == 0 {
		t.Fatalf("no transcripts: %v", err)
	}
	for _, f := range files {
		t.Run(strings.TrimSuffix(filepath.Base(f), ".txt"), func(t *testing.T) {
			s := newScript()
			datadriven.RunTest(t, f, func(t *testing.T, d *datadriven.TestData) string {
				out, err := s.run(d)
				if err != nil {
					return "error: " + err.Error() + "\n"
				}
				return out
			})
		})
	}
}

// script drives a Core and keeps what is durable.
type script struct {
	config  Config
	core    *Core
	now     time.Time
	durable map[string]Record
	given   map[AttemptID]Assignment
}

var epoch = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)

func newScript() *script {
	return &script{now: epoch, durable: make(map[string]Record), given: make(map[AttemptID]Assignment)}
}

func (s *script) run(d *datadriven.TestData) (string, error) {
	if s.core == nil && d.Cmd != "config" {
		core, e := New(s.config)
		s.core = core
		s.keep(e.Persist)
	}
	switch d.Cmd {
	case "config":
		return "", s.configure(d)
	case "at":
		since, err := time.ParseDuration(d.CmdArgs[0].Key)
		s.now = epoch.Add(since)
		if err != nil {
			return "", err
		}
		return s.step(Tick{})
	case "load":
		core, e, err := Load(s.config, s.records())
		if err != nil {
			return "", err
		}
		s.core = core
		return s.render(e), nil
	case "fresh":
		fresh, err := Fresh(s.records())
		if err != nil {
			return "", err
		}
		s.keep(fresh)
		core, e, err := Load(s.config, s.records())
		if err != nil {
			return "", err
		}
		s.core = core
		return s.render(e), nil
	case "lose-store":
		s.durable = make(map[string]Record)
		return "", nil
	case "jobs":
		return s.jobs(), nil
	case "pilots":
		return s.pilots(), nil
	case "explain":
		id, _ := s.core.JobNamed(d.CmdArgs[0].Key)
		e, _ := s.core.Explain(id)
		return strings.Join(e.Lines, "\n") + "\n", nil
	case "records":
		var b strings.Builder
		for _, r := range s.records() {
			fmt.Fprintf(&b, "%s %s %s\n", r.Table, r.Key, r.Body)
		}
		return b.String(), nil
	case "preview":
		return s.preview(d)
	}
	in, err := s.input(d)
	if err != nil {
		return "", err
	}
	return s.step(in)
}

func (s *script) configure(d *datadriven.TestData) error {
	for _, a := range d.CmdArgs {
		switch a.Key {
		case "by-files":
			s.config.Placement = ByFiles
		case "by-bytes":
			s.config.Placement = ByBytes
		case "first-incarnation":
			s.config.FirstIncarnation, _ = strconv.ParseUint(a.Vals[0], 10, 64)
		case "ahead":
			s.config.Ahead, _ = strconv.Atoi(a.Vals[0])
		case "max-losses":
			s.config.MaxLosses, _ = strconv.Atoi(a.Vals[0])
		case "max-regenerations":
			s.config.MaxRegenerations, _ = strconv.Atoi(a.Vals[0])
		case "data":
			s.config.Sites.Data, _ = strconv.ParseFloat(a.Vals[0], 64)
		case "queue":
			s.config.Sites.Queue, _ = strconv.ParseFloat(a.Vals[0], 64)
		case "money":
			s.config.Sites.Money, _ = strconv.ParseFloat(a.Vals[0], 64)
		default:
			return fmt.Errorf("unknown setting %s", a.Key)
		}
	}
	return nil
}

func (s *script) step(in Input) (string, error) {
	e, err := s.core.Step(s.now, in)
	if err != nil {
		return "", err
	}
	return s.render(e), nil
}

func (s *script) keep(records []Record) {
	for _, r := range records {
		if r.Body == nil {
			delete(s.durable, r.Table+"\x00"+r.Key)
		} else {
			s.durable[r.Table+"\x00"+r.Key] = r
		}
	}
}

func (s *script) records() []Record {
	var list []Record
	for _, k := range sortedKeys(s.durable) {
		list = append(list, s.durable[k])
	}
	return list
}

func (s *script) input(d *datadriven.TestData) (Input, error) {
	var words []string
	for _, a := range d.CmdArgs {
		words = append(words, a.Key)
	}
	switch d.Cmd {
	case "files":
		return s.files(lines(d.Input))
	case "submit":
		return s.submission(lines(d.Input))
	case "sync":
		return s.sync(d)
	case "cancel", "retry":
		var ids []JobID
		for _, name := range words {
			id, ok := s.core.JobNamed(name)
			if !ok {
				id = 999
			}
			ids = append(ids, id)
		}
		if d.Cmd == "cancel" {
			return Cancel{ids}, nil
		}
		return RetryJobs{ids}, nil
	case "site":
		return s.site(d), nil
	case "submitted":
		return PilotSubmitted{Site: words[0], Launch: words[1]}, nil
	case "ended":
		return PilotEnded{Launch: words[0]}, nil
	case "published":
		return Published{parseRef(words[0])}, nil
	case "removed":
		return Removed{words[0]}, nil
	case "stop":
		return Stop{Drain: len(words) > 0}, nil
	case "tick":
		return Tick{}, nil
	}
	return nil, fmt.Errorf("unknown command %s", d.Cmd)
}

func lines(s string) []string {
	return strings.Split(strings.TrimSpace(s), "\n")
}

// files: LFN SIZE [IDENTITY [PFN]], one a line.
func (s *script) files(in []string) (Input, error) {
	var a AddFiles
	for _, line := range in {
		w := strings.Fields(line)
		f := ExistingFile{LFN: w[0], PFN: "/data/" + w[0], Identity: "1"}
		if len(w) > 1 {
			f.Size, _ = strconv.ParseInt(w[1], 10, 64)
		}
		if len(w) > 2 {
			f.Identity = w[2]
		}
		if len(w) > 3 {
			f.PFN = w[3]
		}
		a.Files = append(a.Files, f)
	}
	return a, nil
}

// submission: NAME [reads=a,b] [writes=c,d*,e!cache,f!publish] [key=value...], one a line.
func (s *script) submission(in []string) (Input, error) {
	var sub Submit
	for _, line := range in {
		w := strings.Fields(line)
		j := Job{Name: w[0], Step: strings.TrimRight(w[0], "0123456789"), Digest: "d"}
		for _, kv := range w[1:] {
			k, v, _ := strings.Cut(kv, "=")
			if err := setField(&j, k, v); err != nil {
				return nil, err
			}
		}
		sub.Jobs = append(sub.Jobs, j)
	}
	return sub, nil
}

func setField(j *Job, k, v string) error {
	n, _ := strconv.Atoi(v)
	d, _ := time.ParseDuration(v)
	switch k {
	case "reads":
		j.Reads = strings.Split(v, ",")
	case "writes":
		for _, o := range strings.Split(v, ",") {
			name, flags, _ := strings.Cut(o, "!")
			w := Output{LFN: name, Pattern: strings.Contains(name, "*"), Publish: strings.Contains(flags, "publish")}
			if strings.Contains(flags, "cache") {
				w.Storage = StorageCache
			}
			j.Writes = append(j.Writes, w)
		}
	case "digest":
		j.Digest = v
	case "cpus":
		j.Needs.MilliCPUs = int64(n) * 1000
	case "mem":
		j.Needs.Memory = int64(n)
	case "disk":
		j.Needs.Disk = int64(n)
	case "time":
		j.Needs.Time = d
	case "gpu":
		j.Needs.Countable = map[string]int64{"gpu": int64(n)}
	case "tools":
		j.Tools = strings.Split(v, ",")
	case "site":
		j.Site = v
	case "priority":
		j.Priority = n
	case "attempts":
		j.Retry.Attempts = n
	case "codes":
		for _, c := range strings.Split(v, ",") {
			code, _ := strconv.Atoi(c)
			j.Retry.ExitCodes = append(j.Retry.ExitCodes, code)
		}
	case "wait":
		j.WaitForData = d
	default:
		return fmt.Errorf("unknown field %s", k)
	}
	return nil
}

// sync: PILOT SEQ [last=N] [full] [key=value...]; input lines are results:
// ATTEMPT done | ATTEMPT exit=1 | ATTEMPT memory ..., with out=LFN:SIZE.
func (s *script) sync(d *datadriven.TestData) (Input, error) {
	seq, err := strconv.ParseUint(d.CmdArgs[1].Key, 10, 64)
	if err != nil {
		return nil, err
	}
	in := Sync{Pilot: PilotID(d.CmdArgs[0].Key), Seq: seq, Hold: true}
	info := PilotInfo{Host: "h1", Site: "local", Has: Resources{MilliCPUs: 1000, Memory: 1000, Disk: 1000}, CacheDir: "/cache/" + d.CmdArgs[0].Key}
	for _, a := range d.CmdArgs[2:] {
		v := ""
		if len(a.Vals) > 0 {
			v = a.Vals[0]
		}
		n, _ := strconv.ParseInt(v, 10, 64)
		switch a.Key {
		case "full":
			in.Full, in.Hello = true, &info
		case "last":
			in.LastAnswer = uint64(parseAttempt(v))
		case "host":
			info.Host = v
		case "site":
			info.Site = v
		case "launch":
			info.Launch = v
		case "cpus":
			info.Has.MilliCPUs = n * 1000
		case "mem":
			info.Has.Memory = n
		case "gpu":
			info.Has.Countable = map[string]int64{"gpu": n}
		case "life":
			life, _ := time.ParseDuration(v)
			info.Expires = s.now.Add(life)
		case "tools":
			info.Tools = a.Vals
		case "private":
			info.CacheDir = ""
		case "error":
			info.Error = v
		case "started":
			in.Started = s.refs(a.Vals)
		case "queued":
			in.Queued = s.refs(a.Vals)
		case "cached":
			for _, f := range a.Vals {
				c := CachedFile{File: s.copyOf(f, d.Input)}
				if v := s.core.versionOf(c.File); v != nil {
					c.Size = v.size
				}
				in.CacheAdded = append(in.CacheAdded, c)
			}
		case "space":
			info.CacheSize = n
		case "uncached":
			for _, f := range a.Vals {
				in.CacheGone = append(in.CacheGone, CacheGone{File: s.copyOf(f, "")})
			}
		case "draining":
			in.Draining = true
		case "leaving":
			in.Leaving = true
		case "nohold":
			in.Hold = false
		default:
			return nil, fmt.Errorf("unknown argument %s", a.Key)
		}
	}
	if d.Input != "" {
		for _, line := range lines(d.Input) {
			r, err := s.result(line)
			if err != nil {
				return nil, err
			}
			in.Ended = append(in.Ended, r)
		}
	}
	return in, nil
}

func (s *script) refs(vals []string) []AttemptRef {
	var list []AttemptRef
	for _, v := range vals {
		id := parseAttempt(v)
		list = append(list, AttemptRef{s.given[id].Job, id})
	}
	return list
}

func (s *script) result(line string) (Result, error) {
	w := strings.Fields(line)
	id := parseAttempt(w[0])
	a, ok := s.given[id]
	if !ok {
		return Result{}, fmt.Errorf("attempt %s was never given", w[0])
	}
	r := Result{Job: a.Job, Attempt: id}
	for _, kv := range w[1:] {
		k, v, _ := strings.Cut(kv, "=")
		n, _ := strconv.Atoi(v)
		switch k {
		case "done":
			r.Outputs = append(r.Outputs, s.outputs(a)...)
		case "out":
			r.Outputs = append(r.Outputs, s.written(a, v))
		case "exit":
			r.Outcome, r.ExitCode = Exited, n
		case "staged": // BYTES/TIME/TIME: read from storage, in how long, and how long all took
			r.Usage = usageOf(v)
		case "signal":
			r.Outcome, r.Signal = Signalled, n
		default:
			i := slices.IndexFunc(outcomeNames[:], func(name string) bool { return strings.ReplaceAll(name, " ", "-") == k })
			if i < 0 {
				return r, fmt.Errorf("unknown outcome %s", k)
			}
			r.Outcome = Outcome(i)
		}
	}
	return r, nil
}

func usageOf(v string) Usage {
	w := strings.Split(v, "/")
	bytes, _ := strconv.ParseInt(w[0], 10, 64)
	in, _ := time.ParseDuration(w[1])
	all, _ := time.ParseDuration(w[2])
	return Usage{StageInStart: epoch, Start: epoch.Add(in), End: epoch.Add(all), StageOutEnd: epoch.Add(all), BytesStaged: bytes}
}

func (s *script) outputs(a Assignment) []WrittenFile {
	var list []WrittenFile
	for _, o := range a.Outputs {
		if !o.Pattern {
			w := WrittenFile{LFN: o.LFN, Version: o.Version, Size: 10}
			if o.Storage == StorageElement {
				w.PFN = physical(o.LFN, o.Version, a.Attempt)
			}
			list = append(list, w)
		}
	}
	return list
}

func (s *script) written(a Assignment, lfn string) WrittenFile {
	var v Version
	for _, o := range a.Outputs {
		if o.LFN == lfn || o.Pattern {
			v = o.Version
		}
	}
	return WrittenFile{LFN: lfn, Version: v, Size: 10, PFN: physical(lfn, v, a.Attempt)}
}

func physical(lfn string, v Version, a AttemptID) string {
	return fmt.Sprintf("se:%s.v%d.a%s", lfn, v, attemptName(a))
}

func (s *script) site(d *datadriven.TestData) Input {
	site := Site{Name: d.CmdArgs[0].Key, Pilot: Resources{MilliCPUs: 1000, Memory: 1000, Disk: 1000}}
	for _, a := range d.CmdArgs[1:] {
		n, _ := strconv.Atoi(a.Vals[0])
		switch a.Key {
		case "min":
			site.MinPilots = n
		case "max":
			site.MaxPilots = n
		case "idle":
			site.MinIdlePilots = n
		case "cpus":
			site.Pilot.MilliCPUs = int64(n) * 1000
		case "mem":
			site.Pilot.Memory = int64(n)
		case "storage":
			site.Storage = a.Vals[0]
		case "price":
			site.Price = float64(n)
		case "wait":
			site.QueueWait, _ = time.ParseDuration(a.Vals[0])
		}
	}
	return SetSite{site}
}

func parseRef(s string) FileRef {
	lfn, v, _ := strings.Cut(s, "@")
	n, _ := strconv.ParseUint(v, 10, 32)
	return FileRef{LFN: lfn, Version: Version(n)}
}

// copyOf is a cached copy, written as lfn@version#attempt. Where no attempt is
// named it is one that counts, or what an attempt wrote that ends meanwhile.
func (s *script) copyOf(text, results string) FileRef {
	name, attempt, named := strings.Cut(text, "#")
	r := parseRef(name)
	v := s.core.versionOf(r)
	switch ended, _, ends := strings.Cut(results, " "); {
	case named:
		r.Tag = Tag(parseAttempt(attempt))
	case v != nil && ends && v.state != present:
		r.Tag = Tag(parseAttempt(ended))
	case v != nil:
		r.Tag = v.tag
	}
	return r
}

// otherTag shows the attempt of a copy that does not count.
func (s *script) otherTag(f FileRef) string {
	if v := s.core.versionOf(f); v != nil && v.tag == f.Tag {
		return ""
	}
	return "#" + attemptName(AttemptID(f.Tag))
}

// attemptName shortens the two halves of an attempt to 1.7.
func attemptName(id AttemptID) string { return fmt.Sprintf("%d.%d", id>>32, id&0xffffffff) }

func parseAttempt(s string) AttemptID {
	hi, lo, _ := strings.Cut(s, ".")
	h, _ := strconv.ParseUint(hi, 10, 32)
	l, _ := strconv.ParseUint(lo, 10, 32)
	return AttemptID(h<<32 | l)
}

// render keeps the records, and shows the rest of the effects.
func (s *script) render(e Effects) string {
	s.keep(e.Persist)
	var b strings.Builder
	for _, x := range e.Events {
		b.WriteString(showEvent(x))
	}
	for _, r := range e.Replies {
		s.showReply(&b, r)
	}
	for _, x := range e.Start {
		fmt.Fprintf(&b, "start %d at %s\n", x.Count, x.Site)
	}
	for _, x := range e.Stop {
		fmt.Fprintf(&b, "withdraw %s\n", x)
	}
	for _, x := range e.Publish {
		fmt.Fprintf(&b, "publish %s@%d from %s\n", x.File.LFN, x.File.Version, x.PFN)
	}
	for _, x := range e.Remove {
		fmt.Fprintf(&b, "remove %s\n", x)
	}
	return b.String()
}

func showEvent(x Event) string {
	var b strings.Builder
	fmt.Fprintf(&b, "%v", x.Kind)
	if x.Name != "" {
		fmt.Fprintf(&b, " %s", x.Name)
	}
	if x.Pilot != "" {
		fmt.Fprintf(&b, " pilot=%s", x.Pilot)
	}
	for _, f := range x.Files {
		fmt.Fprintf(&b, " %s@%d", f.File.LFN, f.File.Version)
	}
	if x.Reused {
		b.WriteString(" reused")
	}
	if x.Reason != "" {
		fmt.Fprintf(&b, " (%s)", x.Reason)
	}
	b.WriteByte('\n')
	return b.String()
}

func (s *script) showReply(b *strings.Builder, r Reply) {
	a := r.Answer
	fmt.Fprintf(b, "reply %s seq=%d", r.Pilot, r.Seq)
	if a.Superseded {
		b.WriteString(" superseded\n")
		return
	}
	fmt.Fprintf(b, " number=%s seen=%d", attemptName(AttemptID(a.Number)), a.Seen)
	for _, flag := range []struct {
		on   bool
		name string
	}{{a.NeedFull, "need-full"}, {a.Leave, "leave"}, {a.LeaveNow, "leave-now"}} {
		if flag.on {
			b.WriteString(" " + flag.name)
		}
	}
	for _, p := range a.Peers {
		fmt.Fprintf(b, " peer=%s", p.Pilot)
	}
	b.WriteByte('\n')
	for _, x := range a.Run {
		s.given[x.Attempt] = x
		fmt.Fprintf(b, "  run %s as %s try %d", x.Name, attemptName(x.Attempt), x.Try)
		if x.Needs.Memory > 0 {
			fmt.Fprintf(b, " mem=%d", x.Needs.Memory)
		}
		for _, f := range x.Inputs {
			fmt.Fprintf(b, " %s@%d", f.File.LFN, f.File.Version)
			if f.PFN == "" {
				b.WriteString("(cache)")
			}
		}
		b.WriteString(" ->")
		for _, f := range x.Outputs {
			fmt.Fprintf(b, " %s@%d", f.LFN, f.Version)
		}
		b.WriteByte('\n')
	}
	for _, id := range a.End {
		fmt.Fprintf(b, "  end %s\n", attemptName(id))
	}
	for _, f := range a.Prefetch {
		fmt.Fprintf(b, "  prefetch %s@%d\n", f.File.LFN, f.File.Version)
	}
	for i, f := range a.Evict {
		fmt.Fprintf(b, "  evict %d: %s@%d%s\n", i+1, f.LFN, f.Version, s.otherTag(f))
	}
}

func (s *script) jobs() string {
	var b strings.Builder
	for v := range s.core.Jobs(0) {
		fmt.Fprintf(&b, "%s %v", v.Name, v.State)
		for _, a := range v.Attempts {
			fmt.Fprintf(&b, " %s@%s", attemptName(a.Attempt), a.Pilot)
		}
		if v.Reason != "" {
			fmt.Fprintf(&b, " (%s)", v.Reason)
		}
		b.WriteByte('\n')
	}
	return b.String()
}

func (s *script) pilots() string {
	var b strings.Builder
	for _, p := range s.core.Pilots() {
		fmt.Fprintf(&b, "%s host=%s running=%d assigned=%d cached=%d parked=%v\n", p.Pilot, p.Info.Host, p.Running, p.Assigned, p.Cached, p.Parked)
	}
	return b.String()
}

func (s *script) preview(d *datadriven.TestData) (string, error) {
	in, err := s.submission(lines(d.Input))
	if err != nil {
		return "", err
	}
	list, err := s.core.Preview(in.(Submit).Jobs)
	if err != nil {
		return "", err
	}
	var b strings.Builder
	for _, p := range list {
		fmt.Fprintf(&b, "%s %v %s\n", p.Job, p.Reused, p.Why)
	}
	return b.String(), nil
}
