package web

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptrace"
	"slices"
	"sync"
	"syscall"
	"time"

	"fairway/internal/storage"
)

// maxHeader bounds the header of an answer, with those of status 1xx before it, in bytes.
const maxHeader = 1 << 20

// maxRedirects bounds how often one request is redirected.
const maxRedirects = 10

// transports are how servers are reached: those that a user has named, and those
// to which another server has redirected. Each way has one transport that waits for the
// header of an answer as long as HeaderTimeout, and a patient one, which waits for its first byte
// as long as ChecksumTimeout.
type transports struct{ named, redirected [2]*http.Transport }

func newTransport(
	credentials Credentials, control func(network, address string, c syscall.RawConn) error,
) [2]*http.Transport {
	usual := &http.Transport{
		Proxy:                  http.ProxyFromEnvironment,
		DialContext:            storage.Dial(&net.Dialer{Timeout: DialTimeout, Control: control}),
		TLSClientConfig:        credentials.tls(),
		TLSHandshakeTimeout:    DialTimeout,
		ResponseHeaderTimeout:  HeaderTimeout,
		MaxResponseHeaderBytes: maxHeader,
		ExpectContinueTimeout:  HeaderTimeout,
		MaxIdleConnsPerHost:    storage.DefaultTransfers, // so that no transfer needs another connection than the last
		IdleConnTimeout:        storage.IdleTimeout,
		DisableCompression:     true,
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
		return patiently(through[1], r)
	}
	return through[0].RoundTrip(r)
}

// patiently ends a request whose header has begun to come and is not there after HeaderTimeout.
func patiently(through http.RoundTripper, r *http.Request) (*http.Response, error) {
	ctx, cancel := context.WithCancelCause(r.Context())
	var mu sync.Mutex // guards what follows
	var sent, begun, over bool
	var alarm *time.Timer
	see := func(what *bool) {
		mu.Lock()
		defer mu.Unlock()
		*what = true
		if sent && begun && !over && alarm == nil {
			alarm = time.AfterFunc(HeaderTimeout, func() {
				cancel(&storage.AwayError{Host: originOf(r.URL), Limit: HeaderTimeout})
			})
		}
	}
	answer, err := through.RoundTrip(r.WithContext(httptrace.WithClientTrace(ctx, &httptrace.ClientTrace{
		WroteRequest:         func(httptrace.WroteRequestInfo) { see(&sent) },
		GotFirstResponseByte: func() { see(&begun) }, // also of one that has the status 100
	})))
	mu.Lock()
	over = true
	if alarm != nil {
		alarm.Stop()
	}
	mu.Unlock()
	if err != nil {
		if cause := context.Cause(ctx); cause != nil && r.Context().Err() == nil {
			err = cause
		}
		cancel(err)
		return nil, err
	}
	answer.Body = &endingBody{answer.Body, cancel}
	return answer, nil
}

// endingBody ends the context of a request with its answer.
type endingBody struct {
	io.ReadCloser
	cancel context.CancelCauseFunc
}

// Close is part of io.Closer.
func (b *endingBody) Close() error {
	err := b.ReadCloser.Close()
	b.cancel(context.Canceled)
	return err
}

// CloseIdleConnections is what http.Client calls.
func (t *transports) CloseIdleConnections() {
	for _, transport := range slices.Concat(t.named[:], t.redirected[:]) {
		transport.CloseIdleConnections()
	}
}

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

// checkRedirect refuses redirections that lead astray. A token stays with its origin: net/http
// would take it along to another port.
func checkRedirect(r *http.Request, via []*http.Request) error {
	origin := via[0].URL
	if originOf(r.URL) != originOf(origin) {
		r.Header.Del("Authorization")
	}
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
