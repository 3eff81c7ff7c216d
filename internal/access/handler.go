//go:build linux

package access

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"strings"
	"time"

	"connectrpc.com/connect"

	"fairway/internal/storage"
)

type callerKey struct{}

// CallerOf returns who makes the call that a handler behind [Handler] serves;
// false for calls that came another way, over the socket of a state.
func CallerOf(ctx context.Context) (Caller, bool) {
	c, ok := ctx.Value(callerKey{}).(Caller)
	return c, ok
}

// Handler lets calls with a good token through to routes, by path as
// http.ServeMux has them. A right token for any other path is refused too. The
// routes find the caller in the context (CallerOf); nothing of a call's body was
// read before its token was found good.
func Handler(tokens *Tokens, routes map[string]http.Handler) http.Handler {
	mux := http.NewServeMux()
	for pattern, route := range routes {
		mux.Handle(pattern, route)
	}
	refusals := connect.NewErrorWriter()
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		token, isToken := strings.CutPrefix(r.Header.Get(tokenHeader), tokenScheme)
		if !isToken {
			token = ""
		}
		caller, err := tokens.Check(r.Header.Get(launchHeader), Token(token))
		if _, pattern := mux.Handler(r); err == nil && pattern == "" {
			err = forbid("the token of a pilot is not good for %.100q: it is for its own Sync; commands of people go through "+
				"the socket in .fairway/, or have a token of their own", r.URL.Path)
		}
		if err == nil && !Admit(r, caller.Launch) {
			err = connect.NewError(connect.CodeUnavailable, fmt.Errorf("the launch %s has %d connections already: a pilot "+
				"needs few", shown(caller.Launch), MaxLaunchConnections))
		}
		if err != nil { // nobody waits for the rest of what is not wanted
			w.Header().Set("Connection", "close")
			_ = http.NewResponseController(w).SetReadDeadline(time.Now().Add(HeaderTime))
		}
		switch {
		case err == nil:
			mux.ServeHTTP(w, r.WithContext(context.WithValue(r.Context(), callerKey{}, caller)))
		case refusals.IsSupported(r):
			_ = refusals.Write(w, r, err)
		case connect.CodeOf(err) == connect.CodeUnauthenticated:
			http.Error(w, sentenceOf(err), http.StatusUnauthorized)
		case connect.CodeOf(err) == connect.CodeUnavailable:
			http.Error(w, sentenceOf(err), http.StatusServiceUnavailable)
		default:
			http.Error(w, sentenceOf(err), http.StatusForbidden)
		}
	})
}

// ByCaller gives calls that a person's commands say they make, and those of programs that name no launch,
// to people, and all others to pilots. Both look at the token that belongs to the name.
func ByCaller(people, pilots http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if launch := r.Header.Get(launchHeader); launch == Person || launch == "" {
			people.ServeHTTP(w, r)
			return
		}
		pilots.ServeHTTP(w, r)
	})
}

func sentenceOf(err error) string {
	if coded, ok := errors.AsType[*connect.Error](err); ok {
		return coded.Message()
	}
	return err.Error()
}

// NewServer is a server of HTTP with the limits of this package. Handlers may give the
// bodies that they read others.
func NewServer(handler http.Handler, log *slog.Logger) *http.Server {
	return &http.Server{
		Handler:           limitBody(handler),
		ReadHeaderTimeout: HeaderTime,
		IdleTimeout:       IdleTime,
		ConnContext:       withConnection,
		MaxHeaderBytes:    maxHeader,
		ErrorLog:          slog.NewLogLogger(log.Handler(), slog.LevelDebug),
	}
}

// limitBody has the body of a request come within BodyTime, also one that nobody reads: the
// server waits for it before it answers.
func limitBody(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.ContentLength != 0 {
			control := http.NewResponseController(w)
			_ = control.SetReadDeadline(time.Now().Add(BodyTime))
			// The server looks at the body of its own request for what is left on the connection.
			r = r.WithContext(r.Context())
			r.Body = &timedBody{r.Body, control}
		}
		next.ServeHTTP(w, r)
	})
}

// Timed gives a route of [NewServer] BodyTime to write an answer, from its first byte on, or
// ReaderTime for each piece of a stream.
func Timed(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		limit := BodyTime // of an answer that is written at once
		if strings.HasPrefix(r.Header.Get("Content-Type"), streamType) {
			limit = ReaderTime
		}
		next.ServeHTTP(storage.NewSteadyWriter(w, limit), r)
	})
}

// streamType is how the type of the messages of a stream begins.
const streamType = "application/connect+"

// timedBody takes the limit away when all was read: the answer may be held for
// longer.
type timedBody struct {
	io.ReadCloser
	control *http.ResponseController
}

// Read is part of io.Reader.
func (b *timedBody) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	if errors.Is(err, io.EOF) {
		_ = b.control.SetReadDeadline(time.Time{})
	}
	return n, err
}
