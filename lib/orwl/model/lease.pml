/*
 * A location and processes on other hosts that write to it, as in session.go, peer.go and redial.go. A
 * process asks by a link, which a network may cut at any time: each end notices for itself, by its lease
 * or by an error, and takes until then what is still on its way (late); the rest is lost. The process
 * dials again then. It may also send a release again (repeated). Each transition is named as its function.
 *
 * Held here: what counts was made from the version before it, under a grant that the owner had not given
 * up, whole, and once (fencing); a process that is granted the location has the data of the last version;
 * the owner has one writer; and whoever waits by a link that is up has its turn.
 *
 * BROKEN names what is wrong in a variant that the checker must refuse. With TRACE only what real
 * processes were seen to do is done, and the checker looks for a way to its end.
 */

#define NO_FENCE 1       /* a release counts whoever holds the location */
#define NO_GENERATION 2  /* a release counts if its process holds the location, by whatever grant */
#define TAKES_AFTER_END 3 /* what was sent by a link that has ended still counts, until the next grant */
#define KEEPS_REPLICA 4  /* a process that dials again keeps its data, and the owner goes by the old link */
#define HOLDS_ON 5       /* a process keeps the location when its link ends */
#define STAYS_QUEUED 6   /* a request stays in the queue when its link ends */
#define GRANTS_AT_END 7  /* the end of any link grants the location to the next */
#define WRITES_AT_ONCE 8 /* what has come of a release is written before the rest has */

#ifndef BROKEN
#define BROKEN 0
#endif
#ifndef PEERS
#define PEERS 2
#endif
#ifndef ROUNDS
#define ROUNDS 2 /* requests of each process */
#endif
#ifndef CUTS
#define CUTS 1 /* of the links of each process; its last link is not cut */
#endif
#define LINKS (CUTS + 1)
#define ALL (PEERS * LINKS)
#define GRANTS (PEERS * ROUNDS)
#define NOTHING 255

/* Frames to the owner, and from it. */
mtype = { request, release, data, granted };
chan up[ALL] = [3] of { mtype, byte, byte, byte };        /* kind, id, generation, version that it was made from */
chan down[ALL] = [1] of { byte, byte, byte, byte };       /* id, generation, version, version that it goes by */

bool cut[ALL];     /* by the network, and its ends may notice */
bool ended[ALL];   /* the owner's session has ended */

/* The owner. A link has one request at a time. */
byte order[ALL], count;
byte asked[ALL];   /* the id of its request */
bool queued[ALL];
bool told[ALL];    /* it has the location */
byte under[ALL];   /* the generation of its grant */
byte has[ALL] = NOTHING;    /* the version that the other end has */
byte taking[ALL] = NOTHING; /* the generation of the release that has come in part */
byte from[ALL];
byte generation, version;
bool torn;

/* What cannot be seen by anybody. */
bool counted[GRANTS + 1], lost[GRANTS + 1];

#define ACQUIRED 0 /* and the version that was seen */
#define RELEASED 1
#define LOST 2
#ifdef TRACE
#include "trace.pml"
byte step;
byte seen[STEPS], by[STEPS], saw[STEPS];
inline see(what, p, v) { step < STEPS && seen[step] == what && by[step] == p && saw[step] == v; step++ }
#else
inline see(what, p, v) { skip }
#endif

inline grantNext() {
	if
	:: count > 0 && !told[order[0]] ->
		i = order[0];
		assert(!torn);
		told[i] = true;
		generation++;
		under[i] = generation;
		if
		:: !ended[i] && len(down[i]) == 0 -> down[i]!asked[i], generation, version, has[i]; has[i] = version
		:: else
		fi;
		i = 0
	:: else
	fi
}

inline insert(k, id) {
	assert(!queued[k]);
	queued[k] = true;
	asked[k] = id;
	order[count] = k;
	count++;
	grantNext()
}

/* leave takes a request out of the queue, wherever it stands. */
inline leave(k) {
	i = 0;
	do
	:: order[i] == k -> break
	:: else -> i++
	od;
	do
	:: i + 1 < count -> order[i] = order[i + 1]; i++
	:: else -> break
	od;
	i = 0;
	count--;
	order[count] = 0;
	queued[k] = false;
	told[k] = false;
	under[k] = 0;
	asked[k] = 0;
	grantNext()
}

/* holder: whether a release is of the grant that the link has now. */
#if BROKEN == NO_FENCE
#define holder(k, id, g) true
#elif BROKEN == NO_GENERATION
#define holder(k, id, g) (told[k])
#elif BROKEN == TAKES_AFTER_END
#define holder(k, id, g) (told[k] && asked[k] == id && under[k] == g || ended[k] && g == generation)
#else
#define holder(k, id, g) (told[k] && asked[k] == id && under[k] == g)
#endif

inline releaseBegins(k, id, g, v) {
	if
	:: holder(k, id, g) ->
		taking[k] = g;
		from[k] = v;
		torn = torn || BROKEN == WRITES_AT_ONCE
	:: else /* ErrStale */
	fi
}

/* overwrite makes a version of what was released, when all of it has come. */
inline overwrite(k) {
	if
	:: taking[k] != NOTHING ->
		assert(from[k] == version && !counted[taking[k]] && !lost[taking[k]]);
		counted[taking[k]] = true;
		version++;
		has[k] = version;
		torn = false;
		taking[k] = NOTHING;
		from[k] = 0;
		if
		:: told[k] -> leave(k)
		:: else
		fi
	:: else
	fi
}

/* end gives up all that a process had by a link. */
inline end(k) {
	ended[k] = true;
	taking[k] = NOTHING;
	from[k] = 0;
	if
	:: told[k] && BROKEN != HOLDS_ON -> lost[under[k]] = true; leave(k) /* lose */
	:: queued[k] && !told[k] && BROKEN != STAYS_QUEUED -> leave(k) /* withdraw */
	:: else
	fi;
	if
	:: BROKEN == GRANTS_AT_END && count > 1 && told[order[0]] && !told[order[1]] && len(down[order[1]]) == 0 ->
		i = order[1];
		told[i] = true;
		generation++;
		under[i] = generation;
		down[i]!asked[i], generation, version, has[i];
		has[i] = version;
		i = 0
	:: else
	fi;
	if
	:: BROKEN == KEEPS_REPLICA -> has[k + 1] = has[k]
	:: else
	fi
}

#define reads(k) (!ended[k] || BROKEN == TAKES_AFTER_END)

proctype Session(byte k) {
	byte i, id, g, v;
	mtype kind;
endSession:
	do
	:: atomic { reads(k) && nempty(up[k]) -> up[k]?kind, id, g, v;
		if
		:: kind == request && !ended[k] -> insert(k, id)
		:: kind == release -> releaseBegins(k, id, g, v)
		:: kind == data -> overwrite(k)
		:: else
		fi;
		id = 0; g = 0; v = 0; kind = 0 }
	:: atomic { cut[k] && !ended[k] -> end(k) }
	od
}

bool holds[PEERS]; /* as the process believes */
byte link[PEERS];
bool over[PEERS];

/* What a process knows is outdated when the owner has ended the link. */
#define surely(p) (holds[p] && !ended[link[p]])

/* redial: the next link has no data yet. */
inline redial(p) {
	atomic {
		see(LOST, p, 0);
		holds[p] = false;
		link[p]++;
		if
		:: BROKEN != KEEPS_REPLICA -> replica = NOTHING
		:: else
		fi
	}
}

proctype Peer(byte p) {
	byte round, replica = NOTHING, id, g, v, base, again, made;
	link[p] = p * LINKS;
	do
	:: round < ROUNDS ->
		if
		:: up[link[p]]!request, round, 0, 0
		:: cut[link[p]] -> redial(p); goto next
		fi;
		if
		:: atomic { again != 0 && p == 0 && nfull(up[link[p]]) -> up[link[p]]!release, 0, again, made }; /* once more; one process does */
			if
			:: up[link[p]]!data, 0, again, made
			:: cut[link[p]] -> redial(p); goto next
			fi
		:: true
		fi;
		again = 0;
		if
		:: atomic { down[link[p]]?id, g, v, base ->
			assert(id == round && base == replica);
			replica = v;
			holds[p] = true;
			assert(surely(0) + surely(1) <= 1);
			see(ACQUIRED, p, v) }
		:: cut[link[p]] -> redial(p); goto next
		fi;
		if
		:: atomic { nfull(up[link[p]]) -> see(RELEASED, p, 0); holds[p] = false; up[link[p]]!release, round, g, replica }
		:: cut[link[p]] -> redial(p); goto next
		fi;
		if
		:: atomic { up[link[p]]!data, round, g, replica -> replica++ }
		:: cut[link[p]] -> redial(p); goto next
		fi;
		atomic {
			if
			:: round == 0 -> again = g; made = v
			:: else
			fi
		};
next:		atomic { round++; id = 0; g = 0; v = 0; base = 0 }
	:: else -> break
	od;
	over[p] = true
}

/* Each link but the last of a process is cut at any time, or never. */
proctype Network() {
	byte k;
	do
	:: k < ALL ->
		if
		:: k % LINKS != CUTS -> cut[k] = true
		:: true
		fi;
		k++
	:: else -> break
	od
}

init {
	byte k;
	atomic {
#ifdef TRACE
		load();
#endif
		do
		:: k < ALL -> run Session(k); k++
		:: else -> break
		od;
		k = 0;
		do
		:: k < PEERS -> run Peer(k); k++
		:: else -> break
		od;
		run Network();
		k = 0
	}
#ifdef TRACE
	step == STEPS -> assert(false) /* there is a way */
#else
	timeout; /* all stand still */
	do
	:: k < PEERS -> assert(over[k]); k++
	:: else -> break
	od;
	assert(count == 0 || BROKEN)
#endif
}
