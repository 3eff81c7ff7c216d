// Package results keeps what jobs have made and others may take instead of being executed: results, each under the
// key of the job that made it. It knows a job only as one that has a result.
package results

import (
	"bytes"
	"cmp"
	"slices"
	"time"

	"fairway/internal/dispatch/records"
	"fairway/internal/taskqueue"
)

// Taker is a job that has a result.
type Taker interface {
	comparable
	Run() taskqueue.RunID
}

// Result is the outputs of a job that was done, under the key of that job. Runs name it that were retired and are
// kept (Runs), and jobs of runs that were not (Takers).
//
// A file of it may be named by versions of several jobs. It is removed with the result only, unless
// there is just one such job, and no retired run has ever named the result.
type Result[J Taker] struct {
	records.Result
	// Takers are the jobs of runs that were not retired which are Done under its key. Of those
	// whose result is their own the outputs stand in their commits.
	Takers []J

	order uint64 // of those that runs left in this incarnation; 0: left before
}

// Origin says who made it, where that is known.
func (r *Result[J]) Origin() taskqueue.Origin {
	return taskqueue.Origin{Run: r.Run, Account: taskqueue.Account{Group: r.Group, User: r.User}, Job: r.Job}
}

// Holds reports whether a stored file of it is in some places.
func (r *Result[J]) Holds(in func(pfn string) bool) bool {
	return slices.ContainsFunc(r.Outputs, func(o records.Output) bool { return in(o.PFN) })
}

// Names reports whether a stored file is one of the result.
func (r *Result[J]) Names(pfn string) bool { return r.Holds(func(x string) bool { return x == pfn }) }

// Change changes what is said of the files of it in some places. The list that others may have stays as it is.
func (r *Result[J]) Change(in func(pfn string) bool, change func(*records.Output)) {
	r.Outputs = slices.Clone(r.Outputs)
	for i := range r.Outputs {
		if o := &r.Outputs[i]; in(o.PFN) {
			change(o)
		}
	}
}

// Drop is for a stored file that is being removed: nobody takes it any more. The job that had it has
// the result recorded anew. There may be no result.
func (r *Result[J]) Drop(pfn string) {
	if r != nil && r.Names(pfn) {
		r.Change(func(x string) bool { return x == pfn }, func(o *records.Output) { o.PFN = "" })
	}
}

// Complete gives it the stored files that it lacks and own has, but for those that are going, and reports whether
// there were any.
func (r *Result[J]) Complete(own func() []records.Output, isGoing func(pfn string) bool) (changed bool) {
	if !r.Names("") {
		return false
	}
	has := own()
	outputs := slices.Clone(r.Outputs)
	for i := range outputs {
		at := slices.IndexFunc(has, func(x records.Output) bool { return x.LFN == outputs[i].LFN && x.PFN != "" })
		if outputs[i].PFN == "" && at >= 0 && !isGoing(has[at].PFN) {
			outputs[i], changed = has[at], true
		}
	}
	if changed {
		r.Outputs = outputs
	}
	return changed
}

// Agrees reports whether outputs of a job are where the result has them.
func (r *Result[J]) Agrees(outputs []records.Output) bool {
	return !slices.ContainsFunc(outputs, func(o records.Output) bool {
		at := slices.IndexFunc(r.Outputs, func(x records.Output) bool { return x.LFN == o.LFN })
		return at < 0 || r.Outputs[at].PFN != o.PFN || r.Outputs[at].Tag != o.Tag
	})
}

// Lasts reports whether the stored files of the result stay whatever the jobs need that have it: a
// run that is kept names it, or one did.
func (r *Result[J]) Lasts() bool { return len(r.Runs) > 0 || r.Left != 0 }

// IsUnused reports whether no run names the result.
func (r *Result[J]) IsUnused() bool { return len(r.Runs)+len(r.Takers) == 0 }

// Leave has a job no longer have it.
func (r *Result[J]) Leave(j J) {
	r.Takers = slices.DeleteFunc(r.Takers, func(x J) bool { return x == j })
}

// Release has a retired run name it no more.
func (r *Result[J]) Release(run taskqueue.RunID) {
	r.Runs = slices.DeleteFunc(r.Runs, func(x taskqueue.RunID) bool { return x == run })
}

// Stored yields its files that are stored.
func (r *Result[J]) Stored(yield func(taskqueue.StoredFile) bool) {
	for i := range r.Outputs {
		o := &r.Outputs[i]
		if o.PFN != "" && !yield(taskqueue.StoredFile{File: taskqueue.FileRef{LFN: o.LFN}, PFN: o.PFN, Size: o.Size}) {
			return
		}
	}
}

// othersThan are the runs that name the result, but for one.
func (r *Result[J]) othersThan(run taskqueue.RunID) (others []taskqueue.RunID) {
	all := slices.Clone(r.Runs)
	for _, j := range r.Takers {
		all = append(all, j.Run())
	}
	for _, x := range all {
		if x != run {
			others = append(others, x)
		}
	}
	slices.Sort(others)
	return slices.Compact(others)
}

func (r *Result[J]) asUnused(key records.Identity) taskqueue.UnusedResult {
	u := taskqueue.UnusedResult{Record: taskqueue.Record{Table: records.TableResult, Key: key.Hex()}, Job: r.Job}
	for f := range r.Stored {
		u.PFNs, u.Bytes = append(u.PFNs, f.PFN), u.Bytes+f.Size
	}
	return u
}

// View is what callers of the TaskQueue may ask of results.
type View[J Taker] struct {
	byKey map[records.Identity]*Result[J]
	// keeps is how long a result of a group is kept that no run names, and whether that is promised.
	keeps func(group string) (keeps time.Duration, isPromised bool)
}

// Book is all results by key.
type Book[J Taker] struct {
	View[J]
	left uint64 // number of the last result that a run has left
}

// NewBook returns an empty Book.
func NewBook[J Taker](keeps func(group string) (keeps time.Duration, isPromised bool)) Book[J] {
	return Book[J]{View: View[J]{byKey: make(map[records.Identity]*Result[J]), keeps: keeps}}
}

// Add puts a result in the place of the one that there may be.
func (b *Book[J]) Add(key records.Identity, r *Result[J]) { b.byKey[key] = r }

// Remove forgets a result.
func (b *Book[J]) Remove(key records.Identity) { delete(b.byKey, key) }

// HasLeft takes note that a run which is retired has left a result: among those of one incarnation they go in
// this order.
func (b *Book[J]) HasLeft(r *Result[J]) {
	b.left++
	r.order = b.left
}

// Of returns a result; nil if there is none.
func (v View[J]) Of(key records.Identity) *Result[J] { return v.byKey[key] }

// Keys are those of some results, oldest first: by the incarnation, and those of this one as their runs were retired.
func (v View[J]) Keys(which func(*Result[J]) bool) (keys []records.Identity) {
	for key, r := range v.byKey {
		if which(r) {
			keys = append(keys, key)
		}
	}
	slices.SortFunc(keys, func(a, b records.Identity) int {
		one, other := v.byKey[a], v.byKey[b]
		return cmp.Or(cmp.Compare(one.Made, other.Made), cmp.Compare(one.order, other.order), bytes.Compare(a[:], b[:]))
	})
	return keys
}

// NamedByRetired are the keys of those that a run names which was retired.
func (v View[J]) NamedByRetired(run taskqueue.RunID) []records.Identity {
	return v.Keys(func(r *Result[J]) bool { return slices.Contains(r.Runs, run) })
}

// KeysNamedBy are the results that a run names which was retired: their keys.
func (v View[J]) KeysNamedBy(run taskqueue.RunID) (keys []string) {
	for _, key := range v.NamedByRetired(run) {
		keys = append(keys, key.Hex())
	}
	return keys
}

// Results is how many results there are.
func (v View[J]) Results() int { return len(v.byKey) }

// known is the result of a key that somebody says; nil if there is none.
func (v View[J]) known(key string) *Result[J] {
	id, err := records.ParseIdentity(key)
	if err != nil {
		return nil
	}
	return v.byKey[id]
}

// IsUnused reports whether a result, by its key, is among those that Unused returns.
func (v View[J]) IsUnused(key string) bool {
	r := v.known(key)
	return r != nil && r.IsUnused()
}

// MadeBy is the name of the job that made the result of a key; empty if there is no such result.
func (v View[J]) MadeBy(key string) string {
	if r := v.known(key); r != nil {
		return r.Job
	}
	return ""
}

// IsIn reports whether those of a scope may take the result of a key.
func (v View[J]) IsIn(scope, key string) bool {
	r := v.known(key)
	return r != nil && r.Scope == scope
}

// ResultFiles yields the PFNs of the stored files of all results.
func (v View[J]) ResultFiles(yield func(pfn string) bool) {
	for _, r := range v.byKey {
		for f := range r.Stored {
			if !yield(f.PFN) {
				return
			}
		}
	}
}

// Unused returns the results that no run names, so far, in the order of Keys. The caller may remove them, with their
// files, when no job will come any more that could take them; a Core that is loaded afterwards no longer knows them.
func (v View[J]) Unused() (list []taskqueue.UnusedResult) {
	for _, key := range v.Keys((*Result[J]).IsUnused) {
		list = append(list, v.byKey[key].asUnused(key))
	}
	return list
}

// endOf is when the time of a result is over that no run names since it was left, and whether that is promised.
// Such as nobody else could take are not kept.
func (v View[J]) endOf(r *Result[J], left taskqueue.Instant) (end taskqueue.Instant, isPromised bool) {
	if r.Scope == "" {
		return left, false
	}
	keeps, isPromised := v.keeps(r.Group)
	return left.After(keeps), isPromised
}

// Forgettable returns results that no run names and that are kept no longer at a time, in the order in
// which they may go: first those whose time is over, then the oldest that no group has promised to keep,
// as long as there are more than limit of these, or until so many bytes are given back in all. A
// caller has them forgotten by ForgetResults.
func (v View[J]) Forgettable(now time.Time, limit int, bytesBack int64) (list []taskqueue.UnusedResult) {
	type unused struct {
		key records.Identity
		end taskqueue.Instant
	}
	at := taskqueue.InstantOf(now)
	var over, others []unused
	for key, r := range v.byKey {
		if !r.IsUnused() {
			continue
		}
		if end, isPromised := v.endOf(r, r.Left); end <= at {
			over = append(over, unused{key, end})
		} else if !isPromised {
			others = append(others, unused{key, end})
		}
	}
	inOrder := func(a, b unused) int { return cmp.Or(cmp.Compare(a.end, b.end), bytes.Compare(a.key[:], b.key[:])) }
	add := func(u unused) {
		list = append(list, v.byKey[u.key].asUnused(u.key))
		bytesBack -= list[len(list)-1].Bytes
	}
	slices.SortFunc(over, inOrder)
	for _, u := range over {
		add(u)
	}
	if len(others) > limit || bytesBack > 0 {
		slices.SortFunc(others, inOrder)
	}
	for i, u := range others {
		if len(others)-i <= limit && bytesBack <= 0 {
			break
		}
		add(u)
	}
	return list
}

// Named tells of a result that a run names.
func (v View[J]) Named(r *Result[J], run taskqueue.RunID, now time.Time) taskqueue.NamedResult {
	n := taskqueue.NamedResult{Job: r.Job, Others: r.othersThan(run)}
	for f := range r.Stored {
		n.Files, n.Bytes = append(n.Files, f), n.Bytes+f.Size
	}
	at := taskqueue.InstantOf(now)
	if end, isPromised := v.endOf(r, at); end > at {
		n.Until, n.Promised = end.Time(), isPromised
	}
	return n
}
