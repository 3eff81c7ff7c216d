// Package health judges nodes by what fails there. A failure may be the job's or the node's. Nobody knows which when
// it comes, so the next attempt goes to another node, and that tells: of a job that goes well there the node before is
// to blame, and one that fails there too has itself to blame.
//
// Until that is known a node may fail all that it is given, faster than any other works. So while all
// attempts fail that end there, it gets fewer and fewer: it is doubted when so many jobs
// failed there in a row (Book), and gets none before they have ended elsewhere. When
// several of them went well elsewhere it is condemned: their failures there count as none of theirs.
// A node that is doubted or condemned is tried with one job after a pause, which doubles with each that fails; one
// that succeeds clears it.
//
// The package is passive, and knows a job and an attempt as identities. Nothing of it is durable: after a restart each
// node is trusted again.
package health

import (
	"fmt"
	"iter"
	"slices"
	"time"

	"fairway/internal/quantity"
	"fairway/internal/taskqueue"
)

// maxDoubted bounds the nodes of which failures are remembered; the oldest are trusted again.
const maxDoubted = 1024

// condemning is how many jobs that failed on a node are to go well elsewhere before it is condemned.
const condemning = 3

// maxPause bounds the pause between jobs that try a node.
const maxPause = time.Hour

// Book is what is known against nodes.
type Book[J, A comparable] struct {
	failures int           // of jobs in a row, before a node is doubted
	pause    time.Duration // before it is tried for the first time
	doubted  []*Node[J, A] // those on which attempts failed since one succeeded, the oldest first
	changed  []*Node[J, A] // see TakeChanged
}

// NewBook returns one in which nothing stands. A node is doubted when so many jobs failed there in a row, and tried
// first after the pause.
func NewBook[J, A comparable](failures int, pause time.Duration) Book[J, A] {
	return Book[J, A]{failures: failures, pause: pause}
}

// Node is what is known against one node. It outlives the node's pilots.
type Node[J, A comparable] struct {
	Name     string
	Gets     bool              // jobs, as its pilots know; the owner says so
	Withheld bool              // it is doubted and gets none, so that its pilots are not counted; the owner says so
	Told     bool              // that it is doubted; the owner says so
	FailedAt taskqueue.Instant // when an attempt failed there last
	TryAt    taskqueue.Instant // when it may be tried with one

	failed    []failure[J] // the jobs that failed there since one succeeded, at most maxFailures
	given     int          // attempts that were given out there since the first of these, and have not ended
	trial     A            // the one that tries the node; zero: none
	pauses    int          // that have passed
	condemned bool
	possibly  int  // jobs for whose failure the node may be to blame
	surely    int  // and those of them that went well elsewhere
	trusted   bool // nothing is known against it any more
}

// maxFailures bounds Node.failed; an older one is forgotten.
const maxFailures = 64

// failure is of one job on one node.
type failure[J comparable] struct {
	job   J
	times int
	what  string
	found verdict
}

// verdict is what became elsewhere of a job that failed on a node.
type verdict uint8

const (
	open     verdict = iota // it has not ended elsewhere
	ofNode                  // it went well
	ofTheJob                // it failed there too
)

// count counts anew, after a change of what failed.
func (n *Node[J, A]) count() {
	n.possibly, n.surely = 0, 0
	for i := range n.failed {
		switch n.failed[i].found {
		case open:
			n.possibly++
		case ofNode:
			n.possibly++
			n.surely++
		}
	}
}

// Doubted are the nodes on which attempts failed since one succeeded, the oldest first.
func (b *Book[J, A]) Doubted() []*Node[J, A] { return b.doubted }

// Of is what is known against a node, nil if nothing is.
func (b *Book[J, A]) Of(name string) *Node[J, A] {
	for _, n := range b.doubted {
		if n.Name == name {
			return n
		}
	}
	return nil
}

// Doubt begins to know something against a node. Where that of another one is too old for it, that is returned, to be
// trusted.
func (b *Book[J, A]) Doubt(name string) (n, oldest *Node[J, A]) {
	if len(b.doubted) >= maxDoubted {
		oldest = b.doubted[0]
	}
	n = &Node[J, A]{Name: name, Gets: true}
	b.doubted = append(b.doubted, n)
	return n, oldest
}

// Trust forgets what is known against a node. It reports whether that was not done before.
func (b *Book[J, A]) Trust(n *Node[J, A]) bool {
	if n.trusted {
		return false
	}
	var none A
	b.doubted = slices.DeleteFunc(b.doubted, func(o *Node[J, A]) bool { return o == n })
	n.failed, n.condemned, n.trial, n.trusted = nil, false, none, true
	b.Change(n)
	return true
}

// Change has the owner look at a node, of which something has changed.
func (b *Book[J, A]) Change(n *Node[J, A]) {
	n.count()
	b.changed = append(b.changed, n)
}

// HasChanged reports whether there are nodes to be looked at.
func (b *Book[J, A]) HasChanged() bool { return len(b.changed) > 0 }

// TakeChanged returns a node that is to be looked at, of which there must be one.
func (b *Book[J, A]) TakeChanged() *Node[J, A] {
	last := len(b.changed) - 1
	n := b.changed[last]
	b.changed = b.changed[:last]
	return n
}

// IsDoubted reports whether the node is only tried.
func (b *Book[J, A]) IsDoubted(n *Node[J, A]) bool { return n.condemned || n.possibly >= b.failures }

// IsCondemned reports whether the node is known to be to blame.
func (n *Node[J, A]) IsCondemned() bool { return n.condemned }

// Tries reports whether the attempt tries the node.
func (n *Node[J, A]) Tries(a A) bool { return n.trial == a }

// Withholds reports whether the node gets no job now that could run elsewhere. allCautious reports whether there is no
// node that may be better.
func (b *Book[J, A]) Withholds(n *Node[J, A], now taskqueue.Instant, allCautious func() bool) bool {
	if b.IsDoubted(n) {
		var none A
		return n.trial != none || now < n.TryAt
	}
	return b.IsCautious(n, now) && !allCautious()
}

// IsCautious reports whether the node has as many jobs as it may have while those that end there fail. It
// may have more when they last.
func (b *Book[J, A]) IsCautious(n *Node[J, A], now taskqueue.Instant) bool {
	return n.possibly > 0 && n.given >= b.failures-n.possibly && now < n.FailedAt.After(b.pause)
}

// Give takes note of an attempt that is given to a node on which attempts fail.
func (b *Book[J, A]) Give(n *Node[J, A], a A, now taskqueue.Instant) {
	var none A
	n.given++
	if b.IsDoubted(n) && n.trial == none && now >= n.TryAt {
		n.trial = a
	}
	b.Change(n)
}

// End undoes Give.
func (b *Book[J, A]) End(n *Node[J, A], a A) {
	var none A
	n.given--
	if n.trial == a {
		n.trial = none
	}
	b.Change(n)
}

// Fail takes note of a job that failed on a node, and how.
func (b *Book[J, A]) Fail(n *Node[J, A], j J, what string, now taskqueue.Instant) {
	n.FailedAt = now
	if i := n.of(j); i >= 0 {
		f := &n.failed[i]
		f.times, f.what, f.found = f.times+1, what, open
	} else {
		if len(n.failed) == maxFailures {
			n.failed = slices.Delete(n.failed, 0, 1)
		}
		n.failed = append(n.failed, failure[J]{job: j, times: 1, what: what})
	}
	n.count()
}

func (n *Node[J, A]) of(j J) int {
	return slices.IndexFunc(n.failed, func(f failure[J]) bool { return f.job == j })
}

// Postpone has a node tried later, unless that is so already. It reports whether TryAt is another one.
func (b *Book[J, A]) Postpone(n *Node[J, A], now taskqueue.Instant) bool {
	if n.TryAt > now {
		return false
	}
	pause := b.pause
	for k := 0; k < n.pauses && pause < maxPause; k++ {
		pause *= 2
	}
	n.pauses++
	n.TryAt = now.After(min(pause, maxPause))
	return true
}

// Forget forgets the failures of some jobs.
func (b *Book[J, A]) Forget(some func(J) bool) {
	for _, n := range b.doubted {
		n.failed = slices.DeleteFunc(n.failed, func(f failure[J]) bool { return some(f.job) })
		b.Change(n)
	}
}

// FailedElsewhere reports whether the job has failed on another node that has done better than
// to fail alone, and so is not to blame.
func (b *Book[J, A]) FailedElsewhere(j J, node string) bool {
	some := false
	for _, n := range b.doubted {
		if n.of(j) >= 0 && n.Name != node && !n.condemned {
			some = some || n.possibly < 2
		}
	}
	if own := b.Of(node); own != nil {
		return some && own.possibly < 2
	}
	return some
}

// Acquit takes failures of some jobs for their own.
func (b *Book[J, A]) Acquit(some func(J) bool) {
	for _, n := range b.doubted {
		for i := range n.failed {
			if f := &n.failed[i]; f.found == open && some(f.job) {
				f.found = ofTheJob
			}
		}
		b.Change(n)
	}
}

// WentWell takes note of a job that went well: where it failed before, the node was to blame. It returns the nodes
// that are condemned by that.
func (b *Book[J, A]) WentWell(j J) (condemned []*Node[J, A]) {
	for _, n := range b.doubted {
		i := n.of(j)
		if i < 0 || n.failed[i].found != open {
			continue
		}
		n.failed[i].found = ofNode
		b.Change(n)
		if !n.condemned && n.surely >= condemning && n.possibly >= b.failures {
			n.condemned = true
			condemned = append(condemned, n)
		}
	}
	return condemned
}

// Blamed yields the jobs for whose failures the node may be to blame, with how often each failed there.
func (n *Node[J, A]) Blamed() iter.Seq2[J, int] {
	return func(yield func(J, int) bool) {
		for i := range n.failed {
			if f := &n.failed[i]; f.found != ofTheJob && !yield(f.job, f.times) {
				return
			}
		}
	}
}

// Suspects yields the jobs that failed on nodes which get none until it is known whether the node or the job is to
// blame: what becomes of the job tells. It looks at up to most failures.
func (b *Book[J, A]) Suspects(most int) iter.Seq[J] {
	return func(yield func(J) bool) {
		looked := 0
		for _, n := range b.doubted {
			if n.condemned || !b.IsDoubted(n) {
				continue
			}
			for i := range n.failed {
				if looked++; looked > most {
					return
				}
				if f := &n.failed[i]; f.found == open && !yield(f.job) {
					return
				}
			}
		}
	}
}

// Review looks at a node after a change: whether it is to be told that it is doubted, or no more, and whether it is to
// be trusted.
func (b *Book[J, A]) Review(n *Node[J, A], now taskqueue.Instant) (doubt, noMore, trust bool) {
	if b.IsDoubted(n) {
		doubt = !n.Told && n.pauses > 0 && now >= n.TryAt // before, it mostly comes to nothing
	} else {
		n.TryAt, n.pauses, noMore = 0, 0, n.Told
	}
	return doubt, noMore, n.possibly == 0 && !n.condemned
}

// Why says for a person what is known against a node, and what becomes of it; tried is when it is tried.
func (b *Book[J, A]) Why(n *Node[J, A], tried taskqueue.Left) string {
	text := fmt.Sprintf("the last %s there failed", quantity.Count(int64(n.possibly), "job"))
	if len(n.failed) > 0 {
		text += ", the last with " + n.failed[len(n.failed)-1].what
	}
	if !b.IsDoubted(n) {
		return text + "; it gets more when one goes well there"
	}
	var none A
	next := "it is tried with one " + tried.String()
	if n.trial != none {
		next = "it is tried with one now"
	}
	if n.condemned {
		return fmt.Sprintf("%s, and %d of them went well elsewhere; it gets no more, and %s", text, n.surely, next)
	}
	return text + "; it gets no more before they have ended elsewhere, or " + next
}

// OfNodeOrJob reports whether either may be to blame for an end. Nobody else can exceed what a job says
// that it needs, or change its inputs, and a pilot that is lost says nothing of what ran there.
func OfNodeOrJob(o taskqueue.Outcome) bool {
	return o == taskqueue.Exited || o == taskqueue.Signalled || o == taskqueue.MissingOutput ||
		o == taskqueue.StageInFailed || o == taskqueue.StageOutFailed ||
		o == taskqueue.OutOfDisk
}
