package people

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"fairway/internal/access"
	"fairway/internal/audit"
	"fairway/internal/rights"
	"fairway/internal/store"
	"fairway/internal/taskqueue"
)

// TokenTable has the tokens of a lasting server, by their numbers: rights.Token.
const TokenTable = "server_token"

// Limits of tokens.
const (
	// MaxTokens is how many tokens a server keeps, expired ones included.
	MaxTokens = 10_000
	// MaxLogins is how many tokens of logins a user has. Another login takes the place of the oldest.
	MaxLogins = 20
	// ExpiredTime is how long a token stays listed after it has expired.
	ExpiredTime = 30 * 24 * time.Hour
)

// OwnerNumber stands for the number of the owner's token, that of .fairway/service.
const OwnerNumber = "owner"

// Config is what a [Door] is made of. Functions may be nil where the server has no such thing.
type Config struct {
	Key      rights.HashKey
	Store    store.Store
	Settings *rights.Settings // never nil
	Audit    *audit.Log

	// GroupsOf are the groups that the file of shares has a user in, "" among them where it names the
	// user beside the groups. HasGroup reports whether it has a group.
	GroupsOf func(user string) []string
	HasGroup func(group string) bool

	// Connection is how the server is reached over a network, without a token; false where it is not.
	Connection func() (access.Connection, bool)
	// PilotSettings are those of a pilot of a site; false where there is no such site.
	PilotSettings func(site string) (json.RawMessage, bool)
	// RenewOwner gives the owner another token, which [Door.SetOwner] is told.
	RenewOwner func() error

	Now func() time.Time
	// Kept is the time by which expired tokens are forgotten; nil: Now.
	Kept func() time.Time
	Log  *slog.Logger
}

// Door lets people in who prove who they are. Any goroutine may use it.
type Door struct {
	config Config
	login  login

	saving sync.Mutex // held while tokens change, in memory and in the store

	mu     sync.RWMutex // guards what follows
	tokens map[string]*issued
	owner  ownerToken
}

// issued is a token with those who use it.
type issued struct {
	rights.Token
	use
}

// use is a token that is used.
type use struct {
	good context.Context // ends when the token is revoked
	end  context.CancelFunc
	last *atomic.Int64 // time of the last use, in seconds; 0: none since the server began
}

func newUse() use {
	good, end := context.WithCancel(context.Background())
	return use{good, end, new(atomic.Int64)}
}

// ownerToken is that of the file .fairway/service.
type ownerToken struct {
	hash [sha256.Size]byte
	use
}

// Open reads the tokens that the store has. Those that a copied folder brought along are another
// server's, and good for nothing here.
func Open(ctx context.Context, c Config) (*Door, error) {
	if c.Kept == nil {
		c.Kept = c.Now
	}
	d := &Door{config: c, tokens: map[string]*issued{}}
	d.login.provider = make(chan struct{}, 1)
	d.login.busy = make(chan struct{}, maxLogins)
	records, err := c.Store.Load(ctx, TokenTable)
	if err != nil {
		return nil, err
	}
	now, state := c.Kept(), c.Key.State()
	var gone []taskqueue.Record
	for _, r := range records {
		t := rights.Token{}
		if err := json.Unmarshal(r.Body, &t); err != nil {
			return nil, fmt.Errorf("record %s %s: %w", TokenTable, r.Key, err)
		}
		if t.State != state {
			continue
		}
		if t.Number = r.Key; !t.Expires.IsZero() && now.Sub(t.Expires) > ExpiredTime {
			gone = append(gone, taskqueue.Record{Table: TokenTable, Key: r.Key})
			continue
		}
		d.tokens[r.Key] = &issued{t, newUse()}
	}
	if len(gone) > 0 {
		err = c.Store.Apply(ctx, gone)
	}
	return d, err
}

// Settings are those of the file of rights.
func (d *Door) Settings() *rights.Settings { return d.config.Settings }

// SetOwner makes a token that of the owner. The one before is good no more.
func (d *Door) SetOwner(token access.Token) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.owner.end != nil {
		d.owner.end()
	}
	d.owner = ownerToken{sha256.Sum256([]byte(token)), newUse()}
}

// Token is who has a token, and a context that ends when it is good no more. The error says nothing to
// who guesses.
func (d *Door) Token(text string) (rights.Principal, context.Context, error) {
	number, _, _ := rights.Split(text)
	d.mu.RLock()
	owner, t := d.owner, d.tokens[number]
	d.mu.RUnlock()
	now := d.config.Now()
	if sum := sha256.Sum256([]byte(text)); text != "" && owner.good != nil &&
		subtle.ConstantTimeCompare(sum[:], owner.hash[:]) == 1 {
		owner.last.Store(now.Unix())
		return rights.Owner, owner.good, nil
	}
	var kept *rights.Token
	if t != nil {
		kept = &t.Token
	}
	if err := d.config.Key.Check(kept, text, now); err != nil {
		return rights.Principal{}, nil, err
	}
	t.last.Store(now.Unix())
	return t.Principal(), t.good, nil
}

// Standing is what has become of a token that was good: its context ends when it is good no more.
func (d *Door) Standing(number string) (context.Context, error) {
	d.mu.RLock()
	defer d.mu.RUnlock()
	switch t := d.tokens[number]; {
	case t == nil:
		return nil, rights.ErrBadToken
	case !t.Good(d.config.Now()):
		return nil, rights.ErrExpired
	default:
		return t.good, nil
	}
}

// Expires is when a token expires; zero: never, or it is none.
func (d *Door) Expires(number string) time.Time {
	d.mu.RLock()
	defer d.mu.RUnlock()
	if t := d.tokens[number]; t != nil {
		return t.Expires
	}
	return time.Time{}
}

// Pilot is the site of a pilot that has a token, and says that it is of a launch. It is for launches
// that no batch system has started.
func (d *Door) Pilot(launch string, token access.Token) (site string, err error) {
	p, _, err := d.Token(string(token))
	if err != nil {
		return "", err
	}
	d.mu.RLock()
	t := d.tokens[p.Token]
	d.mu.RUnlock()
	if t == nil || t.Role != rights.Pilot || launch != launchOf(&t.Token) {
		return "", rights.ErrBadToken
	}
	return t.Site, nil
}

// launchOf is the name of the launch that stands for the pilots of a token.
func launchOf(t *rights.Token) string { return access.LaunchByHand(t.Site, t.Number) }

// issue makes a token durable and good. Logins of a user take the place of the oldest ones.
func (d *Door) issue(ctx context.Context, t rights.Token) (made rights.Token, text string, err error) {
	d.saving.Lock()
	defer d.saving.Unlock()
	now := d.config.Now()
	t.Issued, t.State = now.UTC().Truncate(time.Second), d.config.Key.State()
	if err := t.Verify(now); err != nil {
		return t, "", invalid(err)
	}
	t.Number = strings.ToLower(rand.Text()[:rights.NumberLength])
	text = rights.Text(t.Number, rand.Text()+rand.Text())
	t.Hash = d.config.Key.Hash(text)
	body, err := json.Marshal(t)
	if err != nil {
		return t, "", err
	}
	records := []taskqueue.Record{{Table: TokenTable, Key: t.Number, Body: body}}
	gone := d.replaced(&t, d.config.Kept())
	for _, number := range gone {
		records = append(records, taskqueue.Record{Table: TokenTable, Key: number})
	}
	d.mu.RLock()
	count := len(d.tokens) - len(gone)
	d.mu.RUnlock()
	if count >= MaxTokens {
		return t, "", exhausted(fmt.Errorf("there are %d tokens (MaxTokens): revoke some", count))
	}
	if err := d.config.Store.Apply(ctx, records); err != nil {
		return t, "", err
	}
	d.forget(gone...)
	d.mu.Lock()
	defer d.mu.Unlock()
	d.tokens[t.Number] = &issued{t, newUse()}
	return t, text, nil
}

// replaced are the tokens that go when one is made: those that have expired long ago and, of logins of
// one user, the oldest.
func (d *Door) replaced(by *rights.Token, now time.Time) (gone []string) {
	d.mu.RLock()
	defer d.mu.RUnlock()
	var logins []*rights.Token
	for number, t := range d.tokens {
		switch {
		case !t.Expires.IsZero() && now.Sub(t.Expires) > ExpiredTime:
			gone = append(gone, number)
		case by.How == rights.ByLogin && t.How == rights.ByLogin && t.User == by.User:
			logins = append(logins, &t.Token)
		}
	}
	slices.SortFunc(logins, func(a, b *rights.Token) int { return a.Issued.Compare(b.Issued) })
	for _, t := range logins[:max(0, len(logins)-MaxLogins+1)] {
		gone = append(gone, t.Number)
	}
	return gone
}

func (d *Door) forget(numbers ...string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, number := range numbers {
		if t := d.tokens[number]; t != nil {
			t.end()
			delete(d.tokens, number)
		}
	}
}

// revoke makes a token worthless, if a principal may.
func (d *Door) revoke(ctx context.Context, p rights.Principal, number string) error {
	if number == OwnerNumber && p.Role == rights.Admin && d.config.RenewOwner != nil {
		return d.config.RenewOwner()
	}
	d.saving.Lock()
	defer d.saving.Unlock()
	d.mu.RLock()
	t := d.tokens[number]
	d.mu.RUnlock()
	if t == nil || p.Role != rights.Admin && (p.User == "" || t.User != p.User) {
		return notFound(fmt.Errorf("there is no token %.50q; `fairway token list` lists those that there are", number))
	}
	if err := d.config.Store.Apply(ctx, []taskqueue.Record{{Table: TokenTable, Key: number}}); err != nil {
		return err
	}
	d.forget(number)
	return nil
}

// listed are the tokens that a principal may see, the oldest first.
func (d *Door) listed(p rights.Principal) (all []*issued) {
	d.mu.RLock()
	defer d.mu.RUnlock()
	for _, t := range slices.SortedFunc(maps.Values(d.tokens), func(a, b *issued) int {
		if !a.Issued.Equal(b.Issued) {
			return a.Issued.Compare(b.Issued)
		}
		return strings.Compare(a.Number, b.Number)
	}) {
		if p.Role == rights.Admin || p.User != "" && t.User == p.User {
			all = append(all, t)
		}
	}
	return all
}

// ErrUnknownUser says that the settings let in only those whom the file of shares has.
var ErrUnknownUser = errors.New("may not use this server: its file of shares has neither this user nor a group of " +
	"theirs")

// Admit makes the principal of a user whom a login or a proxy names.
func (d *Door) Admit(user string, groups []string, role rights.Role, everybody bool, how rights.Proof) (
	rights.Principal, error,
) {
	p := rights.Principal{User: user, Groups: groups, Role: role, How: how}
	if slices.Contains(d.config.Settings.Admins, user) {
		p.Role = rights.Admin
		return p, nil
	}
	known := everybody || len(d.config.GroupsOf(user)) > 0 || slices.ContainsFunc(groups, d.config.HasGroup)
	if !known {
		return rights.Principal{}, fmt.Errorf("%.100q %w", user, ErrUnknownUser)
	}
	return p, nil
}
