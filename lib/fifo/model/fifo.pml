/*
 * The queues of LOCATIONS locations, as in queue.go, and tasks with a pair of requests on each, as
 * lib/orwl has them. Each transition is named as its function and is one step, as all of them run
 * under the lock of a location.
 *
 * Held here: who conflicts never has a location together; granted is exactly the run at the head;
 * of two tasks that conflict neither is ahead by more than one iteration (equity); and every task
 * ends its iterations, whoever gives up meanwhile (liveness, paper 2, section 2.0.1).
 *
 * BROKEN names what is wrong in a variant that the checker must refuse. With TRACE a recorded run of
 * the real queue is replayed instead, and its grants must be those of the model.
 */

#define OVERTAKE 1      /* a read joins the reads at the head, past a write that waits */
#define SHARED_WRITE 2  /* a write joins reads */
#define LOST_CANCEL 3   /* who stands behind a cancelled request is not looked at */
#define RELEASE_FIRST 4 /* pairs release before they post */
#define ONE_GRANT 5     /* only the first of several reads is granted */
#define LATE 6          /* a task inserts while another posts its next requests, one after the other */

#ifndef BROKEN
#define BROKEN 0
#endif
#ifndef TASKS
#define TASKS 3
#endif
#ifndef LOCATIONS
#define LOCATIONS 2
#endif
#ifndef ROUNDS
#define ROUNDS 2
#endif
#define HANDLES (2 * TASKS)

/* The queue of a location: handles in their order. Handle h is of task h/2. */
typedef Queue {
	byte count;
	byte order[HANDLES];
	bool queued[HANDLES];
	bool granted[HANDLES];
	bool write[HANDLES];
	byte size
};
Queue q[LOCATIONS];

byte rounds[TASKS];
bool writes[TASKS];
bool over[TASKS];

/* joins: whether h is granted when it stands right behind the last one. */
#define last(l) q[l].order[q[l].count - 1]
#if BROKEN == OVERTAKE
#define joins(l, h) (q[l].count == 0 || (!q[l].write[h] && !q[l].write[q[l].order[0]]))
#elif BROKEN == SHARED_WRITE
#define joins(l, h) (q[l].count == 0 || (q[l].granted[last(l)] && !q[l].write[last(l)]))
#else
#define joins(l, h) (q[l].count == 0 || (q[l].granted[last(l)] && !q[l].write[last(l)] && !q[l].write[h]))
#endif

inline insert(l, h, w) {
	assert(!q[l].queued[h]);
	q[l].write[h] = w;
	q[l].granted[h] = joins(l, h);
	q[l].queued[h] = true;
	q[l].order[q[l].count] = h;
	q[l].count++
}

/* cancel takes h out wherever it stands, and grants the run that is at the head then. */
inline cancel(l, h) {
	assert(q[l].queued[h]);
	k = 0;
	do
	:: q[l].order[k] == h -> break
	:: else -> k++
	od;
	grants = (BROKEN != LOST_CANCEL || q[l].granted[h]);
	do
	:: k + 1 < q[l].count -> q[l].order[k] = q[l].order[k + 1]; k++
	:: else -> break
	od;
	q[l].count--;
	q[l].order[q[l].count] = 0;
	q[l].queued[h] = false;
	q[l].granted[h] = false;
	if
	:: grants -> grantRun(l)
	:: else
	fi
}

inline grantRun(l) {
	k = 0;
	do
	:: k < q[l].count && (k == 0 || (!q[l].write[q[l].order[k]] && !q[l].write[q[l].order[0]])) ->
		q[l].granted[q[l].order[k]] = true;
		k++;
		if
		:: BROKEN == ONE_GRANT -> break
		:: else
		fi
	:: else -> break
	od;
	k = 0
}

inline release(l, h) {
	assert(q[l].granted[h]);
	cancel(l, h)
}

/* cycle posts the next request in the mode of the current one, and then releases that. */
inline cycle(l, cur, next) {
	grants = q[l].write[cur];
	insert(l, next, grants);
	release(l, cur)
}

inline resize(l, h) {
	assert(q[l].granted[h] && q[l].write[h]);
	q[l].size = 1 - q[l].size
}

/* check: granted is the run at the head, and nobody who conflicts has the location too. */
inline check(l) {
	k = 0;
	head = true;
	do
	:: k < q[l].count ->
		head = head && (k == 0 || (!q[l].write[q[l].order[k]] && !q[l].write[q[l].order[0]]));
		assert(q[l].granted[q[l].order[k]] == head);
		k++
	:: else -> break
	od;
	k = 0;
	head = false
}

#ifndef TRACE

/* equity: who conflicts and still goes on is at most one iteration behind. */
inline equity(t) {
	k = 0;
	do
	:: k < TASKS ->
		assert(k == t || over[k] || (!writes[k] && !writes[t]) || rounds[t] <= rounds[k]);
		k++
	:: else -> break
	od;
	k = 0
}

/* start inserts the requests of a task in all locations as one step (Insert). */
inline start(t) {
	l = 0;
	do
	:: l < LOCATIONS -> insert(l, 2 * t, writes[t]); check(l); l++
	:: else -> break
	od;
	l = 0
}

/* A task acquires its requests in all locations, uses them, and goes on by its pairs: all next
 * requests before any release. */
proctype Task(byte t) {
	byte cur = 2 * t, next = 2 * t + 1, l, k;
	bool grants, head;
	if
	:: BROKEN == LATE -> atomic { start(t) }
	:: else
	fi;
	do
	:: rounds[t] < ROUNDS ->
		l = 0;
		do
		:: l < LOCATIONS ->
			if
			:: atomic { q[l].granted[cur] -> l++ } /* acquire */
			:: atomic { t == 0 && !q[l].granted[cur] -> goto gives_up } /* its context ends */
			fi
		:: else -> break
		od;
		if
		:: writes[t] -> atomic { resize(0, cur) }
		:: else
		fi;
		if
		:: rounds[t] + 1 == ROUNDS -> break
		:: else
		fi;
		atomic { equity(t); rounds[t]++; l = 0 };
		do
		:: l < LOCATIONS ->
			atomic {
				if
				:: BROKEN == RELEASE_FIRST -> release(l, cur)
				:: else -> insert(l, next, writes[t])
				fi;
				l++
			}
		:: else -> break
		od;
		l = 0;
		do
		:: l < LOCATIONS ->
			atomic {
				if
				:: BROKEN == RELEASE_FIRST -> insert(l, next, writes[t])
				:: else -> release(l, cur)
				fi;
				check(l);
				l++
			}
		:: else -> break
		od;
		atomic { k = cur; cur = next; next = k; k = 0 }
	od;
gives_up:
	over[t] = true;
	l = 0;
	do
	:: l < LOCATIONS ->
		atomic {
			if
			:: q[l].queued[cur] -> cancel(l, cur)
			:: else
			fi;
			check(l);
			l++
		}
	:: else -> break
	od
}

init {
	byte t = 0, l, k;
	bool grants, head;
	atomic {
		do
		:: t < TASKS ->
			if
			:: writes[t] = true
			:: writes[t] = false
			fi;
			if
			:: BROKEN != LATE -> start(t) /* a Gate */
			:: else
			fi;
			t++
		:: else -> break
		od;
		t = 0;
		do
		:: t < TASKS -> run Task(t); t++
		:: else -> break
		od
	}
}

#else

/* What a real queue did: the trace says its steps, and which handles had the location after each. */
#define INSERT 0 /* for reading; 1: for writing */
#define CYCLE 2
#define RELEASE 3
#define CANCEL 4
#include "trace.pml"
byte op[STEPS], one[STEPS], other[STEPS], want[STEPS];

init {
	byte n, k, x, y, z = 0;
	bool grants, head;
	load();
	do
	:: n < STEPS ->
		x = one[n];
		y = other[n];
		if
		:: op[n] == INSERT -> grants = false; insert(z, x, grants)
		:: op[n] == INSERT + 1 -> grants = true; insert(z, x, grants)
		:: op[n] == CYCLE -> cycle(z, x, y)
		:: op[n] == RELEASE -> release(z, x)
		:: op[n] == CANCEL -> cancel(z, x)
		fi;
		check(z);
		do
		:: k < HANDLES -> assert(q[0].granted[k] == ((want[n] >> k) & 1)); k++
		:: else -> break
		od;
		k = 0;
		n++
	:: else -> break
	od
}

#endif
