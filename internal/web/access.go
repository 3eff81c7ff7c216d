package web

import (
	"crypto/rand"
	"crypto/sha256"
	"crypto/subtle"
	"net"
	"net/http"
	"net/url"
	"strings"
)

// tokenParameter is in the link that lets a browser in.
const tokenParameter = "token"

// Access lets those in who know a token. Any goroutine may use it.
type Access struct {
	hash   [sha256.Size]byte
	cookie string // its name: cookies of all ports of a host go to each of them
	token  string
}

// NewAccess makes a token for pages at an address (HOST:PORT).
func NewAccess(address string) *Access {
	_, port, _ := net.SplitHostPort(address)
	token := rand.Text()
	return &Access{hash: sha256.Sum256([]byte(token)), cookie: "fairway-" + port, token: token}
}

// Link lets a browser in. It is a secret.
func (a *Access) Link(address string) string {
	return (&url.URL{
		Scheme: "http", Host: address, Path: "/", RawQuery: url.Values{tokenParameter: {a.token}}.Encode(),
	}).String()
}

func (a *Access) isToken(text string) bool {
	hash := sha256.Sum256([]byte(text))
	return subtle.ConstantTimeCompare(hash[:], a.hash[:]) == 1
}

func (a *Access) knows(r *http.Request) bool {
	if bearer, ok := strings.CutPrefix(r.Header.Get("Authorization"), "Bearer "); ok {
		return a.isToken(bearer)
	}
	cookie, err := r.Cookie(a.cookie)
	return err == nil && a.isToken(cookie.Value)
}

// guard lets requests through that may be made. A link with the token becomes a cookie and leads to
// the same page without it. It does so by a page of its own: a browser that comes from another site
// would not send the cookie after a redirection.
func (a *Access) guard(next http.Handler) http.Handler {
	crossOrigin := http.NewCrossOriginProtection()
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if err := crossOrigin.Check(r); err != nil || fromElsewhere(r) {
			refuse(w, http.StatusForbidden, "This request comes from another site, and is refused.")
			return
		}
		given := r.URL.Query()
		switch {
		case given.Has(tokenParameter) && r.Method == http.MethodGet:
			if !a.isToken(given.Get(tokenParameter)) {
				refuse(w, http.StatusUnauthorized, "This link is not good any more: take the one that the server printed last.")
				return
			}
			http.SetCookie(w, &http.Cookie{
				Name: a.cookie, Value: a.token, Path: "/", HttpOnly: true, SameSite: http.SameSiteStrictMode,
			})
			given.Del(tokenParameter)
			to := url.URL{Path: localPath(r.URL.Path), RawQuery: given.Encode()}
			show(w, http.StatusOK, "entered", to.String())
		case !a.knows(r):
			refuse(w, http.StatusUnauthorized, "Open the link that the server printed: it has the token for this page.")
		default:
			next.ServeHTTP(w, r)
		}
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
