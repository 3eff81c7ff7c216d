package web

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	"fairway/internal/rights"
	"fairway/internal/wire"
)

// Bounds of streams.
const (
	// MaxStreams is how many streams of events are open at a time; more are refused, and browsers
	// try again.
	MaxStreams = 256
	// MaxUserStreams is how many of these a user has; the owner of the server may have all.
	MaxUserStreams = 64
	// MinPause is the least time between two events of a stream.
	MinPause = time.Second
	// Rest is for how many times as long as all streams together take to make one event each they
	// rest.
	Rest = 40

	keepAlive = 20 * time.Second // of a stream without news
	writeTime = time.Minute      // for who reads it
	logTail   = 64 << 10         // bytes of a log that a page begins with
)

type streams struct {
	open atomic.Int64

	mu sync.Mutex       // guards of
	of map[string]int64 // open streams by user
}

// enter counts a stream of a user; false if there are too many.
func (s *streams) enter(user string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.of == nil {
		s.of = map[string]int64{}
	}
	if user != "" && s.of[user] >= MaxUserStreams || s.open.Load() >= MaxStreams {
		return false
	}
	s.of[user]++
	s.open.Add(1)
	return true
}

func (s *streams) leave(user string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.open.Add(-1)
	if s.of[user]--; s.of[user] == 0 {
		delete(s.of, user)
	}
}

// events is a stream of server-sent events.
type events struct {
	w       http.ResponseWriter
	control *http.ResponseController
}

// begin makes a stream of an answer; false if there are too many.
func (s *streams) begin(w http.ResponseWriter, r *http.Request) (e events, end func(), ok bool) {
	user := rights.Of(r.Context()).User
	if !s.enter(user) {
		plain(w, http.StatusServiceUnavailable, "too many pages are open")
		return e, nil, false
	}
	w.Header().Set("Content-Type", "text/event-stream")
	w.Header().Set("X-Accel-Buffering", "no") // for a proxy before it
	return events{w, http.NewResponseController(w)}, func() { s.leave(user) }, true
}

// send sends an event. Its text may have lines.
func (e events) send(kind string, text []byte) error {
	var message bytes.Buffer
	fmt.Fprintf(&message, "event: %s\n", kind)
	for line := range bytes.SplitSeq(text, []byte("\n")) {
		fmt.Fprintf(&message, "data: %s\n", bytes.TrimRight(line, "\r"))
	}
	message.WriteString("\n")
	_ = e.control.SetWriteDeadline(time.Now().Add(writeTime))
	if _, err := e.w.Write(message.Bytes()); err != nil {
		return err
	}
	return e.control.Flush()
}

// stream sends what a page shows whenever that has changed, until nothing does any more.
func (s *site) stream(w http.ResponseWriter, r *http.Request, p page) {
	e, end, ok := s.streams.begin(w, r)
	if !ok {
		return
	}
	defer end()
	ctx := r.Context()
	var last []byte
	for ctx.Err() == nil {
		began := time.Now()
		c, err := p.load(r)
		if err != nil { // the server ends, or the run was removed
			_ = e.send("end", []byte("This page is no longer up to date: "+firstLine(err)))
			return
		}
		changed := s.changes(ctx, c)
		text, err := s.render(r, p, c, "live")
		if err != nil {
			s.Log.Warn("a page could not be made", "error", err)
			return
		}
		if !bytes.Equal(text, last) {
			err, last = e.send("page", text), text
		}
		if err == nil && c.Over {
			_ = e.send("end", nil)
			return
		}
		if err != nil || !rest(ctx, max(MinPause, time.Since(began)*Rest*time.Duration(s.streams.open.Load()))) {
			return
		}
		if !await(ctx, changed) && e.send("alive", nil) != nil {
			return
		}
	}
}

// changes is closed when something of a page may look different; nil if only time tells.
func (s *site) changes(ctx context.Context, c *content) <-chan struct{} {
	if c.Run == 0 && s.Service.IsLasting() {
		return nil
	}
	changed, err := s.Service.Changes(ctx, c.Run)
	if err != nil {
		return nil
	}
	return changed
}

// rest waits for a time, and reports whether that has passed.
func rest(ctx context.Context, pause time.Duration) bool {
	timer := time.NewTimer(pause)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-ctx.Done():
		return false
	}
}

// await waits for a change; false if a person hears nothing for too long. Without a channel it does
// not wait.
func await(ctx context.Context, changed <-chan struct{}) bool {
	if changed == nil {
		return true
	}
	timer := time.NewTimer(keepAlive)
	defer timer.Stop()
	select {
	case <-changed:
		return true
	case <-timer.C:
	case <-ctx.Done():
	}
	return false
}

// logPiece is a piece of a log for a browser.
type logPiece struct {
	Error bool   `json:"error,omitempty"`
	Text  string `json:"text"`
}

// log streams what an attempt of a job prints.
func (s *site) log(w http.ResponseWriter, r *http.Request) {
	run, err := runOf(r)
	if err != nil {
		s.fail(w, err)
		return
	}
	e, end, ok := s.streams.begin(w, r)
	if !ok {
		return
	}
	defer end()
	request := &wire.LogsRequest{
		Run: uint32(run), Job: r.PathValue("id"), Attempt: uint64(number(r, "attempt")), Follow: true, TailBytes: logTail,
	}
	if attempt := r.FormValue("attempt"); attempt != "" {
		_, _ = fmt.Sscan(attempt, &request.Attempt)
	}
	err = s.Service.FollowLogs(r.Context(), request, func(chunk *wire.LogChunk) error {
		if len(chunk.GetData()) == 0 {
			return e.send("alive", nil)
		}
		text, err := json.Marshal(logPiece{chunk.GetStandardError(), string(bytes.ToValidUTF8(chunk.GetData(), []byte("�")))})
		if err != nil {
			return err
		}
		return e.send("log", text)
	})
	if r.Context().Err() == nil {
		_ = e.send("end", []byte(firstLine(err)))
	}
}
