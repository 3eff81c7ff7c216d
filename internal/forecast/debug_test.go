package forecast

import (
	"context"
	"fairway/internal/history"
	"fairway/internal/server/api"
	"fairway/internal/sim"
	"fairway/internal/wire"
	"fmt"
	"os"
	"testing"
)

func TestDebug(t *testing.T) {
	dir := os.Getenv("DBG")
	if dir == "" {
		t.Skip()
	}
	conn, err := api.Connect(context.Background(), dir)
	if err != nil {
		t.Fatal(err)
	}
	list, err := conn.ListJobs(t.Context(), &wire.ListJobsRequest{})
	if err != nil {
		t.Fatal(err)
	}
	run := &history.Run{}
	for _, s := range list.GetJobs() {
		d, err := conn.ShowJob(t.Context(), &wire.ShowJobRequest{Job: s.GetName()})
		if err != nil {
			t.Fatal(err)
		}
		run.Jobs = append(run.Jobs, history.Of(d))
	}
	m, err := Of(run)
	if err != nil {
		t.Fatal(err)
	}
	fmt.Printf("rec %v rep %v around %+v link %+v slow %v cache %v\n", m.Recorded, m.Replayed, m.around, m.link, m.slow, m.Cache)
	for _, s := range m.sites {
		fmt.Printf("%+v\n", *s)
	}
	begin, _ := run.Bounds()
	o := observe(run)
	for _, p := range o.all {
		fmt.Printf("real %s %s %.2f %.2f %.2f %.2f\n", p.attempt.Pilot[len(p.attempt.Pilot)-4:], p.job.Name, p.attempt.Begin().Sub(begin).Seconds(), p.attempt.Start.Sub(begin).Seconds(), p.attempt.End.Sub(begin).Seconds(), p.attempt.Ended().Sub(begin).Seconds())
	}
	rec := &sim.Recorded{Files: m.files, Jobs: m.jobs, Sites: map[string]sim.RecordedSite{}}
	res, err := sim.Replay(m.experiment(&Change{}, rec.Sites), rec)
	if err != nil {
		t.Fatal(err)
	}
	fmt.Printf("%+v\n", rec.Sites)
	for _, a := range res.Attempts {
		fmt.Printf("sim %s %s %.2f %.2f %.2f %.2f\n", a.Pilot, a.Job, a.Usage.StageInStart.Sub(sim.Epoch()).Seconds()-res.Submitted.Seconds(), a.Usage.Start.Sub(sim.Epoch()).Seconds()-res.Submitted.Seconds(), a.Usage.End.Sub(sim.Epoch()).Seconds()-res.Submitted.Seconds(), a.Usage.StageOutEnd.Sub(sim.Epoch()).Seconds()-res.Submitted.Seconds())
	}
}
