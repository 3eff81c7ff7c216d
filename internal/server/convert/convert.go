package convert

import (
	"encoding/hex"
	"fmt"
	"maps"
	"time"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/durationpb"
	"google.golang.org/protobuf/types/known/timestamppb"

	"fairway/internal/flow/workflow"
	"fairway/internal/legible"
	"fairway/internal/taskqueue"
	"fairway/internal/wire"
)

// Each converts each element. It returns nil where there is none.
func Each[From, To any](from []From, convert func(From) To) []To {
	if len(from) == 0 {
		return nil
	}
	to := make([]To, len(from))
	for i, f := range from {
		to[i] = convert(f)
	}
	return to
}

// SyncFromWire makes an input of dispatch of what a pilot reports. It takes what is
// told of the pilot's own time as of now.
func SyncFromWire(r *wire.SyncRequest, now time.Time) taskqueue.Sync {
	return taskqueue.Sync{
		Pilot:      taskqueue.PilotID(r.GetPilot()),
		Seq:        r.GetSeq(),
		LastAnswer: r.GetLastAnswer(),
		Full:       r.GetFull(),
		Hello:      helloFromWire(r.GetHello(), now),
		Queued:     Each(r.GetQueued(), attemptFromWire),
		Started:    Each(r.GetStarted(), attemptFromWire),
		Ended:      Each(r.GetEnded(), func(e *wire.Report) taskqueue.Result { return ResultFromWire(e.GetResult()) }),
		CacheAdded: Each(r.GetCacheAdded(), cachedFromWire),
		CacheGone:  Each(r.GetCacheGone(), goneFromWire),
		Cache:      copiesFromWire(r.GetCache()),
		CacheTold:  r.GetCacheTold(),
		Draining:   r.GetDraining(),
		Leaving:    r.GetLeaving(),
		Hold:       r.GetHold(),
		LookedFor:  r.GetLookedFor(),
		Members:    Each(r.GetMembers(), memberFromWire),
		Saved:      Each(r.GetSaved(), savedFromWire),
		Waiting:    Each(r.GetWaiting(), waitingFromWire),
		Away:       Each(r.GetAway(), awayFromWire),
		MovesFiles: Each(r.GetMovesFiles(), func(id uint64) taskqueue.AttemptID { return taskqueue.AttemptID(id) }),
		Unserved:   Each(r.GetUnserved(), func(id string) taskqueue.PilotID { return taskqueue.PilotID(id) }),
	}
}

func copiesFromWire(d *wire.CacheDigest) *taskqueue.Copies {
	if d == nil {
		return nil
	}
	return &taskqueue.Copies{Files: d.GetFiles(), Sum: d.GetSum()}
}

func helloFromWire(h *wire.PilotInfo, at time.Time) *taskqueue.PilotInfo {
	if h == nil {
		return nil
	}
	return &taskqueue.PilotInfo{
		Host:      h.GetHost(),
		Machine:   h.GetMachine(),
		Lease:     h.GetLease().AsDuration(),
		Site:      h.GetSite(),
		Launch:    h.GetLaunch(),
		Tools:     h.GetTools(),
		Has:       resourcesFromWire(h.GetHas()),
		Expires:   expiry(h.GetRemaining(), at),
		CacheDir:  h.GetCacheDir(),
		CacheSize: h.GetCacheSize(),
		Address:   h.GetShareAddress(),
		Pin:       h.GetSharePin(),
		Error:     bounded(h.GetError()),
	}
}

// expiry is the instant at which what remains is over; the zero time without a
// limit.
func expiry(remaining *durationpb.Duration, at time.Time) time.Time {
	if remaining == nil {
		return time.Time{}
	}
	return at.Add(remaining.AsDuration())
}

// JobFromWire is the job that a message names by its run and its number there.
func JobFromWire(m interface {
	GetRun() uint32
	GetJob() uint32
},
) taskqueue.JobID {
	return taskqueue.NewJobID(taskqueue.RunID(m.GetRun()), m.GetJob())
}

func attemptFromWire(a *wire.AttemptRef) taskqueue.AttemptRef {
	return taskqueue.AttemptRef{
		Job: JobFromWire(a), Attempt: taskqueue.AttemptID(a.GetAttempt()), GangPlace: placeFromWire(a),
		Running: a.GetRunning().AsDuration(),
	}
}

// placeFromWire is where an attempt says that it stands in its gang.
func placeFromWire(m interface {
	GetLeader() uint64
	GetTask() int32
},
) taskqueue.GangPlace {
	return taskqueue.GangPlace{Leader: taskqueue.AttemptID(m.GetLeader()), Task: int(m.GetTask())}
}

func memberFromWire(m *wire.MemberState) taskqueue.MemberState {
	return taskqueue.MemberState{
		Attempt: taskqueue.AttemptID(m.GetAttempt()), Host: m.GetHost(), Begun: m.GetBegun(),
		Ports: Each(m.GetPorts(), func(port uint32) int { return int(port) }),
	}
}

func waitingFromWire(w *wire.WaitingInput) taskqueue.WaitingInput {
	return taskqueue.WaitingInput{
		Attempt: taskqueue.AttemptID(w.GetAttempt()), LFN: w.GetLfn(), Source: w.GetSource(),
		Bytes: w.GetBytes(), For: time.Duration(w.GetMilliseconds()) * time.Millisecond,
	}
}

// mostAway bounds what is shown of a server that is away.
const mostAway = 500

func awayFromWire(s *wire.AwayServer) taskqueue.AwayServer {
	return taskqueue.AwayServer{
		Server: legible.Line(s.GetServer(), mostAway), Reason: legible.Line(s.GetReason(), mostAway),
	}
}

func savedFromWire(s *wire.SavedState) taskqueue.SavedState {
	return taskqueue.SavedState{Of: attemptFromWire(s.GetOf()), File: writtenFromWire(s.GetFile())}
}

func fileFromWire(f *wire.FileRef) taskqueue.FileRef {
	return taskqueue.FileRef{LFN: f.GetLfn(), Version: taskqueue.Version(f.GetVersion()), Tag: taskqueue.Tag(f.GetTag())}
}

func cachedFromWire(f *wire.CachedFile) taskqueue.CachedFile {
	return taskqueue.CachedFile{File: fileFromWire(f.GetFile()), Size: f.GetSize(),
		Hash: hex.EncodeToString(f.GetBlake3())}
}

func goneFromWire(g *wire.CacheGone) taskqueue.FileRef { return fileFromWire(g.GetFile()) }

func resourcesFromWire(r *wire.Resources) taskqueue.Resources {
	return taskqueue.Resources{
		MilliCPUs: r.GetMilliCpus(),
		Memory:    r.GetMemoryBytes(),
		Disk:      r.GetDiskBytes(),
		Time:      r.GetTime().AsDuration(),
		Countable: r.GetCountable(),
		GPUShare:  r.GetGpuShare(),
	}
}

// ResultFromWire makes a result of its message, with bounded texts.
func ResultFromWire(r *wire.Result) taskqueue.Result {
	return taskqueue.Result{
		Job:      JobFromWire(r),
		Attempt:  taskqueue.AttemptID(r.GetAttempt()),
		Outcome:  taskqueue.Outcome(r.GetOutcome()),
		ExitCode: int(r.GetExitCode()),
		Signal:   int(r.GetSignal()),
		Message:  bounded(r.GetMessage()),
		Notes:    Each(r.GetNotes()[:min(len(r.GetNotes()), MaxNotes)], bounded),
		Outputs:  Each(r.GetOutputs(), writtenFromWire),
		Usage:    UsageFromWire(r.GetUsage()),
		Lost:     Each(r.GetLost(), lostFromWire),

		GangPlace: placeFromWire(r),
	}
}

func lostFromWire(l *wire.LostFile) taskqueue.LostFile {
	return taskqueue.LostFile{File: fileFromWire(l.GetFile()), PFN: l.GetPfn(), Why: bounded(l.GetWhy())}
}

// MaxText and MaxNotes bound what a pilot may tell for people of one attempt: bytes
// of a text, and lines. It is kept as long as the result. Pilots keep to less; what
// is not UTF-8 the decoder refuses.
const (
	MaxText  = 1024
	MaxNotes = 20
)

// bounded is a text for people as one line that no terminal obeys, wherever it is printed or
// logged: else a pilot could print lines as if they were Fairway's own.
func bounded(text string) string { return legible.Line(text, MaxText) }

func writtenFromWire(w *wire.WrittenFile) taskqueue.WrittenFile {
	return taskqueue.WrittenFile{
		LFN:     w.GetLfn(),
		Version: taskqueue.Version(w.GetVersion()),
		PFN:     w.GetPfn(),
		Size:    w.GetSize(),
		Adler32: w.GetAdler32(),
		Hash:    hex.EncodeToString(w.GetBlake3()),
		Records: w.GetRecords(),
		Written: w.GetWritten(),
	}
}

// UsageFromWire makes what an attempt used of a message.
func UsageFromWire(u *wire.Usage) taskqueue.Usage {
	return taskqueue.Usage{
		StageInStart: instantFromWire(u.GetStageInStart()),
		Start:        instantFromWire(u.GetStart()),
		End:          instantFromWire(u.GetEnd()),
		StageOutEnd:  instantFromWire(u.GetStageOutEnd()),
		StagedAhead:  u.GetStagedAhead().AsDuration(),
		CPU:          u.GetCpu().AsDuration(),
		MaxRSS:       u.GetMaxRssBytes(),
		BytesStaged:  u.GetBytesStaged(),
		BytesCached:  u.GetBytesCached(),
		BytesWritten: u.GetBytesWritten(),
		CacheHits:    int(u.GetCacheHits()),
		CacheMisses:  int(u.GetCacheMisses()),

		RemoteHits: int(u.GetRemoteHits()), BytesRemote: u.GetBytesRemote(),
		PrefetchHits: int(u.GetPrefetchHits()), BytesPrefetched: u.GetBytesPrefetched(),
	}
}

// instantFromWire makes the zero time of an absent message.
func instantFromWire(t *timestamppb.Timestamp) time.Time {
	if t == nil {
		return time.Time{}
	}
	return t.AsTime()
}

// InstantToWire makes an absent message of the zero time.
func InstantToWire(t time.Time) *timestamppb.Timestamp {
	if t.IsZero() {
		return nil
	}
	return timestamppb.New(t)
}

func durationToWire(d time.Duration) *durationpb.Duration {
	if d == 0 {
		return nil
	}
	return durationpb.New(d)
}

// AnswerToWire makes the message of an answer. It shares nothing with it but payloads, which
// nobody changes, so the next step of dispatch may overwrite the answer.
func AnswerToWire(a taskqueue.Answer) *wire.SyncAnswer {
	run := make([]*wire.Assignment, len(a.Run))
	for i := range a.Run {
		run[i] = assignmentToWire(&a.Run[i])
	}
	return &wire.SyncAnswer{
		Number:     a.Number,
		Seen:       a.Seen,
		NeedFull:   a.NeedFull,
		TellCache:  a.TellCache,
		Run:        run,
		End:        Each(a.End, func(id taskqueue.AttemptID) uint64 { return uint64(id) }),
		GiveBack:   Each(a.GiveBack, func(id taskqueue.AttemptID) uint64 { return uint64(id) }),
		Prefetch:   Each(a.Prefetch, inputToWire),
		Evict:      Each(a.Evict, fileToWire),
		Stale:      int64(a.Stale),
		Peers:      Each(a.Peers, peerToWire),
		NextSync:   durationToWire(a.NextSync),
		Lease:      durationToWire(a.Lease),
		Leave:      a.Leave,
		LeaveNow:   a.LeaveNow,
		Why:        a.Why,
		Superseded: a.Superseded,
		Begin:      Each(a.Begin, startToWire),
		LookFor:    a.LookFor, LookForNumber: a.LookForNumber,
	}
}

func assignmentToWire(a *taskqueue.Assignment) *wire.Assignment {
	return &wire.Assignment{
		Run:      uint32(a.Job.Run()),
		Job:      a.Job.Number(),
		Attempt:  uint64(a.Attempt),
		Name:     a.Name,
		Step:     a.Step,
		Try:      int32(a.Try),
		Payload:  a.Payload,
		Needs:    ResourcesToWire(a.Needs),
		Inputs:   Each(a.Inputs, inputToWire),
		Outputs:  Each(a.Outputs, outputToWire),
		Private:  a.Private,
		Priority: int32(a.Priority),

		Checkpoint: checkpointToWire(a.Checkpoint),
		Gang:       gangToWire(a),
	}
}

func gangToWire(a *taskqueue.Assignment) *wire.Gang {
	if a.Tasks == 0 {
		return nil
	}
	return &wire.Gang{Leader: uint64(a.Leader), Task: int32(a.Task), Tasks: int32(a.Tasks), Once: a.Once}
}

// startToWire makes the message but for the keys, which the server has.
func startToWire(s taskqueue.GangStart) *wire.GangStart {
	return &wire.GangStart{
		Attempt: uint64(s.Attempt), Leader: uint64(s.Leader), Task: int32(s.Task),
		Members: Each(s.Members, func(m taskqueue.Member) *wire.Member {
			return &wire.Member{
				Task: int32(m.Task), Host: m.Host, Ports: Each(m.Ports, func(port int) uint32 { return uint32(port) }),
			}
		}),
	}
}

func checkpointToWire(folder string) *wire.OutputFile {
	if folder == "" {
		return nil
	}
	return &wire.OutputFile{Lfn: folder}
}

func fileToWire(f taskqueue.FileRef) *wire.FileRef {
	return &wire.FileRef{Lfn: f.LFN, Version: uint32(f.Version), Tag: uint64(f.Tag)}
}

func inputToWire(f taskqueue.InputFile) *wire.InputFile {
	return &wire.InputFile{
		File: fileToWire(f.File), Size: f.Size, Pfn: f.PFN, Adler32: f.Adler32, Written: f.Written,
		Blake3: hashToWire(f.Hash), Access: wire.Access(f.Access), Source: sourceToWire(f.Source), Committed: f.Committed,
		Known: knownToWire(f.Known),
	}
}

func knownToWire(known [16]byte) []byte {
	if known == [16]byte{} {
		return nil
	}
	return known[:]
}

func sourceToWire(s *taskqueue.Source) *wire.Source {
	if s == nil {
		return nil
	}
	return &wire.Source{Pilot: string(s.Pilot), Address: s.Address, Pin: s.Pin, Origin: sourceToWire(s.Origin)}
}

func outputToWire(f taskqueue.OutputFile) *wire.OutputFile {
	return &wire.OutputFile{
		Lfn:       f.LFN,
		Pattern:   f.Pattern,
		CacheOnly: f.Storage == taskqueue.StorageCache,
		Version:   uint32(f.Version),
	}
}

func peerToWire(folder string) *wire.Peer { return &wire.Peer{CacheDir: folder} }

// ResourcesToWire makes the message of what a job needs or a pilot has.
func ResourcesToWire(r taskqueue.Resources) *wire.Resources {
	return &wire.Resources{
		MilliCpus:   r.MilliCPUs,
		MemoryBytes: r.Memory,
		DiskBytes:   r.Disk,
		Time:        durationToWire(r.Time),
		Countable:   r.Countable,
		GpuShare:    r.GPUShare,
	}
}

func lostToWire(l taskqueue.LostFile) *wire.LostFile {
	return &wire.LostFile{File: fileToWire(l.File), Pfn: l.PFN, Why: l.Why}
}

// hashToWire makes no bytes of a hash that is not known.
func hashToWire(h string) []byte {
	b, _ := hex.DecodeString(h) // it was made by EncodeToString
	return b
}

// JobsWithPayload turns what flow wants to be executed into the bytes that
// dispatch carries to the pilot. The same command gives the same bytes.
func JobsWithPayload(jobs []workflow.NewJob) ([]taskqueue.Job, error) {
	made := make([]taskqueue.Job, len(jobs))
	for i := range jobs {
		payload, err := proto.MarshalOptions{Deterministic: true}.Marshal(payloadOf(&jobs[i].Command))
		if err != nil {
			return nil, fmt.Errorf("command of job %s: %w", jobs[i].Job.Name, err)
		}
		made[i] = jobs[i].Job
		made[i].Payload = payload
	}
	return made, nil
}

func payloadOf(c *workflow.Command) *wire.Payload {
	return &wire.Payload{
		Shell:       c.Shell,
		Script:      c.Script,
		Interpreter: c.Interpreter,
		Worker:      c.Worker,
		Decisive:    c.Decisive,
		Log:         c.Log,
		Strict:      c.Strict,
		Unwatched:   c.Unwatched,
		WholeOutput: c.WholeOutput,
		Container:   containerOf(c.Container),

		EnvironmentFolder: c.EnvironmentFolder,
		Argv:              c.Argv,
		Environment:       c.Environment,
		Variables:         c.Variables,
		Replay:            replayOf(c.Replay),
		InputVariables: Each(c.InputVariables, func(v workflow.InputVariable) *wire.InputVariable {
			return &wire.InputVariable{Name: v.Name, Lfns: v.LFNs}
		}),
	}
}

func containerOf(c *workflow.Container) *wire.Container {
	if c == nil {
		return nil
	}
	return &wire.Container{Image: c.Image, Runtime: c.Runtime}
}

func containerFromWire(c *wire.Container) *workflow.Container {
	if c == nil {
		return nil
	}
	return &workflow.Container{Image: c.GetImage(), Runtime: c.GetRuntime()}
}

func replayOf(r *workflow.Replay) *wire.Replay {
	if r == nil {
		return nil
	}
	writes := make(map[string]int64, len(r.Writes))
	for _, w := range r.Writes {
		writes[w.LFN] = w.Size
	}
	return &wire.Replay{Compute: durationToWire(r.Compute), WritesBytes: writes, Program: r.Program}
}

// SubmittedFromWire makes the job that a program submits, and its command, of the message.
func SubmittedFromWire(m *wire.SubmittedJob) (taskqueue.Job, workflow.Command) {
	job := taskqueue.Job{
		Name: m.GetName(), Step: m.GetStep(), Tools: m.GetTools(), Site: m.GetSite(), Priority: int(m.GetPriority()),
		Needs: resourcesFromWire(m.GetNeeds()), Retry: retryFromWire(m.GetRetry()), Checkpoint: m.GetCheckpoint(),
		Tasks: int(m.GetTasks()), Apart: m.GetApart(), Once: m.GetOnce(),
		Reads:  Each(m.GetReads(), func(r *wire.SubmittedInput) string { return r.GetLfn() }),
		Access: Each(m.GetReads(), func(r *wire.SubmittedInput) taskqueue.Access { return taskqueue.Access(r.GetAccess()) }),
		Writes: Each(m.GetWrites(), func(w *wire.SubmittedOutput) taskqueue.Output {
			o := taskqueue.Output{LFN: w.GetLfn(), Pattern: w.GetPattern(), Publish: !w.GetUnpublished()}
			if w.GetCacheOnly() {
				o.Storage = taskqueue.StorageCache
			}
			return o
		}),
	}
	p := m.GetPayload()
	return job, workflow.Command{
		Shell: p.GetShell(), Interpreter: p.GetInterpreter(), Argv: p.GetArgv(), Log: p.GetLog(),
		Worker:      p.GetWorker(),
		Environment: maps.Clone(p.GetEnvironment()), Unwatched: p.GetUnwatched(),
		WholeOutput: p.GetWholeOutput(),
		Container:   containerFromWire(p.GetContainer()), EnvironmentFolder: p.GetEnvironmentFolder(),
		InputVariables: Each(p.GetInputVariables(), func(v *wire.InputVariable) workflow.InputVariable {
			return workflow.InputVariable{Name: v.GetName(), LFNs: v.GetLfns()}
		}),
	}
}

// SubmittedToWire makes the message of a job that reads the files at these paths or URLs, by
// LFN. SubmittedFromWire gives the job and its command back.
func SubmittedToWire(j *workflow.NewJob, paths map[string]string) *wire.SubmittedJob {
	m := &wire.SubmittedJob{
		Name: j.Job.Name, Step: j.Job.Step, Payload: payloadOf(&j.Command),
		Needs: ResourcesToWire(j.Job.Needs), Tools: j.Job.Tools,
		Site: j.Job.Site, Priority: int32(j.Job.Priority), Checkpoint: j.Job.Checkpoint,
		Tasks: int32(j.Job.Tasks), Apart: j.Job.Apart, Once: j.Job.Once,
		Retry: &wire.RetryPolicy{
			Attempts: int32(j.Job.Retry.Attempts), Backoff: durationToWire(j.Job.Retry.Backoff),
			MemoryFactor: j.Job.Retry.MemoryFactor,
			ExitCodes:    Each(j.Job.Retry.ExitCodes, func(code int) int32 { return int32(code) }),
		},
	}
	for i, lfn := range j.Job.Reads {
		in := &wire.SubmittedInput{Lfn: lfn, File: paths[lfn]}
		if j.Job.Access != nil {
			in.Access = wire.Access(j.Job.Access[i])
		}
		m.Reads = append(m.Reads, in)
	}
	for i := range j.Job.Writes {
		w := &j.Job.Writes[i]
		m.Writes = append(m.Writes, &wire.SubmittedOutput{
			Lfn: w.LFN, Pattern: w.Pattern, CacheOnly: w.Storage == taskqueue.StorageCache, Unpublished: !w.Publish,
		})
	}
	return m
}

func retryFromWire(r *wire.RetryPolicy) taskqueue.Retry {
	return taskqueue.Retry{
		Attempts: int(r.GetAttempts()), Backoff: r.GetBackoff().AsDuration(), MemoryFactor: r.GetMemoryFactor(),
		ExitCodes: Each(r.GetExitCodes(), func(code int32) int { return int(code) }),
	}
}
