package dispatch

import (
	"fmt"
	"testing"
	"time"

	"fairway/internal/taskqueue"
)

// BenchmarkRestart has pilots return to a Core that was loaded, all of which
// hold one file, and leave it again; every other one has ended meanwhile. The
// time for each pilot is to be the same whatever their number.
func BenchmarkRestart(b *testing.B) {
	for _, pilots := range []int{1_000, 10_000, 100_000} {
		b.Run(fmt.Sprint(pilots), func(b *testing.B) {
			records := registered(b, pilots)
			b.ResetTimer()
			for b.Loop() {
				restart(b, records, pilots)
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*pilots), "ns/pilot")
		})
	}
}

func nthPilot(i int) taskqueue.PilotID { return taskqueue.PilotID(fmt.Sprintf("p%06d", i)) }

// joining is the whole state of a pilot that holds the common file, of a kind
// of its own.
func joining(i int) taskqueue.Sync {
	return taskqueue.Sync{
		Pilot: nthPilot(i), Seq: 1, Full: true, Hold: true,
		CacheAdded: []taskqueue.CachedFile{{File: taskqueue.FileRef{LFN: "common"}}},
		Hello: &taskqueue.PilotInfo{
			Host: fmt.Sprint("host", i/10), Site: "s", Launch: fmt.Sprint("launch", i),
			Has: taskqueue.Resources{MilliCPUs: 1000, Memory: int64(i)},
		},
	}
}

// registered returns the records of a Core that knows so many pilots.
func registered(b *testing.B, pilots int) []taskqueue.Record {
	c, e := New(taskqueue.Config{})
	records := append([]taskqueue.Record(nil), e.Persist...)
	inputs := []taskqueue.Input{taskqueue.SetRun{Run: taskqueue.Run{ID: 1}}, taskqueue.AddFiles{Run: 1,
		Files: []taskqueue.ExistingFile{{LFN: "common", PFN: "x", Size: 1}}}}
	for i := range pilots {
		inputs = append(inputs, joining(i))
	}
	for _, in := range inputs {
		e, err := c.Step(epoch, in)
		if err != nil {
			b.Fatal(err)
		}
		records = append(records, e.Persist...)
	}
	return records
}

func restart(b *testing.B, records []taskqueue.Record, pilots int) {
	c, _, err := Load(taskqueue.Config{}, records)
	if err != nil {
		b.Fatal(err)
	}
	step := func(at time.Time, in taskqueue.Input) {
		if _, err := c.Step(at, in); err != nil {
			b.Fatal(err)
		}
	}
	for i := range pilots {
		if i%2 == 0 {
			step(epoch, taskqueue.PilotEnded{Launch: fmt.Sprint("launch", i)})
		} else {
			step(epoch, joining(i))
		}
	}
	for i := range pilots {
		if i%2 != 0 {
			step(epoch, taskqueue.Sync{Pilot: nthPilot(i), Seq: 2, LastAnswer: 1, Leaving: true})
		}
	}
}
