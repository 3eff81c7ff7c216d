// Package web has the storage elements that are reached over HTTP: plain servers,
// which can be read, and those with WebDAV, which can be written to.
//
// The schemes are http and https, and dav and davs, which are the same with
// another name. Guarantees beyond those of [storage.Element]:
//
//   - Put writes under another name in the same folder, compares length and, where
//     the server tells one, checksum, and moves. Where the server cannot move, Put writes
//     only if there is no such file (If-None-Match). Some servers replace when they move
//     (nginx, XRootD): if several callers put different contents under one name in the same
//     instant, more than one may be told that it succeeded.
//   - A redirection leads to http or https only, never from encrypted to plain,
//     and to this machine or a link-local address only from this machine.
//   - A bearer token goes to the origin (scheme, host and port) that a PFN names, and only
//     when that has refused access without, and is encrypted or on this machine. It goes to
//     no other origin that it redirects to, whatever that says.
package web

import (
	"context"
	"crypto/tls"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"fairway/internal/storage"
)

// Time limits of one request. The transfer itself ends when it stalls
// (storage.StallTime), or with its context.
const (
	DialTimeout   = 10 * time.Second
	HeaderTimeout = storage.HeaderTime
	// ChecksumTimeout is how long a server may read a file that it has just been
	// given, or is asked for the checksum of, before it answers.
	ChecksumTimeout = 10 * time.Minute
)

// Element is the element of the schemes http, https, dav and davs.
type Element struct {
	client      *http.Client
	credentials Credentials

	mu      sync.Mutex      // guards private
	private map[string]bool // the origins that have refused access without a token
}

var _ storage.Element = (*Element)(nil)

// New returns an element that keeps its connections to itself.
func New(credentials Credentials) *Element {
	e := &Element{credentials: credentials, private: map[string]bool{}}
	e.client = &http.Client{Transport: &transports{
		newTransport(credentials, nil), newTransport(credentials, storage.RefuseNear),
	}, CheckRedirect: checkRedirect}
	return e
}

// Close gives idle connections back.
func (e *Element) Close() { e.client.CloseIdleConnections() }

// request is what is asked of a server; it may be asked more than once.
type request struct {
	method string
	url    *url.URL
	pfn    string
	header http.Header
	body   func() io.ReadCloser // nil: none
	size   int64                // of body
}

func newRequest(method, pfn string, header http.Header) (*request, error) {
	u, err := urlOf(pfn)
	if err != nil {
		return nil, err
	}
	return &request{method: method, url: u, pfn: pfn, header: header}, nil
}

func urlOf(pfn string) (*url.URL, error) {
	u, err := storage.ParseURL(pfn)
	if err != nil {
		return nil, err
	}
	switch strings.ToLower(u.Scheme) {
	case "http", "dav":
		u.Scheme = "http"
	case "https", "davs":
		u.Scheme = "https"
	default:
		return nil, fmt.Errorf("%s: %w %q", storage.Shown(pfn), storage.ErrScheme, u.Scheme)
	}
	u.Fragment = ""
	return u, nil
}

// URL is by what other programs know a file: with http or https, and escaped.
func URL(pfn string) (string, error) {
	u, err := urlOf(pfn)
	if err != nil {
		return "", err
	}
	u.RawQuery = strings.ReplaceAll(u.RawQuery, " ", "%20") // which url.Parse leaves alone
	return u.String(), nil
}

func (r *request) to(method, path string, header http.Header) *request {
	u := *r.url
	u.Path, u.RawPath, u.RawQuery = path, "", ""
	return &request{method: method, url: &u, pfn: r.pfn, header: header}
}

func (r *request) make(ctx context.Context) (*http.Request, error) {
	made, err := http.NewRequestWithContext(ctx, r.method, r.url.String(), nil)
	if err != nil {
		return nil, err
	}
	if r.header != nil {
		made.Header = r.header.Clone()
	}
	if r.body != nil && r.size == 0 {
		made.Body = http.NoBody // else it would go in chunks
	} else if r.body != nil {
		made.Body, made.ContentLength = r.body(), r.size
		made.GetBody = func() (io.ReadCloser, error) { return r.body(), nil }
	}
	if r.method == http.MethodDelete || r.method == "PROPFIND" {
		// It may be repeated where the server closes a connection that was kept alive just then. With
		// no value, this tells net/http so and is not sent.
		made.Header["Idempotency-Key"] = nil
	}
	return made, nil
}

// do gives the answer to a request. One that is not among those wanted is an
// error.
func (e *Element) do(ctx context.Context, r *request, wanted ...int) (*http.Response, error) {
	private := e.isPrivate(r.url)
	answer, err := e.once(ctx, r, private)
	if err != nil {
		return nil, err
	}
	asks := originOf(answer.Request.URL) == originOf(r.url) // else it is another that refuses
	if denied(answer.StatusCode) && !private && asks && e.mayHaveToken(r.url) {
		discard(answer)
		if answer, err = e.once(ctx, r, true); err != nil {
			return nil, err
		}
		e.mu.Lock()
		e.private[originOf(r.url)] = true
		e.mu.Unlock()
	}
	if slices.Contains(wanted, answer.StatusCode) {
		return answer, nil
	}
	discard(answer)
	failed := &storage.StatusError{PFN: storage.Shown(r.pfn), Status: answer.StatusCode}
	if seconds, err := strconv.ParseUint(answer.Header.Get("Retry-After"), 10, 16); err == nil {
		failed.After = time.Duration(seconds) * time.Second
	}
	if denied(answer.StatusCode) {
		failed.Text = http.StatusText(answer.StatusCode) + " (" + e.credentials.describe(r.url) + ")"
		if to := originOf(answer.Request.URL); to != originOf(r.url) {
			failed.Text = fmt.Sprintf("%s (from %s, to which it redirects, and which gets no token: name that server itself "+
				"if it may have one)", http.StatusText(answer.StatusCode), to)
		}
		if kind, _, _ := strings.Cut(answer.Header.Get("WWW-Authenticate"), " "); strings.EqualFold(kind, "Basic") {
			failed.Text += "; it asks for a user and a password, which Fairway never sends: have it take tokens or certificates"
		}
	}
	return nil, failed
}

func (e *Element) once(ctx context.Context, r *request, private bool) (*http.Response, error) {
	made, err := r.make(ctx)
	if err != nil {
		return nil, err
	}
	if private && e.mayHaveToken(r.url) {
		token, err := e.credentials.token()
		if err != nil {
			return nil, err
		}
		made.Header.Set("Authorization", "Bearer "+token)
	}
	asked := time.Now()
	answer, err := e.client.Do(made)
	if err != nil {
		if ctx.Err() == nil && isSilent(err) {
			away := &storage.AwayError{Host: originOf(made.URL), Limit: time.Since(asked).Round(time.Second)}
			return nil, fmt.Errorf("%s: %w", storage.Shown(r.pfn), away)
		}
		return nil, withoutURL(err, r.pfn)
	}
	return answer, nil
}

// isSilent reports whether a server has taken a request and no header of an answer came in time.
func isSilent(err error) bool {
	network, ok := errors.AsType[net.Error](err)
	_, dialled := errors.AsType[*net.OpError](err)
	_, told := errors.AsType[*storage.AwayError](err)
	_, stalled := errors.AsType[*storage.StallError](err)
	return ok && network.Timeout() && !dialled && !told && !stalled
}

// withoutURL is an error of http.Client that names the file as Shown.
func withoutURL(err error, pfn string) error {
	at, ok := errors.AsType[*url.Error](err)
	if !ok {
		return err
	}
	pfn = storage.Shown(pfn)
	if _, unknown := errors.AsType[*tls.CertificateVerificationError](at.Err); unknown {
		return fmt.Errorf("%s: %w (X509_CERT_DIR names a folder with certificates of further authorities)", pfn, at.Err)
	}
	if errors.Is(at.Err, io.EOF) {
		return fmt.Errorf("%s: the server closed the connection without an answer: %w", pfn, at.Err)
	}
	return fmt.Errorf("%s: %w", pfn, at.Err)
}

func denied(status int) bool {
	return status == http.StatusUnauthorized || status == http.StatusForbidden
}

// discard leaves the connection for others if little is left of the answer.
func discard(answer *http.Response) {
	_, _ = io.CopyN(io.Discard, answer.Body, 64<<10)
	_ = answer.Body.Close()
}

func originOf(u *url.URL) string {
	port := u.Port()
	if port == "" {
		port = map[string]string{"http": "80", "https": "443"}[u.Scheme]
	}
	return u.Scheme + "://" + net.JoinHostPort(strings.ToLower(u.Hostname()), port)
}

// isPrivate reports whether the server of a URL has refused access without a token.
func (e *Element) isPrivate(u *url.URL) bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.private[originOf(u)]
}

func (e *Element) mayHaveToken(u *url.URL) bool {
	return e.credentials.token != nil && (u.Scheme == "https" || storage.OnThisMachine(u.Hostname()))
}

// Open is part of Element. Reading goes on where it was cut, if the server tells by a
// strong ETag or a checksum whether the rest is of the same file. Else it ends with
// io.ErrUnexpectedEOF when the connection breaks before the announced length, and with a
// StallError when nothing comes.
func (e *Element) Open(whole context.Context, pfn string) (io.ReadCloser, error) {
	r, err := newRequest(http.MethodGet, pfn, wantDigest())
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithCancelCause(whole)
	answer, err := e.do(ctx, r, http.StatusOK)
	if status(err) == http.StatusInternalServerError { // XRootD says so when it can compute no checksum
		if _, missing := e.Stat(ctx, pfn); errors.Is(missing, fs.ErrNotExist) {
			err = missing
		}
	}
	if err != nil {
		cancel(err)
		return nil, err
	}
	body, sum, tag := storage.Steady(ctx, cancel, answer.Body, pfn), checksumOf(answer.Header), answer.Header.Get("ETag")
	size := answer.ContentLength
	if strings.HasPrefix(tag, "W/") {
		tag = ""
	}
	if size >= 0 && (tag != "" || sum.Hash() != nil) {
		body = storage.Resumed(whole, size, body, func(from int64) (io.ReadCloser, error) {
			return e.rest(whole, pfn, from, size, tag)
		})
	}
	return storage.Checked(body, sum, pfn), nil
}

// rest reads a file of so many bytes from a place on, unless it is another one by now.
func (e *Element) rest(ctx context.Context, pfn string, from, size int64, tag string) (io.ReadCloser, error) {
	header := http.Header{"Range": {fmt.Sprintf("bytes=%d-", from)}}
	if tag != "" {
		header.Set("If-Range", tag)
	}
	r, err := newRequest(http.MethodGet, pfn, header)
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithCancelCause(ctx)
	answer, err := e.do(ctx, r, http.StatusPartialContent)
	if err == nil && answer.Header.Get("Content-Range") != fmt.Sprintf("bytes %d-%d/%d", from, size-1, size) {
		discard(answer)
		err = fmt.Errorf("%s: the server gives another part than it was asked for", storage.Shown(pfn))
	}
	if err != nil {
		cancel(err)
		return nil, err
	}
	return storage.Steady(ctx, cancel, answer.Body, pfn), nil
}

// Get is part of Element.
func (e *Element) Get(ctx context.Context, pfn, path string) (int64, error) {
	return storage.Fetch(ctx, e, pfn, path)
}

// Stat is part of Element. A server that refuses to be asked for the head alone is asked for
// the first byte: a signed URL is good for one method.
func (e *Element) Stat(ctx context.Context, pfn string) (storage.Info, error) {
	r, err := newRequest(http.MethodHead, pfn, nil)
	if err != nil {
		return storage.Info{}, err
	}
	answer, err := e.do(ctx, r, http.StatusOK)
	switch status(err) {
	case http.StatusForbidden, http.StatusMethodNotAllowed, http.StatusNotImplemented:
		r.method, r.header = http.MethodGet, http.Header{"Range": {"bytes=0-0"}}
		first, refused := e.do(ctx, r, http.StatusOK, http.StatusPartialContent, http.StatusRequestedRangeNotSatisfiable)
		if refused == nil {
			answer, err = first, nil
		}
	}
	if err != nil {
		return storage.Info{}, err
	}
	info := storage.Info{Size: answer.ContentLength}
	switch answer.StatusCode {
	case http.StatusPartialContent:
		_, size, _ := strings.Cut(answer.Header.Get("Content-Range"), "/")
		if info.Size, err = strconv.ParseInt(size, 10, 64); err != nil {
			info.Size = -1
		}
	case http.StatusRequestedRangeNotSatisfiable: // there is no first byte
		info.Size = 0
	}
	info.ModTime, _ = http.ParseTime(answer.Header.Get("Last-Modified"))
	return info, answer.Body.Close()
}

// wantDigest asks for a checksum with an answer (RFC 3230, as grid storage has
// it).
func wantDigest() http.Header { return http.Header{"Want-Digest": {"adler32"}} }

// checksumOf is the checksum that an answer tells. An ETag is none: a server may
// write what it likes there.
func checksumOf(header http.Header) storage.Checksum {
	for _, line := range header.Values("Digest") {
		for one := range strings.SplitSeq(line, ",") {
			kind, value, _ := strings.Cut(strings.TrimSpace(one), "=")
			if sum, ok := digest(strings.ToLower(kind), value); ok {
				return sum
			}
		}
	}
	sum, _ := digest("md5", header.Get("Content-MD5"))
	return sum
}

// digest reads a checksum: adler32 stands in hexadecimal digits, the others in
// base 64.
func digest(kind, value string) (storage.Checksum, bool) {
	switch kind {
	case "adler32":
		_, err := hex.DecodeString(value)
		return storage.Checksum{Kind: kind, Value: value}, err == nil && len(value) == 8
	case "md5", "sha-256":
		sum, err := base64.StdEncoding.DecodeString(value)
		if err != nil || len(sum) != (storage.Checksum{Kind: kind}).Hash().Size() {
			return storage.Checksum{}, false
		}
		return storage.Checksum{Kind: kind, Value: hex.EncodeToString(sum)}, true
	}
	return storage.Checksum{}, false
}
