package server

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"hash/fnv"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"connectrpc.com/connect"

	"fairway/internal/access"
	"fairway/internal/server/folder"
	"fairway/internal/server/listen"
	"fairway/internal/server/term"
	"fairway/internal/store"
	"fairway/internal/taskqueue"
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

// StandbyHold is for how long a pilot waits for news (dispatch.Config.Hold), so that it soon leaves a
// server that is frozen.
const StandbyHold = 5 * time.Second

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

// JoinStandby makes this process one of the servers of the state of a configuration, which has Lasting,
// Store unless the state knows it, and Listen with a port. lease is how long the active one may be silent.
// Errors: a *folder.RunningError where a server of the state runs that lets none stand by, and those of
// store.JoinPostgres.
func JoinStandby(ctx context.Context, config Config, lease time.Duration) (*Standby, error) {
	b := &Standby{config: config.withDefaults()}
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
		b.hush()
		return err
	}
	return b.lock.ShowHolder()
}

// Leave ends this process's part. It comes last.
func (b *Standby) Leave() {
	b.hush()
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

func (b *Standby) hush() {
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

// IsReplaced reports whether a server has ended because another one is active, or may be.
func IsReplaced(err error) bool {
	return errors.Is(err, store.ErrSuperseded) || errors.Is(err, store.ErrLeaseOver) || errors.Is(err, term.ErrFollowed)
}

// members are what pilots are told of the servers of the state (api.Members).
type members struct{ server *Server }

// Term is part of api.Members.
func (m members) Term() uint64 { return m.server.termNumber }

// Addresses is part of api.Members.
func (m members) Addresses() (all []string, number uint64) {
	known := m.server.far.known.Load()
	if known == nil {
		return nil, 0
	}
	return known.all, known.number
}

// Followed is part of api.Members.
func (m members) Followed() {
	if b := m.server.config.Standby; b != nil {
		if err := b.member.Assert(context.Background()); errors.Is(err, store.ErrSuperseded) {
			m.server.leave(err)
		}
	}
}

// knownAddresses are those of all servers of a state.
type knownAddresses struct {
	all    []string
	number uint64
}

// withOthers are the addresses of this server, and behind them those of the others.
func (s *Server) withOthers(own []string) []string {
	all := slices.Clone(own)
	if b := s.config.Standby; b != nil {
		for _, other := range b.member.Others() {
			for _, address := range other.Addresses {
				if !slices.Contains(all, address) && len(all) < access.MaxAddresses {
					all = append(all, address)
				}
			}
		}
		sum := fnv.New64a()
		_, _ = sum.Write([]byte(strings.Join(all, "\n"))) // never fails
		s.far.known.Store(&knownAddresses{all, sum.Sum64()})
	}
	return all
}

// removesAt is when this server may remove what a server before may have told pilots to read.
func (b *Standby) removesAt() time.Time {
	if !b.member.Unclean() {
		return time.Now()
	}
	return time.Now().Add(b.member.Lease())
}

// beatLease sends beats until the returned function is called: to load all runs may take minutes. The
// context ends when another server is active.
func (s *Server) beatLease(ctx context.Context) (_ context.Context, end func()) {
	ctx, cancel := context.WithCancel(ctx)
	m, beating := s.config.Standby.member, make(chan struct{})
	sending, stop := context.WithCancel(ctx)
	go func() {
		defer close(beating)
		for s.sched.Sleep(sending, m.BeatTime()) == nil {
			if err := m.Beat(context.WithoutCancel(sending)); err != nil {
				s.leave(err)
				cancel()
				return
			}
		}
	}()
	return ctx, func() {
		stop()
		<-beating
	}
}

// keepLease sends beats while this server is the active one, and ends it when it is no more. It has
// people and pilots know the addresses of all servers.
func (s *Server) keepLease(ctx context.Context) {
	m := s.config.Standby.member
	for ctx.Err() == nil {
		if err := m.Beat(ctx); err != nil {
			if ctx.Err() == nil {
				s.leave(err)
			}
			return
		}
		s.tellAddresses()
		if err := s.pilotsSocket.Show(); err != nil {
			s.log.Warn("pilots of this machine may not find the server", "error", err)
		}
		_ = s.sched.Sleep(ctx, m.BeatTime())
	}
}

// tellAddresses writes the files that say how the server is reached, where servers have come or gone.
func (s *Server) tellAddresses() {
	before := s.far.known.Load()
	all := s.withOthers(s.far.own)
	if now := s.far.known.Load(); before != nil && before.number == now.number {
		return
	}
	s.far.connections.Move(all)
	connection, err := access.ReadConnection(s.serviceFile())
	if err == nil {
		connection.Addresses, connection.Standby = all, true
		err = errors.Join(s.writePublic(connection), connection.Write(s.serviceFile()))
	}
	if err != nil {
		s.log.Warn("people do not hear of the addresses of other servers", "error", err)
	}
}

// assertTerm returns an error if another server may be active. It is for what is done outside of the
// store. While the database does not answer it waits, and the server ends when that lasts for a lease.
func (s *Server) assertTerm(ctx context.Context) error {
	b := s.config.Standby
	if b == nil {
		return nil
	}
	for {
		switch err := b.member.Assert(ctx); {
		case errors.Is(err, store.ErrSuperseded):
			s.leave(err)
			return err
		case err == nil || ctx.Err() != nil:
			return err
		}
		if err := s.sched.Sleep(ctx, b.member.BeatTime()); err != nil {
			return err
		}
	}
}

// assertingStore is a store whose server ends when another one writes.
type assertingStore struct {
	store.Store
	server *Server
}

func (w assertingStore) see(err error) error {
	if errors.Is(err, store.ErrSuperseded) {
		w.server.leave(err)
	}
	return err
}

// Apply is part of store.Store.
func (w assertingStore) Apply(ctx context.Context, records []taskqueue.Record) error {
	return w.see(w.Store.Apply(ctx, records))
}

// Load is part of store.Store.
func (w assertingStore) Load(ctx context.Context, table string) ([]taskqueue.Record, error) {
	all, err := w.Store.Load(ctx, table)
	return all, w.see(err)
}

// Each is part of store.Store.
func (w assertingStore) Each(ctx context.Context, table string, take func(taskqueue.Record) error) error {
	return w.see(w.Store.Each(ctx, table, take))
}

// LoadPart is part of store.Store.
func (w assertingStore) LoadPart(
	ctx context.Context, table string, run taskqueue.RunID, from, below string, most int,
) ([]taskqueue.Record, error) {
	part, err := w.Store.LoadPart(ctx, table, run, from, below, most)
	return part, w.see(err)
}

// ready tells who need have no token whether a server is there, and passes other calls on.
func ready(answers func(context.Context) error, next http.Handler) http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /healthz", func(w http.ResponseWriter, _ *http.Request) { plainly(w, http.StatusOK, "ok") })
	mux.HandleFunc("GET /readyz", func(w http.ResponseWriter, r *http.Request) {
		ctx, cancel := context.WithTimeout(r.Context(), readyTime)
		defer cancel()
		if err := answers(ctx); err != nil {
			plainly(w, http.StatusServiceUnavailable, "the server does not answer")
			return
		}
		plainly(w, http.StatusOK, "ok")
	})
	mux.Handle("/", next)
	return mux
}

// readyTime is how long the server may take to answer if it is ready.
const readyTime = 5 * time.Second

// replacedCalls is an interceptor that has whoever asks a server that was replaced ask the next one: whatever failed,
// and whatever it was going to say when its lease is over. What the server knows then is what was, before it was frozen
// or cut off.
type replacedCalls struct{ server *Server }

func (c replacedCalls) see(err error) error {
	if err != nil && IsReplaced(c.server.leaving()) || c.server.outlived() {
		return errReplaced()
	}
	return err
}

// outlived reports whether another server may be active since the lease of this one is over.
func (s *Server) outlived() bool {
	b := s.config.Standby
	return b != nil && !b.member.Current()
}

func (s *Server) answers(ctx context.Context) error {
	if s.outlived() {
		return errReplaced()
	}
	return s.service().Answers(ctx)
}

func errReplaced() error {
	return connect.NewError(connect.CodeUnavailable, errors.New("another server is active by now, or may be; ask again"))
}

// whileCurrent answers for a server whose lease is over, before it is looked who asks: tokens that another server has
// given since would not be known.
func (s *Server) whileCurrent(next http.Handler) http.Handler {
	if s.config.Standby == nil {
		return next
	}
	refusals := connect.NewErrorWriter()
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch {
		case !s.outlived():
			next.ServeHTTP(w, r)
		case refusals.IsSupported(r):
			_ = refusals.Write(w, r, errReplaced())
		default:
			http.Error(w, "another server is active by now, or may be: try again", http.StatusServiceUnavailable)
		}
	})
}

// WrapUnary is part of connect.Interceptor.
func (c replacedCalls) WrapUnary(next connect.UnaryFunc) connect.UnaryFunc {
	return func(ctx context.Context, r connect.AnyRequest) (connect.AnyResponse, error) {
		answer, err := next(ctx, r)
		if err = c.see(err); err != nil {
			return nil, err
		}
		return answer, nil
	}
}

// WrapStreamingClient is part of connect.Interceptor.
func (c replacedCalls) WrapStreamingClient(next connect.StreamingClientFunc) connect.StreamingClientFunc {
	return next
}

// WrapStreamingHandler is part of connect.Interceptor.
func (c replacedCalls) WrapStreamingHandler(next connect.StreamingHandlerFunc) connect.StreamingHandlerFunc {
	return func(ctx context.Context, conn connect.StreamingHandlerConn) error { return c.see(next(ctx, conn)) }
}
