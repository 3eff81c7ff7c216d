package taskqueue

import (
	"errors"
	"maps"
	"slices"
	"strings"
	"time"
	"unicode"
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

// Check refuses an account whose name others could be mistaken for.
func (a Account) Check() error {
	if a.User == "" {
		if a.Group != "" {
			return Refuse("dispatch: group %s without a user", a.Group)
		}
		return nil
	}
	if !NamesShare(a.User) {
		return Refuse("dispatch: %q cannot be the name of a user", a.User)
	}
	if a.Group == "" {
		return nil
	}
	for name := range strings.SplitSeq(a.Group, "/") {
		if !NamesShare(name) {
			return Refuse("dispatch: %q cannot be the name of a group", a.Group)
		}
	}
	return nil
}

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

// MaxAccounts bounds the users and groups that a TaskQueue knows. A run of a further one is refused.
const MaxAccounts = 100_000

// Quota bounds what the runs of a user, or of all users of a group together, may have. Of
// each amount 0 means that it is not bounded.
type Quota struct {
	Running   int                  `json:"r,omitempty"` // attempts that were given to pilots
	MilliCPUs int64                `json:"c,omitempty"` // of these
	Queued    int                  `json:"q,omitempty"` // jobs that are waiting or ready: see dispatch.Core.Queued
	Stored    int64                `json:"b,omitempty"` // bytes of outputs; above that nothing more is started
	Sites     map[string]SiteQuota `json:"s,omitempty"`
}

// SiteQuota bounds what they may have at one site; 0 means that it is not bounded.
type SiteQuota struct {
	Running   int   `json:"r,omitempty"`
	MilliCPUs int64 `json:"c,omitempty"`
}

// maxShareName bounds the name of a user or a group, in bytes.
const maxShareName = 256

// NamesShare reports whether a user or a group may have the name.
func NamesShare(name string) bool {
	return name != "" && len(name) <= maxShareName && !strings.ContainsFunc(name, func(c rune) bool {
		return c == '/' || unicode.IsControl(c) || unicode.IsSpace(c)
	})
}

// Check refuses shares that contradict themselves.
func (s Shares) Check() error {
	if s.HalfLife < 0 {
		return Refuse("dispatch: a half-life cannot be negative")
	}
	if err := CheckLimits(s.Limits); err != nil {
		return err
	}
	n := 0
	return checkShares(s.Of, &n)
}

// CheckLimits refuses limits that are negative, or of nothing.
func CheckLimits(limits map[string]int64) error {
	for _, name := range slices.Sorted(maps.Keys(limits)) {
		if name == "" || limits[name] < 0 {
			return Refuse("dispatch: limit %q of %d", name, limits[name])
		}
	}
	return nil
}

var errManyShares = errors.New("too many users and groups")

func checkShares(list []Share, n *int) error {
	type named struct {
		name string
		user bool
	}
	known := make(map[named]bool)
	for i := range list {
		s := &list[i]
		if *n++; *n > MaxAccounts {
			return Refuse("dispatch: %w", errManyShares)
		}
		q := &s.Limits
		switch {
		case !NamesShare(s.Name):
			return Refuse("dispatch: %q cannot be the name of a user or a group", s.Name)
		case known[named{s.Name, s.User}]:
			return Refuse("dispatch: %s is named twice in one group", s.Name)
		case s.Weight < 0:
			return Refuse("dispatch: the weight of %s is negative", s.Name)
		case s.User && len(s.Of) > 0:
			return Refuse("dispatch: user %s is no group", s.Name)
		case q.Running < 0 || q.MilliCPUs < 0 || q.Queued < 0 || q.Stored < 0:
			return Refuse("dispatch: a limit of %s is negative", s.Name)
		}
		for site, at := range q.Sites {
			if at.Running < 0 || at.MilliCPUs < 0 {
				return Refuse("dispatch: a limit of %s at site %s is negative", s.Name, site)
			}
		}
		known[named{s.Name, s.User}] = true
		if err := checkShares(s.Of, n); err != nil {
			return err
		}
	}
	return nil
}

// SetShares says how users and groups share the TaskQueue. It replaces what was said
// before, and is durable. Usage stays. Those that it does not name have a weight of 1 and
// no limits.
type SetShares struct{ Shares Shares }

// SetKept says how many bytes of outputs of a user's runs are kept that were retired. It is not
// durable: the caller steps it again after each Load.
type SetKept struct {
	Account Account
	Bytes   int64
}

// HoldJobs has no further attempts given out to runs that have an account, until it is stepped with an
// empty Why, which is for a person. What runs goes on, and results are taken. It is not durable.
type HoldJobs struct{ Why string }

// ShareView is what there is to say of a group or a user.
type ShareView struct {
	Name   string
	User   bool // else it is a group
	Depth  int  // 0: at the root
	Weight int64
	Share  float64       // part of the weights of all siblings
	Usage  time.Duration // slot-seconds, as they count now
	Used   float64       // part of the usage of all siblings
	// LevelFS is Share over Used: above 1 it has got less than its share. It is infinite
	// where nothing was used.
	LevelFS float64
	Rank    int // of a user: 1 is first; users with equal rights have one rank

	Ready   int   // jobs
	Running int   // attempts that were given to pilots
	CPUs    int64 // thousandths of processors that they take
	Stored  int64 // bytes of outputs of runs that were not retired
	Limits  Quota
	Runs    int // of a user, that were not retired
}

// LimitView is what is in use of a resource that Shares.Limits bound.
type LimitView struct {
	Name string
	Most int64
	Used int64
}
