package active

import (
	"context"
	"errors"
	"net/http"
	"time"

	"connectrpc.com/connect"
)

// Outlived reports whether another server may be active since the lease of this one is over.
func (r Role) Outlived() bool { return r.Seat != nil && !r.Seat.Current() }

// Ready tells who need have no token whether a server is there, and passes other calls on.
func Ready(answers func(context.Context) error, next http.Handler) http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /healthz", func(w http.ResponseWriter, _ *http.Request) { plainly(w, http.StatusOK, "ok") })
	mux.HandleFunc("GET /readyz", func(w http.ResponseWriter, r *http.Request) {
		ctx, cancel := context.WithTimeout(r.Context(), readyTime)
		defer cancel()
		if err := answers(ctx); err != nil {
			plainly(w, http.StatusServiceUnavailable, "the server does not answer")
			return
		}
		plainly(w, http.StatusOK, "ok")
	})
	mux.Handle("/", next)
	return mux
}

// readyTime is how long the server may take to answer if it is ready.
const readyTime = 5 * time.Second

// Calls is an interceptor that has whoever asks a server that was replaced ask the next one: whatever failed,
// and whatever it was going to say when its lease is over. What the server knows then is what was, before it was frozen
// or cut off.
type Calls struct {
	Role    Role
	Leaving func() error // why the server has left
}

func (c Calls) see(err error) error {
	if err != nil && IsReplaced(c.Leaving()) || c.Role.Outlived() {
		return ErrReplaced()
	}
	return err
}

// ErrReplaced is what callers of a server hear whose lease is over.
func ErrReplaced() error {
	return connect.NewError(connect.CodeUnavailable, errors.New("another server is active by now, or may be; ask again"))
}

// WhileCurrent answers for a server whose lease is over, before it is looked who asks: tokens that another server has
// given since would not be known.
func (r Role) WhileCurrent(next http.Handler) http.Handler {
	if r.Seat == nil {
		return next
	}
	refusals := connect.NewErrorWriter()
	return http.HandlerFunc(func(w http.ResponseWriter, asked *http.Request) {
		switch {
		case !r.Outlived():
			next.ServeHTTP(w, asked)
		case refusals.IsSupported(asked):
			_ = refusals.Write(w, asked, ErrReplaced())
		default:
			http.Error(w, "another server is active by now, or may be: try again", http.StatusServiceUnavailable)
		}
	})
}

// WrapUnary is part of connect.Interceptor.
func (c Calls) WrapUnary(next connect.UnaryFunc) connect.UnaryFunc {
	return func(ctx context.Context, r connect.AnyRequest) (connect.AnyResponse, error) {
		answer, err := next(ctx, r)
		if err = c.see(err); err != nil {
			return nil, err
		}
		return answer, nil
	}
}

// WrapStreamingClient is part of connect.Interceptor.
func (c Calls) WrapStreamingClient(next connect.StreamingClientFunc) connect.StreamingClientFunc {
	return next
}

// WrapStreamingHandler is part of connect.Interceptor.
func (c Calls) WrapStreamingHandler(next connect.StreamingHandlerFunc) connect.StreamingHandlerFunc {
	return func(ctx context.Context, conn connect.StreamingHandlerConn) error { return c.see(next(ctx, conn)) }
}
