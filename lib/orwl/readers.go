package orwl

import "sync/atomic"

// Readers that meet nobody but each other share no word. Where many reads in a row were granted at
// once beside others, the word says reading, and each further read takes a slot by one compare and
// swap, as a lone task takes the word, and gives it back by another. The slots are apart in memory,
// so readers on several processors do not wait for each other's caches.
//
// While the word says reading, the queue has granted reads only: those that came before, and those
// that found no slot. They leave it under the mutex, which grants nobody anything.
//
// A request that is no such read closes this path before it looks at the queue, so it is overtaken
// by nobody: engageLocked first changes the word, and then empties every slot and puts what it finds
// into the queue, as granted. A reader first takes its slot and then looks at the word again. So
// either the reader sees that the path is closed, or its handle is seen in the slot. A reader that
// sees it closed takes its handle back; where that fails, the handle is in the queue already, granted.
// From then on its compare and swap fails, and it goes by the queue.

// reading is what the word says while reads go by the slots.
var reading = new(Handle)

const (
	// readerSlots is how many reads go by the slots at a time.
	readerSlots = 16
	// slotTries is how many slots a read looks at.
	slotTries = 4
	// readsToOpen is how many reads in a row must have been granted at once beside others.
	readsToOpen = 8
)

// readerSlot has a cache line for itself.
type readerSlot struct {
	handle atomic.Pointer[Handle]
	_      [56]byte
}

// enter has h, which is idle, read by a slot if the word says reading and one is free.
func (l *Location) enter(h *Handle) bool {
	l.take(h, Read)
	for range slotTries {
		s := &l.slots[h.slotHint%readerSlots]
		if s.handle.Load() == nil && s.handle.CompareAndSwap(nil, h) {
			if l.word.Load() == reading || !s.handle.CompareAndSwap(h, nil) {
				h.slot = s
				return true
			}
			break
		}
		h.slotHint++
	}
	h.state = idle
	return false
}

// sharesLocked counts a read that was granted at once while others had the lock, and opens the slots
// when there were many in a row.
func (l *Location) sharesLocked() {
	if l.reads++; l.reads < readsToOpen || !l.simple() || !l.roomForReaders() {
		return
	}
	l.reads, l.calm = 0, 0
	if l.slots == nil {
		l.slots = new([readerSlots]readerSlot)
	}
	l.word.Store(reading)
}

// roomForReaders reports whether the location takes a read into the queue besides all slots.
func (l *Location) roomForReaders() bool { return l.queue.Len()+readerSlots < l.limit }

// closeLocked puts the reads that go by slots into the queue. The word says queueing already.
func (l *Location) closeLocked() {
	for i := range l.slots {
		if h := l.slots[i].handle.Swap(nil); h != nil {
			l.queueGrantedLocked(h)
		}
	}
}

// inSlots is how many reads go by slots now.
func (l *Location) inSlots() (n int) {
	for i := range l.slots {
		if l.slots[i].handle.Load() != nil {
			n++
		}
	}
	return n
}
