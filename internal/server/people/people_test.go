package people

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"encoding/json"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"slices"
	"strings"
	"testing"
	"time"

	"connectrpc.com/connect"
	"github.com/coreos/go-oidc/v3/oidc"
	"github.com/coreos/go-oidc/v3/oidc/oidctest"

	"fairway/internal/access"
	"fairway/internal/rights"
	"fairway/internal/store"
	"fairway/internal/taskqueue"
	"fairway/internal/wire"
)

// memory is a store of one table, in memory.
type memory struct {
	store.Store
	bodies map[string][]byte
}

func (m *memory) Load(context.Context, string) (all []taskqueue.Record, err error) {
	for key, body := range m.bodies {
		all = append(all, taskqueue.Record{Table: TokenTable, Key: key, Body: body})
	}
	return all, nil
}

func (m *memory) Apply(_ context.Context, records []taskqueue.Record) error {
	for _, r := range records {
		if m.bodies[r.Key] = r.Body; r.Body == nil {
			delete(m.bodies, r.Key)
		}
	}
	return nil
}

// door is one of a server whose file of shares has ada in physics.
func door(t *testing.T, records *memory, settings *rights.Settings, now func() time.Time) *Door {
	t.Helper()
	d, err := Open(t.Context(), Config{
		Key: rights.HashKey{1}, Store: records, Settings: settings, Now: now, Log: slog.New(slog.DiscardHandler),
		GroupsOf: func(user string) []string {
			if user == "ada" {
				return []string{"physics"}
			}
			return nil
		},
		HasGroup: func(group string) bool { return group == "physics" },
	})
	if err != nil {
		t.Fatal(err)
	}
	return d
}

func newMemory() *memory { return &memory{bodies: map[string][]byte{}} }

// provider is an identity provider, as far as who checks its proofs sees it.
func provider(t *testing.T) (issuer string, key *ecdsa.PrivateKey) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	s := &oidctest.Server{Algorithms: []string{oidc.ES256}, PublicKeys: []oidctest.PublicKey{{
		PublicKey: key.Public(),
		KeyID:     "one", Algorithm: oidc.ES256,
	}}}
	listening := httptest.NewServer(s)
	t.Cleanup(listening.Close)
	s.SetIssuer(listening.URL)
	return listening.URL, key
}

// Only a proof of the provider, for this client, that is good now and counts the first time, becomes a
// token; and only for who may use the server.
func TestLoginNeedsAProof(t *testing.T) {
	issuer, key := provider(t)
	stranger, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	d := door(t, newMemory(), &rights.Settings{Admins: []string{"root"}, Login: &rights.Login{
		Issuer: issuer, Client: "fairway", Mapping: rights.Mapping{User: "name", Groups: "groups"}, Role: rights.Submitter,
		Lasts: time.Hour,
	}}, time.Now)
	s := &Service{d}
	proof := func(by *ecdsa.PrivateKey, change map[string]any) string {
		claims := map[string]any{
			"iss": issuer, "aud": "fairway", "sub": "1", "exp": time.Now().Add(time.Hour).Unix(), "name": "ada",
		}
		for name, value := range change {
			claims[name] = value
		}
		text, err := json.Marshal(claims)
		if err != nil {
			t.Fatal(err)
		}
		return oidctest.SignIDToken(by, "one", oidc.ES256, string(text))
	}
	good := proof(key, nil)
	header, rest, _ := strings.Cut(good, ".")
	for _, c := range []struct{ name, proof, want string }{
		{"good", good, "ada submit []"},
		{"twice", good, "was used before"},
		{
			"a group that the file has", proof(key, map[string]any{"name": "eve", "groups": []string{"physics", "x"}}),
			"eve submit [physics x]",
		},
		{"nobody", proof(key, map[string]any{"name": "eve"}), "permission_denied"},
		{"an administrator", proof(key, map[string]any{"name": "root"}), "root admin []"},
		{"another key", proof(stranger, nil), "unauthenticated"},
		{"another client", proof(key, map[string]any{"aud": "other"}), "unauthenticated"},
		{"another party", proof(key, map[string]any{"aud": []string{"fairway", "other"}, "azp": "other"}), "unauthenticated"},
		{"another issuer", proof(key, map[string]any{"iss": "https://evil.example"}), "unauthenticated"},
		{"too late", proof(key, map[string]any{"exp": time.Now().Add(-time.Hour).Unix()}), "unauthenticated"},
		{"no user", proof(key, map[string]any{"name": nil}), "permission_denied"},
		{"no signature", header + "." + strings.Split(rest, ".")[0] + ".", "unauthenticated"},
		{"no algorithm", "eyJhbGciOiJub25lIn0." + strings.Split(rest, ".")[0] + ".", "unauthenticated"},
		{"nothing", "", "unauthenticated"},
	} {
		made, err := s.Login(t.Context(), &wire.LoginRequest{IdToken: c.proof})
		got := fmt.Sprint(err)
		if err == nil {
			p, _, err := d.Token(made.GetToken())
			got = fmt.Sprintf("%s %s %v %v", p.User, p.Role, p.Groups, err)
			if end := made.GetSummary().GetExpires().AsTime(); time.Until(end) > time.Hour || time.Until(end) < 50*time.Minute {
				t.Errorf("%s: it is good until %v", c.name, end)
			}
		}
		if !strings.Contains(got, c.want) {
			t.Errorf("%s: %s, want %s", c.name, got, c.want)
		}
	}
	for range 2 * MaxLogins {
		if _, err := s.Login(t.Context(), &wire.LoginRequest{IdToken: proof(key,
			map[string]any{"jti": rand.Text()})}); err != nil {
			t.Fatal(err)
		}
	}
	of := func(user string) (n int) {
		for _, token := range d.listed(rights.Owner) {
			if token.User == user {
				n++
			}
		}
		return n
	}
	if of("ada") != MaxLogins || of("eve") != 1 {
		t.Errorf("ada has %d tokens of logins, and eve %d", of("ada"), of("eve"))
	}
}

// A server is there although its identity provider is not.
func TestProviderThatIsAway(t *testing.T) {
	d := door(t, newMemory(), &rights.Settings{Login: &rights.Login{Issuer: "http://127.0.0.1:1", Client: "x"}}, time.Now)
	if _, err := (&Service{d}).Login(t.Context(),
		&wire.LoginRequest{IdToken: "x"}); connect.CodeOf(err) != connect.CodeUnavailable {
		t.Error(err)
	}
	none := door(t, newMemory(), &rights.Settings{}, time.Now)
	if _, err := (&Service{none}).LoginWay(t.Context(), nil); connect.CodeOf(err) != connect.CodeFailedPrecondition {
		t.Error(err)
	}
}

// A header names a user where the proxy of the settings has set it, and nowhere else.
func TestHeadersOfProxies(t *testing.T) {
	d := door(t, newMemory(), &rights.Settings{Admins: []string{"root"}, Proxy: &rights.Proxy{
		Addresses: []netip.Prefix{netip.MustParsePrefix("10.0.0.0/24")}, User: "X-User", Groups: "X-Groups",
		Role: rights.Reader,
	}}, time.Now)
	for name, c := range map[string]struct {
		from   string
		socket bool
		header http.Header
		want   string
	}{
		"the proxy": {"10.0.0.7:1234", false, http.Header{"X-User": {"ada"}}, "ada read [] true <nil>"},
		"over IPv6": {
			"[::ffff:10.0.0.7]:1234", false,
			http.Header{"X-User": {"ada"}},
			"ada read [] true <nil>",
		},
		"groups": {
			"10.0.0.7:1", false,
			http.Header{"X-User": {"eve"}, "X-Groups": {"physics, ops"}},
			"eve read [ops physics] true <nil>",
		},
		"its socket":          {"@", true, http.Header{"X-User": {"root"}}, "root admin [] true <nil>"},
		"another address":     {"10.0.1.7:1234", false, http.Header{"X-User": {"root"}}, "  [] false <nil>"},
		"this machine":        {"127.0.0.1:1234", false, http.Header{"X-User": {"root"}}, "  [] false <nil>"},
		"another socket":      {"@", false, http.Header{"X-User": {"root"}}, "  [] false <nil>"},
		"nobody named":        {"10.0.0.7:1234", false, http.Header{}, "  [] false <nil>"},
		"two are named":       {"10.0.0.7:1234", false, http.Header{"X-User": {"ada", "root"}}, "names no user"},
		"two in one":          {"10.0.0.7:1234", false, http.Header{"X-User": {"ada, root"}}, "names no user"},
		"empty":               {"10.0.0.7:1234", false, http.Header{"X-User": {""}}, "names no user"},
		"whom the file lacks": {"10.0.0.7:1234", false, http.Header{"X-User": {"eve"}}, "may not use this server"},
		"a proxy behind the proxy": {"10.0.1.7:1234", false, http.Header{
			"X-User":          {"root"},
			"X-Forwarded-For": {"10.0.0.7"},
		}, "  [] false <nil>"},
	} {
		var got string
		h := http.Handler(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
			p, named, err := d.Proxied(r)
			got = fmt.Sprint(p.User, " ", p.Role, " ", p.Groups, " ", named, " ", err)
		}))
		if c.socket {
			h = OfProxy(h)
		}
		r := httptest.NewRequest(http.MethodGet, "/", nil)
		r.RemoteAddr, r.Header = c.from, c.header
		h.ServeHTTP(httptest.NewRecorder(), r)
		if !strings.Contains(got, c.want) {
			t.Errorf("%s: %s, want %s", name, got, c.want)
		}
	}
}

// Tokens survive a restart as hashes, are another server's in a copy, and are forgotten long after they
// have expired. A site is that of pilots only.
func TestTokensAreKept(t *testing.T) {
	records, now := newMemory(), time.Date(2026, 11, 27, 12, 0, 0, 0, time.UTC)
	clock := func() time.Time { return now }
	d := door(t, records, &rights.Settings{}, clock)
	_, forever, err := d.issue(t.Context(), rights.Token{User: "ada", Role: rights.Admin, How: rights.ByToken})
	if err != nil {
		t.Fatal(err)
	}
	short, brief, err := d.issue(t.Context(), rights.Token{
		User: "ada", Role: rights.Reader, How: rights.ByToken,
		Expires: now.Add(time.Hour),
	})
	if err != nil {
		t.Fatal(err)
	}
	pilot, work, err := d.issue(t.Context(), rights.Token{Site: "cluster", Role: rights.Pilot, How: rights.ByToken})
	if err != nil {
		t.Fatal(err)
	}
	for _, body := range records.bodies {
		for _, text := range []string{forever, brief, work} {
			if _, secret, _ := rights.Split(text); strings.Contains(string(body), secret) {
				t.Errorf("the record %s has a secret", body)
			}
		}
	}
	for launch, want := range map[string]string{
		"cluster+" + pilot.Number: "cluster", "cluster+" + short.Number: "", "cluster.1": "", "other+" + pilot.Number: "",
	} {
		if site, err := d.Pilot(launch, access.Token(work)); site != want || (err == nil) != (want != "") {
			t.Errorf("launch %s: site %q, %v", launch, site, err)
		}
	}
	if site, err := d.Pilot("cluster+"+pilot.Number, access.Token(forever)); err == nil {
		t.Errorf("a person is a pilot of %s", site)
	}
	copied, err := Open(t.Context(), Config{
		Key: rights.HashKey{2}, Store: records, Settings: &rights.Settings{},
		Now: clock,
	})
	if err != nil || len(copied.listed(rights.Owner)) != 0 {
		t.Errorf("the copy has %d tokens, %v", len(copied.listed(rights.Owner)), err)
	}
	if _, _, err := copied.Token(forever); err == nil {
		t.Error("a token is good in a copy")
	}
	now = now.Add(2 * time.Hour)
	if _, _, err := d.Token(brief); err == nil || !strings.Contains(err.Error(), "expired") {
		t.Error(err)
	}
	if d = door(t, records, &rights.Settings{}, clock); len(d.listed(rights.Owner)) != 3 {
		t.Error("tokens are lost")
	}
	now = now.Add(ExpiredTime)
	d = door(t, records, &rights.Settings{}, clock)
	if slices.ContainsFunc(d.listed(rights.Owner), func(i *issued) bool { return i.Number == short.Number }) ||
		len(records.bodies) != 2 {
		t.Error("what has expired long ago is kept")
	}
	if _, _, err := d.Token(forever); err != nil {
		t.Error(err)
	}
}

// What a person did is told without what is secret in it.
func TestAboutTellsNoSecrets(t *testing.T) {
	const secret = "s3cr3t"
	for want, c := range map[string]struct{ request, response any }{
		"5 w.yaml with the key k": {&wire.SubmitWorkflowRequest{
			File: "w.yaml", Key: "k", Workflow: []byte(secret), Parameters: map[string]string{"password": secret},
			Uploads: []*wire.UploadedFile{{Path: "x", Content: []byte(secret)}},
		}, &wire.SubmitWorkflowResponse{Run: 5}},
		"0 token k with the role admin for ada": {&wire.CreateTokenRequest{}, &wire.CreateTokenResponse{
			Summary: &wire.TokenSummary{Number: "k", Role: "admin", User: "ada"}, Token: secret, Connection: []byte(secret),
		}},
		"0 token k with the role submit for ada": {
			&wire.LoginRequest{IdToken: secret, AccessToken: secret},
			&wire.LoginResponse{
				Summary: &wire.TokenSummary{Number: "k", Role: "submit", User: "ada"}, Token: secret,
			},
		},
		"0 ":                              {&wire.LoginRequest{IdToken: secret}, nil},
		"3 2 jobs":                        {&wire.SubmitRequest{Run: 3, Jobs: make([]*wire.SubmittedJob, 2)}, nil},
		"4 jobs a, b, c, d, e and 2 more": {&wire.CancelRequest{Run: 4, Jobs: strings.Split("a b c d e f g", " ")}, nil},
		"0 runs 1, 2, dry":                {&wire.RemoveRunsRequest{Runs: []uint32{1, 2}, DryRun: true}, nil},
		"0 the server":                    {&wire.StopRequest{}, nil},
	} {
		run, text := about(c.request, c.response)
		if got := fmt.Sprint(run, " ", text); got != want || strings.Contains(got, secret) {
			t.Errorf("%T: %s, want %s", c.request, got, want)
		}
	}
}

func FuzzProxied(f *testing.F) {
	f.Add("10.0.0.7:1", "ada", "a,b")
	f.Fuzz(func(t *testing.T, from, user, groups string) {
		d := door(t, newMemory(), &rights.Settings{Proxy: &rights.Proxy{
			Addresses: []netip.Prefix{netip.MustParsePrefix("10.0.0.0/24")}, User: "X-User", Groups: "X-Groups",
			Role: rights.Reader, Everybody: true,
		}}, time.Now)
		r := httptest.NewRequest(http.MethodGet, "/", nil)
		r.RemoteAddr, r.Header = from, http.Header{"X-User": {user}, "X-Groups": {groups}}
		p, named, err := d.Proxied(r)
		if err == nil && named && (!taskqueue.NamesShare(p.User) || p.Role != rights.Reader) || !named && p.Role != "" {
			t.Errorf("%+v", p)
		}
	})
}

func FuzzToken(f *testing.F) {
	d := func(t *testing.T) (*Door, string) {
		d := door(t, newMemory(), &rights.Settings{}, time.Now)
		_, text, err := d.issue(t.Context(), rights.Token{User: "ada", Role: rights.Admin, How: rights.ByToken})
		if err != nil {
			t.Fatal(err)
		}
		return d, text
	}
	f.Add("fairway_aaaaaaaaaa_" + strings.Repeat("A", rights.SecretLength))
	f.Add("")
	f.Fuzz(func(t *testing.T, guess string) {
		if d, text := d(t); guess != text {
			if p, _, err := d.Token(guess); err == nil || p.Role != "" {
				t.Errorf("%q lets in %+v", guess, p)
			}
		}
	})
}
