package served

import (
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math/rand/v2"
	"net/http"
	"net/url"
	"os"
	"slices"
	"strings"
	"sync"
	"time"

	"fairway/internal/disk"
	"fairway/internal/logical"
	"fairway/internal/storage"
)

// Times of an element.
const (
	// MinBackoff and MaxBackoff bound the pause before a transfer goes on, which
	// doubles while nothing comes or goes, and varies by chance.
	MinBackoff = 100 * time.Millisecond
	MaxBackoff = 10 * time.Second
	// AnswerTime is how long a server may take before it begins to answer: it may
	// read the beginning of a file for its sums, or bring one to disk.
	AnswerTime = 10 * time.Minute
)

// Client sends requests to the server. [http.Client] is one; one that finds the
// server at another address when it has moved is better.
type Client interface {
	Do(*http.Request) (*http.Response, error)
}

// Element is the storage element of a server, for its pilots. While the server
// cannot be reached its methods wait, until their context ends. What they read and
// write needs a ticket in the context ([WithTicket]).
//
// It neither lists nor removes files: that is for the server.
type Element struct {
	client Client
	url    string
	sleep  storage.Sleep
}

var _ storage.Element = (*Element)(nil)

// New returns the element of a server whose URL is given. Its connections should
// be for files only: they bear time limits of transfers.
func New(client Client, url string, sleep storage.Sleep) *Element {
	return &Element{client, strings.TrimSuffix(url, "/"), sleep}
}

type ticketOf struct{}

type ticket struct {
	pattern string
	bytes   []byte
}

// WithTicket is a context of transfers of one PFN that a ticket allows.
func WithTicket(ctx context.Context, pfn string, bytes []byte) context.Context {
	return WithPatternTicket(ctx, logical.Escape(pfn), bytes)
}

// WithPatternTicket is a context of transfers that a ticket allows of the PFNs that match a
// pattern of package logical.
func WithPatternTicket(ctx context.Context, pattern string, bytes []byte) context.Context {
	return context.WithValue(ctx, ticketOf{}, ticket{pattern, bytes})
}

// ask sends one request. What the server refuses is a *storage.StatusError; any
// other error is of the way there.
func (e *Element) ask(ctx context.Context, r *http.Request, pfn string, wanted ...int) (*http.Response, error) {
	query := url.Values{pfnKey: {pfn}}
	if t, ok := ctx.Value(ticketOf{}).(ticket); ok {
		r.Header.Set(ticketHeader, base64.StdEncoding.EncodeToString(t.bytes))
		if t.pattern != logical.Escape(pfn) {
			query.Set(patternKey, t.pattern)
		}
	}
	r.URL.RawQuery = query.Encode()
	answer, err := e.client.Do(r)
	if err != nil {
		if cause := context.Cause(r.Context()); cause != nil {
			err = cause
		} else if at, ok := errors.AsType[*url.Error](err); ok {
			err = at.Err
		}
		return nil, &cutError{storage.Shown(pfn), err}
	}
	if slices.Contains(wanted, answer.StatusCode) {
		return answer, nil
	}
	text, _ := io.ReadAll(io.LimitReader(answer.Body, 1<<10))
	_ = answer.Body.Close()
	failed := &storage.StatusError{
		PFN: storage.Shown(pfn), Status: answer.StatusCode, Text: strings.TrimSpace(string(text)),
	}
	if answer.StatusCode == http.StatusUnprocessableEntity {
		return nil, &temporary{failed}
	}
	return nil, failed
}

// cutError says that the server was not reached, or that the way to it broke.
type cutError struct {
	pfn string
	err error
}

func (e *cutError) Error() string { return e.pfn + ": the way to the server broke: " + e.err.Error() }

func (e *cutError) Unwrap() error { return e.err }

type temporary struct{ error }

func (e *temporary) Unwrap() error   { return e.error }
func (e *temporary) Temporary() bool { return true }

// comesBack reports whether after this error the same request is to be made again, however
// often.
func comesBack(err error) bool {
	var cut *cutError
	var status *storage.StatusError
	return errors.As(err, &cut) || errors.As(err, &status) && status.Status == http.StatusServiceUnavailable
}

type patience struct {
	e     *Element
	pause time.Duration
}

func (p *patience) progress() { p.pause = 0 }

// wait passes the time before the next try, and fails with the reason for it when
// the context has ended.
func (p *patience) wait(ctx context.Context, why error) error {
	p.pause = min(max(2*p.pause, MinBackoff), MaxBackoff)
	if err := p.e.sleep(ctx, p.pause/2+rand.N(p.pause/2+1)); err != nil {
		return fmt.Errorf("%w (%w)", why, err)
	}
	return nil
}

// patiently makes a request again until it is answered, or ctx ends.
func (e *Element) patiently(ctx context.Context, request func(context.Context) error) error {
	p := patience{e: e}
	for {
		limited, cancel := context.WithTimeoutCause(ctx, AnswerTime,
			&storage.AwayError{Host: "the server", Limit: AnswerTime})
		err := request(limited)
		cancel()
		if err == nil || !comesBack(err) {
			return err
		}
		if err := p.wait(ctx, err); err != nil {
			return err
		}
	}
}

// Stat is part of Element.
func (e *Element) Stat(ctx context.Context, pfn string) (info storage.Info, err error) {
	err = e.patiently(ctx, func(ctx context.Context) error {
		r, err := http.NewRequestWithContext(ctx, http.MethodHead, e.url+readPath, nil)
		if err != nil {
			return err
		}
		answer, err := e.ask(ctx, r, pfn, http.StatusOK)
		if err != nil {
			return err
		}
		_ = answer.Body.Close()
		info, _, err = readInfo(answer.Header)
		return err
	})
	return info, err
}

// Open is part of Element. The reader goes on where it was cut. It ends with
// io.EOF only when all has come, and the sums are right.
func (e *Element) Open(ctx context.Context, pfn string) (io.ReadCloser, error) {
	return e.open(ctx, pfn)
}

func (e *Element) open(ctx context.Context, pfn string) (*reader, error) {
	r := &reader{e: e, ctx: ctx, pfn: pfn, patience: patience{e: e}, summing: newSumming()}
	if err := r.connect(); err != nil {
		return nil, err
	}
	return r, nil
}

// Get is part of Element. The file has the time of modification and the
// permission to be executed of the original.
func (e *Element) Get(ctx context.Context, pfn, path string) (int64, error) {
	body, err := e.open(ctx, pfn)
	if err != nil {
		return 0, err
	}
	defer body.Close()
	size, err := storage.Receive(path, body, pfn)
	if err != nil {
		return 0, err
	}
	if err = os.Chmod(path, body.mode&^0o222|0o400); err == nil && !body.info.ModTime.IsZero() {
		err = os.Chtimes(path, time.Time{}, body.info.ModTime)
	}
	if err != nil {
		_ = os.Remove(path)
		return 0, err
	}
	return size, nil
}

type reader struct {
	e        *Element
	ctx      context.Context
	pfn      string
	patience patience
	summing  *summing
	info     storage.Info // as the server has told first
	mode     fs.FileMode
	at       int64 // bytes that were returned
	answer   *http.Response
	body     io.ReadCloser // nil: a further request must be made
	ended    error         // what Read returns from now on
}

// Attributes are what a copy of the file has of it: permissions, and time of
// modification if that is known.
func (r *reader) Attributes() (fs.FileMode, time.Time) { return r.mode, r.info.ModTime }

// Read is part of io.Reader.
func (r *reader) Read(p []byte) (int, error) {
	for r.ended == nil {
		if r.body == nil {
			if r.ended = r.connect(); r.ended != nil {
				break
			}
		}
		n, err := r.body.Read(p)
		if n > 0 {
			_, _ = r.summing.Write(p[:n])
			r.at += int64(n)
			r.patience.progress()
			return n, nil
		}
		if err != nil {
			r.ended = r.over(err)
		}
	}
	return 0, r.ended
}

// over says what follows from the end of an answer; nil: a further request.
func (r *reader) over(err error) error {
	told, cut := r.answer.Trailer, !errors.Is(err, io.EOF)
	_ = r.body.Close()
	r.body = nil
	switch {
	case r.ctx.Err() != nil:
		return fmt.Errorf("%s: %w", storage.Shown(r.pfn), r.ctx.Err())
	case told.Get(errorTrailer) != "":
		return &temporary{
			fmt.Errorf("%s: the server could not read it to its end: %s", storage.Shown(r.pfn), told.Get(errorTrailer)),
		}
	case cut || told.Get(blake3Header) == "":
		return r.patience.wait(r.ctx, &cutError{storage.Shown(r.pfn), io.ErrUnexpectedEOF})
	case r.info.Size >= 0 && r.at != r.info.Size:
		return &temporary{
			fmt.Errorf("%s: %d bytes came of %d: %w", storage.Shown(r.pfn), r.at, r.info.Size, io.ErrUnexpectedEOF),
		}
	}
	sums, err := readSums(told)
	if err == nil {
		err = r.summing.sums().check(sums, r.pfn)
	}
	if err != nil {
		return err
	}
	return io.EOF
}

func (r *reader) connect() error {
	for {
		err := r.request()
		if err == nil || !comesBack(err) {
			return err
		}
		if err := r.patience.wait(r.ctx, err); err != nil {
			return err
		}
	}
}

func (r *reader) request() error {
	ctx, cancel := context.WithCancelCause(r.ctx)
	one, err := http.NewRequestWithContext(ctx, http.MethodGet, r.e.url+readPath, nil)
	if err == nil {
		if r.at > 0 {
			one.Header.Set("Range", fmt.Sprintf("bytes=%d-", r.at))
		}
		late := time.AfterFunc(AnswerTime, func() { cancel(&storage.StallError{PFN: storage.Shown(r.pfn)}) })
		r.answer, err = r.e.ask(ctx, one, r.pfn, http.StatusOK, http.StatusPartialContent)
		late.Stop()
	}
	if err != nil {
		cancel(err)
		return err
	}
	r.body = storage.Steady(ctx, cancel, r.answer.Body, r.pfn)
	if err = r.begins(); err != nil {
		_ = r.body.Close()
		r.body = nil
	}
	return err
}

func (r *reader) begins() error {
	info, mode, err := readInfo(r.answer.Header)
	if err != nil {
		return fmt.Errorf("%s: %w", storage.Shown(r.pfn), err)
	}
	if r.at == 0 {
		r.info, r.mode = info, mode
		return nil
	}
	if info != r.info {
		return &temporary{fmt.Errorf("%s: it was changed while it was read", storage.Shown(r.pfn))}
	}
	if r.answer.StatusCode == http.StatusPartialContent {
		if told := r.answer.Header.Get("Content-Range"); told != contentRange(r.at, info.Size) {
			return fmt.Errorf("%s: the server sends %q where the rest after %d bytes is wanted",
				storage.Shown(r.pfn), told, r.at)
		}
		return nil
	}
	if _, err = io.CopyN(io.Discard, r.body, r.at); err != nil {
		return &cutError{storage.Shown(r.pfn), err}
	}
	return nil
}

// Close is part of io.Closer.
func (r *reader) Close() error {
	if r.ended == nil {
		r.ended = fs.ErrClosed
	}
	if r.body == nil {
		return nil
	}
	return r.body.Close()
}

// Put is part of Element.
func (e *Element) Put(ctx context.Context, path, pfn string) error {
	local, info, err := storage.OpenForPut(path)
	if err != nil {
		return err
	}
	defer local.Close()
	s := &sending{
		e: e, pfn: pfn, local: local, file: file{size: info.Size(), mode: info.Mode().Perm()}, patience: patience{e: e},
	}
	if s.file.sums, err = sumsOf(disk.Within(ctx, local)); err == nil {
		err = s.run(ctx)
	}
	if err != nil {
		return fmt.Errorf("put %w", err)
	}
	return nil
}

type sending struct {
	e        *Element
	pfn      string
	local    *os.File
	file     file
	patience patience
	held     int64 // bytes that the server has
}

func (s *sending) run(ctx context.Context) error {
	for {
		err := s.put(ctx)
		var status *storage.StatusError
		behind := errors.As(err, &status) && status.Status == http.StatusConflict
		if err == nil || !comesBack(err) && !behind {
			return err
		}
		before := s.held
		complete, lost := s.askHeld(ctx)
		if lost != nil || complete {
			return lost
		}
		if s.held > before {
			s.patience.progress()
		}
		if err := s.patience.wait(ctx, err); err != nil {
			return err
		}
	}
}

func (s *sending) askHeld(ctx context.Context) (complete bool, err error) {
	err = s.e.patiently(ctx, func(ctx context.Context) error {
		r, err := http.NewRequestWithContext(ctx, http.MethodHead, s.e.url+writePath, nil)
		if err != nil {
			return err
		}
		writeFile(r.Header, s.file)
		answer, err := s.e.ask(ctx, r, s.pfn, http.StatusOK, http.StatusNoContent)
		if err != nil {
			return err
		}
		_ = answer.Body.Close()
		if complete = answer.StatusCode == http.StatusOK; complete {
			return nil
		}
		s.held, err = readNumber(answer.Header, heldHeader)
		if err == nil && s.held > s.file.size {
			err = fmt.Errorf("%s: the server has %d bytes of %d", storage.Shown(s.pfn), s.held, s.file.size)
		}
		return err
	})
	return complete, err
}

// put sends what the server lacks. Where it has all but did not come to name it,
// the last byte is sent once more.
func (s *sending) put(ctx context.Context) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	from := max(0, min(s.held, s.file.size-1))
	body := &watchedBody{Reader: io.NewSectionReader(s.local, from, s.file.size-from), cancel: cancel, pfn: s.pfn}
	defer body.end()
	r, err := http.NewRequestWithContext(ctx, http.MethodPut, s.e.url+writePath, body)
	if err != nil {
		return err
	}
	writeFile(r.Header, s.file)
	if r.ContentLength = s.file.size - from; r.ContentLength == 0 {
		r.Body = http.NoBody
	}
	if from > 0 {
		r.Header.Set("Content-Range", contentRange(from, s.file.size))
	}
	if r.ContentLength > piece {
		r.Header.Set("Expect", "100-continue")
	}
	body.watch(AnswerTime)
	answer, err := s.e.ask(ctx, r, s.pfn, http.StatusCreated, http.StatusOK)
	if err != nil {
		return err
	}
	return answer.Body.Close()
}

// watchedBody is a body that ends its request when nobody takes more of it for
// storage.StallTime, or when no answer comes for AnswerTime after its end.
type watchedBody struct {
	io.Reader
	cancel context.CancelCauseFunc
	pfn    string

	mu     sync.Mutex // guards what follows: the body is closed by another goroutine
	alarm  *time.Timer
	closed bool
}

func (w *watchedBody) watch(limit time.Duration) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.alarm != nil {
		w.alarm.Stop()
	}
	if !w.closed {
		w.alarm = time.AfterFunc(limit, func() { w.cancel(&storage.StallError{PFN: storage.Shown(w.pfn)}) })
	}
}

func (w *watchedBody) Read(p []byte) (int, error) {
	n, err := w.Reader.Read(p)
	if err == nil {
		w.watch(storage.StallTime)
	} else {
		w.watch(AnswerTime)
	}
	return n, err
}

// Close is part of io.Closer. The transport calls it when the body is sent, and
// put when the answer is there; only the latter ends the watch.
func (w *watchedBody) Close() error { return nil }

func (w *watchedBody) end() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.closed = true
	if w.alarm != nil {
		w.alarm.Stop()
	}
}

// List is part of Element.
func (e *Element) List(_ context.Context, pfn string) ([]storage.Entry, error) {
	return nil, fmt.Errorf("list %s: %w to its pilots", storage.Shown(pfn), storage.ErrNoList)
}

// Remove is part of Element.
func (e *Element) Remove(_ context.Context, pfn string) error {
	return fmt.Errorf("remove %s: %w by pilots", storage.Shown(pfn), storage.ErrReadOnly)
}
