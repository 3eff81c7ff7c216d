package storage

import (
	"context"
	"fmt"
	"io"
	"io/fs"
	"net"
	"net/http"
	"os"
	"time"
)

// Time limits of one request over HTTP. The transfer itself ends when it stalls
// (StallTime), or with its context.
const (
	DialTimeout   = 10 * time.Second
	HeaderTimeout = 30 * time.Second
)

// HTTP is the element of the schemes http and https. It can only read.
type HTTP struct{ client *http.Client }

// NewHTTP returns an HTTP that keeps its connections to itself.
func NewHTTP() *HTTP {
	return &HTTP{&http.Client{Transport: &http.Transport{
		Proxy:                 http.ProxyFromEnvironment,
		DialContext:           (&net.Dialer{Timeout: DialTimeout}).DialContext,
		TLSHandshakeTimeout:   DialTimeout,
		ResponseHeaderTimeout: HeaderTimeout,
		DisableCompression:    true,
	}}}
}

// StatusError is an answer that is not the file.
type StatusError struct {
	PFN    string
	Status int
}

func (e *StatusError) Error() string {
	return fmt.Sprintf("%s: the server answered %d %s", e.PFN, e.Status, http.StatusText(e.Status))
}

func (e *StatusError) Unwrap() error {
	if e.Status == http.StatusNotFound || e.Status == http.StatusGone {
		return fs.ErrNotExist
	}
	return nil
}

// Temporary reports whether a later attempt may succeed.
func (e *StatusError) Temporary() bool {
	return e.Status >= 500 || e.Status == http.StatusTooManyRequests || e.Status == http.StatusRequestTimeout
}

func (h *HTTP) ask(ctx context.Context, method, pfn string) (*http.Response, error) {
	request, err := http.NewRequestWithContext(ctx, method, pfn, nil)
	if err != nil {
		return nil, err
	}
	response, err := h.client.Do(request)
	if err != nil {
		return nil, err
	}
	if response.StatusCode != http.StatusOK {
		_ = response.Body.Close()
		return nil, &StatusError{pfn, response.StatusCode}
	}
	return response, nil
}

// Open is part of Element. Reading ends with io.ErrUnexpectedEOF when the
// connection breaks before the announced length, and with a StallError when
// nothing comes.
func (h *HTTP) Open(ctx context.Context, pfn string) (io.ReadCloser, error) {
	ctx, cancel := context.WithCancelCause(ctx)
	response, err := h.ask(ctx, http.MethodGet, pfn)
	if err != nil {
		cancel(err)
		return nil, err
	}
	return &steady{ReadCloser: response.Body, ctx: ctx, cancel: cancel, pfn: pfn}, nil
}

// Get is part of Element.
func (h *HTTP) Get(ctx context.Context, pfn, path string) (size int64, err error) {
	body, err := h.Open(ctx, pfn)
	if err != nil {
		return 0, err
	}
	defer body.Close()
	err = create(path, 0o444, false, func(out *os.File) error {
		size, err = io.Copy(out, body)
		return err
	})
	if err != nil {
		return 0, fmt.Errorf("get %s: %w", pfn, full(err))
	}
	return size, nil
}

// Put is part of Element; it fails with ErrReadOnly.
func (h *HTTP) Put(_ context.Context, _, pfn string) error {
	return fmt.Errorf("put %s: %w", pfn, ErrReadOnly)
}

// Stat is part of Element.
func (h *HTTP) Stat(ctx context.Context, pfn string) (Info, error) {
	response, err := h.ask(ctx, http.MethodHead, pfn)
	if err != nil {
		return Info{}, err
	}
	modified, _ := http.ParseTime(response.Header.Get("Last-Modified"))
	return Info{Size: response.ContentLength, ModTime: modified}, response.Body.Close()
}

// Remove is part of Element; it fails with ErrReadOnly.
func (h *HTTP) Remove(_ context.Context, pfn string) error {
	return fmt.Errorf("remove %s: %w", pfn, ErrReadOnly)
}
