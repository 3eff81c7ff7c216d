package server

import (
	"testing"
	"time"

	"fairway/internal/server/state"
	"fairway/internal/taskqueue"
	"fairway/test/files"
)

// However a clock is set, what is to be kept for long does not go at once, and what was kept long enough
// goes in the end.
func TestClocksThatAreSetDoNotEndRetention(t *testing.T) {
	begin := time.Unix(1_800_000_000, 0).UTC()
	const day = 24 * time.Hour
	moment := func(after, wrong time.Duration) time.Time { return begin.Add(after + wrong) }
	for name, c := range map[string]struct {
		running, machine time.Duration // how wrong the clocks are for a while
	}{
		"set ahead":            {0, 100 * day},
		"ahead from the start": {100 * day, 100 * day},
		"set back":             {0, -100 * day},
	} {
		k := &keeping{reached: begin, looked: moment(0, c.running)}
		for after := time.Minute; after <= time.Hour; after += time.Minute {
			if at := k.by(moment(after, c.running), moment(after, c.machine)); at.After(begin.Add(keepingRate * after)) {
				t.Fatalf("%s: after %v it is %v later", name, after, at.Sub(begin))
			}
		}
		// The clock of the machine is right again, and that of the server if it was not set before.
		at := k.by(moment(2*time.Hour, c.running), moment(2*time.Hour, 0))
		if at.After(begin.Add(2*time.Hour)) || at.Before(begin.Add(time.Hour)) {
			t.Errorf("%s: when the clock is right again it is %v later", name, at.Sub(begin))
		}
	}
	// It follows a server that was away, not at once.
	k := &keeping{reached: begin, looked: moment(10*day, 0)}
	if at := k.by(moment(11*day, 0), moment(11*day, 0)); !at.Equal(begin.Add(2 * day)) {
		t.Error("a day after it was away for ten:", at.Sub(begin))
	}
	if at := k.by(moment(21*day, 0), moment(21*day, 0)); !at.Equal(begin.Add(21 * day)) {
		t.Error("in the end:", at.Sub(begin))
	}
}

// Results whose time is over by the clock of a server that starts, and by no other, stay.
func TestAServerWhoseClockIsAheadRemovesNoResults(t *testing.T) {
	const retention = 1000 * time.Hour
	root := t.TempDir()
	v := startServiceAs(t, root, twoStepsScript, func(c *Config) { c.Dispatch.Retention = retention })
	if end := v.await(v.submit(twoSteps, files.Folder(t, threeTexts), nil)); !end.GetSucceeded() {
		t.Fatal(end)
	}
	v.retired(1)
	if _, err := v.server.RemoveRun(t.Context(), 1, false); err != nil {
		t.Fatal(err)
	}
	// As if the clock had been right then, and was set ahead by more than that afterwards.
	reached, err := state.NewRecord(keepingTable, 0, keepingKey, time.Now().Add(-2*retention))
	if err != nil {
		t.Fatal(err)
	}
	if err := v.server.records.Apply(t.Context(), []taskqueue.Record{reached}); err != nil {
		t.Fatal(err)
	}
	v.stop()
	v = startServiceAs(t, root, twoStepsScript, func(c *Config) { c.Dispatch.Retention = time.Nanosecond })
	defer v.stop()
	v.server.cutResults(t.Context())
	settled(t, v, 4)
}
