package convert

import (
	"fmt"

	"google.golang.org/protobuf/proto"

	"fairway/internal/dispatch"
	"fairway/internal/wire"
)

// AnswerToWire makes the message of an answer. It shares nothing with it, so the
// next step of dispatch may overwrite the answer. An error says that the payload of a
// job cannot be decoded.
func AnswerToWire(a dispatch.Answer) (*wire.SyncAnswer, error) {
	run := make([]*wire.Assignment, len(a.Run))
	for i := range a.Run {
		var err error
		if run[i], err = assignmentToWire(&a.Run[i]); err != nil {
			return nil, err
		}
	}
	return &wire.SyncAnswer{
		Number:     a.Number,
		Seen:       a.Seen,
		NeedFull:   a.NeedFull,
		Run:        run,
		End:        Each(a.End, func(id dispatch.AttemptID) uint64 { return uint64(id) }),
		Prefetch:   Each(a.Prefetch, inputToWire),
		Evict:      Each(a.Evict, fileToWire),
		Peers:      Each(a.Peers, peerToWire),
		NextSync:   durationToWire(a.NextSync),
		Lease:      durationToWire(a.Lease),
		Leave:      a.Leave,
		LeaveNow:   a.LeaveNow,
		Superseded: a.Superseded,
	}, nil
}

func assignmentToWire(a *dispatch.Assignment) (*wire.Assignment, error) {
	payload := new(wire.Payload)
	if err := proto.Unmarshal(a.Payload, payload); err != nil {
		return nil, fmt.Errorf("payload of job %s: %w", a.Name, err)
	}
	return &wire.Assignment{
		Job:     uint64(a.Job),
		Attempt: uint64(a.Attempt),
		Name:    a.Name,
		Step:    a.Step,
		Try:     int32(a.Try),
		Payload: payload,
		Needs:   ResourcesToWire(a.Needs),
		Inputs:  Each(a.Inputs, inputToWire),
		Outputs: Each(a.Outputs, outputToWire),
		Private: a.Private,
	}, nil
}

func fileToWire(f dispatch.FileRef) *wire.FileRef {
	return &wire.FileRef{Lfn: f.LFN, Version: uint32(f.Version), Tag: uint64(f.Tag)}
}

func inputToWire(f dispatch.InputFile) *wire.InputFile {
	return &wire.InputFile{File: fileToWire(f.File), Size: f.Size, Pfn: f.PFN, Adler32: f.Adler32}
}

func outputToWire(f dispatch.OutputFile) *wire.OutputFile {
	return &wire.OutputFile{
		Lfn:       f.LFN,
		Pattern:   f.Pattern,
		CacheOnly: f.Storage == dispatch.StorageCache,
		Publish:   f.Publish,
		Version:   uint32(f.Version),
	}
}

func peerToWire(p dispatch.Peer) *wire.Peer {
	return &wire.Peer{Pilot: string(p.Pilot), CacheDir: p.CacheDir, CacheSize: p.CacheSize}
}

// ResourcesToWire makes the message of what a job needs or a pilot has.
func ResourcesToWire(r dispatch.Resources) *wire.Resources {
	return &wire.Resources{
		MilliCpus:   r.MilliCPUs,
		MemoryBytes: r.Memory,
		DiskBytes:   r.Disk,
		Time:        durationToWire(r.Time),
		Countable:   r.Countable,
	}
}

// ResultToWire makes the message of a result; ResultFromWire gives it back.
func ResultToWire(r *dispatch.Result) *wire.Result {
	return &wire.Result{
		Job:      uint64(r.Job),
		Attempt:  uint64(r.Attempt),
		Outcome:  wire.Outcome(r.Outcome),
		ExitCode: int32(r.ExitCode),
		Signal:   int32(r.Signal),
		Message:  r.Message,
		Notes:    r.Notes,
		Outputs:  Each(r.Outputs, writtenToWire),
		Usage:    usageToWire(&r.Usage),
		Lost:     Each(r.Lost, lostToWire),
	}
}

func lostToWire(l dispatch.LostFile) *wire.LostFile {
	return &wire.LostFile{File: fileToWire(l.File), Pfn: l.PFN, Why: l.Why}
}

func writtenToWire(w dispatch.WrittenFile) *wire.WrittenFile {
	return &wire.WrittenFile{
		Lfn:     w.LFN,
		Version: uint32(w.Version),
		Pfn:     w.PFN,
		Size:    w.Size,
		Adler32: w.Adler32,
		Records: w.Records,
	}
}

func usageToWire(u *dispatch.Usage) *wire.Usage {
	return &wire.Usage{
		StageInStart: InstantToWire(u.StageInStart),
		Start:        InstantToWire(u.Start),
		End:          InstantToWire(u.End),
		StageOutEnd:  InstantToWire(u.StageOutEnd),
		Cpu:          durationToWire(u.CPU),
		MaxRssBytes:  u.MaxRSS,
		BytesStaged:  u.BytesStaged,
		BytesCached:  u.BytesCached,
		BytesWritten: u.BytesWritten,
		CacheHits:    int32(u.CacheHits),
		CacheMisses:  int32(u.CacheMisses),
	}
}
