package dispatch

import (
	"cmp"
	"slices"
	"strings"
	"time"
)

// Account names to whom a run belongs: a user, and the group that the user works for. The
// zero Account is nobody in particular.
type Account struct {
	Group string // from the root, with / between a group and one in it; empty: no group
	User  string
}

// String returns the account as people write it: user, or group/user.
func (a Account) String() string {
	if a.Group == "" {
		return a.User
	}
	return a.Group + "/" + a.User
}

// SetShares says how users and groups share the TaskQueue. It replaces what was said
// before, and is durable. Usage stays. Those that it does not name have a weight of 1 and
// no limits.
type SetShares struct{ Shares Shares }

func (SetShares) isInput() {}

// Shares is a tree of groups and users with their weights and limits.
type Shares struct {
	// HalfLife after which usage counts half: 0 means DefaultHalfLife.
	HalfLife time.Duration `json:"h,omitempty"`
	// Overtake is by how many slot-seconds a user may get ahead of the share, relative to
	// another one whose turn it is, because a pilot holds the input: 0 means
	// DefaultOvertake, negative that nobody may.
	Overtake time.Duration `json:"o,omitempty"`
	// Limits bound what all attempts together may hold of a resource that a name in
	// Resources.Countable stands for. Such a resource is none of pilots.
	Limits map[string]int64 `json:"l,omitempty"`
	// Retention is how long results are kept that no run names any more which is kept, of groups
	// that do not say: 0 means Config.Retention, negative not at all.
	Retention time.Duration `json:"r,omitempty"`
	// Of are the groups and users at the root.
	Of []Share `json:"s,omitempty"`
}

// Share is what a group or a user is to get, relative to its siblings.
type Share struct {
	Name   string  `json:"n"`
	User   bool    `json:"u,omitempty"` // else it is a group
	Weight int64   `json:"w"`           // 0: only what all others leave
	Limits Quota   `json:"q,omitzero"`
	Of     []Share `json:"s,omitempty"` // in a group
	// Retention is that of Shares for results of a group: 0 means that of the group around it.
	Retention time.Duration `json:"r,omitempty"`
}

const (
	// DefaultHalfLife is that of usage where Shares does not say: seven days, as Slurm has it.
	DefaultHalfLife = 7 * 24 * time.Hour
	// DefaultOvertake is Shares.Overtake where it does not say: one slot for a minute.
	DefaultOvertake = time.Minute
)

// maxAccounts bounds the users and groups that a Core knows. A run of a further one is refused.
const maxAccounts = 100_000

// shares is who is next: the tree of groups and users, by Slurm's Fair Tree. At each
// level those come first whose part of the weights is largest compared with their part of
// the usage; who comes last within a group comes before all users of a group that is
// behind it.
//
// Usage is counted in slot-seconds: the dominant part of a pilot that an attempt takes, in
// slots, times how long. It is charged as expected when the attempt is given out, and
// settled when that ends. It decays, for all alike; so it is kept in units that grow as
// fast as usage decays, and no order changes by time alone (see shares_usage.go).
//
// Invariants:
//   - The counts of a group are the sums of those of its children.
//   - A share is in the list active of its group exactly while it has ready jobs; the list
//     is in the order of turns.
//   - No share is ever taken out.
type shares struct {
	*transition
	journal *journal

	said    Shares
	root    *share
	nobody  *share // of runs without an account
	count   int    // of shares, besides these two
	anybody bool   // there was such a run
	solo    bool   // nobody is all there is: then usage is not counted

	epoch   instant  // when a unit of usage was a slot-second
	dirty   []*share // users whose usage is not recorded yet
	armed   instant
	arrived uint64 // counts shares that got ready jobs, and had none

	pools   map[string]*pool // limits over all runs
	bounded bool             // there are quotas
	freed   bool             // something was given back for want of which jobs wait
}

// share is a group or a user.
type share struct {
	name     string
	user     bool
	parent   *share // nil: it is the root
	children []*share
	weight   int64
	weights  int64 // of the children
	quota    Quota
	stored   int64         // bytes of outputs
	keeps    time.Duration // Share.Retention
	held     string        // of the root: HoldJobs.Why

	settled  float64           // usage of attempts that have ended, in units
	charged  float64           // what attempts that have not are expected to use
	attempts int               // these
	cpus     int64             // which take so many thousandths of processors
	atSite   map[string]*taken // the same at sites
	stopped  bool              // it was kept from more since an attempt ended
	key      float64           // weight over usage, by which siblings are ordered

	ready  int      // jobs
	active []*share // of the children those with ready jobs, by turn
	at     int      // index in parent.active
	since  uint64   // shares.arrived when it got ready jobs

	// Of a user.
	levels  []*level // of ready jobs, by priority, highest first
	groups  map[groupKey]*group
	runs    []*run
	kept    int64  // bytes of stored that retired runs have left
	unsaved bool   // in dirty
	queue   []*job // in use within byTurn only
	none    uint64 // value of placement.pulls when it had no job that was overdue
}

type groupKey struct {
	class    *class
	priority int32
}

func newShares(s *transition, jn *journal) shares {
	sh := shares{transition: s, journal: jn, root: &share{weight: 1}, solo: true}
	sh.nobody = sh.root.add("", true)
	sh.root.weights = 0 // until there is a run without an account
	return sh
}

// add makes a child of weight 1.
func (s *share) add(name string, user bool) *share {
	x := &share{name: name, user: user, parent: s, weight: 1}
	if user {
		x.groups = make(map[groupKey]*group)
	}
	x.rekey()
	s.children = append(s.children, x)
	s.weights++
	return x
}

func (s *share) child(name string, user bool) *share {
	for _, x := range s.children {
		if x.name == name && x.user == user {
			return x
		}
	}
	return nil
}

// account returns the share of a user, which is made if it is new.
func (sh *shares) account(a Account) *share {
	if a == (Account{}) {
		if !sh.anybody {
			sh.anybody = true
			sh.root.weights += sh.nobody.weight
		}
		return sh.nobody
	}
	s := sh.root
	if a.Group != "" {
		for name := range strings.SplitSeq(a.Group, "/") {
			s = sh.childOf(s, name, false)
		}
	}
	return sh.childOf(s, a.User, true)
}

// known returns the share of a user, or of the nearest group of that which there is.
func (sh *shares) known(a Account) *share {
	s := sh.root
	if a.Group != "" {
		for name := range strings.SplitSeq(a.Group, "/") {
			x := s.child(name, false)
			if x == nil {
				return s
			}
			s = x
		}
	}
	if x := s.child(a.User, true); x != nil {
		return x
	}
	return s
}

func (sh *shares) childOf(s *share, name string, user bool) *share {
	if x := s.child(name, user); x != nil {
		return x
	}
	sh.count++
	sh.solo = false
	return s.add(name, user)
}

// account is the name of a user's share.
func (s *share) account() Account {
	return Account{Group: s.parent.path(), User: s.name}
}

// path is the name of a group from the root.
func (s *share) path() string {
	if s.parent == nil {
		return ""
	}
	if above := s.parent.path(); above != "" {
		return above + "/" + s.name
	}
	return s.name
}

// up yields the share and all that it is in, up to the root.
func (s *share) up(yield func(*share) bool) {
	for ; s != nil; s = s.parent {
		if !yield(s) {
			return
		}
	}
}

// all yields the share, and all groups and users in it, a group before those in it.
func (s *share) all(yield func(*share) bool) { s.visit(yield) }

func (s *share) visit(yield func(*share) bool) bool {
	if !yield(s) {
		return false
	}
	for _, x := range s.children {
		if !x.visit(yield) {
			return false
		}
	}
	return true
}

// each yields all groups and users.
func (sh *shares) each(yield func(*share) bool) { sh.root.visit(yield) }

// becameReady counts a job that became ready (sign 1), or is not any more (sign -1).
func (s *share) becameReady(sh *shares, sign int) {
	for x := range s.up {
		before := x.ready
		x.ready += sign
		if x.parent == nil {
			return
		}
		switch {
		case before == 0:
			sh.arrived++
			x.since = sh.arrived
			x.at = len(x.parent.active)
			x.parent.active = append(x.parent.active, x)
			x.reposition()
		case x.ready == 0:
			list := x.parent.active
			list = slices.Delete(list, x.at, x.at+1)
			for i := x.at; i < len(list); i++ {
				list[i].at = i
			}
			x.parent.active = list
		}
	}
}

// reposition moves a share that is active to its place among its siblings.
func (s *share) reposition() {
	if s.ready == 0 || s.parent == nil {
		return
	}
	list := s.parent.active
	for ; s.at > 0 && s.before(list[s.at-1]); s.at-- {
		list[s.at] = list[s.at-1]
		list[s.at].at = s.at
		list[s.at-1] = s
	}
	for ; s.at < len(list)-1 && list[s.at+1].before(s); s.at++ {
		list[s.at] = list[s.at+1]
		list[s.at].at = s.at
		list[s.at+1] = s
	}
}

// before reports whether it is the turn of the share before another one, which is a sibling, or
// is of a group tied with its own. Of ties users come before groups, and of these who got
// ready jobs first.
func (s *share) before(o *share) bool { return s.compare(o) < 0 }

func (s *share) compare(o *share) int {
	byFairness := 0
	if s.parent == o.parent {
		byFairness = cmp.Compare(o.key, s.key)
	} else {
		byFairness = cmp.Compare(o.levelFS(), s.levelFS())
	}
	return cmp.Or(byFairness, cmp.Compare(ofUsers(o), ofUsers(s)), cmp.Compare(s.since, o.since))
}

func ofUsers(s *share) int {
	if s.user {
		return 1
	}
	return 0
}

// tied reports whether two groups have the same level fair share. Their children take their turns
// together.
func (s *share) tied(o *share) bool {
	if s.parent == o.parent {
		return s.key == o.key
	}
	return s.levelFS() == o.levelFS()
}

// inOrder yields the users with ready jobs by turn: the ranks of the Fair Tree.
func (sh *shares) inOrder(yield func(*share) bool) {
	inOrder(sh.root.active, func(s *share) []*share { return s.active }, yield)
}

// inOrder yields the users among siblings, which are sorted, and in groups among them. below says
// which children of a group count, also sorted.
func inOrder(list []*share, below func(*share) []*share, yield func(*share) bool) bool {
	for i := 0; i < len(list); {
		s := list[i]
		if s.user {
			if !yield(s) {
				return false
			}
			i++
			continue
		}
		n := i + 1
		for n < len(list) && !list[n].user && list[n].tied(s) {
			n++
		}
		children := below(s)
		if n > i+1 {
			children = slices.Clone(children)
			for _, o := range list[i+1 : n] {
				children = append(children, below(o)...)
			}
			slices.SortStableFunc(children, (*share).compare)
		}
		if !inOrder(children, below, yield) {
			return false
		}
		i = n
	}
	return true
}

// precedes compares the turns of any two users.
func (s *share) precedes(o *share) int {
	if s == o {
		return 0
	}
	a, b := apart(s, o)
	return a.compare(b)
}

// apart returns the siblings that two different users are, or are in.
func apart(s, o *share) (a, b *share) {
	depth := func(s *share) (n int) {
		for range s.up {
			n++
		}
		return n
	}
	ds, do := depth(s), depth(o)
	for ; ds > do; ds-- {
		s = s.parent
	}
	for ; do > ds; do-- {
		o = o.parent
	}
	for s.parent != o.parent {
		s, o = s.parent, o.parent
	}
	return s, o
}

// setShares says anew how users and groups share.
func (c *Core) setShares(said Shares) error {
	if err := said.check(); err != nil {
		return err
	}
	c.shares.arrange(said)
	c.journal.persistShares(said)
	c.jobs.drawAgain()
	for _, s := range c.fleet.shapes {
		s.fitOf = s.fitOf[:0]
	}
	c.shares.freed = true
	c.fleet.monitor.changed = true
	return nil
}

// arrange gives all shares the weights and limits that were said. Usage stays as it is now.
func (sh *shares) arrange(said Shares) {
	if sh.epoch != 0 {
		sh.beginEpoch() // by the half-life so far
	}
	sh.said, sh.solo = said, false
	sh.pools = setPools(sh.pools, said.Limits)
	for s := range sh.each {
		s.weight, s.quota, s.keeps = 1, Quota{}, 0
	}
	sh.root.keeps = said.Retention
	sh.arrangeIn(sh.root, said.Of)
	sh.bounded = false
	for s := range sh.each {
		sh.bounded = sh.bounded || s.quota.bounds()
		s.weights = 0
		for _, x := range s.children {
			if x != sh.nobody || sh.anybody {
				s.weights += x.weight
			}
		}
		s.stopped = false
		s.atSite = nil
	}
	sh.reorder()
}

func (sh *shares) arrangeIn(s *share, list []Share) {
	for i := range list {
		x := sh.childOf(s, list[i].Name, list[i].User)
		x.weight, x.quota, x.keeps = list[i].Weight, list[i].Limits, list[i].Retention
		sh.arrangeIn(x, list[i].Of)
	}
}
