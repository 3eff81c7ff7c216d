package sched

import (
	"runtime"
	"time"
)

// linger is how long a driver stays in Block when nobody waits any more, so that
// a waiter who comes back soon finds it there.
const linger = 50 * time.Millisecond

// drive polls and blocks for the whole group of a source until nobody has waited
// for a while. It runs on a thread of the pool.
func (src *source) drive() {
	src.calls.Lock()
	for src.driveOnce() {
	}
	src.driving.Store(false)
	src.unlock()
}

// driveOnce is one round of poll, arm, poll, block. It is called and returns
// with calls held, and reports whether there should be another round.
func (src *source) driveOnce() bool {
	src.regroup()
	src.takeOut()
	if src.broken != nil || src.dead.Load() {
		return false
	}
	if src.members.Load() > 0 && !src.wantsBlock() && src.poll != nil {
		src.startPolling()
		return false
	}
	if src.spin() {
		return true
	}
	if src.arm != nil && !src.armed() {
		src.pass()
		return true
	}
	return src.blockOnce()
}

// pass lets others at the source between two rounds.
func (src *source) pass() {
	src.unlock()
	runtime.Gosched()
	src.calls.Lock()
}

// armed polls, arms and polls again, so that an event either is found now or
// ends the Block that follows. It reports false if there is no need to block.
func (src *source) armed() bool {
	if src.pollOnce(true) {
		return false
	}
	ok := false
	src.guard("Arm", func() { ok = src.arm() })
	return ok && !src.pollOnce(true)
}

// blockOnce blocks for the group. Without members it does so for a while only,
// and reports false when nobody has come meanwhile.
func (src *source) blockOnce() bool {
	idle := src.members.Load() == 0 && len(src.joining) == 0
	var limit time.Duration
	if idle {
		limit = linger
	}
	before := src.total.Load()
	src.blocked = true
	src.unlock()
	src.stats.blocks.Add(1)
	src.guard("Block", func() { src.block(limit) })
	ended := src.total.Load() != before
	src.calls.Lock()
	src.blocked = false
	if !ended {
		src.regroup()
		src.pollOnce(true)
	}
	return !idle || ended || src.members.Load() > 0 || len(src.joining) > 0
}
