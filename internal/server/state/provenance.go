package state

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	"google.golang.org/protobuf/proto"

	"fairway/internal/dispatch/records"
	"fairway/internal/taskqueue"
	"fairway/internal/wire"
)

// ProvenanceTable has one record for each result that is kept for later runs,
// by the name of its job and its key: a wire.Provenance. It is written when the
// run that made the result is forgotten, and lasts as long as the result and
// the run after it.
// Nothing is decided by it; it is for people.
const ProvenanceTable = "server_provenance"

// ProvenanceLimit is the most that is kept of the command and the inputs of one
// result, in bytes. Of a longer one only the attempt is kept, so a later run
// cannot tell what changed since.
const ProvenanceLimit = 64 << 10

// ProvenanceKey is below those of all jobs whose names are above. Names have no
// line breaks.
func ProvenanceKey(job, result string) string { return job + "\n" + result }

// ProvenanceOf makes the records of how the results were made that are kept of a run, and names
// the attempts that made none of them.
func ProvenanceOf(
	ctx context.Context, s Source, made []taskqueue.Made,
) (kept []taskqueue.Record, others []taskqueue.AttemptID, err error) {
	ended, err := s.Load(ctx, AttemptTable)
	if err != nil {
		return nil, nil, err
	}
	pilots, err := s.Load(ctx, HostTable)
	if err != nil {
		return nil, nil, err
	}
	attempts, hosts := make(map[taskqueue.AttemptID][]byte, len(ended)), LoadHosts(pilots)
	for _, r := range ended {
		_, attempt, err := parseAttemptKey(r)
		if err != nil {
			return nil, nil, err
		}
		attempts[attempt] = r.Body
	}
	for i := range made {
		key := made[i].Attempt
		p, err := provenance(&made[i], attempts[key], hosts)
		if err != nil {
			return nil, nil, err
		}
		body, err := proto.Marshal(p)
		if err != nil {
			return nil, nil, fmt.Errorf("provenance of job %s: %w", made[i].Name, err)
		}
		kept = append(kept, taskqueue.Record{
			Table: ProvenanceTable, Key: ProvenanceKey(made[i].Name, made[i].Key), Body: body,
		})
		delete(attempts, key)
	}
	return kept, slices.Collect(maps.Keys(attempts)), nil
}

func provenance(made *taskqueue.Made, attempt []byte, hosts Hosts) (*wire.Provenance, error) {
	p := &wire.Provenance{Job: made.Name}
	if attempt != nil {
		p.Attempt = new(wire.AttemptDetail)
		if err := proto.Unmarshal(attempt, p.Attempt); err != nil {
			return nil, fmt.Errorf("attempt %d of job %s: %w", made.Attempt, made.Name, err)
		}
		p.Attempt.Host = hosts[taskqueue.PilotID(p.Attempt.GetPilot())]
		p.Attempt.Earlier = true
	}
	size := len(made.Payload)
	for _, lfn := range made.Reads {
		size += len(lfn)
	}
	if size > ProvenanceLimit {
		return p, nil
	}
	p.Payload = new(wire.Payload)
	p.Reads, p.Marks = made.Reads, made.Marks
	if err := proto.Unmarshal(made.Payload, p.Payload); err != nil {
		return nil, fmt.Errorf("command of job %s: %w", made.Name, err)
	}
	return p, nil
}

// PartSource is what some records of a table are loaded from, as package store says.
type PartSource interface {
	LoadPart(ctx context.Context, table string, run taskqueue.RunID, from, below string,
		most int) ([]taskqueue.Record, error)
}

// provenanceShown is how many results of one job are looked at.
const provenanceShown = 100

// LoadProvenance returns how the results of a job were made that earlier runs
// left: that with a key, or the last one if none is given, of those whose keys count. It returns nil if
// there is none.
func LoadProvenance(
	ctx context.Context, s PartSource, job, key string, counts func(key string) bool,
) (*wire.Provenance, error) {
	from, below := ProvenanceKey(job, ""), job+"\v" // follows the line break
	if key != "" {
		from = ProvenanceKey(job, key)
		below = from + "\x00"
	}
	records, err := s.LoadPart(ctx, ProvenanceTable, 0, from, below, provenanceShown)
	if err != nil {
		return nil, err
	}
	records = slices.DeleteFunc(records, func(r taskqueue.Record) bool {
		_, key, _ := strings.Cut(r.Key, "\n")
		return !counts(key)
	})
	return lastProvenance(records)
}

// EveryResult counts all.
func EveryResult(string) bool { return true }

// ResultAttempts are the attempts that made the results of ProvenanceTable.
func ResultAttempts(ctx context.Context, s Source) (map[taskqueue.AttemptID]bool, error) {
	records, err := s.Load(ctx, ProvenanceTable)
	if err != nil {
		return nil, err
	}
	attempts := make(map[taskqueue.AttemptID]bool, len(records))
	for _, r := range records {
		p, err := lastProvenance([]taskqueue.Record{r})
		if err != nil {
			return nil, err
		}
		attempts[taskqueue.AttemptID(p.GetAttempt().GetAttempt())] = true
	}
	return attempts, nil
}

func lastProvenance(records []taskqueue.Record) (last *wire.Provenance, err error) {
	for _, r := range records {
		p := new(wire.Provenance)
		if err := proto.Unmarshal(r.Body, p); err != nil {
			return nil, fmt.Errorf("record %s %q: %w", ProvenanceTable, r.Key, err)
		}
		p.GetAttempt().GetResult().GetUsage().Bear()
		if last == nil || p.GetAttempt().GetAttempt() > last.GetAttempt().GetAttempt() {
			last = p
		}
	}
	return last, nil
}

// EarlierResults are the last results of jobs by name, of all that are recorded.
type EarlierResults map[string]*wire.Provenance

// LoadEarlierResults reads all records of ProvenanceTable.
func LoadEarlierResults(ctx context.Context, s Source) (EarlierResults, error) {
	records, err := s.Load(ctx, ProvenanceTable)
	if err != nil {
		return nil, err
	}
	byJob := map[string][]taskqueue.Record{}
	for _, r := range records {
		job, _, _ := strings.Cut(r.Key, "\n")
		byJob[job] = append(byJob[job], r)
	}
	earlier := make(EarlierResults, len(byJob))
	for job, list := range byJob {
		if earlier[job], err = lastProvenance(list); err != nil {
			return nil, err
		}
	}
	return earlier, nil
}

// Outlived are the records that delete what is known of results that were
// removed. all has the results.
func Outlived(ctx context.Context, s Source, all []taskqueue.Record) ([]taskqueue.Record, error) {
	known, err := s.Load(ctx, ProvenanceTable)
	if err != nil {
		return nil, err
	}
	results := map[string]bool{}
	for _, r := range all {
		if r.Table == records.TableResult {
			results[r.Key] = true
		}
	}
	var gone []taskqueue.Record
	for _, r := range known {
		if _, result, _ := strings.Cut(r.Key, "\n"); !results[result] {
			gone = append(gone, taskqueue.Record{Table: ProvenanceTable, Key: r.Key})
		}
	}
	return gone, nil
}
