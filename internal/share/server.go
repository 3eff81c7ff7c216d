package share

import (
	"context"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"io"
	"io/fs"
	"log/slog"
	"net"
	"net/http"
	"os"
	"strconv"
	"sync"
	"time"

	"github.com/zeebo/blake3"

	"fairway/internal/access"
	"fairway/internal/cache"
)

// Key is the key by which a server knows the tickets of an epoch.
type Key struct {
	Epoch uint64
	Key   access.ShareKey
}

// Server sends files of a cache to other pilots, from [Listen] to Close.
type Server struct {
	cache    *cache.Cache
	arrivals *Arrivals
	pin      string
	listener net.Listener
	http     *http.Server
	streams  chan struct{} // holds one for each file that is sent

	mu   sync.Mutex // guards keys
	keys []Key
}

// Listen opens a server at an address of this machine, at a port that is free.
func Listen(at net.IP, c *cache.Cache, arrivals *Arrivals, log *slog.Logger) (*Server, error) {
	identity, err := access.NewAuthority("fairway pilot")
	if err != nil {
		return nil, err
	}
	settings, err := identity.ServerTLS()
	if err != nil {
		return nil, err
	}
	listener, err := net.Listen("tcp", net.JoinHostPort(at.String(), "0"))
	if err != nil {
		return nil, err
	}
	listener = access.Guard(listener, settings, maxStrangers)
	s := &Server{
		cache: c, arrivals: arrivals, pin: identity.Pin(), listener: listener, streams: make(chan struct{}, MaxStreams),
	}
	mux := http.NewServeMux()
	mux.HandleFunc("GET "+filePath, s.send)
	mux.HandleFunc("HEAD "+filePath, s.serveHash)
	s.http = access.NewServer(mux, log)
	go func() { _ = s.http.Serve(listener) }()
	return s, nil
}

// Address is where the server listens, as HOST:PORT.
func (s *Server) Address() string { return s.listener.Addr().String() }

// Pin is by what clients know the server.
func (s *Server) Pin() string { return s.pin }

// SetKeys replaces the keys of the tickets that are good.
func (s *Server) SetKeys(keys []Key) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.keys = keys
}

// Close ends the server, and what it sends.
func (s *Server) Close() error { return s.http.Close() }

// asked is the file for which a request has a good ticket. To all others it answers
// itself.
func (s *Server) asked(w http.ResponseWriter, r *http.Request) (cache.Ref, bool) {
	query := r.URL.Query()
	version, errVersion := strconv.ParseUint(query.Get(versionKey), 10, 32)
	tag, errTag := strconv.ParseUint(query.Get(tagKey), 16, 64)
	epoch, errEpoch := strconv.ParseUint(r.Header.Get(epochHeader), 10, 64)
	ticket, errTicket := base64.StdEncoding.DecodeString(r.Header.Get(ticketHeader))
	if err := errors.Join(errVersion, errTag, errEpoch, errTicket); err != nil || len(query.Get(lfnKey)) > access.MaxName {
		http.Error(w, "the request names no file, or has no ticket", http.StatusBadRequest)
		return cache.Ref{}, false
	}
	ref := cache.Ref{LFN: query.Get(lfnKey), Version: uint32(version), Tag: tag}
	switch good, known := s.allows(ref, epoch, ticket); {
	case !known:
		http.Error(w, "this pilot does not have the key of that ticket yet, or any more", http.StatusServiceUnavailable)
		return cache.Ref{}, false
	case !good:
		http.Error(w, "the ticket is not good for this file", http.StatusForbidden)
		return cache.Ref{}, false
	}
	if !access.Admit(r, string(ticket)) {
		http.Error(w, "too many connections have this ticket", http.StatusServiceUnavailable)
		return cache.Ref{}, false
	}
	return ref, true
}

// allows reports whether a ticket is good, and whether the key of its epoch is known. That is no
// fault of who has the ticket: a server that was restarted tells some pilots of tickets before it
// tells others the keys, and a job may have waited at a pilot until its tickets were too old.
func (s *Server) allows(ref cache.Ref, epoch uint64, ticket []byte) (good, known bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for i := range s.keys {
		if s.keys[i].Epoch == epoch {
			return s.keys[i].Key.Allows(ref.LFN, ref.Version, ref.Tag, ticket), true
		}
	}
	return false, false
}

// serveHash says what the hash of a file is, when all of it has come.
func (s *Server) serveHash(w http.ResponseWriter, r *http.Request) {
	ref, ok := s.asked(w, r)
	if !ok {
		return
	}
	var hash cache.Hash
	if f, a := s.arrivals.find(r.Context(), s.cache, ref); f != nil {
		hash = f.Hash()
		f.Release()
	} else if a != nil {
		hash = a.result(r.Context())
	}
	if hash == (cache.Hash{}) {
		w.WriteHeader(http.StatusNotFound)
		return
	}
	w.Header().Set(hashHeader, hex.EncodeToString(hash[:]))
}

// send answers with a file that is in the cache, or is coming in.
func (s *Server) send(w http.ResponseWriter, r *http.Request) {
	ref, ok := s.asked(w, r)
	if !ok {
		return
	}
	select {
	case s.streams <- struct{}{}:
		defer func() { <-s.streams }()
	default:
		http.Error(w, "it sends as much as it may", http.StatusServiceUnavailable)
		return
	}
	out := &sending{writer: w, control: http.NewResponseController(w)}
	f, a := s.arrivals.find(r.Context(), s.cache, ref)
	switch {
	case f != nil:
		out.begin(f.Size())
	case a == nil:
		http.Error(w, "it is not here", http.StatusNotFound)
		return
	default:
		out.begin(a.item.Size)
		if !out.follow(r.Context(), a) {
			panic(http.ErrAbortHandler)
		}
		f, _ = s.cache.Get(r.Context(), cache.Item{Ref: ref})
	}
	if f != nil {
		defer f.Release()
	}
	if f == nil || !out.rest(f.Path()) || out.hash != nil && a.result(r.Context()) != cache.HashOf(out.hash) {
		panic(http.ErrAbortHandler) // the client is to see that the file is not complete
	}
}

type sending struct {
	writer  http.ResponseWriter
	control *http.ResponseController
	at      int64
	from    *os.File       // of an arrival: what was sent is of this file
	info    fs.FileInfo    // of that file
	hash    *blake3.Hasher // of what was sent, where that is of several files; else nil
}

func (o *sending) begin(size int64) {
	for _, name := range trailers {
		o.writer.Header().Add("Trailer", name)
	}
	o.writer.Header().Set(sizeHeader, strconv.FormatInt(size, 10))
	o.writer.Header().Set("Content-Type", "application/octet-stream")
	o.writer.WriteHeader(http.StatusOK)
}

func (o *sending) write(p []byte) error {
	_ = o.control.SetWriteDeadline(time.Now().Add(StallTime))
	if o.hash != nil {
		_, _ = o.hash.Write(p)
	}
	o.at += int64(len(p))
	_, err := o.writer.Write(p)
	return err
}

// follow sends what comes, until it has all come and is in the cache.
func (o *sending) follow(ctx context.Context, a *Arrival) bool {
	buffer := make([]byte, piece)
	for o.at < a.item.Size {
		n, file, err := a.readAt(ctx, buffer, o.at)
		if errors.Is(err, errEnded) {
			break
		}
		if err == nil {
			err = o.continues(file)
		}
		if err == nil {
			err = o.write(buffer[:n])
		}
		if err != nil {
			return false
		}
		_ = o.control.Flush() // the next pilot passes it on
	}
	return a.result(ctx) != cache.Hash{}
}

// continues takes note of the file that the next bytes are of. Where that is another one
// than before, all that is sent is to be compared with what the arrival is found to be.
func (o *sending) continues(file *os.File) (err error) {
	if o.from == file {
		return nil
	}
	before := o.from
	o.from = file
	if o.info, err = file.Stat(); err != nil || before == nil || o.hash != nil {
		return err
	}
	o.hash = blake3.New()
	_, err = io.Copy(o.hash, io.NewSectionReader(before, 0, o.at))
	return err
}

// rest sends what of a file was not sent, and what is known of it at the end.
func (o *sending) rest(path string) bool {
	f, err := os.Open(path)
	if err != nil {
		return false
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil || o.info != nil && o.hash == nil && !os.SameFile(o.info, info) {
		return false
	}
	buffer := make([]byte, piece)
	for err == nil {
		var n int
		if n, err = f.ReadAt(buffer, o.at); n > 0 {
			if o.write(buffer[:n]) != nil {
				return false
			}
		}
	}
	h := o.writer.Header()
	h.Set(modeHeader, strconv.FormatUint(uint64(info.Mode().Perm()), 8))
	h.Set(modifiedHeader, strconv.FormatInt(info.ModTime().UnixNano(), 10))
	return errors.Is(err, io.EOF)
}
