package people

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"maps"
	"sync"
	"time"

	"github.com/coreos/go-oidc/v3/oidc"
	"golang.org/x/oauth2"

	"fairway/internal/rights"
)

// Limits of logins.
const (
	// LoginTime bounds what an identity provider may take to answer in a login.
	LoginTime = 20 * time.Second
	// maxLogins is how many logins are looked at side by side: others are to try again.
	maxLogins = 8
	// maxProofs bounds the proofs that are remembered so that none counts twice.
	maxProofs = 10_000
)

// login asks the identity provider. Whether that can be reached matters when somebody logs in only.
type login struct {
	provider chan struct{} // holds one while somebody looks for the provider
	busy     chan struct{} // has room for maxLogins

	mu     sync.Mutex // guards what follows
	found  *oidc.Provider
	proofs map[[sha256.Size]byte]time.Time // that have counted, with their ends
}

var errNoLogin = precondition(errors.New("nobody logs in at this server: ask its administrator for a token"))

func (d *Door) find(ctx context.Context, issuer string) (*oidc.Provider, error) {
	d.login.mu.Lock()
	found := d.login.found
	d.login.mu.Unlock()
	if found != nil {
		return found, nil
	}
	select {
	case d.login.provider <- struct{}{}:
		defer func() { <-d.login.provider }()
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	// It keeps the context for the keys that it fetches later.
	found, err := oidc.NewProvider(context.WithoutCancel(ctx), issuer)
	if err != nil {
		return nil, unavailable(fmt.Errorf("the identity provider is not reached: %w", err))
	}
	d.login.mu.Lock()
	defer d.login.mu.Unlock()
	d.login.found = found
	return found, nil
}

func (d *Door) verify(ctx context.Context, idToken, accessToken string) (rights.Principal, error) {
	s := d.config.Settings.Login
	if s == nil {
		return rights.Principal{}, errNoLogin
	}
	select {
	case d.login.busy <- struct{}{}:
		defer func() { <-d.login.busy }()
	default:
		return rights.Principal{}, unavailable(fmt.Errorf("%d people log in at this moment: try again", maxLogins))
	}
	ctx, cancel := context.WithTimeout(ctx, LoginTime)
	defer cancel()
	provider, err := d.find(ctx, s.Issuer)
	if err != nil {
		return rights.Principal{}, err
	}
	verifier := provider.Verifier(&oidc.Config{ClientID: s.Client, Now: d.config.Now})
	proof, err := verifier.Verify(ctx, idToken)
	if err != nil {
		return rights.Principal{}, unproved(fmt.Errorf("the proof of the identity provider is not good: %w", err))
	}
	claims := map[string]any{}
	if err := proof.Claims(&claims); err != nil {
		return rights.Principal{}, unproved(fmt.Errorf("the claims of the identity provider cannot be read: %w", err))
	}
	if party, ok := claims["azp"].(string); ok && party != s.Client {
		return rights.Principal{}, unproved(fmt.Errorf("the proof was made for another client, %.100q", party))
	}
	if err := d.completed(ctx, provider, claims, proof.Subject, accessToken); err != nil {
		return rights.Principal{}, err
	}
	user, groups, err := s.Mapping.Named(claims)
	if err != nil {
		return rights.Principal{}, denied(err)
	}
	p, err := d.Admit(user, groups, s.Role, s.Everybody, rights.ByLogin)
	if err != nil {
		return p, denied(err)
	}
	if !d.login.once(idToken, proof.Expiry, d.config.Now()) {
		return rights.Principal{}, unproved(errors.New("this proof of the identity provider was used before: log in again"))
	}
	return p, nil
}

// completed adds the claims that the provider tells only when it is asked.
func (d *Door) completed(
	ctx context.Context, provider *oidc.Provider, claims map[string]any, subject, accessToken string,
) error {
	s := d.config.Settings.Login
	if accessToken == "" || claims[s.Mapping.User] != nil && claims[s.Mapping.Groups] != nil {
		return nil
	}
	info, err := provider.UserInfo(ctx, oauth2.StaticTokenSource(&oauth2.Token{AccessToken: accessToken}))
	if err != nil {
		return unavailable(fmt.Errorf("the identity provider does not tell about the user: %w", err))
	}
	more := map[string]any{}
	if err := info.Claims(&more); err != nil {
		return unproved(fmt.Errorf("the claims of the identity provider cannot be read: %w", err))
	}
	if info.Subject != subject {
		return unproved(errors.New("the access token is another user's"))
	}
	maps.Copy(more, claims) // what was signed counts first
	maps.Copy(claims, more)
	return nil
}

func (l *login) once(proof string, end, now time.Time) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.proofs == nil {
		l.proofs = map[[sha256.Size]byte]time.Time{}
	}
	if len(l.proofs) >= maxProofs {
		maps.DeleteFunc(l.proofs, func(_ [sha256.Size]byte, end time.Time) bool { return end.Before(now) })
	}
	sum := sha256.Sum256([]byte(proof))
	if _, used := l.proofs[sum]; used || len(l.proofs) >= maxProofs {
		return false
	}
	l.proofs[sum] = end
	return true
}
