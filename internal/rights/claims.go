package rights

import (
	"fmt"
	"slices"
	"strings"

	"fairway/internal/taskqueue"
)

// MaxGroups bounds the groups that a proof names. Further ones do not count.
const MaxGroups = 1000

// Mapping says which claims of an identity provider name the user and the groups.
type Mapping struct {
	User, Groups string // claims; inside others by dots, such as realm_access.roles
}

// Named takes user and groups from claims. A user without a name that can be one is refused.
func (m Mapping) Named(claims map[string]any) (user string, groups []string, err error) {
	value, there := claim(claims, m.User)
	user, isText := value.(string)
	switch {
	case !there:
		return "", nil, fmt.Errorf("the identity provider tells no claim %s, which is to name the user", m.User)
	case !isText || !taskqueue.NamesShare(user):
		return "", nil, fmt.Errorf("the claim %s cannot be the name of a user: %.100q", m.User, fmt.Sprint(value))
	}
	if verified, told := claims["email_verified"].(bool); m.User == "email" && told && !verified {
		return "", nil, fmt.Errorf("the identity provider has not verified the address %.100q", user)
	}
	value, _ = claim(claims, m.Groups)
	switch list := value.(type) {
	case string:
		groups = NamedGroups(strings.Split(list, ","))
	case []any:
		var names []string
		for _, one := range list {
			if name, ok := one.(string); ok {
				names = append(names, name)
			}
		}
		groups = NamedGroups(names)
	}
	return user, groups, nil
}

// claim is the value of a claim. A name with dots may be that of one, or of one inside others.
func claim(claims map[string]any, name string) (value any, ok bool) {
	if value, ok = claims[name]; ok || name == "" {
		return value, ok
	}
	outer, inner, ok := strings.Cut(name, ".")
	within, isObject := claims[outer].(map[string]any)
	if !ok || !isObject {
		return nil, false
	}
	return claim(within, inner)
}

// NamedGroups are the names among some that groups can have, sorted, each once. Some providers begin
// them with a slash; groups in others have one between the names.
func NamedGroups(names []string) (groups []string) {
	for _, name := range names {
		name = strings.TrimPrefix(strings.TrimSpace(name), "/")
		if name != "" && !slices.ContainsFunc(strings.Split(name, "/"), func(part string) bool {
			return !taskqueue.NamesShare(part)
		}) {
			groups = append(groups, name)
		}
	}
	slices.Sort(groups)
	groups = slices.Compact(groups)
	return groups[:min(len(groups), MaxGroups)]
}
