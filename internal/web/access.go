package web

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"crypto/subtle"
	"errors"
	"net"
	"net/http"
	"net/url"
	"strings"

	"fairway/internal/rights"
)

const (
	tokenParameter = "token" // in the link that lets a browser in
	liveParameter  = "live"  // asks for the part of a page that changes
	nextParameter  = "next"  // of a login: where it leads to
	loginPath      = "/login"
)

// Door knows people by their tokens, and by proxies. (people.Door is one.)
type Door interface {
	// Token is who has a token, and a context that ends when it is good no more.
	Token(text string) (rights.Principal, context.Context, error)
	// Standing is that context of a token by its number; the error of one that is good no more.
	Standing(number string) (context.Context, error)
	// Proxied is whom a trusted proxy names; false where none has named anybody.
	Proxied(r *http.Request) (p rights.Principal, named bool, err error)
	// Within has what a principal does end when its token is good no more.
	Within(ctx context.Context, p rights.Principal, good context.Context) (_ context.Context, done func())
	// Acted writes down what a person has done.
	Acted(ctx context.Context, remote, call string, run uint32, about string, err error)
}

// Access lets those in who know a token: the server's owner by a link, and others by sessions that their
// tokens begin. Any goroutine may use it.
type Access struct {
	hash     [sha256.Size]byte
	cookie   string // its name: cookies of all ports of a host go to each of them
	token    string
	secure   bool // browsers speak TLS with the pages, or with a proxy before them
	sessions sessions
}

// NewAccess makes a token for pages at an address (HOST:PORT). secure says that browsers reach them over
// TLS.
func NewAccess(address string, secure bool) *Access {
	_, port, _ := net.SplitHostPort(address)
	token := rand.Text()
	return &Access{hash: sha256.Sum256([]byte(token)), cookie: "fairway-" + port, token: token, secure: secure}
}

// Link lets a browser in. It is a secret.
func (a *Access) Link(address string) string {
	scheme := "http"
	if a.secure {
		scheme = "https"
	}
	return (&url.URL{
		Scheme: scheme, Host: address, Path: "/", RawQuery: url.Values{tokenParameter: {a.token}}.Encode(),
	}).String()
}

func (a *Access) isToken(text string) bool {
	hash := sha256.Sum256([]byte(text))
	return subtle.ConstantTimeCompare(hash[:], a.hash[:]) == 1
}

func (a *Access) setCookie(w http.ResponseWriter, value string, age int) {
	http.SetCookie(w, &http.Cookie{
		Name: a.cookie, Value: value, Path: "/", HttpOnly: true, Secure: a.secure, SameSite: http.SameSiteStrictMode,
		MaxAge: age,
	})
}

var errUnknown = errors.New("nobody is known by it")

// identify is who makes a request, and a context that ends when that is known no more.
func (s *site) identify(r *http.Request) (rights.Principal, context.Context, error) {
	a := s.Access
	if s.Door != nil {
		if p, named, err := s.Door.Proxied(r); named {
			return p, context.Background(), err
		}
	}
	if bearer, ok := strings.CutPrefix(r.Header.Get("Authorization"), "Bearer "); ok {
		switch {
		case a.isToken(bearer):
			return rights.Owner, context.Background(), nil
		case s.Door != nil:
			return s.Door.Token(bearer)
		}
		return rights.Principal{}, nil, errUnknown
	}
	cookie, err := r.Cookie(a.cookie)
	switch {
	case err != nil:
		return rights.Principal{}, nil, errUnknown
	case a.isToken(cookie.Value):
		return rights.Owner, context.Background(), nil
	case s.Door != nil:
		return a.sessions.find(cookie.Value, s.Door)
	}
	return rights.Principal{}, nil, errUnknown
}

// guard lets requests through that may be made. A link with the token becomes a cookie and leads to
// the same page without it. It does so by a page of its own: a browser that comes from another site
// would not send the cookie after a redirection.
func (s *site) guard(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		given := r.URL.Query()
		if given.Has(tokenParameter) && r.Method == http.MethodGet {
			if !s.Access.isToken(given.Get(tokenParameter)) {
				s.denied(w, r, "This link is not good any more: take the one that the server printed last.")
				return
			}
			s.Access.setCookie(w, s.Access.token, 0)
			given.Del(tokenParameter)
			to := url.URL{Path: localPath(r.URL.Path), RawQuery: given.Encode()}
			show(w, http.StatusOK, "entered", to.String())
			return
		}
		p, good, err := s.identify(r)
		switch {
		case errors.Is(err, errUnknown) && s.Door == nil:
			text := "Open the link that the server printed last: it has the token for this page."
			if r.Method != http.MethodGet {
				text = "Nothing was done: the server does not know this browser, or no more. " + text
			}
			s.denied(w, r, text)
		case errors.Is(err, errUnknown):
			show(w, http.StatusUnauthorized, "login", unknown(w, r))
		case err != nil:
			s.denied(w, r, "You are not let in: "+err.Error()+".")
		case s.Door == nil:
			next.ServeHTTP(w, r.WithContext(rights.With(r.Context(), p)))
		default:
			ctx, done := s.Door.Within(r.Context(), p, good)
			defer done()
			next.ServeHTTP(w, r.WithContext(ctx))
		}
	})
}

// unknown is what the login says and leads to after a request of somebody who is not known.
func unknown(w http.ResponseWriter, r *http.Request) loginBody {
	if r.Method == http.MethodGet || r.Method == http.MethodHead {
		return loginBody{Next: nextPage(r.URL.RequestURI())}
	}
	if question := asked(w, r); question != "" {
		return loginBody{nothingDone + " Log in, and you are asked once more.", question}
	}
	return loginBody{Text: nothingDone}
}

const nothingDone = "You are not logged in any more, and nothing was done."

// nextPage is where a login leads to: the page of this server that an address names, without what only its
// scripts ask for. No browser takes it for an address elsewhere.
func nextPage(address string) string {
	to, err := url.Parse(address)
	if err != nil || to.Scheme != "" || to.Host != "" || !strings.HasPrefix(to.Path, "/") || to.Path == loginPath {
		return "/"
	}
	query := to.Query()
	query.Del(liveParameter)
	return (&url.URL{Path: localPath(to.Path), RawQuery: query.Encode()}).String()
}

// denied refuses somebody who is not known.
func (s *site) denied(w http.ResponseWriter, r *http.Request, text string) {
	if s.Door != nil {
		s.Door.Acted(r.Context(), r.RemoteAddr, r.URL.Path, 0, "", errUnauthenticated)
	}
	refuse(w, http.StatusUnauthorized, text)
}

// ownSite refuses requests of other sites.
func ownSite(next http.Handler) http.Handler {
	crossOrigin := http.NewCrossOriginProtection()
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if err := crossOrigin.Check(r); err != nil || fromElsewhere(r) {
			refuse(w, http.StatusForbidden, "This request comes from another site, and is refused.")
			return
		}
		next.ServeHTTP(w, r)
	})
}

// may lets those do something who have the right.
func may(action rights.Action, next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if p := rights.Of(r.Context()); action != rights.Anybody && !p.Role.May(action) {
			refuse(w, http.StatusForbidden, "The role "+string(p.Role)+" may not do that: it takes the right to "+
				action.String()+".")
			return
		}
		next.ServeHTTP(w, r)
	})
}

// localPath is a path that no browser takes for the name of a host.
func localPath(path string) string { return "/" + strings.TrimLeft(path, "/\\") }

// fromElsewhere reports whether a page of another site asks for something to use there. To follow a
// link from there is allowed.
func fromElsewhere(r *http.Request) bool {
	site := r.Header.Get("Sec-Fetch-Site")
	return (site == "cross-site" || site == "same-site") && r.Header.Get("Sec-Fetch-Mode") != "navigate"
}

// secured says to browsers what pages may do.
func secured(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		h := w.Header()
		h.Set("Content-Security-Policy", "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; "+
			"connect-src 'self'; form-action 'self'; frame-ancestors 'none'; base-uri 'none'")
		h.Set("X-Content-Type-Options", "nosniff")
		h.Set("Referrer-Policy", "same-origin")
		h.Set("Cross-Origin-Opener-Policy", "same-origin")
		h.Set("Cross-Origin-Resource-Policy", "same-origin")
		h.Set("Cache-Control", "no-store")
		next.ServeHTTP(w, r)
	})
}

func refuse(w http.ResponseWriter, code int, text string) { show(w, code, "refused", text) }
