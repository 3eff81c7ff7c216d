package rights

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"google.golang.org/protobuf/reflect/protoreflect"

	"fairway/internal/taskqueue"
	"fairway/internal/wire"
)

// Every call of every service has a row in the table, and there are no other rows.
func TestEveryCallHasARow(t *testing.T) {
	calls := map[string]bool{}
	for _, file := range []protoreflect.FileDescriptor{
		wire.File_api_proto, wire.File_rights_proto,
		wire.File_pilot_proto,
	} {
		for i := range file.Services().Len() {
			service := file.Services().Get(i)
			for k := range service.Methods().Len() {
				calls[fmt.Sprintf("/%s/%s", service.FullName(), service.Methods().Get(k).Name())] = true
			}
		}
	}
	for call := range calls {
		if Calls[call] == Nobody {
			t.Errorf("%s has no row: say in Calls who may make it", call)
		}
	}
	for call := range Calls {
		if !calls[call] {
			t.Errorf("%s has a row, and there is no such call", call)
		}
	}
}

// What each role may do, and what nobody may.
func TestRoles(t *testing.T) {
	want := map[Role]string{
		Pilot: "anybody work", Reader: "anybody look watch", Submitter: "anybody look watch change submit",
		Admin: "anybody look watch change submit administer", "": "", "root": "",
	}
	for role, actions := range want {
		var may []string
		for a := Nobody; a <= Work; a++ {
			if role.May(a) {
				may = append(may, a.String())
			}
		}
		if got := strings.Join(may, " "); got != actions {
			t.Errorf("%s may %s, want %s", role, got, actions)
		}
	}
}

// Whose runs one sees.
func TestSees(t *testing.T) {
	run := taskqueue.Account{Group: "physics", User: "ada"}
	for _, c := range []struct {
		who    Principal
		byFile []string
		run    taskqueue.Account
		want   bool
	}{
		{Principal{User: "ada", Role: Reader}, nil, run, true},
		{Principal{User: "bob", Role: Submitter}, nil, run, false},
		{Principal{User: "bob", Role: Submitter}, []string{"physics"}, run, true},
		{Principal{User: "bob", Role: Submitter, Groups: []string{"physics"}}, nil, run, true},
		{Principal{User: "bob", Role: Submitter}, []string{"physics/higgs", ""}, run, false},
		{Principal{User: "bob", Role: Submitter}, []string{""}, taskqueue.Account{User: "ada"}, false},
		{Principal{User: "bob", Role: Admin}, nil, run, true},
		{Owner, nil, run, true},
		{Principal{User: "", Role: Submitter}, nil, taskqueue.Account{}, false},
		{Principal{User: "ada", Role: Pilot}, nil, run, false},
		{Principal{User: "ada"}, nil, run, false},
		{Principal{}, nil, taskqueue.Account{}, false},
	} {
		if got := c.who.Sees(c.run, c.byFile); got != c.want {
			t.Errorf("%+v with %v sees the run of %v: %v", c.who, c.byFile, c.run, got)
		}
	}
	if p := Of(context.Background()); p.Role.May(Anybody) || p.Sees(run, nil) {
		t.Errorf("without a principal something is allowed: %+v", p)
	}
}

var (
	noon   = time.Date(2026, 11, 27, 12, 0, 0, 0, time.UTC)
	number = strings.Repeat("a", NumberLength)
	secret = strings.Repeat("A", SecretLength)
)

func TestTokensAreChecked(t *testing.T) {
	key, other := HashKey{1}, HashKey{2}
	text := Text(number, secret)
	token := &Token{Number: number, User: "ada", Role: Submitter, Hash: key.Hash(text), Expires: noon.Add(time.Hour)}
	for name, c := range map[string]struct {
		key   HashKey
		token *Token
		text  string
		now   time.Time
		want  string
	}{
		"good":                   {key, token, text, noon, ""},
		"never expires":          {key, &Token{Hash: key.Hash(text)}, text, noon, ""},
		"expired":                {key, token, text, noon.Add(time.Hour), "has expired at 2026-11-27T13:00:00Z"},
		"another secret":         {key, token, Text(number, strings.Repeat("B", SecretLength)), noon, ErrBadToken.Error()},
		"expired and no secret":  {key, token, Text(number, strings.Repeat("B", SecretLength)), noon.Add(time.Hour), ErrBadToken.Error()},
		"unknown":                {key, nil, text, noon, ErrBadToken.Error()},
		"another server's":       {other, token, text, noon, ErrBadToken.Error()},
		"without a hash":         {key, &Token{}, text, noon, ErrBadToken.Error()},
		"empty":                  {key, token, "", noon, ErrBadToken.Error()},
		"the hash instead of it": {key, token, string(token.Hash), noon, ErrBadToken.Error()},
	} {
		err := c.key.Check(c.token, c.text, c.now)
		if c.want == "" && err != nil || c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if key.State() == other.State() {
		t.Error("two servers have the same state")
	}
}

func TestTokensThatCannotBe(t *testing.T) {
	for want, token := range map[string]Token{
		"":                       {Role: Submitter, User: "ada", Expires: noon.Add(time.Hour)},
		"there is no role":       {Role: "root", User: "ada"},
		"names its site":         {Role: Pilot},
		"and no user":            {Role: Pilot, Site: "cluster", User: "ada"},
		"only tokens of pilots":  {Role: Reader, User: "ada", Site: "cluster"},
		"cannot be the name":     {Role: Reader, User: "a/b"},
		"would have expired":     {Role: Reader, User: "ada", Expires: noon},
		"within ten years":       {Role: Reader, User: "ada", Expires: noon.Add(2 * MaxLife)},
		"the note has 201 bytes": {Role: Reader, User: "ada", Note: strings.Repeat("x", 201)},
	} {
		err := token.Verify(noon)
		if want == "" && err != nil || want != "" && (err == nil || !strings.Contains(err.Error(), want)) {
			t.Errorf("%+v: %v", token, err)
		}
	}
}

func TestClaimsNameUserAndGroups(t *testing.T) {
	for _, c := range []struct {
		mapping Mapping
		claims  map[string]any
		want    string
	}{
		{Mapping{"preferred_username", "groups"}, map[string]any{"preferred_username": "ada", "groups": []any{"/physics", "ops", "ops", "a b", 7}}, "ada [ops physics] <nil>"},
		{Mapping{"sub", "realm_access.roles"}, map[string]any{"sub": "x1", "realm_access": map[string]any{"roles": []any{"a/b"}}}, "x1 [a/b] <nil>"},
		{Mapping{"https://x.org/name", "https://x.org/groups"}, map[string]any{"https://x.org/name": "ada", "https://x.org/groups": "a, b"}, "ada [a b] <nil>"},
		{Mapping{"preferred_username", ""}, map[string]any{"preferred_username": "ada"}, "ada [] <nil>"},
		{Mapping{"preferred_username", "groups"}, map[string]any{"sub": "x"}, " [] the identity provider tells no claim preferred_username, which is to name the user"},
		{Mapping{"sub", "groups"}, map[string]any{"sub": 7}, "the claim sub cannot be the name of a user"},
		{Mapping{"sub", "groups"}, map[string]any{"sub": "a\nb"}, "cannot be the name"},
		{Mapping{"email", "groups"}, map[string]any{"email": "a@b.org", "email_verified": false}, "has not verified"},
		{Mapping{"email", "groups"}, map[string]any{"email": "a@b.org", "email_verified": true}, "a@b.org [] <nil>"},
	} {
		user, groups, err := c.mapping.Named(c.claims)
		if got := fmt.Sprint(user, " ", groups, " ", err); !strings.Contains(got, c.want) {
			t.Errorf("%v: %s, want %s", c.claims, got, c.want)
		}
	}
}

func TestFileOfRights(t *testing.T) {
	s, err := Parse("rights.yaml", []byte(`
admins: [ada]
login:
  issuer: https://id.example.org
  client: fairway
  groups: realm_access.roles
  scopes: [email]
  role: read
  lasts: 8h
proxy:
  addresses: [10.0.0.7, 192.168.4.9/24]
  socket: /run/fairway/proxy
  peers: www-data
  groups: X-Remote-Groups
  everybody: true
`))
	if err != nil {
		t.Fatal(err)
	}
	if !slices.Equal(s.Admins, []string{"ada"}) || s.Login.Mapping != (Mapping{DefaultUserClaim, "realm_access.roles"}) ||
		fmt.Sprint(s.Login.Scopes) != "[openid email]" || s.Login.Role != Reader || s.Login.Lasts != 8*time.Hour ||
		s.Login.Everybody {
		t.Errorf("%+v", s.Login)
	}
	if fmt.Sprint(s.Proxy.Addresses) != "[10.0.0.7/32 192.168.4.0/24]" || s.Proxy.User != "X-Remote-User" ||
		!s.Proxy.Everybody || s.Proxy.Role != Submitter || !slices.Equal(s.Proxy.Peers, []string{"www-data"}) {
		t.Errorf("%+v", s.Proxy)
	}
	for text, want := range map[string]string{
		"login: {client: x}": "login needs the URL of an issuer",
		"login: {issuer: 'http://id.example.org', client: x}":           "with https",
		"login: {issuer: 'https://id.example.org'}":                     "login names no client",
		"login: {issuer: 'http://localhost:1', client: x, lasts: 400d}": "cannot last",
		"login: {issuer: 'http://127.0.0.1:1', client: x, role: admin}": "is no role of users",
		"oidc: {}":                                            "write `login:`",
		"proxy: {}":                                           "does not say where the proxy is",
		"proxy: {addresses: [127.0.0.1]}":                     "every user of this machine",
		"proxy: {addresses: ['::1']}":                         "every user of this machine",
		"proxy: {addresses: [0.0.0.0/0]}":                     "is everybody",
		"proxy: {addresses: [here]}":                          "is no address",
		"proxy: {socket: /run/x}":                             "which users of this machine",
		"proxy: {socket: run/x, peers: [a]}":                  "no absolute path",
		"proxy: {addresses: [10.0.0.7], user: Authorization}": "cannot be that header",
		"proxy: {addresses: [10.0.0.7], groups: 'X Y'}":       "cannot be that header",
		"proxy: {addresses: [10.0.0.7], everybody: perhaps}":  "everybody",
		"admins: [a/b]":                                       "cannot be the name of a user",
		"":                                                    "the file is empty",
	} {
		if _, err := Parse("rights.yaml", []byte(text)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", text, err)
		}
	}
}

func FuzzSplit(f *testing.F) {
	f.Add(Text(number, secret))
	f.Add("fairway__")
	f.Fuzz(func(t *testing.T, text string) {
		number, secret, ok := Split(text)
		if ok && (Text(number, secret) != text || len(number) != NumberLength) {
			t.Errorf("%q became %q and %q", text, number, secret)
		}
	})
}

func FuzzParse(f *testing.F) {
	f.Add([]byte("login: {issuer: 'https://x.org', client: y}"))
	f.Add([]byte("proxy: {addresses: [10.0.0.7], user: X-U}"))
	f.Fuzz(func(t *testing.T, text []byte) {
		if s, err := Parse("r.yaml", text); (s == nil) == (err == nil) {
			t.Errorf("%v, %v", s, err)
		}
	})
}

func FuzzNamed(f *testing.F) {
	f.Add("user", "a.b.c", "x,y")
	f.Fuzz(func(t *testing.T, user, claim, groups string) {
		claims := map[string]any{claim: groups, "user": user, "a": map[string]any{"b": map[string]any{"c": []any{
			groups, 1,
			nil,
		}}}}
		before := len(claims)
		name, in, err := Mapping{"user", claim}.Named(claims)
		if err == nil && !taskqueue.NamesShare(name) || len(slices.Collect(maps.Keys(claims))) != before {
			t.Errorf("%q in %v", name, in)
		}
		for _, g := range in {
			if strings.HasPrefix(g, "/") || g == "" {
				t.Errorf("the group %q", g)
			}
		}
	})
}
