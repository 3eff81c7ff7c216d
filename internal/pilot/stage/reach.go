package stage

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"fairway/internal/access"
	"fairway/internal/storage"
	"fairway/internal/storage/served"
)

// Reach is how a pilot on another machine than its server gets to files: in place
// where that is proved to be the same place, and else through the server. Files of
// other servers it reads itself if it can.
//
// A proof of a folder lasts until a file is missing there: then it is made once more,
// since the folder may have been moved. A path outside of the folders
// that have a mark is the same file if size and time of modification are those
// that the server sees, as far as the file system here tells the time.
type Reach struct {
	near    storage.Element // by paths, and from other servers
	through storage.Element // by the server
	server  *served.Element
	roots   storage.Roots
	sleep   storage.Sleep

	mu     sync.Mutex // guards what follows
	shared map[string]served.Reach
	far    map[string]bool
}

var _ storage.Element = (*Reach)(nil)

// NewReach looks which folders the pilot shares with its server. It asks the server,
// and waits as long as that does not answer and ctx lasts.
func NewReach(
	ctx context.Context, line *access.Line, roots storage.Roots, near storage.Element, sleep storage.Sleep,
) (*Reach, error) {
	e := served.New(line.Client(storage.DefaultTransfers), access.BaseURL, sleep)
	r := &Reach{
		near:    near,
		through: throughServer(e, sleep),
		server:  e,
		roots:   roots,
		sleep:   sleep,
		far:     map[string]bool{},
	}
	return r, r.prove(ctx)
}

// throughServer limits the transfers through the server to those of this pilot: where the server
// is on this machine, it counts there what it transfers itself for them.
func throughServer(e storage.Element, sleep storage.Sleep) storage.Element {
	return storage.LimitProcess(storage.Retry(e, storage.DefaultTries, storage.DefaultBackoff, sleep),
		storage.DefaultTransfers)
}

// prove looks which folders are shared now.
func (r *Reach) prove(ctx context.Context) error {
	marks, err := r.server.Marks(ctx)
	if err != nil {
		return fmt.Errorf("which folders are shared with the server: %w", err)
	}
	// What the catalogue of the site leads to is of this node alone.
	shared := map[string]served.Reach{storage.SiteScheme + ":": {Reads: true, Exact: true}}
	for _, m := range marks {
		if shared[m.Prefix], err = r.server.Prove(ctx, r.roots, m); err != nil {
			return fmt.Errorf("whether %s is shared with the server: %w", m.Prefix, err)
		}
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.shared = shared
	return nil
}

// moved reports whether an operation that failed here is to be tried through the server:
// the folder that was shared is not there any more.
func (r *Reach) moved(ctx context.Context, pfn string, err error) bool {
	if _, marked := r.of(pfn); !marked || !errors.Is(err, fs.ErrNotExist) || r.prove(ctx) != nil {
		return false
	}
	proved, _ := r.of(pfn)
	return !proved.Reads
}

// of is what is proved of the folder of a PFN, and false where it has no mark. Of a folder
// and one in it, the inner one counts: it may be a link to another disk.
func (r *Reach) of(pfn string) (proved served.Reach, marked bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	longest := ""
	for prefix, p := range r.shared {
		if strings.HasPrefix(pfn, prefix) && len(prefix) > len(longest) {
			longest, proved, marked = prefix, p, true
		}
	}
	return proved, marked
}

// Sees is what is proved of the folder of a PFN.
func (r *Reach) Sees(pfn string) served.Reach {
	proved, _ := r.of(pfn)
	return proved
}

// Marked are the folders that the server has marked, by the prefix of their PFNs.
func (r *Reach) Marked() map[string]served.Reach {
	r.mu.Lock()
	defer r.mu.Unlock()
	return maps.Clone(r.shared)
}

type way int

const (
	byPath way = iota
	byServer
	byEither // from another server, or through the pilot's own one
)

// wayTo is how a file is read. It is in place where its folder was proved to be shared, which may be
// so no more when it is read.
func (r *Reach) wayTo(ctx context.Context, pfn string) (by way, inPlace bool, err error) {
	if _, packed := served.Unpacked(pfn); packed {
		return byServer, false, nil
	}
	if proved, marked := r.of(pfn); marked {
		if proved.Reads {
			return byPath, true, nil
		}
		return byServer, false, nil
	}
	if !storage.IsLocal(pfn) {
		return byEither, false, nil
	}
	same, err := r.same(ctx, pfn)
	if same {
		return byPath, false, err
	}
	return byServer, false, err
}

func (r *Reach) reads(ctx context.Context, pfn string) (e storage.Element, inPlace bool, err error) {
	by, inPlace, err := r.wayTo(ctx, pfn)
	switch by {
	case byPath:
		return r.near, inPlace, err
	case byServer:
		return r.through, inPlace, err
	default:
		return &nearest{r}, inPlace, err
	}
}

func (r *Reach) inPlace(pfn string) bool {
	if _, packed := served.Unpacked(pfn); packed {
		return false
	}
	proved, marked := r.of(pfn)
	return marked && proved.Reads
}

// same reports whether a file without a mark is that of the server.
func (r *Reach) same(ctx context.Context, pfn string) (bool, error) {
	here, err := r.near.Stat(ctx, pfn)
	if err != nil {
		return false, nil
	}
	there, err := r.through.Stat(ctx, pfn)
	if err != nil {
		return false, err
	}
	return here.Size == there.Size && slices.ContainsFunc(precisions, func(p time.Duration) bool {
		return there.ModTime.Truncate(p).Equal(here.ModTime)
	}), nil
}

// precisions are those to which file systems tell times of modification.
var precisions = []time.Duration{1, 100, time.Microsecond, time.Millisecond, time.Second, 2 * time.Second}

// Open is part of storage.Element.
func (r *Reach) Open(ctx context.Context, pfn string) (io.ReadCloser, error) {
	e, inPlace, err := r.reads(ctx, pfn)
	if err != nil {
		return nil, err
	}
	body, err := e.Open(ctx, pfn)
	if inPlace && r.moved(ctx, pfn, err) {
		return r.through.Open(ctx, pfn)
	}
	return body, err
}

// Get is part of storage.Element.
func (r *Reach) Get(ctx context.Context, pfn, path string) (int64, error) {
	e, inPlace, err := r.reads(ctx, pfn)
	if err != nil {
		return 0, err
	}
	size, err := e.Get(ctx, pfn, path)
	if inPlace && r.moved(ctx, pfn, err) {
		return r.through.Get(ctx, pfn, path)
	}
	return size, err
}

// Stat is part of storage.Element. It tells what the server sees: by that the
// TaskQueue knows the file.
func (r *Reach) Stat(ctx context.Context, pfn string) (storage.Info, error) {
	proved, marked := r.of(pfn)
	_, packed := served.Unpacked(pfn)
	switch {
	case packed:
		return r.through.Stat(ctx, pfn)
	case marked && proved.Reads && proved.Exact:
		info, err := r.near.Stat(ctx, pfn)
		if r.moved(ctx, pfn, err) {
			return r.through.Stat(ctx, pfn)
		}
		return info, err
	case storage.IsLocal(pfn):
		return r.through.Stat(ctx, pfn)
	}
	return (&nearest{r}).Stat(ctx, pfn)
}

// Put is part of storage.Element.
func (r *Reach) Put(ctx context.Context, path, pfn string) error {
	proved, marked := r.of(pfn)
	if !marked && !storage.IsLocal(pfn) && storage.Scheme(pfn) != served.LogScheme {
		return (&nearest{r}).do(ctx, pfn, func(ctx context.Context, e storage.Element) error { return e.Put(ctx, path, pfn) })
	}
	if proved.Reads && proved.Writes {
		err := r.near.Put(ctx, path, pfn)
		if !r.moved(ctx, pfn, err) {
			return err
		}
	}
	return r.through.Put(ctx, path, pfn)
}

// Remove is part of storage.Element.
func (r *Reach) Remove(ctx context.Context, pfn string) error { return r.through.Remove(ctx, pfn) }

// List is part of storage.Element.
func (r *Reach) List(ctx context.Context, pfn string) ([]storage.Entry, error) {
	return r.through.List(ctx, pfn)
}

// exact reports whether the state of a file is here what the server sees.
func (r *Reach) exact(pfn string) bool {
	proved, marked := r.of(pfn)
	return marked && (proved.Exact || !proved.Reads)
}

// nearest has files of other servers: here, and through the server of the pilot
// where they cannot be reached from here, or not with what this node knows. A
// server that was found out of reach is not tried again. One that is away is waited
// for when both ways have been tried.
type nearest struct{ *Reach }

func (n *nearest) do(
	ctx context.Context, pfn string, operation func(context.Context, storage.Element) error,
) error {
	return storage.Patiently(ctx, pfn, n.sleep, func(ctx context.Context) error {
		if n.isFar(pfn) {
			return operation(ctx, n.through)
		}
		err := operation(ctx, n.near)
		if err == nil || ctx.Err() != nil || errors.Is(err, fs.ErrNotExist) || errors.Is(err, fs.ErrExist) ||
			errors.Is(err, storage.ErrNoSpace) {
			return err
		}
		var answered *storage.StatusError
		if through := operation(ctx, n.through); through != nil {
			return errors.Join(err, fmt.Errorf("and through the server: %w", through))
		}
		n.setFar(pfn, !errors.As(err, &answered) || errors.Is(err, storage.ErrPermission))
		return nil
	})
}

// isFar reports whether the server of a file was found out of reach.
func (n *nearest) isFar(pfn string) bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.far[storage.ServerOf(pfn)]
}

func (n *nearest) setFar(pfn string, far bool) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.far[storage.ServerOf(pfn)] = far
}

func (n *nearest) Open(ctx context.Context, pfn string) (body io.ReadCloser, err error) {
	err = n.do(ctx, pfn, func(ctx context.Context, e storage.Element) error { body, err = e.Open(ctx, pfn); return err })
	return body, err
}

func (n *nearest) Get(ctx context.Context, pfn, path string) (size int64, err error) {
	err = n.do(ctx, pfn, func(ctx context.Context, e storage.Element) error {
		size, err = e.Get(ctx, pfn, path)
		return err
	})
	return size, err
}

func (n *nearest) Stat(ctx context.Context, pfn string) (info storage.Info, err error) {
	err = n.do(ctx, pfn, func(ctx context.Context, e storage.Element) error { info, err = e.Stat(ctx, pfn); return err })
	return info, err
}
