package web

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"slices"
	"syscall"

	"fairway/internal/storage"
)

// maxRedirects bounds how often one request is redirected.
const maxRedirects = 10

// transports are how servers are reached: those that a user has named, and those
// to which another server has redirected. Each way has one transport that waits for the
// beginning of an answer as long as HeaderTimeout, and a patient one.
type transports struct{ named, redirected [2]*http.Transport }

func newTransport(credentials Credentials, control func(network, address string, c syscall.RawConn) error) [2]*http.Transport {
	usual := &http.Transport{
		Proxy:                 http.ProxyFromEnvironment,
		DialContext:           storage.Dial(&net.Dialer{Timeout: DialTimeout, Control: control}),
		TLSClientConfig:       credentials.tls(),
		TLSHandshakeTimeout:   DialTimeout,
		ResponseHeaderTimeout: HeaderTimeout,
		ExpectContinueTimeout: HeaderTimeout,
		MaxIdleConnsPerHost:   storage.DefaultTransfers, // so that no transfer needs another connection than the last
		IdleConnTimeout:       storage.IdleTimeout,
		DisableCompression:    true,
	}
	patient := usual.Clone()
	patient.ResponseHeaderTimeout = ChecksumTimeout
	return [2]*http.Transport{usual, patient}
}

// RoundTrip is part of http.RoundTripper.
func (t *transports) RoundTrip(r *http.Request) (*http.Response, error) {
	through := t.named
	if r.Response != nil && !storage.OnThisMachine(first(r).URL.Hostname()) {
		if proxy, err := http.ProxyFromEnvironment(r); proxy == nil && err == nil {
			through = t.redirected
		}
	}
	if r.Context().Value(patience{}) != nil {
		return through[1].RoundTrip(r)
	}
	return through[0].RoundTrip(r)
}

// CloseIdleConnections is what http.Client calls.
func (t *transports) CloseIdleConnections() {
	for _, transport := range slices.Concat(t.named[:], t.redirected[:]) {
		transport.CloseIdleConnections()
	}
}

// first is the request that was redirected to r.
func first(r *http.Request) *http.Request {
	for r.Response != nil && r.Response.Request != nil {
		r = r.Response.Request
	}
	return r
}

type patience struct{}

// withPatience is a context of requests before whose answer the server may read
// a whole file.
func withPatience(ctx context.Context) context.Context {
	return context.WithValue(ctx, patience{}, true)
}

func checkRedirect(r *http.Request, via []*http.Request) error {
	origin := via[0].URL
	switch scheme := r.URL.Scheme; {
	case len(via) >= maxRedirects:
		return fmt.Errorf("%w: more than %d times", storage.ErrRedirect, maxRedirects)
	case scheme != "http" && scheme != "https":
		return fmt.Errorf("%w: to the scheme %q", storage.ErrRedirect, scheme)
	case scheme == "http" && origin.Scheme == "https":
		return fmt.Errorf("%w: from https to http", storage.ErrRedirect)
	case storage.OnThisMachine(r.URL.Hostname()) && !storage.OnThisMachine(origin.Hostname()):
		return fmt.Errorf("%w: to %s", storage.ErrRedirect, r.URL.Hostname())
	}
	return nil
}
