package process

import (
	"strings"
	"testing"
	"time"

	"fairway/internal/wire"
)

// Where a scratch file system is nearly full, the attempt that has most more than its share ends,
// once; nobody ends where no one has more, or there is room.
func TestWhoFillsTheScratchEnds(t *testing.T) {
	const full, gb = 1 << 20, int64(1) << 30
	for what, c := range map[string]struct {
		disk, free int64
		jobs       map[string][2]int64 // declared, held
		ends, says string
	}{
		"there is room":                 {0, gb, map[string][2]int64{"a": {gb, 9 * gb}, "b": {0, 1}}, "", ""},
		"over what it declared":         {0, full, map[string][2]int64{"a": {gb, 2 * gb}, "b": {9 * gb, 8 * gb}}, "a", "`needs: disk` of 1.1 GB"},
		"alone, over what it declared":  {0, full, map[string][2]int64{"a": {gb, 2 * gb}}, "a", "2.1 GB in its sandbox"},
		"all within what they declared": {0, full, map[string][2]int64{"a": {gb, gb}, "b": {gb, gb / 2}}, "", ""},
		"nobody declares":               {0, full, map[string][2]int64{"a": {0, gb}, "b": {0, 3 * gb}, "c": {0, 0}}, "b", "its share of 1.4 GB"},
		"alone":                         {0, full, map[string][2]int64{"a": {0, gb}}, "", ""},
		"alone, more than the pilot has": {
			gb, full, map[string][2]int64{"a": {0, 2 * gb}}, "a", "its share of 1.1 GB",
		},
	} {
		t.Run(what, func(t *testing.T) {
			var ended []string
			running, held := map[*Watched]bool{}, map[string]int64{}
			for name, job := range c.jobs {
				held[name] = job[1]
				running[&Watched{Folder: name, Disk: job[0], Exceeds: func(limit wire.Outcome, why string) {
					if limit != wire.Outcome_OUTCOME_OUT_OF_DISK || !strings.Contains(why, c.says) {
						t.Errorf("%v: %s", limit, why)
					}
					ended = append(ended, name)
				}}] = true
			}
			s := &Scratch{
				Folder: "scratch", Disk: c.disk, look: func(string) (free, all int64) { return c.free, 100 * gb },
				held: func(folder string) int64 { return held[folder] },
			}
			now := time.Now()
			for range 3 {
				s.check(running, now)
				now = now.Add(time.Minute)
			}
			if got := strings.Join(ended, " "); got != c.ends {
				t.Errorf("%q ended, want %q", got, c.ends)
			}
		})
	}
}

// The sandbox of the one that has ended is removed before another ends, and the watchdog looks
// seldom where there is much room.
func TestTheScratchIsGivenTimeToBecomeFree(t *testing.T) {
	ended, now := 0, time.Now()
	one := func() *Watched { return &Watched{Disk: 1, Exceeds: func(wire.Outcome, string) { ended++ }} }
	first, second := one(), one()
	running := map[*Watched]bool{first: true}
	free := int64(0)
	s := &Scratch{
		Folder: "scratch", look: func(string) (int64, int64) { return free, 1 << 40 }, held: func(string) int64 { return 2 },
	}
	s.check(running, now)
	delete(running, first)
	running[second] = true
	s.check(running, now)
	if s.check(running, now.Add(cleaningTime)); ended != 1 {
		t.Fatalf("%d ended at once", ended)
	}
	if s.check(running, now.Add(cleaningTime+1)); ended != 2 {
		t.Error("nobody ends although the scratch stays full")
	}
	if free = 100 << 30; s.check(running, now) < 20*time.Second {
		t.Error("it looks often where there is much room")
	}
	if free = 1 << 30; s.check(running, now) > 300*time.Millisecond {
		t.Error("it looks seldom where there is little room")
	}
}
