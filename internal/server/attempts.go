package server

import (
	"errors"
	"fmt"
	"strconv"
	"strings"

	"google.golang.org/protobuf/proto"

	"fairway/internal/dispatch"
	"fairway/internal/wire"
)

// attemptTable has one record for each attempt that ended, by job and attempt:
// a wire.AttemptDetail. Nothing is decided by them; they are for people.
const attemptTable = "server_attempt"

// attempts are the ended attempts of all jobs, encoded, since most are never
// looked at.
type attempts map[dispatch.JobID][][]byte

func attemptKey(job dispatch.JobID, attempt dispatch.AttemptID) string {
	return fmt.Sprintf("%010d/%016x", uint64(job), uint64(attempt))
}

// keysOf are those of the attempts of a job: from one on and below another.
func keysOf(job dispatch.JobID) (from, below string) {
	return fmt.Sprintf("%010d/", uint64(job)), fmt.Sprintf("%010d0", uint64(job)) // 0 follows /
}

// record notes an attempt that ended, and returns what makes that durable.
func (a attempts) record(e *dispatch.Event) (dispatch.Record, error) {
	body, err := proto.Marshal(&wire.AttemptDetail{
		Attempt: uint64(e.Result.Attempt),
		Try:     int32(len(a[e.Job]) + 1),
		Pilot:   string(e.Pilot),
		Outcome: e.Result.Outcome.String(),
		Result:  resultToWire(e.Result),
	})
	if err != nil {
		return dispatch.Record{}, fmt.Errorf("attempt %d of job %s: %w", e.Result.Attempt, e.Name, err)
	}
	a[e.Job] = append(a[e.Job], body)
	return dispatch.Record{Table: attemptTable, Key: attemptKey(e.Job, e.Result.Attempt), Body: body}, nil
}

func parseAttemptKey(key string) (dispatch.JobID, dispatch.AttemptID, error) {
	job, attempt, _ := strings.Cut(key, "/")
	n, err := strconv.ParseUint(job, 10, 64)
	m, err2 := strconv.ParseUint(attempt, 16, 64)
	if err := errors.Join(err, err2); err != nil {
		return 0, 0, fmt.Errorf("record %s %s: %w", attemptTable, key, err)
	}
	return dispatch.JobID(n), dispatch.AttemptID(m), nil
}

// loadAttempts is given the records in the order of their keys.
func loadAttempts(records []dispatch.Record) (attempts, error) {
	a := attempts{}
	for _, r := range records {
		job, _, err := parseAttemptKey(r.Key)
		if err != nil {
			return nil, err
		}
		a[job] = append(a[job], r.Body)
	}
	return a, nil
}

func (a attempts) of(job dispatch.JobID) ([]*wire.AttemptDetail, error) {
	details := make([]*wire.AttemptDetail, len(a[job]))
	for i, body := range a[job] {
		details[i] = new(wire.AttemptDetail)
		if err := proto.Unmarshal(body, details[i]); err != nil {
			return nil, fmt.Errorf("attempt %d of job %d: %w", i+1, job, err)
		}
	}
	return details, nil
}

// last returns the last attempt of a job that ended, or nil.
func (a attempts) last(job dispatch.JobID) *wire.AttemptDetail {
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
