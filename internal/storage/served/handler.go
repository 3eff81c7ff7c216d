package served

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"net/http"
	"os"
	"strconv"
	"time"

	"golang.org/x/sync/semaphore"

	"fairway/internal/storage"
)

// piece is how much of a file is in memory for each stream, in bytes.
const piece = 64 << 10

// Config is what a handler needs.
type Config struct {
	// Element holds what is read and written.
	Element storage.Element
	// Unfinished is a folder for what is not complete. It is made when it is
	// needed. Files of the element are made of those in it by links where both are
	// on one file system.
	Unfinished string
	// Authority decides what a launch may read and write.
	Authority Authority
	// Marks are in the folders that pilots may share with the server.
	Marks []Mark
	// Launch is the launch that sends a request; false where it is not known.
	Launch func(context.Context) (string, bool)
	// Streams is how many requests work at a time: DefaultStreams.
	Streams int
	// Log takes what goes wrong here and not at the other end.
	Log *slog.Logger
}

// Handler serves the requests below Prefix.
type Handler struct {
	Config
	streams *streams
	uploads *uploads
}

var _ http.Handler = (*Handler)(nil)

// NewHandler returns a handler of files. No other one may use the same folder of
// unfinished files.
func NewHandler(c Config) *Handler {
	if c.Streams == 0 {
		c.Streams = DefaultStreams
	}
	if c.Log == nil {
		c.Log = slog.Default()
	}
	return &Handler{
		Config: c, streams: &streams{all: semaphore.NewWeighted(int64(c.Streams)), own: map[string]int{}},
		uploads: &uploads{folder: c.Unfinished, active: map[string]*upload{}},
	}
}

// ServeHTTP is part of http.Handler.
func (h *Handler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	launch, ok := h.Launch(r.Context())
	if !ok {
		http.Error(w, "files are for pilots that this server has started", http.StatusUnauthorized)
		return
	}
	switch {
	case r.URL.Path == marksPath && r.Method == http.MethodGet:
		h.tellMarks(w)
		return
	case r.URL.Path == seenPath && r.Method == http.MethodPost:
		h.tellSeen(w, r)
		return
	}
	q, err := readRequest(r)
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	if !h.Authority.Allows(launch, q.right, q.pattern, q.ticket) {
		http.Error(w, fmt.Sprintf("launch %s was not given the right to %s %s", strconv.Quote(launch), q.right,
			strconv.Quote(storage.Shown(q.pfn))), http.StatusForbidden)
		return
	}
	leave, ok := h.streams.enter(r.Context(), launch)
	if !ok {
		w.Header().Set("Retry-After", strconv.Itoa(int(ComeBack/time.Second)))
		http.Error(w, "too many transfers are under way", http.StatusServiceUnavailable)
		return
	}
	defer leave()
	control := http.NewResponseController(w)
	_ = control.SetWriteDeadline(time.Now().Add(storage.StallTime)) // where it cannot, the server has limits of its own
	switch {
	case q.right == Write:
		h.write(w, r, launch, q)
	case r.Method == http.MethodHead:
		h.stat(w, r, q)
	default:
		h.read(w, r, q)
	}
}

// fail answers with an error that came up before anything else was said.
func (h *Handler) fail(w http.ResponseWriter, q *request, err error) {
	status := http.StatusInternalServerError
	var answered *storage.StatusError
	var sum *storage.ChecksumError
	switch {
	case errors.Is(err, fs.ErrNotExist):
		status = http.StatusNotFound
	case errors.Is(err, fs.ErrExist):
		status = http.StatusPreconditionFailed
	case errors.Is(err, fs.ErrInvalid):
		status = http.StatusBadRequest
	case errors.Is(err, errGap):
		status = http.StatusRequestedRangeNotSatisfiable
	case errors.Is(err, storage.ErrNoSpace):
		status = http.StatusInsufficientStorage
	case errors.Is(err, storage.ErrPermission), errors.Is(err, fs.ErrPermission):
		status = http.StatusForbidden
	case errors.As(err, &sum):
		status = http.StatusUnprocessableEntity
	case errors.As(err, &answered):
		status = answered.Status
	}
	if status >= http.StatusInternalServerError {
		h.Log.Warn("a file could not be passed on", "right", q.right, "pfn", storage.Shown(q.pfn), "error", err)
	}
	http.Error(w, err.Error(), status)
}

func (h *Handler) stat(w http.ResponseWriter, r *http.Request, q *request) {
	info, err := h.Element.Stat(r.Context(), q.pfn)
	if err != nil {
		h.fail(w, q, err)
		return
	}
	writeInfo(w.Header(), info, 0o444)
}

// read sends a file. What stands before the range is read too: the sums are those
// of the whole.
func (h *Handler) read(w http.ResponseWriter, r *http.Request, q *request) {
	body, err := h.Element.Open(r.Context(), q.pfn)
	if err != nil {
		h.fail(w, q, err)
		return
	}
	defer body.Close()
	info, mode, err := h.describe(r.Context(), q.pfn, body)
	if err != nil {
		h.fail(w, q, err)
		return
	}
	if q.from > info.Size && info.Size >= 0 {
		http.Error(w, fmt.Sprintf("the file has %d bytes", info.Size), http.StatusRequestedRangeNotSatisfiable)
		return
	}
	summing := newSumming()
	from := io.TeeReader(body, summing)
	status := http.StatusOK
	if q.from > 0 && info.Size >= 0 {
		if _, err := io.CopyBuffer(onlyWriter{io.Discard}, io.LimitReader(from, q.from), make([]byte, piece)); err != nil {
			h.fail(w, q, err)
			return
		}
		w.Header().Set("Content-Range", contentRange(q.from, info.Size))
		status = http.StatusPartialContent
	}
	header := w.Header()
	writeInfo(header, info, mode)
	header.Set("Content-Type", "application/octet-stream")
	header.Set("Trailer", adler32Header+", "+blake3Header+", "+errorTrailer)
	w.WriteHeader(status)
	to := storage.NewSteadyWriter(w, storage.StallTime)
	_, err = io.CopyBuffer(to, from, make([]byte, piece))
	switch {
	case to.Err != nil: // nobody takes it any more
		panic(http.ErrAbortHandler)
	case err != nil:
		h.Log.Warn("a file could not be read to its end", "pfn", storage.Shown(q.pfn), "error", err)
		header.Set(errorTrailer, strconv.Quote(err.Error()))
	default:
		writeSums(header, summing.sums())
	}
}

// describe tells of an open file, and else of what has its name.
func (h *Handler) describe(ctx context.Context, pfn string, body io.Reader) (storage.Info, fs.FileMode, error) {
	if known, ok := body.(interface{ Info() storage.Info }); ok {
		return known.Info(), 0o444, nil
	}
	if local, ok := body.(*os.File); ok {
		info, err := local.Stat()
		if err != nil {
			return storage.Info{}, 0, err
		}
		if !info.Mode().IsRegular() {
			return storage.Info{}, 0, fmt.Errorf("%s is not a regular file", pfn)
		}
		return storage.InfoOf(info), info.Mode().Perm(), nil
	}
	info, err := h.Element.Stat(ctx, pfn)
	return info, 0o444, err
}

// onlyWriter hides that a writer can do more, so that copies go in pieces.
type onlyWriter struct{ io.Writer }
