package rights

import "slices"

// Action is a kind of what people and pilots ask of a server.
type Action uint8

// What can be asked.
const (
	Nobody     Action = iota // is allowed to no one: what has no row in a table
	Anybody                  // needs no proof: it tells a stranger nothing
	Look                     // sees runs: one's own, and those of one's groups
	Watch                    // sees the server itself: pilots, sites, shares, figures
	Change                   // changes such runs
	Submit                   // begins runs, and adds jobs to them
	Administer               // decides about the server, and about the runs of all
	Work                     // is what pilots do
)

// String is the word of the documentation.
func (a Action) String() string {
	return [...]string{"nobody", "anybody", "look", "watch", "change", "submit", "administer", "work"}[a]
}

// Role is what a token is good for.
type Role string

// The roles.
const (
	Reader    Role = "read"   // looks
	Submitter Role = "submit" // looks, begins runs, and changes them
	Admin     Role = "admin"  // the same with the runs of all, and decides about the server
	Pilot     Role = "pilot"  // is a pilot of one site
)

// Roles are all roles, those with the fewest rights first.
var Roles = []Role{Pilot, Reader, Submitter, Admin}

var allowed = map[Role][]Action{
	Reader:    {Anybody, Look, Watch},
	Submitter: {Anybody, Look, Watch, Change, Submit},
	Admin:     {Anybody, Look, Watch, Change, Submit, Administer},
	Pilot:     {Anybody, Work},
}

// May reports whether who has the role may do something.
func (r Role) May(a Action) bool { return slices.Contains(allowed[r], a) }

// Known reports whether there is such a role.
func (r Role) Known() bool { return slices.Contains(Roles, r) }
