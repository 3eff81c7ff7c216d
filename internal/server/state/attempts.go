package state

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"google.golang.org/protobuf/proto"

	"fairway/internal/dispatch"
	"fairway/internal/server/convert"
	"fairway/internal/server/folder"
	"fairway/internal/wire"
)

// AttemptTable has one record of the run for each attempt that ended, by job and attempt:
// a wire.AttemptDetail. Nothing is decided by them; they are for people.
const AttemptTable = "server_attempt"

// attempts are the ended attempts of all jobs, encoded, since most are never
// looked at.
type attempts map[dispatch.JobID][][]byte

func attemptKey(job dispatch.JobID, attempt dispatch.AttemptID) string {
	return fmt.Sprintf("%010d/%016x", job.Number(), uint64(attempt))
}

// AttemptKeys are those of the attempts of a job: from one on and below another.
func AttemptKeys(job dispatch.JobID) (from, below string) {
	return fmt.Sprintf("%010d/", job.Number()), fmt.Sprintf("%010d0", job.Number()) // 0 follows /
}

// Record notes an attempt that ended, and returns what makes that durable.
func (a attempts) Record(e *dispatch.Event) (dispatch.Record, error) {
	body, err := proto.Marshal(&wire.AttemptDetail{
		Attempt: uint64(e.Result.Attempt),
		Try:     int32(len(a[e.Job]) + 1),
		Pilot:   string(e.Pilot),
		Outcome: e.Result.Outcome.String(),
		Result:  convert.ResultToWire(e.Result),
	})
	if err != nil {
		return dispatch.Record{}, fmt.Errorf("attempt %d of job %s: %w", e.Result.Attempt, e.Name, err)
	}
	a[e.Job] = append(a[e.Job], body)
	return dispatch.Record{Table: AttemptTable, Run: e.Job.Run(), Key: attemptKey(e.Job, e.Result.Attempt), Body: body}, nil
}

func parseAttemptKey(r dispatch.Record) (dispatch.JobID, dispatch.AttemptID, error) {
	job, attempt, _ := strings.Cut(r.Key, "/")
	n, err := strconv.ParseUint(job, 10, 32)
	m, err2 := strconv.ParseUint(attempt, 16, 64)
	if err := errors.Join(err, err2); err != nil {
		return 0, 0, fmt.Errorf("record %s %s: %w", AttemptTable, r.Key, err)
	}
	return dispatch.NewJobID(r.Run, uint32(n)), dispatch.AttemptID(m), nil
}

// LoadAttempts is given the records in the order of their keys.
func LoadAttempts(records []dispatch.Record) (attempts, error) {
	a := attempts{}
	for _, r := range records {
		if err := a.take(r); err != nil {
			return nil, err
		}
	}
	return a, nil
}

// take takes in a record, of which the body is good only for now.
func (a attempts) take(r dispatch.Record) error {
	job, _, err := parseAttemptKey(r)
	if err == nil {
		a[job] = append(a[job], bytes.Clone(r.Body))
	}
	return err
}

// usageOf is what an attempt used.
func usageOf(body []byte) (dispatch.Usage, error) {
	detail := new(wire.AttemptDetail)
	if err := proto.Unmarshal(body, detail); err != nil {
		return dispatch.Usage{}, err
	}
	return convert.ResultFromWire(detail.GetResult()).Usage, nil
}

func (a attempts) Of(job dispatch.JobID) ([]*wire.AttemptDetail, error) {
	details := make([]*wire.AttemptDetail, len(a[job]))
	for i, body := range a[job] {
		details[i] = new(wire.AttemptDetail)
		if err := proto.Unmarshal(body, details[i]); err != nil {
			return nil, fmt.Errorf("attempt %d of job %d: %w", i+1, job.Number(), err)
		}
	}
	return details, nil
}

// Last returns the last attempt of a job that ended, or nil.
func (a attempts) Last(job dispatch.JobID) *wire.AttemptDetail {
	all := a[job]
	if len(all) == 0 {
		return nil
	}
	detail := new(wire.AttemptDetail)
	if proto.Unmarshal(all[len(all)-1], detail) != nil {
		return nil
	}
	return detail
}

// HostTable has one record for each pilot that registered, by pilot: the host
// that it runs on, as text. Nothing is decided by them; they are for people.
const HostTable = "server_host"

// Hosts tell where pilots run, also those that have left.
type Hosts map[dispatch.PilotID]string

// Record takes in a pilot that registered, and returns what makes that durable.
func (h Hosts) Record(pilot dispatch.PilotID, host string) dispatch.Record {
	h[pilot] = host
	return dispatch.Record{Table: HostTable, Key: string(pilot), Body: []byte(host)}
}

// LoadHosts reads the records of HostTable.
func LoadHosts(records []dispatch.Record) Hosts {
	h := Hosts{}
	for _, r := range records {
		h[dispatch.PilotID(r.Key)] = string(r.Body)
	}
	return h
}

// Logs is where pilots keep what attempts print: NUMBER.out, NUMBER.err, NUMBER.log.
type Logs string

// Path is that of one kind of file (LogKinds) of an attempt.
func (f Logs) Path(attempt dispatch.AttemptID, kind string) string {
	return filepath.Join(string(f), fmt.Sprintf("%d.%s", uint64(attempt), kind))
}

// Kinds of files: standard output, standard error, and, of an attempt that
// failed, what it wrote into the file that its step names under log.
var LogKinds = []string{"out", "err", "log"}

// Remove deletes what attempts printed. Nothing but these files is touched, and
// only in the folder itself, wherever that is.
func (f Logs) Remove(attempts []dispatch.AttemptID) error {
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
			if err := folder.IgnoreMissing(root.Remove(filepath.Base(f.Path(attempt, kind)))); err != nil {
				return err
			}
		}
	}
	return nil
}
