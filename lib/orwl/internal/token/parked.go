//go:build gc && go1.26 && !go1.27 && !race

package token

import (
	"sync/atomic"
	"unsafe"
)

// The runtime parks a goroutine for a channel with two locks of the channel and a record of who waits,
// which takes a third of the time of a handover. Here the word of the token is all there is, and the
// runtime's own functions park and ready. They are marked there as used from elsewhere, with a promise to
// keep their signatures (go.dev/issue/67401). The reasons for waiting are numbers without such a promise,
// so another version of Go, and the race detector, which does not see through them, have channels
// (channels.go).

//go:linkname gopark runtime.gopark
func gopark(commit func(g uintptr, token unsafe.Pointer) bool, token unsafe.Pointer, reason, traced uint8, skip int)

//go:linkname goready runtime.goready
func goready(g uintptr, skip int)

// What tracebacks and traces say of a goroutine that waits. It is also a reason with which synctest knows
// that the goroutine is blocked durably.
const (
	reasonCondition = 21 // waitReasonSyncCondWait
	tracedCondition = 4  // traceBlockCondWait
)

// Token is one place for a token. Its zero value is ready. It must not be copied. What is given to gopark
// escapes, so it is never on the stack of a goroutine, which could move.
type Token struct {
	// word is one of those below, or the goroutine of the taker that waits: the runtime moves no goroutine
	// and frees none.
	word     atomic.Uintptr
	channel  chan struct{} // of capacity 1, made at the first Channel
	receives bool          // the taker has asked for the channel; its own
}

// What the word is besides a goroutine.
const (
	nothing   = iota // the token is not given, and nobody waits by Take
	given            // and not taken
	inChannel        // it goes to the channel
)

// Expect makes the token ready to be given. Its taker calls it before.
func (t *Token) Expect() {}

// Give gives the token.
func (t *Token) Give() {
	switch g := t.word.Swap(given); g {
	case nothing:
	case inChannel:
		t.channel <- struct{}{}
	default:
		goready(g, 1)
	}
}

// Take waits for the token. Not after Channel.
func (t *Token) Take() { // short, as it is to be inlined
	if t.word.Load() == nothing {
		gopark(commit, unsafe.Pointer(t), reasonCondition, tracedCondition, 1)
	}
	t.word.Store(nothing)
}

// commit tells the giver which goroutine waits, when that is parked. It runs on the stack of the
// scheduler. If it reports false, the goroutine goes on at once.
//
//go:nosplit
func commit(g uintptr, token unsafe.Pointer) bool {
	return (*Token)(token).word.CompareAndSwap(nothing, g)
}

// TryTake takes the token if it was given. Not after Channel.
func (t *Token) TryTake() bool { return t.word.CompareAndSwap(given, nothing) }

// Given reports whether the token was given and not taken.
func (t *Token) Given() bool { return t.word.Load() == given }

// Channel has the token come by a channel from now on, until the taker calls Taken: when it has received
// it, or knows that it will not be given.
func (t *Token) Channel() <-chan struct{} {
	if t.receives {
		return t.channel
	}
	if t.channel == nil {
		t.channel = make(chan struct{}, 1)
	}
	t.receives = true
	if !t.word.CompareAndSwap(nothing, inChannel) { // it was given before
		t.channel <- struct{}{}
	}
	return t.channel
}

// Taken ends what Channel began.
func (t *Token) Taken() {
	t.receives = false
	t.word.Store(nothing)
}
