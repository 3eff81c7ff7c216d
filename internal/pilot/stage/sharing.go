package stage

import (
	"context"
	"errors"
	"io"
	"io/fs"
	"log/slog"
	"net"
	"os"
	"sync"
	"time"

	"fairway/internal/access"
	"fairway/internal/cache"
	"fairway/internal/share"
	"fairway/internal/storage"
	"fairway/internal/wire"
)

// Sharing is how files come from the caches of other hosts, and go there. A nil one
// shares nothing. Any goroutine may call its methods.
type Sharing struct {
	Server   *share.Server
	arrivals *share.Arrivals

	mu       sync.Mutex        // guards what follows
	unserved map[string]uint64 // sources that were of no use, with the Sync that said so first; 0: none has
	sources  map[string]*past
}

// past is how a source has served. What counts in a row ends when it has sent a file.
type past struct {
	refusals int       // in a row; with MaxRefusals it is not asked again
	poor     int       // files in a row that it sent badly; with MaxPoor it rests
	rests    time.Time // until then it is not asked
	blamed   bool      // people were told, which is done once
}

const (
	// MaxRefusals is how many requests in a row a source may refuse until it counts as one of no
	// use. A file may have gone from its cache a moment before.
	MaxRefusals = 3
	// MaxPoor is how many files in a row a source may send too slowly, or not to their ends, or be too busy
	// for. It is not asked for RestTime then.
	MaxPoor = 3
	// RestTime is how long a source is not asked that served MaxPoor files badly.
	RestTime = 5 * time.Minute
)

// OpenSharing opens the cache of an area to others, at the address by which the pilot
// reaches its server.
func OpenSharing(line *access.Line, ar *Area) (*Sharing, error) {
	at, err := OwnAddress(line)
	if err != nil {
		return nil, err
	}
	s := &Sharing{arrivals: share.NewArrivals(ar.Sched), unserved: map[string]uint64{}, sources: map[string]*past{}}
	s.Server, err = share.Listen(at, ar.Cache, s.arrivals, ar.Log)
	return s, err
}

// OwnAddress is the address by which others reach this machine: that from which it
// reaches its server, or, beside the server, another one that is not the loopback, if
// there is any.
func OwnAddress(line *access.Line) (net.IP, error) {
	at := line.Local()
	if at == nil {
		return nil, errors.New("the server was not reached yet")
	}
	if !at.IsLoopback() {
		return at, nil
	}
	assigned, err := net.InterfaceAddrs()
	if err != nil {
		return nil, err
	}
	for _, a := range assigned {
		if network, ok := a.(*net.IPNet); ok && network.IP.IsGlobalUnicast() && network.IP.To4() != nil {
			return network.IP, nil
		}
	}
	return at, nil
}

// Close ends what is sent to others.
func (s *Sharing) Close() {
	if s != nil {
		_ = s.Server.Close()
	}
}

// SetKeys is for the keys of an answer, in which there are none if nothing is new.
func (s *Sharing) SetKeys(told []*wire.ShareKey) {
	if s == nil || len(told) == 0 {
		return
	}
	var keys []share.Key
	for _, k := range told {
		if len(k.GetKey()) == len(access.ShareKey{}) {
			keys = append(keys, share.Key{Epoch: k.GetEpoch(), Key: access.ShareKey(k.GetKey())})
		}
	}
	s.Server.SetKeys(keys)
}

// Carry puts into a message which sources were of no use.
func (s *Sharing) Carry(m *wire.SyncRequest) {
	if s == nil {
		return
	}
	m.Serves = true
	s.mu.Lock()
	defer s.mu.Unlock()
	for id, seq := range s.unserved {
		if len(m.Unserved) < access.MaxUnserved {
			if seq == 0 {
				s.unserved[id] = m.GetSeq()
			}
			m.Unserved = append(m.Unserved, id)
		}
	}
}

// Acknowledge forgets what the TaskQueue has heard.
func (s *Sharing) Acknowledge(seen uint64) {
	if s == nil {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for id, seq := range s.unserved {
		if seq != 0 && seq <= seen {
			delete(s.unserved, id)
		}
	}
}

// bringShared has the cache hold a file: from the source that the TaskQueue has named,
// else from the storage element. Meanwhile others may read what has come of it.
func (ar *Area) bringShared(ctx context.Context, i *input) (err error) {
	s := ar.Sharing
	var arrival *share.Arrival
	var hash cache.Hash
	err = ar.fetch(ctx, i, func(path string) (size int64, _ cache.Hash, err error) {
		arrival = s.arrivals.Add(i.Item)
		if hash, err = ar.fromSource(ctx, i, arrival, path); err != nil && ctx.Err() == nil {
			size, hash, err = ar.fromElement(ctx, i, arrival, path)
		} else {
			size = i.Size
		}
		return size, hash, err
	})
	if arrival == nil {
		s.arrivals.Came()
		return err
	}
	if err != nil {
		hash = cache.Hash{}
	}
	arrival.End(hash)
	return err
}

// errNoSource says that the TaskQueue has named none that is of use.
var errNoSource = errors.New("no source is named that is of use")

// fromSource gets a file from another pilot, and knows that it is right.
func (ar *Area) fromSource(ctx context.Context, i *input, a *share.Arrival, path string) (hash cache.Hash, err error) {
	if i.source == nil || ar.Sharing.useless(i.source.GetPilot()) || i.unsummed() {
		return hash, errNoSource
	}
	var origin *share.Source
	if i.source.GetOrigin() != nil {
		o := sourceOf(i.source.GetOrigin())
		origin = &o
	}
	proof := share.Proof{Hash: i.hash}
	if !i.committed {
		proof.Adler32 = i.sum
	}
	began := time.Now()
	ar.Waits.from(i, i.source, a)
	defer ar.Waits.from(i, nil, nil)
	hash, err = share.Get(ctx, sourceOf(i.source), origin, i.Item, proof, a, path)
	if ctx.Err() == nil {
		ar.Sharing.tried(i.source.GetPilot(), err)
	}
	if err == nil {
		ar.prove(i, path)
		i.remote = true
		ar.Log.Debug("read from another cache", "lfn", i.LFN, "source", i.source.GetPilot(), "took", time.Since(began))
		return hash, nil
	}
	level := slog.LevelInfo // a file may have gone from its cache a moment before, or the network been cut
	if ctx.Err() == nil && ar.Sharing.blame(i.source.GetPilot()) {
		level = slog.LevelWarn
	}
	ar.Log.Log(ctx, level, "another cache was of no use; the file comes from storage", "lfn", i.LFN, "source",
		i.source.GetPilot(), "address", i.source.GetAddress(), "reason", err)
	return hash, err
}

// blame reports whether a source is not to be asked again, or for a while, for the first time.
func (s *Sharing) blame(id string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	of := s.past(id)
	first := !of.blamed && (of.refusals >= MaxRefusals || of.poor >= MaxPoor)
	of.blamed = of.blamed || first
	return first
}

// past is how a source has served. s.mu is held.
func (s *Sharing) past(id string) *past {
	if s.sources[id] == nil {
		s.sources[id] = new(past)
	}
	return s.sources[id]
}

func (s *Sharing) tried(id string, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	of := s.past(id)
	switch {
	case errors.Is(err, share.ErrUnserved):
		of.refusals = MaxRefusals
	case errors.Is(err, share.ErrRefused):
		of.refusals++
	case errors.Is(err, share.ErrPoor):
		if of.poor++; of.poor >= MaxPoor { // one more after the rest, and it rests again
			of.rests = time.Now().Add(RestTime)
		}
	case err == nil:
		of.refusals, of.poor = 0, 0
	default: // it is no fault of the source
	}
	s.tellOf(id)
}

// useless reports whether a source is not to be asked now. The TaskQueue has named it before
// it knew, for the next file of the same job, or has forgotten what it knew: it is told. Of one that
// only rests it is not.
func (s *Sharing) useless(id string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.tellOf(id) || time.Now().Before(s.past(id).rests)
}

// tellOf has the TaskQueue told of a source if it is of no use, and reports whether it is.
// s.mu is held.
func (s *Sharing) tellOf(id string) bool {
	if s.past(id).refusals < MaxRefusals {
		return false
	}
	if _, ok := s.unserved[id]; !ok {
		s.unserved[id] = 0
	}
	return true
}

func sourceOf(s *wire.Source) share.Source {
	return share.Source{Address: s.GetAddress(), Pin: s.GetPin(), Epoch: s.GetEpoch(), Ticket: s.GetTicket()}
}

// fromElement reads a file from the storage element, and finds its hash. That is known when
// the last byte is there, or those to whom it was passed on would wait for it.
func (ar *Area) fromElement(
	ctx context.Context, i *input, a *share.Arrival, path string,
) (size int64, hash cache.Hash, err error) {
	var sums *sums
	size, err = ar.getBy(ctx, i, path, func(ctx context.Context) (size int64, err error) {
		body, err := ar.openStream(ctx, i.pfn)
		if err != nil {
			return 0, err
		}
		if body != nil {
			sums = i.newSums(true)
			if size, err = stream(body, a, path, sums); err == nil || !storage.Temporary(err) || ctx.Err() != nil {
				return size, err
			}
			ar.Log.Info("a transfer broke off; reading the file again", "lfn", i.LFN, "reason", err)
		}
		sums = i.newSums(true)
		if size, err = ar.Storage.Get(ctx, i.pfn, path); err == nil {
			err = sums.readFile(ctx, path)
		}
		return size, err
	})
	if err != nil || sums.check() != nil { // who reads it finds out what is wrong
		return size, hash, err
	}
	ar.prove(i, path)
	return size, cache.HashOf(sums.blake3), nil
}

// attributed is the body of a file of which more is known than its contents.
type attributed interface {
	Attributes() (fs.FileMode, time.Time)
}

// openStream opens a file so that others can read what has come of it. Nil for one that is
// in a folder here: it is linked or copied instead, and they wait until that is done.
func (ar *Area) openStream(ctx context.Context, pfn string) (io.ReadCloser, error) {
	if storage.IsLocal(pfn) && (ar.Reach == nil || ar.Reach.inPlace(pfn)) {
		return nil, nil
	}
	body, err := ar.Storage.Open(ctx, pfn)
	if err != nil {
		return nil, err
	}
	if _, ok := attributesOf(body); storage.IsLocal(pfn) && !ok {
		return nil, body.Close()
	}
	return body, nil
}

// stream writes what is read of a file to a path, tells of it as it comes, and finds its
// sums. Where it fails nothing is left.
func stream(body io.ReadCloser, a *share.Arrival, path string, sums *sums) (size int64, err error) {
	defer body.Close()
	out, err := a.Begin(path)
	if err != nil {
		return 0, err
	}
	size, err = a.Write(out, body, sums)
	if err == nil {
		mode, modified := fs.FileMode(0o444), time.Time{}
		if about, ok := attributesOf(body); ok {
			mode, modified = about.Attributes()
		}
		err = out.Chmod(mode.Perm()&^0o222 | 0o400)
		if err == nil && !modified.IsZero() {
			err = os.Chtimes(path, time.Time{}, modified)
		}
	}
	if err != nil {
		_ = os.Remove(path)
	}
	return size, err
}

func attributesOf(body io.ReadCloser) (attributed, bool) {
	for {
		if about, ok := body.(attributed); ok {
			return about, true
		}
		wrapped, ok := body.(interface{ Unwrap() io.ReadCloser })
		if !ok {
			return nil, false
		}
		body = wrapped.Unwrap()
	}
}
