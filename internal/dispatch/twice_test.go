package dispatch

import "testing"

// Two runs execute the same job before either ends. The result of the one that is retired first is
// kept, and the files of the other one go with it, also if the server crashes in between.
func TestAResultThatTwoRunsMadeIsKeptOnce(t *testing.T) {
	for _, crash := range []bool{false, true} {
		core, e := New(Config{})
		durable, removed := map[string]Record{}, map[string]bool{}
		keep := func(e Effects) Effects {
			for _, r := range e.Persist {
				durable[durableName(r)] = r
			}
			for _, pfn := range e.Remove {
				removed[pfn] = true
			}
			return e
		}
		keep(e)
		step := func(in Input) Effects {
			t.Helper()
			e, err := core.Step(epoch, in)
			if err != nil {
				t.Fatal(err)
			}
			return keep(e)
		}
		restart := func() {
			t.Helper()
			var records []Record
			for _, name := range sortedKeys(durable) {
				if r := durable[name]; r.Body != nil {
					records = append(records, r)
				}
			}
			var err error
			if core, e, err = Load(Config{}, records); err != nil {
				t.Fatal(err)
			}
			keep(e)
		}
		for run := RunID(1); run <= 2; run++ {
			step(SetRun{Run{ID: run, Name: "w", KeepGoing: true}})
			step(Submit{Run: run, Jobs: []Job{{Name: "a", Step: "s", Digest: "d", Writes: []Output{{LFN: "out"}}}}})
		}
		hello := &PilotInfo{Host: "h", Has: Resources{MilliCPUs: 2000}}
		e = step(Sync{Pilot: "p", Seq: 1, Full: true, Hello: hello})
		s := Sync{Pilot: "p", Seq: 2, LastAnswer: 1}
		for _, reply := range e.Replies {
			for _, a := range reply.Answer.Run {
				pfn := physical("out", a.Outputs[0].Version, a.Attempt)
				s.Ended = append(s.Ended, Result{Job: a.Job, Attempt: a.Attempt, Outputs: []WrittenFile{
					{LFN: "out", Version: a.Outputs[0].Version, PFN: pfn, Size: 1},
				}})
			}
		}
		if len(s.Ended) != 2 {
			t.Fatalf("%d jobs were given out", len(s.Ended))
		}
		step(s)
		for run := RunID(1); run <= 2; run++ {
			step(CompleteRun{Run: run})
		}
		step(RetireRun{Run: 1})
		if crash {
			restart()
		}
		step(RetireRun{Run: 2})
		restart()
		kept := map[string]bool{}
		for _, r := range core.Unused() {
			for _, pfn := range r.PFNs {
				kept[pfn] = true
			}
		}
		for _, r := range s.Ended {
			if pfn := r.Outputs[0].PFN; kept[pfn] == removed[pfn] {
				t.Errorf("crash %v: %s is kept: %v, and removed: %v", crash, pfn, kept[pfn], removed[pfn])
			}
		}
	}
}
