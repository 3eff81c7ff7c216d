// Package fairshare reads the file that says how people share a server: groups and users with their
// weights and quotas, and limits over all runs. It refuses what is wrong in it with line and advice,
// and finds the account of one who submits.
//
// The rules by which shares are kept are those of package dispatch.
package fairshare

import (
	"fmt"
	"slices"
	"strings"

	"fairway/internal/taskqueue"
)

// MaxFile bounds a file of shares, in bytes.
const MaxFile = 4 << 20

// People are those that a file names. Nil: there is no file, and everybody has the same rights.
type People struct {
	Shares taskqueue.Shares
}

// UnknownError says that the file does not have such a user or group.
type UnknownError struct{ Text string }

func (e *UnknownError) Error() string { return e.Text }

// GroupsOf are the groups that the file names a user in, in its order; "" is beside all groups.
func (p *People) GroupsOf(user string) []string {
	if p == nil || user == "" {
		return nil
	}
	return groupsOf(p.Shares.Of, user, "")
}

// Has reports whether the file has a group, such as physics/higgs.
func (p *People) Has(group string) bool {
	if p == nil || group == "" {
		return false
	}
	list := p.Shares.Of
	for name := range strings.SplitSeq(group, "/") {
		at := slices.IndexFunc(list, func(s taskqueue.Share) bool { return !s.User && s.Name == name })
		if at < 0 {
			return false
		}
		list = list[at].Of
	}
	return true
}

// Account is that of a user who submits for a group, or for the first that the file names the user
// in if group is empty, or that is proved. A user whom the file does not name is refused, unless
// certain: it is proved who that is. Such a one stands beside the groups. proved are groups in which
// the proof has the user, of which those count that the file has; without a file, all.
func (p *People) Account(user, group string, certain bool, proved []string) (taskqueue.Account, error) {
	if p == nil {
		if group != "" && !slices.Contains(proved, group) {
			return taskqueue.Account{}, &UnknownError{"the server has no file of shares, and so no groups: leave --group out"}
		}
		return taskqueue.Account{Group: group, User: user}, nil
	}
	groups := groupsOf(p.Shares.Of, user, "")
	for _, name := range proved {
		if p.Has(name) && !slices.Contains(groups, name) {
			groups = append(groups, name)
		}
	}
	switch {
	case group == "" && len(groups) > 0:
		return taskqueue.Account{Group: groups[0], User: user}, nil
	case group == "" && certain:
		return taskqueue.Account{User: user}, nil
	case group == "":
		return taskqueue.Account{}, &UnknownError{fmt.Sprintf("the file of shares does not name the user %q", user)}
	case slices.Contains(groups, group):
		return taskqueue.Account{Group: group, User: user}, nil
	}
	instead := "it is in none"
	if groups = slices.DeleteFunc(groups, func(g string) bool { return g == "" }); len(groups) > 0 {
		instead = "it is in " + strings.Join(groups, ", ")
	}
	return taskqueue.Account{}, &UnknownError{fmt.Sprintf("user %s is not in a group %s: %s", user, group, instead)}
}

// groupsOf are the groups that a user is in, in the order of the file; "" is beside all groups.
func groupsOf(list []taskqueue.Share, user, at string) (groups []string) {
	for i := range list {
		s := &list[i]
		switch {
		case s.User && s.Name == user:
			groups = append(groups, at)
		case !s.User:
			below := s.Name
			if at != "" {
				below = at + "/" + s.Name
			}
			groups = append(groups, groupsOf(s.Of, user, below)...)
		}
	}
	return groups
}
