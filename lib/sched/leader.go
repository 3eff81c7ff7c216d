package sched

import (
	"context"
	"runtime"
	"time"
)

// # How no event is lost
//
// A source that blocks has a leader, as in the leader/followers pattern: the one
// goroutine that polls, arms, and blocks for the whole group. A goroutine that
// waits leads itself if nobody else does: its event then finds it without a switch
// to another goroutine. When its own
// event has come while others still wait, it promotes a follower: a thread of
// the pool, which leads until nobody waits. A source that is polled is watched by
// the poller instead. A kind that has a trigger besides its Block has two ways to
// block, and the leader chooses one before each block.
//
// Whoever holds source.calls may rely on the following, and establishes it again
// before letting go.
//
// Somebody looks. If the source has requests and is not broken, then
//
//	(a) it is led: a goroutine will call round again, or has returned from its
//	    last one and will call promote or resign (where no thread of the pool is
//	    free, a kind with a trigger has one beside the pool, which listens); or
//	(b) it is not led and is watched: the poller polls it when its time comes, or
//	    one of the waiters hurries (eager.go), who starts the poller in the end; or
//	(c) each request has a thread for itself (BlockEach), or is in the pool's
//	    queue for one; or
//	(d) it has neither Poll nor Block, and requests are ended by their Done.
//
// A request that joins brings this about by detect. A leader ends in one place,
// by promote or resign, and these look at the requests that are left and not at
// why the leader ends: no answer of wantsBlock, which may change from one call to
// the next, leads to a source that nobody looks after. The poller drops a source,
// under poller.mu, if it has no requests or is led. So those who make a source
// one that has to be watched do that first (members, led), and then call watch,
// which takes poller.mu: the poller either sees what they did or is told again.
//
// What is there is seen. A round is poll, arm, poll, block. An event that comes
// before the arming is found by the poll after it, a later one ends the block.
// Calls is held from the first poll until blocked is set, so the group that was
// polled is the one that blocks. A request that joins afterwards either waits
// until the block has been ended (exclusive kinds: it is put down in joining,
// Unblock is called) or is polled for once (kinds that are Concurrent and have
// Arm). Unblock sticks: it ends the block that runs or else the next one.
//
// What has ended is noticed. Done and abort may be called while somebody else
// holds calls, so they only put the request down (end), and take it out
// themselves if they get the lock. If they don't, its holder does, who looks for
// ended requests after letting go. The request is counted before the attempt to
// lock and looked for after the release, both times by a read-modify-write of
// the same variable: whichever comes second sees what the other did. (An attempt
// that fails orders nothing by itself in the Go memory model.) During an
// exclusive Block nothing can be taken out. Then Unblock is called, and the leader
// takes out all that have ended by the time it returns.
//
// A leader whose own request has ended returns. It looks whenever it holds calls
// after a block. Where its request is taken out during the block, by somebody
// else's poll or Done, Unblock is called.

// linger is how long a follower stays in Block when nobody waits any more, so
// that a waiter who comes back soon finds it there.
const linger = 50 * time.Millisecond

// elect makes the waiter of e the leader, if there is none and there is a thread
// left for it in the pool. calls is held.
func (src *source) elect(e *entry) bool {
	if src.led.Load() || src.slowBlock || !src.s.pool.seize() {
		return false
	}
	src.led.Store(true)
	e.leads = true
	return true
}

// lead polls and blocks for the group until e has left it.
func (src *source) lead(ctx context.Context, e *entry) {
	stop := context.AfterFunc(ctx, func() { e.abort(ctx.Err()) })
	defer stop()
	src.calls.Lock()
	defer func() { // also where a callback ends this goroutine
		e.leads = false
		src.promote()
		src.unlock()
	}()
	for !e.left && src.round() {
	}
}

// follow polls and blocks for the group, on a thread of the pool, until nobody
// has waited for a while or polling is better.
func (src *source) follow() {
	src.calls.Lock()
	defer func() {
		src.resign()
		src.unlock()
	}()
	for src.round() {
	}
}

// promote has a follower lead in place of the caller and on its share of the
// pool, if there is something left to block for. calls is held.
func (src *source) promote() {
	if src.members.Load() > 0 && !src.over() && src.wantsBlock() {
		src.s.pool.handOver(src.follow)
		return
	}
	src.s.pool.release()
	src.resign()
}

// resign ends the lead, and has the requests that are left polled. Where they can't
// be, there are none, or all are about to be ended by fail. calls is held.
func (src *source) resign() {
	src.led.Store(false)
	src.spare = false
	if src.members.Load() > 0 && !src.over() && src.poll != nil {
		src.startPolling()
	}
}

// round is poll, arm, poll, block. It is called and returns with calls held, and
// with no request in joining. It reports whether there should be another round.
func (src *source) round() bool {
	if src.over() || src.members.Load() > 0 && !src.wantsBlock() && src.poll != nil {
		return false
	}
	if src.spin() {
		return true
	}
	src.choose()
	if src.arm != nil && !src.armed() {
		src.pass()
		return true
	}
	return src.blockOnce()
}

// pass lets others at the source between two rounds.
func (src *source) pass() {
	defer src.calls.Lock()
	src.unlock()
	runtime.Gosched()
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

// blockOnce blocks for the group and then takes in who has joined meanwhile and out
// who has ended. Without members it does so for a while only, and reports false
// when nobody has come meanwhile.
func (src *source) blockOnce() bool {
	idle := src.members.Load() == 0
	var limit time.Duration
	if idle {
		limit = linger
	}
	ended := src.blockFor(limit)
	src.regroup()
	found := ended || src.pollOnce(true)
	if src.listens && !idle && !src.asked {
		src.adapt.triggered(found)
	}
	src.takeOut()
	return !idle || ended || src.members.Load() > 0
}

// blockFor calls Block without calls, and reports whether a request has ended meanwhile.
func (src *source) blockFor(limit time.Duration) bool {
	before := src.total.Load()
	src.blocked, src.limited, src.asked = true, limit > 0, false
	defer func() {
		src.calls.Lock()
		src.blocked = false
	}()
	src.unlock()
	src.stats.blocks.Add(1)
	src.guard("Block", func() { src.block(limit) })
	return src.total.Load() != before
}
