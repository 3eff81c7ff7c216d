package state

import (
	"cmp"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"

	"fairway/internal/server/convert"
	"fairway/internal/server/folder"
	"fairway/internal/storage/served"
	"fairway/internal/taskqueue"
	"fairway/internal/wire"
)

// AttemptTable has one record of the run for each attempt that ended, by job and attempt:
// a wire.AttemptDetail. Nothing is decided by them; they are for people.
const AttemptTable = "server_attempt"

// attempts are the ended attempts of all jobs, encoded, since most are never
// looked at.
type attempts struct {
	stored []storedAttempt // that were in the store, in the order of their records
	fresh  map[taskqueue.JobID][][]byte
	room   []byte // for the next bodies: there may be millions

	encoded []byte // the last one, for its memory
}

type storedAttempt struct {
	job  taskqueue.JobID
	body []byte
}

// Pieces of memory for bodies grow from firstRoom to attemptsRoom, in bytes.
const (
	firstRoom    = 512
	attemptsRoom = 64 << 10
)

func attemptKey(job taskqueue.JobID, attempt taskqueue.AttemptID) string {
	return fmt.Sprintf("%010d/%016x", job.Number(), uint64(attempt))
}

// attemptKeys are those of the attempts of a job: from one on and below another.
func attemptKeys(job taskqueue.JobID) (from, below string) {
	return fmt.Sprintf("%010d/", job.Number()), fmt.Sprintf("%010d0", job.Number()) // 0 follows /
}

func (a *attempts) Count(job taskqueue.JobID) int { return len(a.storedOf(job)) + len(a.fresh[job]) }

func (a *attempts) storedOf(job taskqueue.JobID) []storedAttempt {
	begin, ok := slices.BinarySearchFunc(a.stored, job,
		func(s storedAttempt, job taskqueue.JobID) int { return cmp.Compare(s.job, job) })
	end := begin
	for ok && end < len(a.stored) && a.stored[end].job == job {
		end++
	}
	return a.stored[begin:end]
}

// bodies are those of the attempts of a job, in their order.
func (a *attempts) bodies(job taskqueue.JobID) (all [][]byte) {
	for _, s := range a.storedOf(job) {
		all = append(all, s.body)
	}
	return append(all, a.fresh[job]...)
}

// Record notes an attempt that ended, and returns what makes that durable.
func (a *attempts) Record(e *taskqueue.Event) taskqueue.Record {
	a.encoded = convert.AppendAttempt(a.encoded[:0], a.Count(e.Job)+1, e.Pilot, e.Result)
	body := a.keep(a.encoded)
	if a.fresh == nil {
		a.fresh = make(map[taskqueue.JobID][][]byte)
	}
	a.fresh[e.Job] = append(a.fresh[e.Job], body)
	return taskqueue.Record{Table: AttemptTable, Run: e.Job.Run(), Key: attemptKey(e.Job, e.Result.Attempt), Body: body}
}

func parseAttemptKey(r taskqueue.Record) (taskqueue.JobID, taskqueue.AttemptID, error) {
	job, attempt, _ := strings.Cut(r.Key, "/")
	n, err := strconv.ParseUint(job, 10, 32)
	m, err2 := strconv.ParseUint(attempt, 16, 64)
	if err := errors.Join(err, err2); err != nil {
		return 0, 0, fmt.Errorf("record %s %s: %w", AttemptTable, r.Key, err)
	}
	return taskqueue.NewJobID(r.Run, uint32(n)), taskqueue.AttemptID(m), nil
}

// take takes in a record, of which the body is good only for now. Records come in the
// order of their runs and keys.
func (a *attempts) take(r taskqueue.Record) error {
	job, _, err := parseAttemptKey(r)
	if err != nil {
		return err
	}
	a.stored = append(a.stored, storedAttempt{job, a.keep(r.Body)})
	return nil
}

func (a *attempts) keep(body []byte) []byte {
	if len(body) > cap(a.room)-len(a.room) {
		a.room = make([]byte, 0, max(min(2*cap(a.room), attemptsRoom), firstRoom, len(body)))
	}
	begin := len(a.room)
	a.room = append(a.room, body...)
	return a.room[begin:len(a.room):len(a.room)]
}

// usageOf is what an attempt used, and of which pilot it was. Only that is decoded of its
// record: a server that starts again asks for it of all attempts, and for nothing else.
func usageOf(body []byte) (taskqueue.PilotID, taskqueue.Usage, error) {
	var detail wire.AttemptDetail
	var result wire.Result
	fields := detail.ProtoReflect().Descriptor().Fields()
	pilot, err := field(body, fields.ByName("pilot").Number())
	if err != nil {
		return "", taskqueue.Usage{}, err
	}
	at, err := field(body, fields.ByName("result").Number())
	if err == nil {
		at, err = field(at, result.ProtoReflect().Descriptor().Fields().ByName("usage").Number())
	}
	if err != nil || len(at) == 0 {
		return taskqueue.PilotID(pilot), taskqueue.Usage{}, err
	}
	usage := new(wire.Usage)
	err = proto.Unmarshal(at, usage)
	usage.Bear()
	return taskqueue.PilotID(pilot), convert.UsageFromWire(usage), err
}

// outcomeField is the number of wire.AttemptDetail.outcome.
var outcomeField = new(wire.AttemptDetail).ProtoReflect().Descriptor().Fields().ByName("outcome").Number()

// field finds the text or the message in a field of a message, as encoded; none is empty.
func field(message []byte, number protowire.Number) (inner []byte, err error) {
	for len(message) > 0 {
		n, kind, tag := protowire.ConsumeTag(message)
		if tag < 0 {
			return nil, protowire.ParseError(tag)
		}
		size := protowire.ConsumeFieldValue(n, kind, message[tag:])
		if size < 0 {
			return nil, protowire.ParseError(size)
		}
		if n == number && kind == protowire.BytesType {
			inner, _ = protowire.ConsumeBytes(message[tag:])
		}
		message = message[tag+size:]
	}
	return inner, nil
}

// Of returns the attempts of a job that ended, in their order.
func (a *attempts) Of(job taskqueue.JobID) ([]*wire.AttemptDetail, error) {
	bodies := a.bodies(job)
	details := make([]*wire.AttemptDetail, len(bodies))
	for i, body := range bodies {
		details[i] = new(wire.AttemptDetail)
		if err := proto.Unmarshal(body, details[i]); err != nil {
			return nil, fmt.Errorf("attempt %d of job %d: %w", i+1, job.Number(), err)
		}
		details[i].GetResult().GetUsage().Bear()
	}
	return details, nil
}

// Last returns the last attempt of a job that ended, or nil.
func (a *attempts) Last(job taskqueue.JobID) *wire.AttemptDetail {
	all := a.bodies(job)
	if len(all) == 0 {
		return nil
	}
	detail := new(wire.AttemptDetail)
	if proto.Unmarshal(all[len(all)-1], detail) != nil {
		return nil
	}
	detail.GetResult().GetUsage().Bear()
	return detail
}

// Logs is where pilots keep what attempts print: NUMBER.out, NUMBER.err, NUMBER.log, and what
// has come of one that is not whole (served.LiveEnding).
type Logs string

// Path is that of one kind of file (LogKinds) of an attempt.
func (f Logs) Path(attempt taskqueue.AttemptID, kind string) string {
	return filepath.Join(string(f), fmt.Sprintf("%d.%s", uint64(attempt), kind))
}

// Live is the path of what has come of a file that is not whole.
func (f Logs) Live(attempt taskqueue.AttemptID, kind string) string {
	return f.Path(attempt, kind) + served.LiveEnding
}

// Kinds of files: standard output, standard error, and, of an attempt that
// failed, what it wrote into the file that its step names under log.
var LogKinds = []string{"out", "err", "log"}

// Remove deletes what attempts printed. Nothing but these files is touched, and
// only in the folder itself, wherever that is.
func (f Logs) Remove(attempts []taskqueue.AttemptID) error {
	if len(attempts) == 0 {
		return nil
	}
	root, err := os.OpenRoot(string(f))
	if err != nil {
		return folder.IgnoreMissing(err)
	}
	defer func() { _ = root.Close() }()
	for _, attempt := range attempts {
		for _, kind := range LogKinds {
			for _, path := range []string{f.Path(attempt, kind), f.Live(attempt, kind)} {
				if err := folder.IgnoreMissing(root.Remove(filepath.Base(path))); err != nil {
					return err
				}
			}
		}
	}
	return nil
}
