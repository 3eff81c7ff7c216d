package dispatch

import (
	"fmt"
	"testing"

	"fairway/internal/taskqueue"
)

// BenchmarkLoad makes a Core from the records of a run, half of whose jobs are done.
func BenchmarkLoad(b *testing.B) {
	const jobs = 200_000
	records := longHistory(b, jobs)
	size := 0
	for _, r := range records {
		size += len(r.Key) + len(r.Body)
	}
	for b.Loop() {
		if _, _, err := Load(taskqueue.Config{}, records); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*jobs), "ns/job")
	b.ReportMetric(float64(size)/jobs, "bytes/job")
}

// longHistory returns the records of a run with so many jobs, half of which are done.
func longHistory(b *testing.B, jobs int) []taskqueue.Record {
	c, e := New(taskqueue.Config{})
	durable := map[string]taskqueue.Record{}
	keep := func(records []taskqueue.Record) {
		for _, r := range records {
			durable[durableName(r)] = r
		}
	}
	keep(e.Persist)
	step := func(in taskqueue.Input) taskqueue.Effects {
		e, err := c.Step(epoch, in)
		if err != nil {
			b.Fatal(err)
		}
		keep(e.Persist)
		return e
	}
	step(taskqueue.SetRun{Run: taskqueue.Run{ID: 1, KeepGoing: true}})
	in := taskqueue.AddFiles{Run: 1}
	for i := range 1000 {
		lfn := fmt.Sprintf("raw/file%06d.root", i)
		in.Files = append(in.Files, taskqueue.ExistingFile{LFN: lfn, PFN: "se:" + lfn, Size: 1 << 30, Identity: "1"})
	}
	step(in)
	const batch = 1000
	for i := 0; i < jobs; i += batch {
		sub := taskqueue.Submit{Run: 1}
		for k := i; k < i+batch; k++ {
			j := taskqueue.Job{
				Name: fmt.Sprintf("reco/%07d", k), Step: "reco", Payload: fmt.Appendf(nil, "reco --in raw --out %07d", k),
				Digest: "0123456789abcdef",
				Writes: []taskqueue.Output{{LFN: fmt.Sprintf("out/%07d", k)}},
			}
			for n := range 3 {
				j.Reads = append(j.Reads, in.Files[(k*7+n*331)%1000].LFN)
			}
			sub.Jobs = append(sub.Jobs, j)
		}
		step(sub)
	}
	info := taskqueue.PilotInfo{Host: "h", Has: taskqueue.Resources{MilliCPUs: 1 << 20}}
	step(taskqueue.Sync{Pilot: "p", Seq: 1, Full: true, Hello: &info, Draining: true})
	for i, seq := 0, uint64(2); i < jobs/2; i, seq = i+batch, seq+1 {
		s := taskqueue.Sync{Pilot: "p", Seq: seq, LastAnswer: 1 << 40, Draining: true}
		for k := i; k < i+batch; k++ {
			id := taskqueue.AttemptID(c.journal.incarnation<<32 | uint64(k+1))
			lfn := fmt.Sprintf("out/%07d", k)
			s.Ended = append(s.Ended, taskqueue.Result{Job: taskqueue.NewJobID(1, uint32(k+1)), Attempt: id,
				Outputs: []taskqueue.WrittenFile{
					{LFN: lfn, Version: 1, PFN: physical(lfn, 1, id), Size: 1 << 20},
				}})
		}
		step(s)
	}
	if c.jobs.totals.ByState[taskqueue.Done] != jobs/2 {
		b.Fatalf("%+v", c.jobs.totals)
	}
	list := make([]taskqueue.Record, 0, len(durable))
	for _, name := range sortedKeys(durable) {
		list = append(list, durable[name])
	}
	return list
}
