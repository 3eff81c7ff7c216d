package wire

import (
	"fmt"
	"time"

	"google.golang.org/protobuf/types/known/durationpb"
	"google.golang.org/protobuf/types/known/timestamppb"
)

// Bounds of what an attempt can have used, whatever its pilot says. Whoever sums, draws or prints
// what is within them needs no others.
const (
	// MaxAttemptTime is the longest time that an attempt may say.
	MaxAttemptTime = 10 * 365 * 24 * time.Hour
	// MaxProcessorTime is that of all its processors.
	MaxProcessorTime = 100 * 365 * 24 * time.Hour
	// MaxProcessMemory is what its processes may have had at a time, in bytes.
	MaxProcessMemory = 64 << 40
)

// EarliestClock and LatestClock are what clocks of nodes show at the least and at the most, however
// wrong they are: Linux lets nobody set one before the first.
var (
	EarliestClock = time.Unix(0, 0).UTC()
	LatestClock   = EarliestClock.AddDate(200, 0, 0)
)

// ClockShows reports whether a clock of a node may show a time.
func ClockShows(t time.Time) bool { return !t.Before(EarliestClock) && !t.After(LatestClock) }

// Impossible says what of it no attempt can have used; nil: nothing. It does not look at numbers of bytes
// and files, which depend on each other.
func (u *Usage) Impossible() error {
	for _, t := range u.instants() {
		if *t != nil && ((*t).CheckValid() != nil || !ClockShows((*t).AsTime())) {
			return fmt.Errorf("the time %d s after 1970, which no clock shows", (*t).GetSeconds())
		}
	}
	if err := possible("a stage-in before its turn", u.GetStagedAhead(), MaxAttemptTime); err != nil {
		return err
	}
	if err := possible("a processor time", u.GetCpu(), MaxProcessorTime); err != nil {
		return err
	}
	if m := u.GetMaxRssBytes(); m < 0 || m > MaxProcessMemory {
		return fmt.Errorf("%d bytes of memory", m)
	}
	return nil
}

func possible(what string, d *durationpb.Duration, most time.Duration) error {
	if d != nil && (d.CheckValid() != nil || d.AsDuration() < 0 || d.AsDuration() > most) {
		return fmt.Errorf("%s of %d s", what, d.GetSeconds())
	}
	return nil
}

func (u *Usage) instants() []**timestamppb.Timestamp {
	if u == nil {
		return nil
	}
	return []**timestamppb.Timestamp{&u.StageInStart, &u.Start, &u.End, &u.StageOutEnd}
}

// Bear leaves out what is [Usage.Impossible], if anything is. Earlier versions have recorded what
// pilots said.
func (u *Usage) Bear() {
	if u.Impossible() == nil {
		return
	}
	for _, t := range u.instants() {
		*t = nil
	}
	u.StagedAhead, u.Cpu, u.MaxRssBytes = nil, nil, 0
}
