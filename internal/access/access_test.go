package access

import (
	"context"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"connectrpc.com/connect"

	"fairway/internal/wire"
)

func authority(t *testing.T) *Authority {
	t.Helper()
	a, err := OpenAuthority(filepath.Join(t.TempDir(), "authority"), "id")
	if err != nil {
		t.Fatal(err)
	}
	return a
}

// echo is a TaskQueue that says who called.
type echo struct{}

func (echo) Sync(ctx context.Context, _ *wire.SyncRequest) (*wire.SyncAnswer, error) {
	c, ok := CallerOf(ctx)
	return &wire.SyncAnswer{Why: fmt.Sprint(c.Launch, " at ", c.Site, " ", ok)}, nil
}

// testServer listens on the loopback with an authority.
type testServer struct {
	authority *Authority
	tokens    *Tokens
	addresses []string
	http      *http.Server
}

func serve(t *testing.T, a *Authority, port int) *testServer {
	t.Helper()
	s := &testServer{authority: a, tokens: NewTokens()}
	listener, addresses, err := Listen("127.0.0.1:0", port, a)
	if err != nil {
		t.Fatal(err)
	}
	path, handler := wire.NewTaskQueueHandler(echo{}, connect.WithReadMaxBytes(1<<20))
	s.addresses = addresses
	s.http = NewServer(Handler(s.tokens, map[string]http.Handler{
		path: Timed(handler), "/files/": Timed(http.NotFoundHandler()),
	}), slog.New(slog.DiscardHandler))
	go s.http.Serve(listener)
	t.Cleanup(func() { s.http.Close() })
	return s
}

func (s *testServer) launch(name string) Connection {
	c := Connection{Addresses: s.addresses, Pin: s.authority.Pin(), Launch: name, Token: NewToken(), Site: "cluster"}
	s.tokens.Allow(c.Grant())
	return c
}

func call(t *testing.T, l *Line) (string, error) {
	t.Helper()
	client := l.Client(1)
	defer client.CloseIdleConnections()
	answer, err := wire.NewTaskQueueClient(client, BaseURL).Sync(t.Context(), &wire.SyncRequest{Pilot: "p"})
	return answer.GetWhy(), err
}

func TestCallersAreKnownByTheirTokens(t *testing.T) {
	s := serve(t, authority(t), 0)
	a, b := s.launch("site-1"), s.launch("site-2")
	if said, err := call(t, NewLine(a)); err != nil || said != "site-1 at cluster true" {
		t.Error(said, err)
	}
	refused := func(what string, c Connection, sentence string) {
		t.Helper()
		_, err := call(t, NewLine(c))
		said, ok := Refused(err)
		if !ok || !strings.Contains(said, sentence) || c.Token != "" && strings.Contains(said, string(c.Token)) {
			t.Errorf("%s: %v %q, want %q", what, err, said, sentence)
		}
	}
	of := func(c Connection, change func(*Connection)) Connection { change(&c); return c }
	refused("a token of another launch", of(a, func(c *Connection) { c.Token = b.Token }),
		"the token is not that of the launch")
	refused("a wrong token", of(a, func(c *Connection) { c.Token = NewToken() }), "use the connection file")
	refused("a launch that there is not", of(a, func(c *Connection) { c.Launch = "site-3" }), `"site-3" has ended, or never was`)
	refused("no token", of(a, func(c *Connection) { c.Token = "" }), "fairway pilot --connect FILE")
	s.tokens.Revoke("site-1")
	refused("a launch that has ended", a, "not wanted any more")
	if _, err := call(t, NewLine(b)); err != nil {
		t.Error("another launch:", err)
	}
}

func TestATokenIsGoodForSyncOnly(t *testing.T) {
	s := serve(t, authority(t), 0)
	client := NewLine(s.launch("site-1")).Client(1)
	defer client.CloseIdleConnections()
	_, err := wire.NewWorkflowClient(client, BaseURL).ListJobs(t.Context(), &wire.ListJobsRequest{})
	if said, ok := Refused(err); !ok || connect.CodeOf(err) != connect.CodePermissionDenied ||
		!strings.Contains(said, "for its own Sync") {
		t.Error(err)
	}
	for path, want := range map[string]int{
		"/":             http.StatusForbidden,
		"/debug/pprof/": http.StatusForbidden,
		"/files/x":      http.StatusNotFound,
	} {
		answer, err := client.Get(BaseURL + path)
		if err != nil {
			t.Fatal(err)
		}
		answer.Body.Close()
		if answer.StatusCode != want {
			t.Error(path, answer.Status)
		}
	}
}

// A pilot is a guest on a machine that others administer: what it holds must not cancel a
// person's jobs, nor read their logs. Nor is a person's token good as that of a pilot.
func TestPeopleAndPilotsHaveTokensOfTheirOwn(t *testing.T) {
	person := Connection{
		Launch: Person, Token: NewToken(), Addresses: []string{"h:1"}, Pin: "sha256:" + strings.Repeat("0", 64),
	}
	pilot := Connection{Launch: "site-1", Token: NewToken()}
	people, pilots := NewTokens(), NewTokens()
	people.Allow(person.Grant())
	pilots.Allow(pilot.Grant())
	say := func(who string) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, who) })
	}
	handler := ByCaller(
		Handler(people, map[string]http.Handler{"/workflow/": say("people")}),
		Handler(pilots, map[string]http.Handler{"/sync/": say("pilots")}),
	)
	for _, c := range []struct {
		name, path string
		token      Token
		want       int
	}{
		{Person, "/workflow/stop", person.Token, http.StatusOK},
		{Person, "/sync/", person.Token, http.StatusForbidden},
		{Person, "/workflow/stop", pilot.Token, http.StatusUnauthorized},
		{Person, "/workflow/stop", "", http.StatusUnauthorized},
		{"site-1", "/sync/", pilot.Token, http.StatusOK},
		{"site-1", "/workflow/stop", pilot.Token, http.StatusForbidden},
		{"site-1", "/workflow/stop", person.Token, http.StatusUnauthorized},
	} {
		r := httptest.NewRequest(http.MethodGet, c.path, nil)
		r.Header.Set(launchHeader, c.name)
		r.Header.Set(tokenHeader, tokenScheme+string(c.token))
		w := httptest.NewRecorder()
		handler.ServeHTTP(w, r.WithContext(withConnection(r.Context(), nil)))
		if w.Code != c.want {
			t.Errorf("%s at %s: %d %s, want %d", c.name, c.path, w.Code, w.Body, c.want)
		}
	}
}

// Before the token is known to be good, not a byte of the body is read.
func TestNothingIsReadFromStrangers(t *testing.T) {
	tokens := NewTokens()
	handler := Handler(tokens, map[string]http.Handler{
		"/": http.HandlerFunc(func(http.ResponseWriter, *http.Request) { t.Error("called") }),
	})
	for _, contentType := range []string{"application/proto", "application/octet-stream"} {
		r := httptest.NewRequest("POST", "/fairway.v1.TaskQueue/Sync", unreadable{t})
		r.Header.Set("Content-Type", contentType)
		w := httptest.NewRecorder()
		handler.ServeHTTP(w, r)
		if w.Code != http.StatusUnauthorized || !strings.Contains(w.Body.String(), "has no token") {
			t.Error(w.Code, w.Body)
		}
	}
}

type unreadable struct{ t *testing.T }

func (u unreadable) Read([]byte) (int, error) {
	u.t.Error("the body was read")
	return 0, io.EOF
}

func TestAPilotTalksToItsServerOnly(t *testing.T) {
	s := serve(t, authority(t), 0)
	c := s.launch("site-1")
	other := serve(t, authority(t), 0)
	other.tokens.Allow(Grant{Launch: "site-1"})
	c.Addresses = other.addresses
	if _, err := call(t, NewLine(c)); !errors.Is(err, ErrOtherServer) &&
		!strings.Contains(fmt.Sprint(err), ErrOtherServer.Error()) {
		t.Error(err)
	}
	c.Addresses = append(c.Addresses, s.addresses...)
	if said, err := call(t, NewLine(c)); err != nil || said != "site-1 at cluster true" {
		t.Error("the next address:", said, err)
	}
	plain := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		t.Error("a call without TLS:", r.Header)
	}))
	defer plain.Close()
	c.Addresses = []string{plain.Listener.Addr().String()}
	if _, err := call(t, NewLine(c)); err == nil {
		t.Error("a server without TLS was believed")
	}
}

// An address at which nobody answers does not keep the pilot from the next one.
func TestASilentAddressHoldsNobodyUp(t *testing.T) {
	s := serve(t, authority(t), 0)
	c := s.launch("site-1")
	for range 4 {
		silent, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		defer silent.Close()
		c.Addresses = append([]string{silent.Addr().String()}, c.Addresses...)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 2*DialTime) // one after the other would take 4 times DialTime
	defer cancel()
	l := NewLine(c)
	conn, err := l.dial(ctx)
	if err != nil {
		t.Fatal(err)
	}
	conn.Close()
	if good := c.Addresses[4]; l.Reached() != good {
		t.Error(l.Reached(), "and not", good)
	}
}

// A server that holds the certificate of another, but not its key, is not it.
func TestTheCertificateAloneProvesNothing(t *testing.T) {
	real, liar := authority(t), authority(t)
	settings, err := liar.ServerTLS()
	if err != nil {
		t.Fatal(err)
	}
	for _, chain := range [][][]byte{
		{settings.Certificates[0].Certificate[0], real.certificate.Raw},
		{real.certificate.Raw},
		{real.certificate.Raw, settings.Certificates[0].Certificate[0]},
	} {
		var parsed []byte
		for _, c := range chain {
			parsed = append(parsed, c...)
		}
		certificates, err := x509.ParseCertificates(parsed)
		if err != nil {
			t.Fatal(err)
		}
		if err := verify(certificates, real.Pin()); !errors.Is(err, ErrOtherServer) {
			t.Error(err)
		}
	}
}

func TestALineFollowsTheConnectionFile(t *testing.T) {
	a := authority(t)
	s := serve(t, a, 0)
	c := s.launch("site-1")
	file := filepath.Join(t.TempDir(), "site-1.connect")
	if err := c.Write(file); err != nil {
		t.Fatal(err)
	}
	l, err := OpenLine(file)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := call(t, l); err != nil {
		t.Fatal(err)
	}
	s.http.Close()
	if _, err := call(t, l); err == nil {
		t.Fatal("nobody is there")
	} else if _, refused := Refused(err); refused {
		t.Error("an absent server refuses nobody:", err)
	}
	again := serve(t, a, 0)
	again.tokens.Allow(c.Grant())
	if _, err := Move(file, again.addresses, a.Pin()); err != nil {
		t.Fatal(err)
	}
	if said, err := call(t, l); err != nil || said != "site-1 at cluster true" {
		t.Error(said, err)
	}
	if l.Gone() {
		t.Error("the file is there")
	}
	if err := os.Remove(file); err != nil || !l.Gone() {
		t.Error("the file is not there", err)
	}
	if _, err := call(t, l); err != nil {
		t.Error("what was known before holds:", err)
	}
	if err := os.RemoveAll(filepath.Dir(file)); err != nil || l.Gone() {
		t.Error("a folder that is not there says nothing", err)
	}
}

func TestSecretsAreForTheirUserOnly(t *testing.T) {
	folder := t.TempDir()
	path := filepath.Join(folder, "authority")
	if _, err := OpenAuthority(path, "id"); err != nil {
		t.Fatal(err)
	}
	s := &testServer{authority: authority(t), tokens: NewTokens(), addresses: []string{"host:1"}}
	c := s.launch("l")
	file := filepath.Join(folder, "l.connect")
	if err := c.Write(file); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{path, file} {
		if info, err := os.Stat(name); err != nil || info.Mode() != 0o600 {
			t.Error(info.Mode(), err)
		}
		if err := os.Chmod(name, 0o640); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := OpenAuthority(path, "id"); err == nil || !strings.Contains(err.Error(), "chmod 600") {
		t.Error(err)
	}
	if _, err := ReadConnection(file); err == nil || !strings.Contains(err.Error(), "chmod 600") {
		t.Error(err)
	}
	for _, name := range []string{path, file} {
		if err := errors.Join(
			os.Chmod(name, 0o600), os.Rename(name, name+".moved"), os.Symlink(name+".moved", name),
		); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := OpenAuthority(path, "id"); err == nil || !strings.Contains(err.Error(), "is a link") {
		t.Error(err)
	}
	if _, err := ReadConnection(file); err == nil || !strings.Contains(err.Error(), "is a link") {
		t.Error(err)
	}
	if err := errors.Join(
		os.Remove(path), syscall.Mkfifo(path, 0o600), os.Remove(file), os.Mkdir(file, 0o700),
	); err != nil {
		t.Fatal(err)
	}
	if _, err := OpenAuthority(path, "id"); err == nil || !strings.Contains(err.Error(), "is not a regular file") {
		t.Error(err)
	}
	if _, err := ReadConnection(file); err == nil || !strings.Contains(err.Error(), "is not a regular file") {
		t.Error(err)
	}
	if text := fmt.Sprintf("%v %+v %#v %s", c, c, c, c.Token); strings.Contains(text, string(c.Token)) {
		t.Error("printed:", text)
	}
}

// A server compares several tickets for each job that ends.
func TestATicketIsOfOneAttemptAndMakesNoGarbage(t *testing.T) {
	c := claims(t)
	a := c.Authority
	ticket := a.Ticket(7, 1, 2)
	if !a.Gave(7, 1, 2, ticket) {
		t.Error("not its own ticket")
	}
	if a.Gave(7, 2, 1, ticket) || a.Gave(7, 1, 3, ticket) || a.Gave(7, 1<<8, 2, ticket) || a.Gave(1, 7, 2, ticket) {
		t.Error("the ticket of another attempt")
	}
	if a.Gave(7, 1, 2, ticket[:ticketSize-1]) || a.Gave(7, 1, 2, append(ticket[:ticketSize:ticketSize], 0)) ||
		a.Gave(7, 1, 2, nil) {
		t.Error("another length")
	}
	if made := testing.AllocsPerRun(100, func() { a.Gave(7, 1, 2, ticket) }); made > 0 {
		t.Errorf("comparing a ticket made %v objects", made)
	}
}

// The same for all servers of a state, another for a copy of it.
func TestAnAuthorityIsThatOfItsState(t *testing.T) {
	path := filepath.Join(t.TempDir(), "authority")
	open := func(id string) *Authority {
		a, err := OpenAuthority(path, id)
		if err != nil {
			t.Fatal(err)
		}
		return a
	}
	first := open("id")
	again := open("id")
	if first.Pin() != again.Pin() || !again.Gave(1, 1, 2, first.Ticket(1, 1, 2)) {
		t.Error("another authority")
	}
	copied := open("copy")
	if first.Pin() == copied.Pin() || copied.Gave(1, 1, 2, first.Ticket(1, 1, 2)) {
		t.Error("the authority of the original")
	}
	if err := os.WriteFile(path, []byte("damaged"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := OpenAuthority(path, "id"); err == nil || !strings.Contains(err.Error(), "remove it") {
		t.Error(err)
	}
}

func TestListenAgainAtThePortThatPilotsKnow(t *testing.T) {
	a := authority(t)
	first, addresses, err := Listen(":0", 0, a)
	if err != nil {
		t.Fatal(err)
	}
	if len(addresses) == 0 || addresses[len(addresses)-1] != fmt.Sprintf("127.0.0.1:%d", PortOf(addresses)) {
		t.Error(addresses)
	}
	port := PortOf(addresses)
	second, others, err := Listen("", port, a) // it is taken
	if err != nil || PortOf(others) == port || PortOf(others) == 0 {
		t.Fatal(others, err)
	}
	second.Close()
	first.Close()
	third, again, err := Listen("", port, a)
	if err != nil || PortOf(again) != port {
		t.Fatal(again, err)
	}
	third.Close()
	if _, _, err := Listen("nonsense", 0, a); err == nil || !strings.Contains(err.Error(), "HOST:PORT") {
		t.Error(err)
	}
	if _, named, err := Listen("localhost:0", 0, a); err != nil || len(named) != 1 ||
		!strings.HasPrefix(named[0], "localhost:") {
		t.Error(named, err)
	}
	if _, _, err := net.SplitHostPort(addresses[0]); err != nil {
		t.Error(err)
	}
}

// A message over the limit is refused, and a call that stops in its middle ends.
func TestMessagesHaveALimit(t *testing.T) {
	s := serve(t, authority(t), 0)
	client := NewLine(s.launch("site-1")).Client(1)
	defer client.CloseIdleConnections()
	_, err := wire.NewTaskQueueClient(client, BaseURL).Sync(t.Context(), &wire.SyncRequest{
		Pilot: strings.Repeat("p", 2<<20),
	})
	if _, refused := Refused(err); !refused || connect.CodeOf(err) != connect.CodeResourceExhausted {
		t.Error(err)
	}
}

func FuzzConnection(f *testing.F) {
	c := Connection{Addresses: []string{"host:1", "[::1]:2"}, Pin: pinScheme + strings.Repeat("0", 64), Launch: "l",
		Token: NewToken(), Pilot: json.RawMessage(`{"a":1}`)}
	text, err := c.Encode()
	if err != nil {
		f.Fatal(err)
	}
	f.Add(text)
	f.Add([]byte(`{"addresses":["x"]}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		c, err := decodeConnection(data)
		if err != nil {
			return
		}
		text, err := c.Encode()
		if err != nil {
			t.Fatal(err)
		}
		if again, err := decodeConnection(text); err != nil || again.Token != c.Token ||
			len(again.Addresses) != len(c.Addresses) {
			t.Fatal(again, err)
		}
	})
}

func FuzzAuthority(f *testing.F) {
	path := filepath.Join(f.TempDir(), "authority")
	if _, err := OpenAuthority(path, "id"); err != nil {
		f.Fatal(err)
	}
	text, err := os.ReadFile(path)
	if err != nil {
		f.Fatal(err)
	}
	f.Add(text)
	f.Fuzz(func(t *testing.T, data []byte) {
		if a, _, err := parseAuthority(data); err == nil && !a.Gave(1, 1, 2, a.Ticket(1, 1, 2)) {
			t.Fatal("it does not know its own tickets")
		}
	})
}

// Who finds a server that stands by passes on to the next address, and has told it nothing.
func TestAServerThatStandsByIsPassedOver(t *testing.T) {
	a := authority(t)
	s := serve(t, a, 0)
	listener, addresses, err := ListenStandby("127.0.0.1:0", a)
	if err != nil {
		t.Fatal(err)
	}
	standby := &http.Server{
		ErrorLog: slog.NewLogLogger(slog.DiscardHandler, slog.LevelDebug),
		Handler:  http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { t.Error("it was told", r.Header) }),
	}
	go standby.Serve(listener)
	t.Cleanup(func() { standby.Close() })
	c := s.launch("site-1")
	c.Addresses = addresses
	l := NewLine(c)
	if _, err := l.Dial(t.Context()); !errors.Is(err, ErrStandsBy) {
		t.Error(err)
	}
	l.Learn(s.addresses)
	if said, err := call(t, l); err != nil || said != "site-1 at cluster true" {
		t.Error(said, err)
	}
	if l.Reached() != s.addresses[0] {
		t.Error("it has reached", l.Reached())
	}
}

// A launch is not wanted whose state was removed, or made anew. A workflow that was moved, and a file system
// that is away, say nothing.
func TestAStateThatWasRemovedWantsNoPilot(t *testing.T) {
	for _, test := range []struct {
		what string
		do   func(workflow string) error
		gone bool
	}{
		{"nothing", func(string) error { return nil }, false},
		{"its state was removed", func(workflow string) error {
			return os.RemoveAll(filepath.Join(workflow, ".fairway"))
		}, true},
		{"its pilots were removed", func(workflow string) error {
			return os.RemoveAll(filepath.Join(workflow, ".fairway/pilots"))
		}, true},
		{"its state was made anew", func(workflow string) error {
			return errors.Join(os.Rename(filepath.Join(workflow, ".fairway"), filepath.Join(workflow, "aside")),
				os.MkdirAll(filepath.Join(workflow, ".fairway/pilots/other"), 0o700))
		}, true},
		{"the workflow was moved", func(workflow string) error { return os.Rename(workflow, workflow+".moved") }, false},
		{"the file system is away", func(workflow string) error {
			return errors.Join(os.Rename(workflow, workflow+".mounted"), os.Mkdir(workflow, 0o700))
		}, false},
		{"all is gone", os.RemoveAll, false},
	} {
		workflow := filepath.Join(t.TempDir(), "work")
		file := filepath.Join(workflow, ".fairway/pilots/id/site-1.connect")
		if err := os.MkdirAll(filepath.Dir(file), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := (&Connection{Addresses: []string{"127.0.0.1:1"}, Pin: "sha256:" + strings.Repeat("0", 64), Launch: "site-1",
			Token: NewToken()}).Write(file); err != nil {
			t.Fatal(err)
		}
		l, err := OpenLine(file)
		if err != nil {
			t.Fatal(err)
		}
		if err := test.do(workflow); err != nil {
			t.Fatal(err)
		}
		if gone := l.Gone(); gone != test.gone {
			t.Errorf("%s: the launch is not wanted: %v", test.what, gone)
		}
	}
}
