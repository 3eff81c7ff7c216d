package dispatch

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/cockroachdb/datadriven"

	"fairway/internal/logical"
	"fairway/internal/taskqueue"
)

func (s *script) input(d *datadriven.TestData) (taskqueue.Input, error) {
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
	case "hang-up": // PILOT SEQ
		seq, err := strconv.ParseUint(words[1], 10, 64)
		return taskqueue.HangUp{Pilot: taskqueue.PilotID(words[0]), Seq: seq}, err
	case "cancel", "retry":
		var ids []taskqueue.JobID
		for _, name := range words {
			id, ok := s.core.JobNamed(s.current, name)
			if !ok {
				id = taskqueue.NewJobID(s.current, 999)
			}
			ids = append(ids, id)
		}
		if d.Cmd == "cancel" {
			return taskqueue.Cancel{Jobs: ids}, nil
		}
		return taskqueue.RetryJobs{Jobs: ids}, nil
	case "prioritize": // PRIORITY [JOB...]
		n, err := strconv.Atoi(words[0])
		in := taskqueue.Prioritize{Run: s.current, Priority: n}
		for _, name := range words[1:] {
			id, _ := s.core.JobNamed(s.current, name)
			in.Jobs = append(in.Jobs, id)
		}
		return in, err
	case "site":
		return s.site(d), nil
	case "submitted":
		return taskqueue.PilotSubmitted{Site: words[0], Launch: words[1]}, nil
	case "ended":
		return taskqueue.PilotEnded{Launch: words[0]}, nil
	case "published":
		return taskqueue.Published{File: s.refOf(words[0])}, nil
	case "lose":
		lost := lostFile(words[0])
		lost.File.Run = s.current
		return taskqueue.LoseFiles{Files: []taskqueue.LostFile{lost}}, nil
	case "removed":
		return taskqueue.Removed{PFN: words[0]}, nil
	case "stop":
		return taskqueue.Stop{Drain: len(words) > 0}, nil
	case "run": // NUMBER [keep-going]
		n, err := strconv.ParseUint(words[0], 10, 32)
		s.current = taskqueue.RunID(n)
		return taskqueue.SetRun{Run: taskqueue.Run{ID: s.current, Name: "w", KeepGoing: len(words) > 1}}, err
	case "complete":
		return taskqueue.CompleteRun{Run: s.current}, nil
	case "readers-known":
		return taskqueue.ReadersKnown{Run: s.current, LFNs: words}, nil
	case "stop-run":
		return taskqueue.StopRun{Run: s.current, Drain: len(words) > 0}, nil
	case "retire":
		return taskqueue.RetireRun{Run: s.current}, nil
	case "tick":
		return taskqueue.Tick{}, nil
	}
	return nil, fmt.Errorf("unknown command %s", d.Cmd)
}

func lines(s string) []string {
	return strings.Split(strings.TrimSpace(s), "\n")
}

// files: LFN SIZE [IDENTITY [PFN]], one a line.
func (s *script) files(in []string) (taskqueue.Input, error) {
	a := taskqueue.AddFiles{Run: s.current}
	for _, line := range in {
		w := strings.Fields(line)
		f := taskqueue.ExistingFile{LFN: w[0], PFN: "/data/" + w[0], Identity: "1"}
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

// submission: NAME [reads=a,b!stream] [writes=c,d*,e!cache,f!publish] [key=value...], one a line.
func (s *script) submission(in []string) (taskqueue.Input, error) {
	sub := taskqueue.Submit{Run: s.current}
	for _, line := range in {
		w := strings.Fields(line)
		j := taskqueue.Job{Name: w[0], Step: strings.TrimRight(w[0], "0123456789"), Digest: "d"}
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

func setField(j *taskqueue.Job, k, v string) error {
	n, _ := strconv.Atoi(v)
	d, _ := time.ParseDuration(v)
	switch k {
	case "reads":
		for i, in := range strings.Split(v, ",") {
			lfn, streams := strings.CutSuffix(in, "!stream")
			j.Reads = append(j.Reads, lfn)
			if streams {
				j.Access = slices.Grow(j.Access, i+1)[:i+1]
				j.Access[i] = taskqueue.AccessStream
			}
		}
		if j.Access != nil {
			j.Access = slices.Grow(j.Access, len(j.Reads))[:len(j.Reads)]
		}
	case "writes":
		for _, o := range strings.Split(v, ",") {
			name, flags, _ := strings.Cut(o, "!")
			w := taskqueue.Output{
				LFN: name, Pattern: strings.Contains(name, "*"), Publish: strings.Contains(flags, "publish"),
				Temporary: strings.Contains(flags, "temporary"),
			}
			if strings.Contains(flags, "cache") {
				w.Storage = taskqueue.StorageCache
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
	case "share":
		j.Needs.GPUShare = int64(n)
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
func (s *script) sync(d *datadriven.TestData) (taskqueue.Input, error) {
	seq, err := strconv.ParseUint(d.CmdArgs[1].Key, 10, 64)
	if err != nil {
		return nil, err
	}
	in := taskqueue.Sync{Pilot: taskqueue.PilotID(d.CmdArgs[0].Key), Seq: seq, Hold: true}
	info := taskqueue.PilotInfo{
		Host: "h1", Site: "local", Has: taskqueue.Resources{MilliCPUs: 1000, Memory: 1000, Disk: 1000},
		CacheDir: "/cache/" + d.CmdArgs[0].Key,
	}
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
		case "lease":
			info.Lease, _ = time.ParseDuration(v)
		case "machine":
			info.Machine = v
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
				c := taskqueue.CachedFile{File: s.copyOf(f, d.Input)}
				if v := s.versionOf(c.File); v != nil {
					c.Size = v.size
				}
				in.CacheAdded = append(in.CacheAdded, c)
			}
		case "digest":
			in.Cache = new(logical.Copies)
			for _, f := range a.Vals {
				r := s.copyOf(f, d.Input)
				in.Cache.Add(r.LFN, uint32(r.Version), uint64(r.Tag))
			}
		case "told":
			in.CacheTold = uint64(parseAttempt(v))
		case "space":
			info.CacheSize = n
		case "uncached":
			for _, f := range a.Vals {
				in.CacheGone = append(in.CacheGone, s.copyOf(f, ""))
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

func (s *script) refs(vals []string) []taskqueue.AttemptRef {
	var list []taskqueue.AttemptRef
	for _, v := range vals {
		id := parseAttempt(v)
		list = append(list, taskqueue.AttemptRef{Job: s.given[id].Job, Attempt: id})
	}
	return list
}

func (s *script) result(line string) (taskqueue.Result, error) {
	w := strings.Fields(line)
	id := parseAttempt(w[0])
	a, ok := s.given[id]
	if !ok {
		return taskqueue.Result{}, fmt.Errorf("attempt %s was never given", w[0])
	}
	r := taskqueue.Result{Job: a.Job, Attempt: id}
	for _, kv := range w[1:] {
		k, v, _ := strings.Cut(kv, "=")
		n, _ := strconv.Atoi(v)
		switch k {
		case "done":
			r.Outputs = append(r.Outputs, s.outputs(a)...)
		case "out":
			r.Outputs = append(r.Outputs, s.written(a, v))
		case "lost":
			lost := lostFile(v)
			name, _, _ := strings.Cut(v, ":")
			lost.File = s.copyOf(name, "")
			r.Lost = append(r.Lost, lost)
		case "exit":
			r.Outcome, r.ExitCode = taskqueue.Exited, n
		case "staged": // BYTES/TIME/TIME: read from storage, in how long, and how long all took
			r.Usage = usageOf(v)
		case "signal":
			r.Outcome, r.Signal = taskqueue.Signalled, n
		default:
			for strings.ReplaceAll(r.Outcome.String(), " ", "-") != k {
				if r.Outcome++; r.Outcome > taskqueue.InputLost {
					return r, fmt.Errorf("unknown outcome %s", k)
				}
			}
		}
	}
	return r, nil
}

// lostFile: LFN@VERSION:PFN.
func lostFile(text string) taskqueue.LostFile {
	name, pfn, _ := strings.Cut(text, ":")
	return taskqueue.LostFile{File: parseRef(name), PFN: pfn, Why: "is not there"}
}

func usageOf(v string) taskqueue.Usage {
	w := strings.Split(v, "/")
	bytes, _ := strconv.ParseInt(w[0], 10, 64)
	in, _ := time.ParseDuration(w[1])
	all, _ := time.ParseDuration(w[2])
	return taskqueue.Usage{
		StageInStart: epoch, Start: epoch.Add(in), End: epoch.Add(all), StageOutEnd: epoch.Add(all), BytesStaged: bytes,
	}
}

func (s *script) outputs(a taskqueue.Assignment) []taskqueue.WrittenFile {
	var list []taskqueue.WrittenFile
	for _, o := range a.Outputs {
		if !o.Pattern {
			w := taskqueue.WrittenFile{LFN: o.LFN, Version: o.Version, Size: 10}
			if o.Storage == taskqueue.StorageElement {
				w.PFN = physical(o.LFN, o.Version, a.Attempt)
			}
			list = append(list, w)
		}
	}
	return list
}

func (s *script) written(a taskqueue.Assignment, lfn string) taskqueue.WrittenFile {
	var v taskqueue.Version
	for _, o := range a.Outputs {
		if o.LFN == lfn || o.Pattern {
			v = o.Version
		}
	}
	return taskqueue.WrittenFile{LFN: lfn, Version: v, Size: 10, PFN: physical(lfn, v, a.Attempt)}
}

func physical(lfn string, v taskqueue.Version, a taskqueue.AttemptID) string {
	return fmt.Sprintf("se:%s.v%d.a%s", lfn, v, attemptName(a))
}

func (s *script) site(d *datadriven.TestData) taskqueue.Input {
	site := taskqueue.Site{Name: d.CmdArgs[0].Key, Pilot: taskqueue.Resources{MilliCPUs: 1000, Memory: 1000, Disk: 1000}}
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
		case "most-cpus":
			site.Most.MilliCPUs = int64(n) * 1000
		case "lease":
			site.Lease, _ = time.ParseDuration(a.Vals[0])
		case "storage":
			site.Storage = a.Vals[0]
		case "idle-time":
			site.IdleTime, _ = time.ParseDuration(a.Vals[0])
		case "price":
			site.Price = float64(n)
		case "wait":
			site.QueueWait, _ = time.ParseDuration(a.Vals[0])
		}
	}
	return taskqueue.SetSite{Site: site}
}

func parseRef(s string) taskqueue.FileRef {
	lfn, v, _ := strings.Cut(s, "@")
	n, _ := strconv.ParseUint(v, 10, 32)
	return taskqueue.FileRef{LFN: lfn, Version: taskqueue.Version(n)}
}

func (s *script) refOf(text string) taskqueue.FileRef {
	r := parseRef(text)
	r.Run = s.current
	return r
}

// versionOf is the version of the current run that a copy has the name of.
func (s *script) versionOf(r taskqueue.FileRef) *version {
	r.Run = s.current
	return s.core.files.version(r)
}

// copyOf is a cached copy, written as lfn@version#attempt. Where no attempt is
// named it is one that counts, or what an attempt wrote that ends meanwhile.
func (s *script) copyOf(text, results string) taskqueue.FileRef {
	name, attempt, named := strings.Cut(text, "#")
	r := parseRef(name)
	v := s.versionOf(r)
	switch ended, _, ends := strings.Cut(results, " "); {
	case named:
		r.Tag = taskqueue.Tag(parseAttempt(attempt))
	case v != nil && ends && v.state != present:
		r.Tag = taskqueue.Tag(parseAttempt(ended))
	case v != nil:
		r.Tag = v.tag
	}
	return r
}

// otherTag shows the attempt of a copy that does not count.
func (s *script) otherTag(f taskqueue.FileRef) string {
	if v := s.versionOf(f); v != nil && v.tag == f.Tag {
		return ""
	}
	return "#" + attemptName(taskqueue.AttemptID(f.Tag))
}

func parseAttempt(s string) taskqueue.AttemptID {
	hi, lo, _ := strings.Cut(s, ".")
	h, _ := strconv.ParseUint(hi, 10, 32)
	l, _ := strconv.ParseUint(lo, 10, 32)
	return taskqueue.AttemptID(h<<32 | l)
}
