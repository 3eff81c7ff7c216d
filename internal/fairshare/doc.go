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

	"fairway/internal/dispatch"
)

// MaxFile bounds a file of shares, in bytes.
const MaxFile = 4 << 20

// People are those that a file names. Nil: there is no file, and everybody has the same rights.
type People struct {
	Shares dispatch.Shares
}

// UnknownError says that the file does not have such a user or group.
type UnknownError struct{ Text string }

func (e *UnknownError) Error() string { return e.Text }

// Account is that of a user who submits for a group, or for the first that the file names the user
// in if group is empty. A user whom the file does not name is refused, unless certain: the system
// says who it is. Such a one stands beside the groups.
func (p *People) Account(user, group string, certain bool) (dispatch.Account, error) {
	if p == nil {
		if group != "" {
			return dispatch.Account{}, &UnknownError{"the server has no file of shares, and so no groups: leave --group out"}
		}
		return dispatch.Account{User: user}, nil
	}
	groups := groupsOf(p.Shares.Of, user, "")
	switch {
	case group == "" && len(groups) > 0:
		return dispatch.Account{Group: groups[0], User: user}, nil
	case group == "" && certain:
		return dispatch.Account{User: user}, nil
	case group == "":
		return dispatch.Account{}, &UnknownError{fmt.Sprintf("the file of shares does not name the user %q", user)}
	case slices.Contains(groups, group):
		return dispatch.Account{Group: group, User: user}, nil
	}
	instead := "it is in none"
	if groups = slices.DeleteFunc(groups, func(g string) bool { return g == "" }); len(groups) > 0 {
		instead = "it is in " + strings.Join(groups, ", ")
	}
	return dispatch.Account{}, &UnknownError{fmt.Sprintf("user %s is not in a group %s: %s", user, group, instead)}
}

// groupsOf are the groups that a user is in, in the order of the file; "" is beside all groups.
func groupsOf(list []dispatch.Share, user, at string) (groups []string) {
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
