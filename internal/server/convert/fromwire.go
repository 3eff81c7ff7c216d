package convert

import (
	"strings"
	"time"

	"google.golang.org/protobuf/types/known/durationpb"
	"google.golang.org/protobuf/types/known/timestamppb"

	"fairway/internal/dispatch"
	"fairway/internal/wire"
)

// The messages of the pilot protocol are those of dispatch; the functions here
// and in convert_answer.go only change their clothes.

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
func SyncFromWire(r *wire.SyncRequest, now time.Time) dispatch.Sync {
	return dispatch.Sync{
		Pilot:      dispatch.PilotID(r.GetPilot()),
		Seq:        r.GetSeq(),
		LastAnswer: r.GetLastAnswer(),
		Full:       r.GetFull(),
		Hello:      helloFromWire(r.GetHello(), now),
		Queued:     Each(r.GetQueued(), attemptFromWire),
		Started:    Each(r.GetStarted(), attemptFromWire),
		Ended:      Each(r.GetEnded(), func(e *wire.Report) dispatch.Result { return ResultFromWire(e.GetResult()) }),
		CacheAdded: Each(r.GetCacheAdded(), cachedFromWire),
		CacheGone:  Each(r.GetCacheGone(), goneFromWire),
		Draining:   r.GetDraining(),
		Leaving:    r.GetLeaving(),
		Hold:       r.GetHold(),
	}
}

func helloFromWire(h *wire.PilotInfo, at time.Time) *dispatch.PilotInfo {
	if h == nil {
		return nil
	}
	return &dispatch.PilotInfo{
		Host:      h.GetHost(),
		Machine:   h.GetMachine(),
		Lease:     h.GetLease().AsDuration(),
		Site:      h.GetSite(),
		Launch:    h.GetLaunch(),
		SE:        h.GetSe(),
		Tools:     h.GetTools(),
		Has:       resourcesFromWire(h.GetHas()),
		Expires:   expiry(h.GetRemaining(), at),
		CacheDir:  h.GetCacheDir(),
		CacheSize: h.GetCacheSize(),
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

func attemptFromWire(a *wire.AttemptRef) dispatch.AttemptRef {
	return dispatch.AttemptRef{Job: dispatch.JobID(a.GetJob()), Attempt: dispatch.AttemptID(a.GetAttempt())}
}

func fileFromWire(f *wire.FileRef) dispatch.FileRef {
	return dispatch.FileRef{LFN: f.GetLfn(), Version: dispatch.Version(f.GetVersion()), Tag: dispatch.Tag(f.GetTag())}
}

func cachedFromWire(f *wire.CachedFile) dispatch.CachedFile {
	return dispatch.CachedFile{File: fileFromWire(f.GetFile()), Size: f.GetSize()}
}

func goneFromWire(g *wire.CacheGone) dispatch.CacheGone {
	return dispatch.CacheGone{File: fileFromWire(g.GetFile()), LastLink: g.GetLastLink()}
}

func resourcesFromWire(r *wire.Resources) dispatch.Resources {
	return dispatch.Resources{
		MilliCPUs: r.GetMilliCpus(),
		Memory:    r.GetMemoryBytes(),
		Disk:      r.GetDiskBytes(),
		Time:      r.GetTime().AsDuration(),
		Countable: r.GetCountable(),
	}
}

// ResultFromWire makes a result of its message, with bounded texts.
func ResultFromWire(r *wire.Result) dispatch.Result {
	return dispatch.Result{
		Job:      dispatch.JobID(r.GetJob()),
		Attempt:  dispatch.AttemptID(r.GetAttempt()),
		Outcome:  dispatch.Outcome(r.GetOutcome()),
		ExitCode: int(r.GetExitCode()),
		Signal:   int(r.GetSignal()),
		Message:  bounded(r.GetMessage()),
		Notes:    Each(r.GetNotes()[:min(len(r.GetNotes()), MaxNotes)], bounded),
		Outputs:  Each(r.GetOutputs(), writtenFromWire),
		Usage:    usageFromWire(r.GetUsage()),
		Lost:     Each(r.GetLost(), lostFromWire),
	}
}

func lostFromWire(l *wire.LostFile) dispatch.LostFile {
	return dispatch.LostFile{File: fileFromWire(l.GetFile()), PFN: l.GetPfn(), Why: bounded(l.GetWhy())}
}

// MaxText and MaxNotes bound what a pilot may tell for people of one attempt: bytes
// of a text, and lines. It is kept as long as the result. Pilots keep to less; what
// is not UTF-8 the decoder refuses.
const (
	MaxText  = 4096
	MaxNotes = 100
)

func bounded(text string) string {
	if len(text) <= MaxText {
		return text
	}
	return strings.ToValidUTF8(text[:MaxText], "") + "..."
}

func writtenFromWire(w *wire.WrittenFile) dispatch.WrittenFile {
	return dispatch.WrittenFile{
		LFN:     w.GetLfn(),
		Version: dispatch.Version(w.GetVersion()),
		PFN:     w.GetPfn(),
		Size:    w.GetSize(),
		Adler32: w.GetAdler32(),
		Records: w.GetRecords(),
	}
}

func usageFromWire(u *wire.Usage) dispatch.Usage {
	return dispatch.Usage{
		StageInStart: instantFromWire(u.GetStageInStart()),
		Start:        instantFromWire(u.GetStart()),
		End:          instantFromWire(u.GetEnd()),
		StageOutEnd:  instantFromWire(u.GetStageOutEnd()),
		CPU:          u.GetCpu().AsDuration(),
		MaxRSS:       u.GetMaxRssBytes(),
		BytesStaged:  u.GetBytesStaged(),
		BytesCached:  u.GetBytesCached(),
		BytesWritten: u.GetBytesWritten(),
		CacheHits:    int(u.GetCacheHits()),
		CacheMisses:  int(u.GetCacheMisses()),
	}
}

// instantFromWire and instantToWire let the zero time be an absent message.
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
