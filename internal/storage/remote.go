package storage

import (
	"bytes"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"net/url"
	"os"
	"path"
	"strings"
	"sync"
	"time"
)

// MaxSaid is how much of what a server says for people is shown, in bytes, as one line.
const MaxSaid = 500

// StatusError is an answer of a server that is not what was asked for.
type StatusError struct {
	PFN    string        // as Shown
	Status int           // of HTTP
	Text   string        // what the server said; empty: the usual text of the status
	After  time.Duration // when the server wants to be asked again; 0: it does not say
}

// RetryAfter makes Retry wait for as long as the server wants.
func (e *StatusError) RetryAfter() time.Duration { return e.After }

func (e *StatusError) Error() string {
	text := e.Text
	if text == "" {
		text = http.StatusText(e.Status)
	}
	return fmt.Sprintf("%s: the server answered %d %s", e.PFN, e.Status, text)
}

func (e *StatusError) Unwrap() error {
	switch e.Status {
	case http.StatusNotFound, http.StatusGone:
		return fs.ErrNotExist
	case http.StatusUnauthorized, http.StatusForbidden:
		return ErrPermission
	case http.StatusPreconditionFailed:
		return fs.ErrExist
	case http.StatusInsufficientStorage:
		return ErrNoSpace
	}
	return nil
}

// Temporary reports whether a later attempt may succeed.
func (e *StatusError) Temporary() bool {
	switch e.Status {
	case http.StatusTooManyRequests, http.StatusRequestTimeout, http.StatusLocked:
		return true
	case http.StatusNotImplemented, http.StatusInsufficientStorage:
		return false
	}
	return e.Status >= 500
}

// HostOf is the server of a PFN, with its port, or the bucket; empty where there is
// none.
func HostOf(pfn string) string {
	_, rest, _ := strings.Cut(pfn, "://")
	host, _, _ := strings.Cut(rest, "/")
	return host
}

// Shown is a PFN without what may be secret in it: user, password and query.
func Shown(pfn string) string {
	if !strings.Contains(pfn, "://") {
		return pfn
	}
	shown, _, _ := strings.Cut(pfn, "?")
	scheme, rest, _ := strings.Cut(shown, "://")
	host, file, ok := strings.Cut(rest, "/")
	host = host[strings.LastIndexByte(host, '@')+1:]
	if ok {
		host += "/"
	}
	return scheme + "://" + host + file
}

// ParseURL reads the PFN of a file on a server. Credentials in it are refused: a
// PFN is shown, recorded and handed on.
func ParseURL(pfn string) (*url.URL, error) {
	u, err := url.Parse(pfn)
	if err != nil || u.Host == "" {
		return nil, fmt.Errorf("%s: this is no URL of a file on a server; write SCHEME://HOST/PATH", Shown(pfn))
	}
	if u.User != nil {
		return nil, fmt.Errorf("%s: the URL holds a user or a password; take them out: servers are given tokens, "+
			"certificates and keys, which docs/storage.md lists under Credentials", Shown(pfn))
	}
	if err := CheckName(u.Path); err != nil {
		return nil, err
	}
	return u, nil
}

// CheckName refuses names that no element of a network gives to a file, since no
// list of names could hold them.
func CheckName(name string) error {
	if strings.ContainsAny(name, "\n\r\x00") {
		return fmt.Errorf("%q: a name on a server may have no line break and no zero byte", name)
	}
	return nil
}

type mostBytes struct{}

// WithMost is a context for a Get of a file that is known to have so many bytes: where a server
// sends more, Get ends with a [MoreError].
func WithMost(ctx context.Context, size int64) context.Context {
	return context.WithValue(ctx, mostBytes{}, size)
}

// MoreError says that a server sends more of a file than it is known to have.
type MoreError struct {
	PFN  string // as Shown
	Size int64  // that it is known to have
}

func (e *MoreError) Error() string {
	return fmt.Sprintf("%s: the server sends more than the %d bytes that the file has", e.PFN, e.Size)
}

type atMost struct {
	io.ReadCloser
	left int64
	more MoreError
}

func (a *atMost) Read(p []byte) (int, error) {
	n, err := a.ReadCloser.Read(p)
	if a.left -= int64(n); a.left < 0 {
		return 0, &a.more
	}
	return n, err
}

// Fetch is the Get of elements that have nothing better than to write what Open gives into
// a new file.
func Fetch(ctx context.Context, e Element, pfn, path string) (int64, error) {
	body, err := e.Open(ctx, pfn)
	if err != nil {
		return 0, err
	}
	defer body.Close()
	if size, ok := ctx.Value(mostBytes{}).(int64); ok {
		body = &atMost{body, size, MoreError{Shown(pfn), size}}
	}
	return Receive(path, body, pfn)
}

// receivePiece is how much of a file that comes is written at once, in bytes.
const receivePiece = 128 << 10

type piece [receivePiece]byte

var pieces = sync.Pool{New: func() any { return new(piece) }}

// Receive makes a file appear at path with what body gives, complete or not at
// all.
func Receive(path string, body io.Reader, pfn string) (size int64, err error) {
	err = create(path, 0o444, fleeting, func(out *os.File) error {
		size, err = copyPieces(out, body)
		return err
	})
	if errors.Is(err, io.ErrUnexpectedEOF) {
		err = fmt.Errorf("the transfer broke off after %d bytes: %w", size, err)
	}
	if err != nil {
		return 0, fmt.Errorf("get %s: %w", Shown(pfn), Full(err))
	}
	return size, nil
}

// copyPieces writes a piece while the next one comes: to take bytes from a network and to
// give them to a file takes about as long.
func copyPieces(out io.Writer, body io.Reader) (size int64, err error) {
	written := make(chan error, 1) // what came of the piece before
	written <- nil
	var two [2]*piece
	defer func() {
		for _, p := range two {
			if p != nil {
				pieces.Put(p)
			}
		}
	}()
	for i := 0; ; i = 1 - i {
		if two[i] == nil {
			two[i] = pieces.Get().(*piece)
		}
		n, ended := fill(body, two[i][:])
		size += int64(n)
		write := func() {
			_, err := out.Write(two[i][:n])
			written <- err
		}
		if err := <-written; err != nil {
			return size, err
		}
		if ended == nil {
			go write()
			continue
		}
		if write(); !errors.Is(ended, io.EOF) {
			return size, ended
		}
		return size, <-written
	}
}

// fill reads until p is full or there is an error, which is io.EOF at the end.
func fill(body io.Reader, p []byte) (n int, err error) {
	for n < len(p) && err == nil {
		var more int
		more, err = body.Read(p[n:])
		n += more
	}
	return n, err
}

// SameAs returns nil if the element has the contents of the local file under this
// PFN, and else an error, which wraps fs.ErrExist where it has others.
func SameAs(ctx context.Context, e Element, file *os.File, pfn string) error {
	there, err := e.Stat(ctx, pfn)
	if err != nil {
		return err
	}
	other := fmt.Errorf("put %s: %w, with other contents", Shown(pfn), fs.ErrExist)
	if here, err := file.Stat(); err != nil || here.Size() != there.Size {
		return errors.Join(err, other)
	}
	body, err := e.Open(ctx, pfn)
	if err != nil {
		return err
	}
	defer body.Close()
	same, at := true, int64(0)
	var ours, theirs [64 << 10]byte
	for { // to the end, which tells whether theirs have changed on the way
		n, ended := fill(body, theirs[:])
		if ended != nil && !errors.Is(ended, io.EOF) {
			return ended
		}
		m, err := file.ReadAt(ours[:n], at)
		if err != nil && !errors.Is(err, io.EOF) {
			return err
		}
		same, at = same && bytes.Equal(ours[:m], theirs[:n]), at+int64(n)
		switch {
		case ended == nil:
		case same && at == there.Size:
			return nil
		default:
			return other
		}
	}
}

// OpenForPut opens a local file that is to be stored.
func OpenForPut(path string) (*os.File, fs.FileInfo, error) {
	file, err := openRegular(path)
	if err != nil {
		return nil, nil, err
	}
	info, err := file.Stat()
	if err != nil {
		return nil, nil, errors.Join(err, file.Close())
	}
	return file, info, nil
}

// Unfinished is the name, beside that of a file, under which the file is until it
// is complete. No two are the same.
func Unfinished(name string) string {
	return path.Join(path.Dir(name), UnfinishedPrefix+rand.Text())
}

// UnfinishedPrefix begins the names that Unfinished gives.
const UnfinishedPrefix = ".unfinished-"
