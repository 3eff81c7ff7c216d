package people

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/netip"
	"path"
	"strings"
	"time"

	"connectrpc.com/connect"

	"fairway/internal/access"
	"fairway/internal/audit"
	"fairway/internal/rights"
	"fairway/internal/taskqueue"
)

type proxySocketKey struct{}

// OfProxy marks calls that come through the socket of a proxy. Whoever may connect to that is the proxy.
func OfProxy(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		next.ServeHTTP(w, r.WithContext(context.WithValue(r.Context(), proxySocketKey{}, true)))
	})
}

// Proxied is whom a trusted proxy names. named is false where none has: then a token must tell. What
// others write into the headers of a proxy says nothing.
func (d *Door) Proxied(r *http.Request) (p rights.Principal, named bool, err error) {
	s := d.config.Settings.Proxy
	if s == nil || !trusts(s, r) {
		return p, false, nil
	}
	users := r.Header.Values(s.User)
	if len(users) == 0 {
		return p, false, nil
	}
	if len(users) != 1 || !taskqueue.NamesShare(users[0]) {
		return p, true, fmt.Errorf("the proxy names no user in its header %s", s.User)
	}
	var groups []string
	if s.Groups != "" {
		groups = rights.NamedGroups(strings.Split(strings.Join(r.Header.Values(s.Groups), ","), ","))
	}
	p, err = d.Admit(users[0], groups, s.Role, s.Everybody, rights.ByProxy)
	return p, true, err
}

// Bearer is the token in the header of a request.
func Bearer(r *http.Request) (token string, ok bool) {
	return strings.CutPrefix(r.Header.Get("Authorization"), "Bearer ")
}

// Identify is who makes a request, by a proxy or by a token in its header, and a context that ends when
// that is good no more.
func (d *Door) Identify(r *http.Request) (rights.Principal, context.Context, error) {
	p, named, err := d.Proxied(r)
	if named {
		return p, context.Background(), err
	}
	token, ok := Bearer(r)
	if !ok || token == "" {
		return p, nil, errors.New("the call has no token: ask an administrator of the server for one, or log in with " +
			"`fairway login`")
	}
	return d.Token(token)
}

// Within has a request end when a token is good no more. done must be called.
func (d *Door) Within(ctx context.Context, p rights.Principal, good context.Context) (_ context.Context, done func()) {
	ctx, cancel := context.WithCancel(rights.With(ctx, p))
	stop := context.AfterFunc(good, cancel)
	var timer *time.Timer
	if end := d.Expires(p.Token); !end.IsZero() {
		timer = time.AfterFunc(end.Sub(d.config.Now()), cancel)
	}
	return ctx, func() {
		stop()
		if timer != nil {
			timer.Stop()
		}
		cancel()
	}
}

// mayNot is the refusal of a call that a role does not allow. Calls that nobody may make are not there.
func mayNot(role rights.Role, action rights.Action, call string) error {
	if action == rights.Nobody {
		return denied(fmt.Errorf("the role %s may not call %.100q", role, call))
	}
	return denied(fmt.Errorf("the role %s may not call %.100q: it takes the right to %v; an administrator of the server "+
		"can give you a token with another role", role, path.Base(call), action))
}

// Guard lets calls of people over a network through, with their principals. Calls that need no proof come
// through without one. Nothing of a call's body was read before.
func (d *Door) Guard(next http.Handler) http.Handler {
	refusals := connect.NewErrorWriter()
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		p, good, err := d.Identify(r)
		if action := rights.Calls[r.URL.Path]; err == nil && !p.Role.May(action) {
			err = mayNot(p.Role, action, r.URL.Path)
		}
		switch {
		case err == nil && !access.Admit(r, connectionsOf(p)):
			err = unavailable(fmt.Errorf("%s has %d connections already: end some", p.Name(), access.MaxLaunchConnections))
		case err == nil:
			ctx, done := d.Within(r.Context(), p, good)
			defer done()
			next.ServeHTTP(w, r.WithContext(ctx))
			return
		case rights.Calls[r.URL.Path] == rights.Anybody:
			next.ServeHTTP(w, r)
			return
		default:
			err = refusal(err)
		}
		d.refused(r, p, err)
		w.Header().Set("Connection", "close") // nobody waits for the rest of what is not wanted
		_ = http.NewResponseController(w).SetReadDeadline(time.Now().Add(access.HeaderTime))
		if refusals.IsSupported(r) {
			_ = refusals.Write(w, r, err)
			return
		}
		http.Error(w, messageOf(err), statusOf(err))
	})
}

func connectionsOf(p rights.Principal) string {
	if p.How == rights.ByProxy {
		return string(rights.ByProxy)
	}
	return "token " + p.Token
}

// refusal gives an error of Identify its code.
func refusal(err error) error {
	switch _, coded := errors.AsType[*connect.Error](err); {
	case coded:
		return err
	case errors.Is(err, ErrUnknownUser):
		return denied(err)
	}
	return unproved(err)
}

func messageOf(err error) string {
	if coded, ok := errors.AsType[*connect.Error](err); ok {
		return coded.Message()
	}
	return err.Error()
}

func statusOf(err error) int {
	switch connect.CodeOf(err) {
	case connect.CodeUnauthenticated:
		return http.StatusUnauthorized
	case connect.CodeUnavailable:
		return http.StatusServiceUnavailable
	}
	return http.StatusForbidden
}

// refused writes down that a request was refused before it was a call.
func (d *Door) refused(r *http.Request, p rights.Principal, err error) {
	d.note(p, audit.Entry{
		From: from(r.RemoteAddr), Call: callOf(r.URL.Path), Outcome: connect.CodeOf(err).String(), Refused: true,
	})
}

func trusts(s *rights.Proxy, r *http.Request) bool {
	if r.Context().Value(proxySocketKey{}) != nil {
		return true
	}
	at, err := netip.ParseAddrPort(r.RemoteAddr)
	if err != nil {
		return false
	}
	for _, network := range s.Addresses {
		if network.Contains(at.Addr().Unmap()) {
			return true
		}
	}
	return false
}
