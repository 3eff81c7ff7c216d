package dispatch

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"fairway/internal/dispatch/copies"
	"fairway/internal/taskqueue"
)

// What pilots say of files that nobody knows here takes bounded memory, of one pilot and of all,
// and is given up with them.
func TestUnknownCopiesAreBounded(t *testing.T) {
	c, _ := New(taskqueue.Config{})
	now := time.Unix(1000, 0)
	name := strings.Repeat("x", 4000)
	tell := func(pilot int, leaving bool) {
		s := taskqueue.Sync{Pilot: taskqueue.PilotID(fmt.Sprint("p", pilot)), Seq: 1, Full: true,
			Hello: &taskqueue.PilotInfo{Host: "h"}}
		if leaving {
			s.Seq, s.Full, s.Hello, s.Leaving = 2, false, nil, true
		}
		for i := range 20_000 {
			s.CacheAdded = append(s.CacheAdded, taskqueue.CachedFile{File: taskqueue.FileRef{LFN: fmt.Sprintf("%d/%s", i,
				name), Tag: 1}, Size: 1})
		}
		if _, err := c.Step(now, s); err != nil {
			t.Fatal(err)
		}
	}
	for pilot := range 6 {
		tell(pilot, false)
	}
	if c.fleet.counts.others > copies.MostInAll || c.fleet.counts.others < copies.MostInAll-copies.Most {
		t.Error(c.fleet.counts.others)
	}
	for pilot := range 6 {
		tell(pilot, true)
	}
	if c.fleet.counts.others != 0 || len(c.fleet.pilots) != 0 {
		t.Error(c.fleet.counts.others, len(c.fleet.pilots))
	}
}
