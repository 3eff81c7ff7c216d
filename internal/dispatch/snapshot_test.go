package dispatch

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	"fairway/internal/taskqueue"
)

// snapshot shows what must be the same after a Load: what became of jobs, the
// order in the FIFOs, versions with their hashes and stored copies, what is still to be
// published and removed. Who runs or caches what is not durable.
func (c *Core) snapshot() string {
	var b strings.Builder
	for j := range c.jobs.all {
		state := j.state.String()
		if j.live() {
			state = "live"
		}
		if c.lacksCopies(j) {
			state = "live"
		}
		if j.regenerating || j.committed != 0 && j.state == taskqueue.Blocked {
			state = "done" // that it runs again follows from who needs it
		}
		fmt.Fprintf(&b, "%s %s", j.name, state)
		if j.committed != 0 {
			fmt.Fprintf(&b, " committed %s", attemptName(j.committed))
		}
		if !j.regenerating && state != "done" {
			f := j.fate
			if f == nil {
				f = new(fate) // as one of which nothing is durable
			}
			fmt.Fprintf(&b, " tries %d losses %d memory %d avoid %q withdrawn %v", f.Tries, f.Losses, f.Memory,
				f.Avoid, f.Withdrawn)
		}
		b.WriteByte('\n')
	}
	for _, f := range c.filesInOrder() {
		f.snapshot(c, &b)
	}
	for _, r := range c.runs.inOrder {
		fmt.Fprintf(&b, "run %d %v %v %q keep-going %v\n", r.ID, r.state, r.complete, r.reason, r.KeepGoing)
		for _, p := range sortedKeys(r.files.patterns) {
			r.files.patterns[p].snapshot(c, &b)
		}
	}
	removing := maps.Clone(c.files.removing)
	maps.Copy(removing, c.files.stillNamed) // a Load removes them once more
	for _, pfn := range sortedKeys(removing) {
		fmt.Fprintf(&b, "remove %s\n", pfn)
	}
	return b.String()
}

func (f *file) snapshot(c *Core, b *strings.Builder) {
	fmt.Fprintf(b, "%s:", f.lfn)
	for r := f.fifo.Head(); r != nil; r = r.Next() {
		fmt.Fprintf(b, " %v %s", r.Mode(), r.Owner.job.name)
	}
	for _, v := range f.versions {
		state := v.state
		if state == present && v.pfn == "" && !f.pattern {
			state = gone
		}
		if state == missing && v.identity != (identity{}) {
			state = gone
		}
		if state == missing && c.lacksCopies(v.writer) {
			state = pending
		}
		fmt.Fprintf(b, " @%d state %d", v.number, state)
		if v.pfn != "" {
			fmt.Fprintf(b, " pfn %s size %d publishing %v", v.pfn, v.size, v.toPublish)
		}
		if v.writer != nil {
			fmt.Fprintf(b, " hash %q", c.files.hash(v).committed())
		}
	}
	b.WriteByte('\n')
}

// lacksCopies reports whether a job is blocked because cached copies are lost. After a Load the
// core finds that out again.
func (c *Core) lacksCopies(j *job) bool {
	if j.state != taskqueue.Blocked {
		return false
	}
	for i := range j.requests {
		if v := j.requests[i].read; v != nil && v.state == missing && v.identity == (identity{}) && !c.lacksCopies(v.writer) {
			return false
		}
	}
	return true
}

// filesInOrder returns all files by name.
func (c *Core) filesInOrder() []*file {
	return slices.SortedFunc(c.files.all, func(a, b *file) int {
		return cmp.Or(cmp.Compare(a.own.run, b.own.run), strings.Compare(a.lfn, b.lfn))
	})
}
