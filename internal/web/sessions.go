package web

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"errors"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"time"

	"connectrpc.com/connect"

	"fairway/internal/rights"
)

// Limits of sessions. They are in memory: when the server begins again, people log in again.
const (
	// MaxSessions is how many sessions there are; a further one takes the place of the oldest.
	MaxSessions = 1000
	// SessionTime is how long a session lasts, unless its token is good no more before.
	SessionTime = 12 * time.Hour
)

// sessions are those of browsers that a token has let in. A session has what its token has, and no more.
type sessions struct {
	mu    sync.Mutex // guards what follows
	known map[[sha256.Size]byte]session
	order [][sha256.Size]byte // the oldest first
}

type session struct {
	rights.Principal
	good  context.Context // of its token
	until time.Time
}

func (s *sessions) begin(p rights.Principal, good context.Context) (cookie string) {
	cookie = rand.Text() + rand.Text()
	name := sha256.Sum256([]byte(cookie))
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.known == nil {
		s.known = map[[sha256.Size]byte]session{}
	}
	for len(s.order) >= MaxSessions {
		delete(s.known, s.order[0])
		s.order = s.order[1:]
	}
	s.known[name] = session{p, good, time.Now().Add(SessionTime)}
	s.order = append(s.order, name)
	return cookie
}

// find is who has a session whose token is still good.
func (s *sessions) find(cookie string, door Door) (rights.Principal, context.Context, error) {
	name := sha256.Sum256([]byte(cookie))
	s.mu.Lock()
	found, ok := s.known[name]
	s.mu.Unlock()
	if !ok {
		return rights.Principal{}, nil, errUnknown
	}
	good := found.good
	if found.Token != "" {
		var err error
		if good, err = door.Standing(found.Token); err != nil {
			good = nil
		}
	}
	if good == nil || good.Err() != nil || time.Now().After(found.until) {
		s.end(cookie)
		return rights.Principal{}, nil, errUnknown
	}
	return found.Principal, good, nil
}

func (s *sessions) end(cookie string) {
	name := sha256.Sum256([]byte(cookie))
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.known, name)
	for i, other := range s.order {
		if other == name {
			s.order = append(s.order[:i], s.order[i+1:]...)
			break
		}
	}
}

var errUnauthenticated = connect.NewError(connect.CodeUnauthenticated, errors.New("nobody is known by that token"))

type loginBody struct {
	Text string // what was wrong; empty: nothing
	Next string // where it leads to
}

func (s *site) loginPage(w http.ResponseWriter, r *http.Request) {
	if s.Door == nil {
		refuse(w, http.StatusNotFound, "There is no such page.")
		return
	}
	show(w, http.StatusOK, "login", loginBody{Next: nextPage(r.FormValue(nextParameter))})
}

// login begins a session for who has a token, or the link of the owner, and leads to where they were.
func (s *site) login(w http.ResponseWriter, r *http.Request) {
	if s.Door == nil {
		refuse(w, http.StatusNotFound, "There is no such page.")
		return
	}
	r.Body = http.MaxBytesReader(w, r.Body, formLimit)
	given, next := tokenIn(r.PostFormValue(tokenParameter)), nextPage(r.PostFormValue(nextParameter))
	if s.Access.isToken(given) {
		s.Door.Acted(rights.With(r.Context(), rights.Owner), r.RemoteAddr, "Login", 0, "the pages", nil)
		s.Access.setCookie(w, s.Access.token, 0)
		http.Redirect(w, r, next, http.StatusSeeOther)
		return
	}
	p, good, err := s.Door.Token(given)
	if err == nil && !p.Role.May(rights.Look) {
		err = rights.ErrBadToken
	}
	ctx := r.Context()
	if err == nil {
		ctx = rights.With(ctx, p)
		s.Door.Acted(ctx, r.RemoteAddr, "Login", 0, "the pages", nil)
		s.Access.setCookie(w, s.Access.sessions.begin(p, good), int(SessionTime.Seconds()))
		http.Redirect(w, r, next, http.StatusSeeOther)
		return
	}
	s.Door.Acted(ctx, r.RemoteAddr, "Login", 0, "the pages", errUnauthenticated)
	show(w, http.StatusUnauthorized, "login", loginBody{"You are not let in: " + err.Error() + ".", next})
}

// tokenIn is the token that a person gives: itself, or in the link that the server printed.
func tokenIn(text string) string {
	text = strings.TrimSpace(text)
	if link, err := url.Parse(text); err == nil && link.Query().Has(tokenParameter) {
		return link.Query().Get(tokenParameter)
	}
	return text
}

func (s *site) logout(w http.ResponseWriter, r *http.Request) {
	if cookie, err := r.Cookie(s.Access.cookie); err == nil {
		s.Access.sessions.end(cookie.Value)
	}
	s.Access.setCookie(w, "", -1)
	http.Redirect(w, r, loginPath, http.StatusSeeOther)
}
