//go:build linux

package access

import (
	"crypto/sha256"
	"crypto/subtle"
	"strings"
	"sync"
)

// Grant says that whoever has a certain token is a launch. It holds no secret.
type Grant struct {
	Launch string
	Site   string
	Hash   [sha256.Size]byte // of the token
}

// Grant is what a server keeps of the connection in memory.
func (c *Connection) Grant() Grant {
	return Grant{Launch: c.Launch, Site: c.Site, Hash: sha256.Sum256([]byte(c.Token))}
}

// Caller is who makes a call: a launch whose token was right.
type Caller struct {
	Launch, Site string
	pilots       *launchPilots // nil: they are not counted
}

// launchPilots are the names of the pilots that have called with the token of a launch.
type launchPilots struct {
	mu       sync.Mutex // guards what follows
	names    map[string]bool
	refusals int // that were told
}

// MaxRefusalsTold is how many refusals of the pilots of one launch a server's log tells of.
const MaxRefusalsTold = 20

// TellsOfRefusal reports whether a refusal of the caller is to be told in the log, and counts it. Those of the user of
// the state, nil, all are.
func (c *Caller) TellsOfRefusal() bool {
	if c == nil || c.pilots == nil {
		return true
	}
	c.pilots.mu.Lock()
	defer c.pilots.mu.Unlock()
	c.pilots.refusals++
	return c.pilots.refusals <= MaxRefusalsTold
}

// admits reports whether the launch may have a pilot of this name: one of MaxLaunchPilots.
func (l *launchPilots) admits(name string) bool {
	if l == nil {
		return true
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if !l.names[name] && len(l.names) < MaxLaunchPilots {
		l.names[name] = true
	}
	return l.names[name]
}

// Tokens are the grants that are good now. Any goroutine may call its methods.
type Tokens struct {
	mu     sync.RWMutex // guards what follows
	grants map[string]granted
	beside func(launch string, token Token) (site string, err error)
	others map[string]*launchPilots // of launches that beside knows
}

type granted struct {
	Grant
	pilots *launchPilots
}

// NewTokens returns Tokens without any grant.
func NewTokens() *Tokens { return &Tokens{grants: map[string]granted{}} }

// Allow makes a grant good from now on.
func (t *Tokens) Allow(g Grant) {
	t.mu.Lock()
	defer t.mu.Unlock()
	pilots := t.grants[g.Launch].pilots
	if pilots == nil {
		pilots = &launchPilots{names: map[string]bool{}}
	}
	t.grants[g.Launch] = granted{g, pilots}
}

// byHand divides the name of a launch that no batch system has started.
const byHand = "+"

// LaunchByHand is the name of the launch that stands for the pilots that people start with one token.
func LaunchByHand(site, token string) string { return site + byHand + token }

// IsByHand reports whether no batch system knows of a launch.
func IsByHand(launch string) bool { return strings.Contains(launch, byHand) }

// Beside has launches be known that have no grant: those of pilots that a person has started. The function
// returns the site of one whose token is good.
func (t *Tokens) Beside(find func(launch string, token Token) (site string, err error)) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.beside, t.others = find, map[string]*launchPilots{}
}

// known is a launch that Beside knows.
func (t *Tokens) known(launch string, token Token) (caller Caller, ok bool) {
	t.mu.RLock()
	find := t.beside
	t.mu.RUnlock()
	if find == nil {
		return caller, false
	}
	site, err := find(launch, token)
	if err != nil {
		return caller, false
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.others[launch] == nil {
		t.others[launch] = &launchPilots{names: map[string]bool{}}
	}
	return Caller{Launch: launch, Site: site, pilots: t.others[launch]}, true
}

// Revoke ends a grant, when its launch has ended. It reports whether there was
// one.
func (t *Tokens) Revoke(launch string) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	_, ok := t.grants[launch]
	delete(t.grants, launch)
	return ok
}

// Check finds out who has a token. How long it takes tells nothing of the right
// one.
func (t *Tokens) Check(launch string, token Token) (Caller, error) {
	sum := sha256.Sum256([]byte(token))
	t.mu.RLock()
	g, ok := t.grants[launch]
	t.mu.RUnlock()
	right := subtle.ConstantTimeCompare(sum[:], g.Hash[:]) == 1
	switch {
	case launch == "" || token == "":
		return Caller{}, refuse("the call names no launch or has no token: start pilots with `fairway pilot --connect " +
			"FILE`, with the file that the server wrote for the launch")
	case !ok:
		if caller, ok := t.known(launch, token); ok {
			return caller, nil
		}
		return Caller{}, refuse("the launch %s has ended, or never was of this server, so its token is not good: this "+
			"pilot is not wanted any more", shown(launch))
	case !right:
		return Caller{}, refuse("the token is not that of the launch %s: use the connection file that the server wrote for "+
			"this launch", shown(launch))
	}
	return Caller{Launch: g.Launch, Site: g.Site, pilots: g.pilots}, nil
}
