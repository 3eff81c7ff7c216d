package active

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"time"

	"connectrpc.com/connect"

	"fairway/internal/access"
	"fairway/internal/server/folder"
	"fairway/internal/server/listen"
	"fairway/internal/store"
	"fairway/lib/sched"
)

// Several servers of one state may stand by for each other, where its records are in a PostgreSQL
// and its folder is on a file system that all see. One is active. The database says which
// (store.Member).
//
// What a server does outside of the database it may do late, when it was frozen and another one has
// become active meanwhile:
//
//   - Pilots refuse an answer of a lower term than they have seen.
//   - A file is published by a rename of a name that bears the term, right after the database has
//     said that the term goes on. A server that becomes active removes such names of others before it
//     publishes, so the rename of a late one fails.
//   - What is removed is durably unneeded, and nobody makes a file of that name again. All the same a server
//     that follows one which may still run removes nothing for a lease: the other may have told pilots
//     to read it.
//   - Files with addresses and tokens say the same, whoever writes them.

// Hold is for how long a pilot waits for news (taskqueue.Config.Hold), so that it soon leaves a
// server that is frozen.
const Hold = 5 * time.Second

// Standby is this process as one of the servers of a state.
type Standby struct {
	config    Config
	member    *store.Member
	lock      *folder.Lock
	folders   folder.Layout
	authority *access.Authority

	// While it stands by: who answers. While it is active: the store.
	endpoint *listen.Endpoint
	ended    chan struct{} // closed when the endpoint has ended
	records  store.Store
}

// Config is of a server that stands by.
type Config struct {
	Folder  string
	Lasting bool
	Store   string // an address, unless the state knows it
	Listen  string // with a port
	Sched   *sched.Scheduler
	Log     *slog.Logger
}

// Join makes this process one of the servers of a state. lease is how long the active one may be silent.
// Errors: a *folder.RunningError where a server of the state runs that lets none stand by, and those of
// store.JoinPostgres.
func Join(ctx context.Context, config Config, lease time.Duration) (*Standby, error) {
	b := &Standby{config: config}
	if err := b.join(ctx, lease); err != nil {
		b.Leave()
		return nil, err
	}
	return b, nil
}

func (b *Standby) join(ctx context.Context, lease time.Duration) error {
	dir, err := filepath.Abs(b.config.Folder)
	if err != nil {
		return err
	}
	if err := b.claim(ctx, dir); err != nil {
		return err
	}
	if err := folder.ClaimKind(&b.folders, b.config.Lasting); err != nil {
		return err
	}
	if b.config.Store != "" {
		if err := folder.KeepStoreAt(&b.folders, b.config.Store); err != nil {
			return err
		}
	}
	address, err := folder.StoreAddress(b.folders.State)
	if err != nil {
		return err
	}
	if address == "" {
		return errors.New("servers stand by for each other only where a PostgreSQL keeps the records: name it with " +
			"--store, from the first start on")
	}
	if b.authority, err = access.OpenAuthority(filepath.Join(b.folders.State, folder.AuthorityName),
		b.folders.ID); err != nil {
		return err
	}
	host, _ := os.Hostname() // for people only
	self := store.Reached{Host: cmp.Or(host, "?")}
	b.member, err = store.JoinPostgres(ctx, address, b.folders.ID, self, lease, b.config.Sched)
	return err
}

// claimingTime is how long a server waits for another one that is making the state, or was of another
// kind and is ending.
const claimingTime = 5 * time.Second

func (b *Standby) claim(ctx context.Context, dir string) (err error) {
	for began := time.Now(); ; {
		b.lock, b.folders, err = folder.ClaimShared(dir)
		waits := errors.Is(err, folder.ErrBeingMade) || errors.As(err, new(*folder.RunningError))
		if !waits || time.Since(began) > claimingTime {
			return err
		}
		if err := b.config.Sched.Sleep(ctx, claimingTime/100); err != nil {
			return err
		}
	}
}

// Await stands by until this server is the active one: Open makes it so, with Standby in its
// configuration. Meanwhile it answers at its port that it stands by. It may be called again when that
// server has ended.
func (b *Standby) Await(ctx context.Context) error {
	if err := b.answer(); err != nil {
		return err
	}
	var err error
	b.records, err = b.member.Await(ctx)
	if err != nil {
		b.Hush()
		return err
	}
	return b.lock.ShowHolder()
}

// Leave ends this process's part. It comes last.
func (b *Standby) Leave() {
	b.Hush()
	if b.records != nil {
		_ = b.records.Close()
	}
	if b.member != nil {
		b.member.Leave()
	}
	if b.lock != nil {
		_ = b.lock.Release()
	}
}

func (b *Standby) answer() error {
	if b.endpoint != nil {
		return nil // it became active, and was replaced before it had opened its port
	}
	listener, addresses, err := access.ListenStandby(b.config.Listen, b.authority)
	if err != nil {
		return err
	}
	b.member.SetAddresses(addresses)
	b.endpoint = listen.NewEndpoint(listener, b.handler(), b.config.Log)
	b.ended = make(chan struct{})
	go func() {
		defer close(b.ended)
		b.endpoint.Serve()
	}()
	return nil
}

// Hush closes the port, for the server that becomes active.
func (b *Standby) Hush() {
	if b.endpoint != nil {
		b.endpoint.Close(0)
		<-b.ended
		b.endpoint = nil
	}
}

func (b *Standby) handler() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /healthz", func(w http.ResponseWriter, _ *http.Request) { plainly(w, http.StatusOK, "ok") })
	mux.HandleFunc("GET /readyz", func(w http.ResponseWriter, _ *http.Request) {
		plainly(w, http.StatusServiceUnavailable, b.saying())
	})
	refusals := connect.NewErrorWriter()
	mux.HandleFunc("/", func(w http.ResponseWriter, r *http.Request) {
		if refusals.IsSupported(r) {
			_ = refusals.Write(w, r, connect.NewError(connect.CodeUnavailable, errors.New(b.saying())))
			return
		}
		plainly(w, http.StatusServiceUnavailable, b.saying())
	})
	return mux
}

func (b *Standby) saying() string {
	active, ok := b.member.Active()
	if !ok {
		return "this server stands by, and none is active at the moment"
	}
	return fmt.Sprintf("this server stands by; the active one is on %s, at %s", active.Host,
		strings.Join(active.Addresses, ", "))
}

func plainly(w http.ResponseWriter, code int, text string) {
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	w.WriteHeader(code)
	_, _ = w.Write([]byte(text + "\n"))
}

// Seat is what this process has while it is the active one.
func (b *Standby) Seat() Seat { return byDatabase{b.member} }

// Others is how this process knows the other servers, and tells them how it is reached.
func (b *Standby) Others() *store.Member { return b.member }

// Folders are those of the state.
func (b *Standby) Folders() folder.Layout { return b.folders }

// Authority is that of the state.
func (b *Standby) Authority() *access.Authority { return b.authority }

// Records takes the store of the server that became active.
func (b *Standby) Records() store.Store {
	records := b.records
	b.records = nil
	return records
}

// RemovesAt is when this server may remove what a server before may have told pilots to read.
func (b *Standby) RemovesAt() time.Time {
	if !b.member.Unclean() {
		return time.Now()
	}
	return time.Now().Add(b.member.Lease())
}
