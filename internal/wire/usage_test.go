package wire

import (
	"math"
	"testing"
	"time"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/durationpb"
	"google.golang.org/protobuf/types/known/timestamppb"
)

// What no attempt can have used is found in each field, and left out; the rest stays.
func TestImpossibleUsage(t *testing.T) {
	now := timestamppb.New(time.Unix(1_800_000_000, 0))
	truth := &Usage{
		StageInStart: now, Start: now, End: now, StageOutEnd: now, Cpu: durationpb.New(time.Hour), MaxRssBytes: 1 << 30,
		StagedAhead: durationpb.New(time.Hour), BytesStaged: 3,
	}
	for _, good := range []*Usage{nil, {}, truth} {
		if err := good.Impossible(); err != nil {
			t.Error(err)
		}
	}
	far := func(years int) *timestamppb.Timestamp { return timestamppb.New(now.AsTime().AddDate(years, 0, 0)) }
	for what, lie := range map[string]func(*Usage){
		"too early":        func(u *Usage) { u.StageInStart = far(-250) },
		"too late":         func(u *Usage) { u.Start = far(250) },
		"no time":          func(u *Usage) { u.End = &timestamppb.Timestamp{Seconds: math.MinInt64} },
		"no nanoseconds":   func(u *Usage) { u.StageOutEnd = &timestamppb.Timestamp{Seconds: 1, Nanos: -1} },
		"negative":         func(u *Usage) { u.Cpu = durationpb.New(-1) },
		"of all the world": func(u *Usage) { u.Cpu = &durationpb.Duration{Seconds: math.MaxInt64} },
		"ahead":            func(u *Usage) { u.StagedAhead = durationpb.New(MaxAttemptTime + 1) },
		"memory":           func(u *Usage) { u.MaxRssBytes = MaxProcessMemory + 1 },
		"less than none":   func(u *Usage) { u.MaxRssBytes = -1 },
	} {
		u := proto.CloneOf(truth)
		if lie(u); u.Impossible() == nil {
			t.Error(what, "is possible")
		}
		if u.Bear(); u.Impossible() != nil || u.GetBytesStaged() != 3 {
			t.Error(what, "became", u)
		}
	}
}
