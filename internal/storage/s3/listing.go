package s3

import (
	"bytes"
	"context"
	"encoding/xml"
	"fmt"
	"io"
	"net/http"
	"strings"

	"github.com/minio/minio-go/v7"

	"fairway/internal/storage"
)

// Bounds of answers that are no objects. minio-go holds each in memory, and some hundred bytes
// for each element of XML.
const (
	maxPage     = 16 << 20 // bytes of a listing: a page has 1,000 names
	maxElements = 200_000  // in it
	maxReply    = 1 << 20  // bytes of any other answer
)

// List is part of Element. A folder is what keys have in common up to a slash.
func (e *Element) List(ctx context.Context, pfn string) ([]storage.Entry, error) {
	o, err := e.object(pfn)
	if err != nil {
		return nil, err
	}
	prefix := o.key
	if prefix != "" && !strings.HasSuffix(prefix, "/") {
		prefix += "/"
	}
	whole := &listing{pfn: storage.Shown(pfn), seen: map[string]bool{}}
	ctx, cancel := context.WithTimeoutCause(ctx, storage.ListTime,
		whole.endless("it has not ended after %v (ListTime)", storage.ListTime))
	defer cancel()
	var entries []storage.Entry
	for info := range o.Client.ListObjects(context.WithValue(ctx, listingKey{}, whole), o.bucket,
		minio.ListObjectsOptions{Prefix: prefix}) {
		if cause := context.Cause(ctx); cause != nil {
			return nil, cause
		}
		if info.Err != nil {
			return nil, failed(pfn, info.Err)
		}
		name, folder := strings.CutSuffix(strings.TrimPrefix(info.Key, prefix), "/")
		if storage.IsElement(name) {
			entries = append(entries, storage.Entry{Name: name, Folder: folder})
		}
	}
	return entries, context.Cause(ctx)
}

type (
	listingKey struct{} // of the *listing that a request is for
	objectKey  struct{} // of a request for an object
)

type listing struct {
	pfn   string
	names int
	bytes int64
	empty bool            // the page before had no name
	seen  map[string]bool // tokens of pages, and the first name of each
}

func (l *listing) endless(format string, values ...any) *storage.ListingError {
	return &storage.ListingError{PFN: l.pfn, Why: fmt.Sprintf(format, values...)}
}

// take reads a page. It is an error if the pages before have brought the server no further.
func (l *listing) take(body io.Reader) (page []byte, err error) {
	var held bytes.Buffer
	var first, token string
	more, names, elements := false, 0, 0
	err = storage.ScanXML(io.TeeReader(body, &held), maxPage, func(path []xml.Name, text string) error {
		if elements++; elements > maxElements {
			return fmt.Errorf("a page of more than %d elements", maxElements)
		}
		if len(path) < 2 {
			return nil
		}
		switch path[len(path)-1].Local {
		case "Contents", "CommonPrefixes":
			names++
		case "NextContinuationToken", "NextMarker":
			token = text
		case "IsTruncated":
			more = strings.TrimSpace(text) == "true"
		case "Key", "Prefix":
			if len(path) == 3 && first == "" {
				first = text
			}
		}
		return nil
	})
	l.names, l.bytes = l.names+names, l.bytes+int64(held.Len())
	switch {
	case storage.Temporary(err):
		return nil, err
	case err != nil:
		return nil, l.endless("%v", err)
	case l.names > storage.MaxEntries:
		return nil, l.endless("more than %d names (MaxEntries)", storage.MaxEntries)
	case l.bytes > storage.MaxListing:
		return nil, l.endless("more than %d bytes (MaxListing)", storage.MaxListing)
	case more && (l.seen["token "+token] || first != "" && l.seen["name "+first]):
		return nil, l.endless("a page or its continuation token repeats")
	case more && names == 0 && l.empty:
		return nil, l.endless("two pages in a row have no name, and the list goes on")
	}
	l.empty, l.seen["token "+token], l.seen["name "+first] = names == 0, true, true
	return held.Bytes(), nil
}

// bounded keeps answers from being larger than they may be. Objects may have any size.
type bounded struct{ http.RoundTripper }

// RoundTrip is part of http.RoundTripper.
func (b bounded) RoundTrip(r *http.Request) (*http.Response, error) {
	if whole, ok := r.Context().Value(listingKey{}).(*listing); ok {
		return b.page(r, whole)
	}
	answer, err := b.RoundTripper.RoundTrip(r)
	if err == nil && r.Context().Value(objectKey{}) == nil {
		answer.Body = &reply{answer.Body, maxReply}
	}
	return answer, err
}

func (b bounded) page(r *http.Request, whole *listing) (*http.Response, error) {
	ctx, cancel := context.WithCancelCause(r.Context())
	defer cancel(nil)
	answer, err := b.RoundTripper.RoundTrip(r.WithContext(ctx))
	if err != nil {
		return nil, err
	}
	body := storage.Steady(ctx, cancel, answer.Body, whole.pfn)
	defer body.Close()
	var page []byte
	if answer.StatusCode == http.StatusOK {
		page, err = whole.take(body)
	} else {
		page, err = io.ReadAll(&reply{body, maxReply})
	}
	if err != nil {
		return nil, err
	}
	answer.Body = io.NopCloser(bytes.NewReader(page))
	return answer, nil
}

// reply is a body of which so much may still come.
type reply struct {
	io.ReadCloser
	left int
}

// Read is part of io.Reader.
func (r *reply) Read(p []byte) (int, error) {
	n, err := r.ReadCloser.Read(p)
	if r.left -= n; r.left < 0 {
		return 0, fmt.Errorf("the server answers more than %d bytes to a question", maxReply)
	}
	return n, err
}
