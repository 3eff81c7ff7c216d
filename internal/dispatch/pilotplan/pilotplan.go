// Package pilotplan has the arithmetic by which sites get pilots: the algorithm of the PilotMonitor (paper 3,
// section IV-A), and the room of a site, by when that is expected to be free. It knows neither jobs nor pilots.
package pilotplan

import (
	"cmp"
	"iter"
	"slices"
	"time"
)

// Site is how many pilots a site has, and is to have.
type Site struct {
	Min, Max, MinIdle int
	Submitted         int // all that have not ended
	Inactive          int // of these, those that have not registered
	Idle              int // and those that run nothing
}

// ToSend returns how many pilots to submit now, if each group of ready jobs needs so many. The numbers are
// the steps of section IV-A.
func (s Site) ToSend(needs iter.Seq[int]) int {
	slots := s.Max - s.Submitted // 1, 2
	if slots <= 0 {              // 3, 4
		return 0
	}
	send, inactive := 0, s.Inactive
	for needed := range needs { // 5, 6
		if needed <= inactive { // 7, 8
			inactive -= needed
			continue
		}
		// 9, 10: where a group has more tasks than there are slots, the paper
		// sends nothing. Here it sends min(slots, uncovered), or the site
		// would stand still just when there is most to do.
		uncovered := needed - inactive
		inactive = 0
		send += min(slots-send, uncovered)
	}
	if short := s.MinIdle - s.Idle - inactive; short > 0 { // 11, 12
		send += min(slots-send, short)
	}
	if short := s.Min - s.Submitted - send; short > 0 { // 13, 14
		send += min(slots-send, short)
	}
	return send
}

// Whole is a pilot, in the unit in which room is counted.
const Whole = 1000

// Rooms are what a site has, by when it is expected to be free.
type Rooms []Room

// Room is what becomes free at a time.
type Room struct {
	In     time.Duration // from now
	Size   int           // in thousandths of a pilot
	Starts bool          // these pilots have not registered
	used   int           // of what is free then
	wanted int           // of the room of pilots that have not registered
}

// Next returns the room that is free first, or nil if the site has none.
func (l Rooms) Next() *Room {
	var first *Room
	for i := range l {
		if s := &l[i]; s.Size > 0 && (first == nil || s.In < first.In) {
			first = s
		}
	}
	return first
}

// take gives some away for a time.
func (s *Room) take(room int, run time.Duration) {
	if s.Starts {
		s.wanted = min(s.wanted+room, s.Size)
	}
	for s.used += room; s.used >= s.Size; s.used -= s.Size {
		s.In += run
	}
}

// Give gives some away for a time: what is free first, which must be there; together says that all of it is
// needed at the same time, so that no room gives more than it has.
func (l Rooms) Give(room int, together bool, run time.Duration) {
	if !together {
		l.Next().take(room, run)
		return
	}
	order := make([]int, len(l))
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order, func(a, b int) int { return cmp.Compare(l[a].In, l[b].In) })
	for _, i := range order {
		if part := min(room, l[i].Size); part > 0 {
			l[i].take(part, run)
			room -= part
		}
	}
}

// Wanted is how many pilots that have not registered are to give what was given away.
func (l Rooms) Wanted() int {
	sum := 0
	for i := range l {
		sum += l[i].wanted
	}
	return (sum + Whole - 1) / Whole
}
