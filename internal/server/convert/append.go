package convert

import (
	"time"

	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"

	"fairway/internal/taskqueue"
)

// The results of attempts are encoded by hand: there is one for each job, and to make messages of
// them first, with all that is in them, would cost as much as the whole rest of taking them in. A
// test compares both. What is empty is left out.

func appendNumber(b []byte, field protowire.Number, n uint64) []byte {
	if n == 0 {
		return b
	}
	return protowire.AppendVarint(protowire.AppendTag(b, field, protowire.VarintType), n)
}

func appendText(b []byte, field protowire.Number, s string) []byte {
	if s == "" {
		return b
	}
	return protowire.AppendString(protowire.AppendTag(b, field, protowire.BytesType), s)
}

// appendMessage appends a message, which content appends. Its size comes before it.
func appendMessage(b []byte, field protowire.Number, content func([]byte) []byte) []byte {
	b = protowire.AppendTag(b, field, protowire.BytesType)
	begin := len(b)
	b = content(b)
	size := len(b) - begin
	prefix := protowire.SizeVarint(uint64(size))
	for range prefix {
		b = append(b, 0)
	}
	copy(b[begin+prefix:], b[begin:begin+size])
	protowire.AppendVarint(b[:begin], uint64(size))
	return b
}

func appendTime(b []byte, field protowire.Number, seconds int64, nanos int32) []byte {
	return appendMessage(b, field, func(b []byte) []byte {
		return appendNumber(appendNumber(b, 1, uint64(seconds)), 2, uint64(nanos))
	})
}

func appendInstant(b []byte, field protowire.Number, t time.Time) []byte {
	if t.IsZero() {
		return b
	}
	return appendTime(b, field, t.Unix(), int32(t.Nanosecond()))
}

func appendDuration(b []byte, field protowire.Number, d time.Duration) []byte {
	if d == 0 {
		return b
	}
	return appendTime(b, field, int64(d/time.Second), int32(d%time.Second))
}

// AppendAttempt appends an encoded wire.AttemptDetail of an attempt that ended: that of its
// result, with the name of its outcome.
func AppendAttempt(b []byte, try int, pilot taskqueue.PilotID, r *taskqueue.Result) []byte {
	b = appendNumber(b, 1, uint64(r.Attempt))
	b = appendNumber(b, 2, uint64(try))
	b = appendText(b, 3, string(pilot))
	b = appendText(b, 4, r.Outcome.String())
	return appendMessage(b, 5, func(b []byte) []byte { return appendResult(b, r) })
}

func appendResult(b []byte, r *taskqueue.Result) []byte {
	b = appendNumber(b, 1, uint64(r.Job.Number()))
	b = appendNumber(b, 2, uint64(r.Attempt))
	b = appendNumber(b, 3, uint64(r.Outcome))
	b = appendNumber(b, 4, uint64(int32(r.ExitCode)))
	b = appendNumber(b, 5, uint64(int32(r.Signal)))
	b = appendText(b, 6, r.Message)
	for i := range r.Outputs {
		b = appendMessage(b, 7, func(b []byte) []byte { return appendWritten(b, &r.Outputs[i]) })
	}
	b = appendMessage(b, 8, func(b []byte) []byte { return appendUsage(b, &r.Usage) })
	for _, note := range r.Notes {
		b = protowire.AppendString(protowire.AppendTag(b, 9, protowire.BytesType), note)
	}
	for i := range r.Lost {
		b = appendMessage(b, 10, func(b []byte) []byte {
			encoded, err := proto.MarshalOptions{}.MarshalAppend(b, lostToWire(r.Lost[i]))
			if err != nil { // of names that are none, which no pilot could have sent
				return b
			}
			return encoded
		})
	}
	b = appendNumber(b, 11, uint64(r.Job.Run()))
	b = appendNumber(b, 12, uint64(r.Leader))
	return appendNumber(b, 13, uint64(int32(r.Task)))
}

func appendWritten(b []byte, w *taskqueue.WrittenFile) []byte {
	b = appendText(b, 1, w.LFN)
	b = appendNumber(b, 2, uint64(w.Version))
	b = appendText(b, 3, w.PFN)
	b = appendNumber(b, 4, uint64(w.Size))
	b = appendNumber(b, 5, uint64(w.Adler32))
	b = appendNumber(b, 6, uint64(w.Records))
	if hash := hashToWire(w.Hash); len(hash) > 0 {
		b = protowire.AppendBytes(protowire.AppendTag(b, 7, protowire.BytesType), hash)
	}
	return appendNumber(b, 8, uint64(w.Written))
}

func appendUsage(b []byte, u *taskqueue.Usage) []byte {
	b = appendInstant(b, 1, u.StageInStart)
	b = appendInstant(b, 2, u.Start)
	b = appendInstant(b, 3, u.End)
	b = appendInstant(b, 4, u.StageOutEnd)
	b = appendDuration(b, 5, u.CPU)
	b = appendNumber(b, 6, uint64(u.MaxRSS))
	b = appendNumber(b, 7, uint64(u.BytesStaged))
	b = appendNumber(b, 8, uint64(u.BytesCached))
	b = appendNumber(b, 9, uint64(u.BytesWritten))
	b = appendNumber(b, 10, uint64(int32(u.CacheHits)))
	b = appendNumber(b, 11, uint64(int32(u.CacheMisses)))
	b = appendDuration(b, 12, u.StagedAhead)
	b = appendNumber(b, 13, uint64(int32(u.RemoteHits)))
	b = appendNumber(b, 14, uint64(u.BytesRemote))
	b = appendNumber(b, 15, uint64(int32(u.PrefetchHits)))
	return appendNumber(b, 16, uint64(u.BytesPrefetched))
}
