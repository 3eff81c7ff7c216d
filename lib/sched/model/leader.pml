/*
 * The leader of a source, as in leader.go and source.go: waiters with one request each, one goroutine
 * that polls, arms and blocks for all of them, and somebody who gives a request up meanwhile. Each
 * transition is named as its function. calls is source.calls; what happens under it is one step, where
 * nobody can look in between.
 *
 * Held here: at most one goroutine polls, and one leads; whoever waits is woken when its event has come
 * or its request is given up, in whatever moment that is; and nobody leads for ever when all have gone.
 *
 * BROKEN names what is wrong in a variant that the checker must refuse. With CONCURRENT requests join and
 * leave while the leader blocks. With TRACE only what a real source was seen to do is done, and the
 * checker looks for a way to its end.
 */

#define ONE_POLL 1       /* no poll after the arming */
#define NO_PROMOTION 2   /* a leader whose request has ended leaves the others */
#define NO_UNBLOCK 3     /* who joins does not end the block */
#define NO_LOOK_AFTER 4  /* nobody looks for ended requests after letting go of calls */
#define UNBLOCK_LOST 5   /* an Unblock before the Block has begun is forgotten */
#define TWO_LEADERS 6    /* who joins leads, whether or not somebody does */
#define LEADER_SLEEPS 7  /* a leader is not woken when somebody else takes its request out */
#define NOBODY_LOOKS 8   /* a Block goes on for ever when the last request has left */

#ifndef BROKEN
#define BROKEN 0
#endif
#ifndef WAITERS
#define WAITERS 3
#endif
#ifndef CONCURRENT
#define CONCURRENT 0
#endif
#define ABORTED 0 /* the request that may be given up */

bool calls;           /* held */
bool led, blocked, limited, lonely, asked;
bool unblocked;       /* what Unblock has left for the Block that runs or comes next */
bool armed, woken;    /* an event that comes after the arming ends the Block */
bool grouped[WAITERS], joining[WAITERS], leads[WAITERS];
bool event[WAITERS];  /* it has come */
bool ended[WAITERS];  /* put down by end, and not taken out yet */
bool over[WAITERS];   /* ended at some time, so that it ends once */
bool ready[WAITERS];  /* its waiter was woken */
byte members, some, total, polling;
bool follower;        /* a thread of the pool is told to lead */

#ifdef TRACE
#define GROUP 0     /* to GROUP + WAITERS - 1 */
#define REMOVE 10
#define POLL 20
#define ARM 21
#define BLOCK 22
#define BLOCKED 23
#define UNBLOCK 24
#include "trace.pml"
byte step;
byte seen[STEPS];
#define see(what) d_step { step < STEPS && seen[step] == what -> step++ }
#else
#define see(what) skip
#endif

inline lock() { atomic { !calls -> calls = true } }

inline endBlock() {
	if
	:: !asked -> asked = true; see(UNBLOCK);
		if
		:: BROKEN == UNBLOCK_LOST && !inside -> skip
		:: else -> unblocked = true
		fi
	:: else
	fi
}
bool inside; /* the Block has begun */

inline desert(e) {
	lonely = lonely || (members == 0 && blocked && !limited && !leads[e] && BROKEN != NOBODY_LOOKS)
}

/* takeOut wakes who has ended. While an exclusive Block runs its leader does the rest. */
inline takeOut() {
	rest = false;
	if
	:: some > 0 && blocked && !CONCURRENT -> endBlock(); rest = true
	:: some > 0 && (!blocked || CONCURRENT) ->
		i = 0;
		do
		:: i < WAITERS ->
			if
			:: ended[i] ->
				ended[i] = false;
				some--;
				if
				:: grouped[i] -> members--; grouped[i] = false; desert(i); see(REMOVE + i)
				:: else -> joining[i] = false
				fi;
				ready[i] = true;
				if
				:: leads[i] && blocked && BROKEN != LEADER_SLEEPS -> endBlock()
				:: else
				fi
			:: else
			fi;
			i++
		:: else -> break
		od
	:: else
	fi;
	i = 0
}

/* unlock lets go of calls, and looks whether somebody has ended since the last look. */
inline unlock() {
	do
	:: true ->
		atomic { takeOut() };
		calls = false;
		if
		:: rest || BROKEN == NO_LOOK_AFTER -> break
		:: else
		fi;
		atomic {
			if
			:: some != 0 && !calls -> calls = true /* TryLock */
			:: else -> break
			fi
		}
	od
}

/* end notes a request that has ended. calls may be held by anybody. */
inline end(e) {
	d_step { ended[e] = true; over[e] = true; some++; total++ }
}

inline group(e) {
	see(GROUP + e);
	grouped[e] = true;
	members++
}

/* pollOnce ends the requests whose events have come. */
inline pollOnce() {
	hit = false;
	if
	:: members > 0 ->
		polling++;
		assert(polling == 1);
		see(POLL);
		i = 0;
		do
		:: i < WAITERS ->
			if
			:: grouped[i] && event[i] && !over[i] -> end(i); hit = true
			:: else
			fi;
			i++
		:: else -> break
		od;
		polling--;
		hit = hit || some > 0;
		takeOut()
	:: else
	fi
}

/* round is poll, arm, poll, block. more says whether there is to be another one. */
inline round() {
	more = true;
	atomic { pollOnce() };
	if
	:: hit -> unlock(); lock()
	:: else ->
		atomic { see(ARM); armed = true; woken = false };
		if
		:: BROKEN == ONE_POLL -> hit = false
		:: else -> atomic { pollOnce() }
		fi;
		if
		:: hit -> unlock(); lock()
		:: else -> blockOnce()
		fi
	fi
}

inline blockOnce() {
	atomic { idle = (members == 0); before = total; blocked = true; limited = idle; asked = false };
	unlock();
	atomic { see(BLOCK); inside = true };
	if
	:: atomic { unblocked || woken -> unblocked = false; inside = false; see(BLOCKED) }
	:: atomic { idle -> unblocked = false; inside = false; see(BLOCKED) } /* linger is over */
	fi;
	lock();
	atomic {
		blocked = false;
		i = 0;
		do
		:: i < WAITERS ->
			if
			:: joining[i] -> joining[i] = false; group(i)
			:: else
			fi;
			i++
		:: else -> break
		od;
		more = (total != before);
		if
		:: !more -> pollOnce()
		:: else
		fi;
		takeOut();
		more = (!idle || more || members > 0)
	}
}

/* promote has a follower lead, if there is something left to block for. */
inline promote() {
	if
	:: members > 0 && BROKEN != NO_PROMOTION -> follower = true
	:: else -> led = false
	fi
}

proctype Waiter(byte e) {
	byte i, before;
	bool rest, hit, more, idle;
	lock(); /* join */
	atomic {
		if
		:: blocked && !CONCURRENT ->
			joining[e] = true;
			if
			:: BROKEN != NO_UNBLOCK -> endBlock()
			:: else
			fi
		:: else ->
			group(e);
			if
			:: blocked -> pollOnce()
			:: else
			fi;
			if
			:: !led || BROKEN == TWO_LEADERS -> assert(!led); led = true; leads[e] = true /* elect */
			:: else
			fi
		fi
	};
	unlock();
	if
	:: leads[e] -> /* lead */
		lock();
		do
		:: !ready[e] -> round()
		:: else -> break
		od;
		atomic { leads[e] = false; promote() };
		unlock()
	:: else
	fi;
	ready[e]
}

/* follow leads on a thread of the pool until nobody has waited for a while. */
proctype Pool() {
	byte i, before;
	bool rest, hit, more, idle;
endPool:
	do
	:: atomic { follower -> follower = false };
		lock();
		more = true;
		do
		:: more -> round()
		:: else -> break
		od;
		atomic { led = false; assert(members == 0) }; /* resign */
		unlock()
	od
}

/* lookForNobody runs a while after the last request has left a Block without a limit. */
proctype Lonely() {
	byte i;
	bool rest;
	do
	:: lonely ->
		lock();
		atomic {
			lonely = false;
			if
			:: blocked && !limited && members == 0 -> endBlock()
			:: else
			fi
		};
		unlock()
	od
}

/* abort gives a request up, as its context ends. */
proctype Abort(byte e) {
	byte i;
	bool rest, mine;
	atomic {
		if
		:: !over[e] && (grouped[e] || joining[e]) -> end(e); mine = true
		:: else
		fi
	};
	if
	:: mine ->
		atomic {
			if
			:: !calls -> calls = true /* TryLock */
			:: else -> mine = false
			fi
		};
		if
		:: mine -> unlock()
		:: else
		fi
	:: else
	fi
}

/* Each event comes at any time, or never. */
proctype Events() {
	byte e;
	do
	:: e < WAITERS ->
		atomic {
			if
			:: event[e] = true; woken = woken || armed
			:: true
			fi;
			e++
		}
	:: else -> break
	od
}

init {
	byte e;
	atomic {
#ifdef TRACE
		load();
#endif
		run Pool();
		run Lonely();
		run Abort(ABORTED);
		do
		:: e < WAITERS -> run Waiter(e); e++
		:: else -> break
		od;
		run Events()
	}
#ifdef TRACE
	step == STEPS -> assert(false) /* there is a way */
#else
	timeout; /* all stand still */
	e = 0;
	do
	:: e < WAITERS -> assert(ready[e] || (!event[e] && !over[e])); e++
	:: else -> break
	od;
	assert(!calls && (!led || members > 0))
#endif
}
