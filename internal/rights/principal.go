package rights

import (
	"context"
	"slices"

	"fairway/internal/taskqueue"
)

// Principal is who makes a call, as was proved.
type Principal struct {
	// User is the name; empty: whoever has started the server, who may speak for others.
	User string
	// Groups are those that the proof names: the claims of an identity provider, or a proxy. Those
	// of the file of shares come on top.
	Groups []string
	Role   Role
	// Token is the number of the token that proved it; empty: none did.
	Token string
	// How it was proved.
	How Proof
}

// Proof is how it was proved who makes a call.
type Proof string

// How it can be proved.
const (
	BySocket Proof = "socket" // the system says who has connected
	ByOwner  Proof = "owner"  // the file .fairway/service, or the link to the pages
	ByToken  Proof = "token"  // a token that an administrator has made
	ByLogin  Proof = "login"  // a token that an identity provider stands behind
	ByProxy  Proof = "proxy"  // a proxy that the server's settings trust
)

// Owner is whoever has started the server.
var Owner = Principal{Role: Admin, How: ByOwner}

// Name is the user, for people.
func (p Principal) Name() string {
	if p.User == "" && p.Role != "" {
		return "(owner)"
	}
	return p.User
}

// Certain reports whether the proof tells the name of the user.
func (p Principal) Certain() bool { return p.User != "" }

// In reports whether the principal is in a group: by the proof, or by those that a file names.
func (p Principal) In(group string, byFile []string) bool {
	return group != "" && (slices.Contains(p.Groups, group) || slices.Contains(byFile, group))
}

// Sees reports whether a run that belongs to someone is the principal's to see, and to change if the role
// may change runs. byFile are the groups that the file of shares has the user in.
func (p Principal) Sees(run taskqueue.Account, byFile []string) bool {
	switch {
	case p.Role == Admin:
		return true
	case p.User == "" || !p.Role.May(Look):
		return false
	}
	return run.User == p.User || p.In(run.Group, byFile)
}

type principalKey struct{}

// With has a context say who makes a call.
func With(ctx context.Context, p Principal) context.Context {
	return context.WithValue(ctx, principalKey{}, p)
}

// Of is who makes a call. Without one there is a principal that may do nothing.
func Of(ctx context.Context) Principal {
	p, _ := ctx.Value(principalKey{}).(Principal)
	return p
}
