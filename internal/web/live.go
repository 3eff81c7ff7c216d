package web

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"time"

	"fairway/internal/rights"
	"fairway/internal/server/api"
	"fairway/internal/wire"
)

// Bounds of pages that are kept up to date. Each asks again and again, and holds no connection between.
const (
	// MaxPages is how many different pages are kept up to date at a time. Further ones are refused, and
	// ask again. A page that several look at, who see the same, is one.
	MaxPages = 256
	// MaxUserPages is how many of these a user has; the owner of the server may have all.
	MaxUserPages = 64
	// MinPause is the least time between two changes of a page.
	MinPause = time.Second
	// Rest is for how many times as long as all pages together take to be made once they rest. They are made
	// one after another: what waits for a processor meanwhile costs nothing.
	Rest = 20

	quietTime = 20 * time.Second // a page is made anew after, also without news
	writeTime = time.Minute      // for who reads an answer, or a part of a long one
	logTail   = 64 << 10         // bytes of a log that a page begins with
)

// Headers of the answer to a page that asks.
const (
	againHeader = "Fairway-Again" // in how many milliseconds to ask again; none: nothing changes any more
	tagHeader   = "ETag"
)

// lives are the pages that somebody looks at, as they were last made.
type lives struct {
	making sync.Mutex // is held while one is made

	mu   sync.Mutex // guards what follows
	all  map[liveKey]*livePage
	of   map[string]int // by user
	cost time.Duration  // of making each of them once
}

type liveKey struct{ who, address string }

type livePage struct {
	user string
	// Guarded by lives: nobody looks at it any more who has not asked until then, and what making it takes.
	until     time.Time
	cost      time.Duration
	forgotten bool

	mu      sync.Mutex // guards what follows, and is held while one makes it
	text    []byte     // nil: it has not been made
	tag     string
	over    bool
	made    time.Time
	changed <-chan struct{} // closed: it may look different; nil: only time tells
}

// find is a page that somebody looks at, and for how long each stays as it is, whatever happens; nil if that
// would be one too many.
func (l *lives) find(p rights.Principal, address string, now time.Time) (page *livePage, rest time.Duration) {
	key := liveKey{fmt.Sprintf("%q", []any{p.User, p.Groups, p.Role, p.Token, p.How}), address}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.all == nil {
		l.all, l.of = map[liveKey]*livePage{}, map[string]int{}
	}
	if page = l.all[key]; page == nil {
		l.forget(now)
		if len(l.all) >= MaxPages || p.User != "" && l.of[p.User] >= MaxUserPages {
			return nil, 0
		}
		page = &livePage{user: p.User}
		l.all[key] = page
		l.of[p.User]++
	}
	page.until = now.Add(quietTime)
	return page, l.rest()
}

// rest is for how long each page stays as it is. The caller holds the mutex.
func (l *lives) rest() time.Duration { return max(MinPause, l.cost*Rest) }

// forget drops pages that nobody looks at any more. The caller holds the mutex.
func (l *lives) forget(now time.Time) {
	for key, page := range l.all {
		if now.Before(page.until) {
			continue
		}
		delete(l.all, key)
		l.cost -= page.cost
		page.forgotten = true
		if l.of[page.user]--; l.of[page.user] == 0 {
			delete(l.of, page.user)
		}
	}
}

func (l *lives) took(page *livePage, cost time.Duration) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if !page.forgotten {
		l.cost += cost - page.cost
		page.cost = cost
	}
}

// keep is in how long who looks at a page asks again, which was made at a time.
func (l *lives) keep(page *livePage, made, now time.Time) (pause time.Duration) {
	l.mu.Lock()
	defer l.mu.Unlock()
	pause = max(MinPause, l.rest()-now.Sub(made))
	page.until = now.Add(pause + quietTime)
	return pause
}

func (l *lives) open() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.forget(time.Now())
	return len(l.all)
}

// isFresh reports whether a page may stay as it is. The caller holds the mutex.
func (v *livePage) isFresh(now time.Time, rest time.Duration) bool {
	age := now.Sub(v.made)
	if v.text == nil || age < rest {
		return v.text != nil
	}
	select {
	case <-v.changed:
		return false
	default:
		return v.changed != nil && age < quietTime
	}
}

// live answers a page that asks how it looks now.
func (s *site) live(w http.ResponseWriter, r *http.Request, p page) {
	changed, err := s.changes(r) // which is refused where the run is not to be seen any more
	if err != nil {
		plain(w, codeOf(err), textOf(err))
		return
	}
	query := r.URL.Query()
	v, rest := s.lives.find(rights.Of(r.Context()), r.URL.Path+"?"+query.Encode(), time.Now())
	if v == nil {
		plain(w, http.StatusServiceUnavailable, "too many pages are open")
		return
	}
	v.mu.Lock()
	if !v.isFresh(time.Now(), rest) {
		err = s.renew(v, r, p, changed)
	}
	text, tag, over, made := v.text, v.tag, v.over, v.made
	v.mu.Unlock()
	if err != nil {
		plain(w, codeOf(err), textOf(err))
		return
	}
	pause := s.lives.keep(v, made, time.Now())
	w.Header().Set(tagHeader, tag)
	if !over {
		w.Header().Set(againHeader, strconv.FormatInt(pause.Milliseconds(), 10))
	}
	if r.Header.Get("If-None-Match") == tag {
		w.WriteHeader(http.StatusNotModified)
		return
	}
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	_, _ = w.Write(text)
}

// renew makes a page anew. The caller holds its mutex.
func (s *site) renew(v *livePage, r *http.Request, p page, changed <-chan struct{}) error {
	s.lives.making.Lock()
	defer s.lives.making.Unlock()
	began := time.Now()
	c, err := p.load(r)
	if err != nil {
		return err
	}
	text, err := s.render(r, p, c, "live")
	if err != nil {
		return err
	}
	sum := sha256.Sum256(text)
	v.text, v.tag, v.over, v.changed = text, `"`+hex.EncodeToString(sum[:12])+`"`, c.Over, changed
	v.made = time.Now()
	s.lives.took(v, v.made.Sub(began))
	return nil
}

// changes is closed when something of a page may look different; nil if only time tells.
func (s *site) changes(r *http.Request) (<-chan struct{}, error) {
	var run api.Page
	if r.PathValue("run") != "" {
		var err error
		if run, err = runOf(r); err != nil {
			return nil, err
		}
	} else if s.Service.IsLasting() {
		return nil, nil
	}
	return s.Service.Changes(r.Context(), run)
}

// logPiece is a piece of a log for a browser.
type logPiece struct {
	Error bool   `json:"error,omitempty"`
	Text  string `json:"text"`
}

// logAnswer is what has been printed since a place.
type logAnswer struct {
	Pieces []logPiece `json:"pieces"`
	Place  string     `json:"place"` // to ask from the next time
	More   bool       `json:"more"`  // may come
}

func (s *site) log(w http.ResponseWriter, r *http.Request) {
	request, err := logOf(r)
	if err != nil {
		s.fail(w, err)
		return
	}
	request.TailBytes = logTail
	var after []int64
	for text := range strings.SplitSeq(r.FormValue("after"), ",") {
		if n, err := strconv.ParseInt(text, 10, 64); err == nil {
			after = append(after, n)
		}
	}
	answer := logAnswer{Pieces: []logPiece{}}
	place, more, err := s.Service.ReadLogs(r.Context(), request, after, func(chunk *wire.LogChunk) error {
		text := string(bytes.ToValidUTF8(chunk.GetData(), []byte("�")))
		answer.Pieces = append(answer.Pieces, logPiece{chunk.GetStandardError(), text})
		return nil
	})
	if err != nil {
		s.fail(w, err)
		return
	}
	answer.More = more
	for i, n := range place {
		answer.Place += strings.Repeat(",", min(i, 1)) + strconv.FormatInt(n, 10)
	}
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(answer)
}

func logOf(r *http.Request) (*wire.LogsRequest, error) {
	run, err := runOf(r)
	if err != nil {
		return nil, err
	}
	request := &wire.LogsRequest{Run: uint32(run), Job: jobOf(r)}
	request.Attempt, _ = strconv.ParseUint(r.FormValue("attempt"), 10, 64)
	return request, nil
}

// wholeLog has a browser store all that an attempt has printed.
func (s *site) wholeLog(w http.ResponseWriter, r *http.Request) {
	request, err := logOf(r)
	if err != nil {
		s.fail(w, err)
		return
	}
	out := newDownload(w, "job-"+r.PathValue("id")+".log", "text/plain; charset=utf-8")
	send := func(chunk *wire.LogChunk) error { return out.write(chunk.GetData()) }
	err = s.Service.FollowLogs(r.Context(), request, send)
	out.end(s, r, err)
}
