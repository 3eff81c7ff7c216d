//go:build linux

package listen

import (
	"context"
	"errors"
	"log/slog"
	"net"
	"net/http"
	"slices"
	"time"

	"connectrpc.com/connect"

	"fairway/internal/access"
	"fairway/internal/rights"
	"fairway/internal/wire"
)

// ClosingTime is how long a server waits at its end for the last answers to be
// taken.
const ClosingTime = 2 * time.Second

// Uncompressed is for handlers: both ends of a socket are on one machine, and gzip
// would cost more than the whole rest of a call.
var Uncompressed = connect.WithCompression("gzip", nil, nil)

// Endpoint is a listener with the handler of all calls that come in there. What may
// be asked depends on the endpoint: the socket in the state folder is open to the
// user alone and serves people and pilots.
//
// A call on a socket takes 85 µs of processor time of both ends over HTTP/1.1, 142 over HTTP/2
// without encryption, and 216 as gRPC.
type Endpoint struct {
	listener net.Listener
	http     *http.Server
	log      *slog.Logger
}

// NewEndpoint makes an endpoint, which serves when Serve is called. It closes the
// listener at its end.
func NewEndpoint(listener net.Listener, handler http.Handler, log *slog.Logger) *Endpoint {
	server := access.NewServer(handler, log)
	known := server.ConnContext
	server.ConnContext = func(ctx context.Context, c net.Conn) context.Context { return withPeer(known(ctx, c), c) }
	return &Endpoint{listener: listener, http: server, log: log}
}

// Serve answers calls until Close.
func (e *Endpoint) Serve() {
	if err := e.http.Serve(e.listener); !errors.Is(err, http.ErrServerClosed) {
		e.log.Error("an endpoint of the server failed", "address", e.listener.Addr(), "error", err)
	}
}

// Close lets calls that are under way end, those that follow the run by its last
// report, and cuts off what is still there after some time.
func (e *Endpoint) Close(wait time.Duration) {
	ctx, cancel := context.WithTimeout(context.Background(), wait)
	defer cancel()
	if e.http.Shutdown(ctx) != nil {
		_ = e.http.Close()
	}
}

// Client makes a client of the Workflow service whose connections dial makes. The
// transport holds them.
func Client(dial func(ctx context.Context) (net.Conn, error)) (wire.WorkflowClient, *http.Transport) {
	client, transport := clientOver(dial)
	return PeoplesClient(client, "http://fairway"), transport
}

// ClientOfRights is Client for the calls about tokens and logins, over connections of the same transport.
func ClientOfRights(transport *http.Transport) wire.RightsClient {
	return RightsClient(&http.Client{Transport: transport}, "http://fairway")
}

func clientOver(dial func(ctx context.Context) (net.Conn, error)) (*http.Client, *http.Transport) {
	transport := &http.Transport{
		DialContext:        func(ctx context.Context, _, _ string) (net.Conn, error) { return dial(ctx) },
		DisableCompression: true,
	}
	return &http.Client{Transport: transport}, transport
}

// People is the handler of what people's commands call, with the limits of each call: how
// large a request is, how long it and its answer may be on their way, and how long the
// service works on it. Calls that their caller may not make are refused. around are interceptors that
// see that, too.
func People(service wire.WorkflowHandler, around ...connect.Interceptor) (at string, handler http.Handler) {
	at, handler = wire.NewWorkflowHandler(service, Uncompressed, exactly, connect.WithReadMaxBytes(access.MaxRequest),
		connect.WithInterceptors(slices.Concat(around, []connect.Interceptor{permits{}, limits{}})...))
	return at, access.Timed(saysAPI(handler))
}

// maxRightsRequest is the largest request about rights, in bytes: it may come from anybody.
const maxRightsRequest = 128 << 10

// Rights is People for the calls about tokens and logins.
func Rights(service wire.RightsHandler, around ...connect.Interceptor) (at string, handler http.Handler) {
	at, handler = wire.NewRightsHandler(service, Uncompressed, exactly, connect.WithReadMaxBytes(maxRightsRequest),
		connect.WithInterceptors(slices.Concat(around, []connect.Interceptor{permits{}, limits{}})...))
	return at, access.Timed(handler)
}

// AsOwner has all calls be made by whoever has started the server: nobody else can reach the handler.
func AsOwner(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		p := rights.Owner
		if name, ok := PeerOf(r.Context()); ok {
			p.User, p.How = name, rights.BySocket
		}
		next.ServeHTTP(w, r.WithContext(rights.With(r.Context(), p)))
	})
}
