package rights

import (
	"net/netip"
	"net/url"
	"slices"
	"strings"
	"time"

	"go.yaml.in/yaml/v3"

	"fairway/internal/quantity"
	"fairway/internal/taskqueue"
	"fairway/internal/yamlfile"
)

// MaxFile bounds a file of rights, in bytes.
const MaxFile = 1 << 20

// Settings are what a file says of who may ask a server.
type Settings struct {
	Admins []string // users who are administrators when a login or a proxy names them
	Login  *Login   // nil: nobody logs in
	Proxy  *Proxy   // nil: no proxy is trusted
}

// Login says which identity provider (OpenID Connect) people log in at.
type Login struct {
	Issuer string
	Client string // by which the provider knows Fairway
	// Secret is what some providers want of clients that are programs of people. All of these know
	// it, so it protects nothing.
	Secret  string
	Scopes  []string
	Mapping Mapping
	Role    Role
	Lasts   time.Duration
	// Everybody has all whom the provider knows come in. Otherwise the file of shares must have the
	// user, or a group of theirs.
	Everybody bool
}

// Proxy says which proxies are trusted to name users.
type Proxy struct {
	Addresses []netip.Prefix // from which they reach the server over TLS
	Socket    string         // that the server makes for one on its machine; empty: none
	Peers     []string       // users of this machine who may use the socket
	User      string         // header that names the user
	Groups    string         // header with the groups, divided by commas; empty: none
	Role      Role
	Everybody bool
}

// Defaults of keys.
const (
	DefaultUserClaim   = "preferred_username"
	DefaultGroupsClaim = "groups"
	DefaultLasts       = 12 * time.Hour
)

// FileKeys, LoginKeys and ProxyKeys are those of the file, and of its parts.
var (
	FileKeys = []yamlfile.Key[Settings]{
		{Name: "admins", Help: "users who are administrators when a login or a proxy names them", Read: func(r *yamlfile.Reader, n *yaml.Node, s *Settings, what string) { s.Admins = names(r, n, what) }},
		{Name: "login", Help: "the identity provider (OpenID Connect) that `fairway login` uses", Read: login},
		{Name: "proxy", Help: "proxies that are trusted to name users", Read: proxy},
	}
	LoginKeys = []yamlfile.Key[Login]{
		{Name: "issuer", Help: "URL of the provider", Read: text(func(l *Login) *string { return &l.Issuer })},
		{Name: "client", Help: "the client by which the provider knows Fairway, with the device flow", Read: text(func(l *Login) *string { return &l.Client })},
		{Name: "client_secret", Help: "what some providers want of it; every user of `fairway login` gets to know it", Read: text(func(l *Login) *string { return &l.Secret })},
		{Name: "scopes", Help: "scopes to ask for (default: openid, profile, groups)", Read: scopes},
		{Name: "user", Help: "claim with the name of the user (default preferred_username)", Read: text(func(l *Login) *string { return &l.Mapping.User })},
		{Name: "groups", Help: "claim with the groups, also inside others, as realm_access.roles (default groups)", Read: text(func(l *Login) *string { return &l.Mapping.Groups })},
		{Name: "role", Help: "read or submit (default submit)", Read: role(func(l *Login) *Role { return &l.Role })},
		{Name: "lasts", Help: "time after which to log in again (default 12h, at most 90d)", Read: lasts},
		{Name: "everybody", Help: "true: all whom the provider knows; otherwise those whom the file of shares has, or a group of theirs", Read: yamlfile.Into(yamlfile.Flag, func(l *Login) *bool { return &l.Everybody })},
	}
	ProxyKeys = []yamlfile.Key[Proxy]{
		{Name: "addresses", Help: "addresses or networks of proxies that reach the server over TLS, such as 10.0.0.7", Read: addresses},
		{Name: "socket", Help: "path of a socket that the server makes for a proxy on its machine", Read: text(func(p *Proxy) *string { return &p.Socket })},
		{Name: "peers", Help: "users of this machine who may use the socket, such as www-data", Read: func(r *yamlfile.Reader, n *yaml.Node, p *Proxy, what string) { p.Peers = r.Texts(n, what) }},
		{Name: "user", Help: "header that names the user (default X-Remote-User)", Read: text(func(p *Proxy) *string { return &p.User })},
		{Name: "groups", Help: "header with the groups, divided by commas (default: none)", Read: text(func(p *Proxy) *string { return &p.Groups })},
		{Name: "role", Help: "read or submit (default submit)", Read: role(func(p *Proxy) *Role { return &p.Role })},
		{Name: "everybody", Help: "true: all whom the proxy names; otherwise those whom the file of shares has, or a group of theirs", Read: yamlfile.Into(yamlfile.Flag, func(p *Proxy) *bool { return &p.Everybody })},
	}
)

// habits are keys of other systems, and what to write instead.
var habits = map[string]string{
	"oidc": "write `login:`", "client_id": "write `client:`", "url": "write `issuer:`", "header": "write `user:`",
}

// Parse reads a file of rights. file is its name for messages. The error is [yamlfile.Problems].
func Parse(file string, data []byte) (*Settings, error) {
	r := &yamlfile.Reader{
		File: file, Kind: "file of rights", Limit: MaxFile, Oversize: "name groups instead of users",
		Begin: "start with `login:` or `proxy:`",
	}
	s := &Settings{}
	if root := r.Root(data); root != nil {
		yamlfile.Take(r, root, s, "", FileKeys, habits)
	}
	if err := r.Err(); err != nil {
		return nil, err
	}
	return s, nil
}

func text[T any](field func(*T) *string) func(*yamlfile.Reader, *yaml.Node, *T, string) {
	return func(r *yamlfile.Reader, n *yaml.Node, into *T, what string) { *field(into), _ = r.Text(n, what) }
}

func names(r *yamlfile.Reader, n *yaml.Node, what string) []string {
	names := r.Texts(n, what)
	for _, name := range names {
		if !taskqueue.NamesShare(name) {
			r.Fail(n, "write a name without /, spaces and control characters", "%q cannot be the name of a user", name)
		}
	}
	return names
}

func role[T any](field func(*T) *Role) func(*yamlfile.Reader, *yaml.Node, *T, string) {
	return func(r *yamlfile.Reader, n *yaml.Node, into *T, what string) {
		text, _ := r.Text(n, what)
		if *field(into) = Role(text); Role(text) != Reader && Role(text) != Submitter {
			r.Fail(n, "write read or submit; administrators are named under `admins:`", "%q is no role of users", text)
		}
	}
}

func scopes(r *yamlfile.Reader, n *yaml.Node, l *Login, what string) {
	if l.Scopes = r.Texts(n, what); !slices.Contains(l.Scopes, "openid") {
		l.Scopes = append([]string{"openid"}, l.Scopes...)
	}
}

const maxLasts = 90 * 24 * time.Hour

func lasts(r *yamlfile.Reader, n *yaml.Node, l *Login, what string) {
	l.Lasts = yamlfile.Read(r, n, what, quantity.Duration)
	if l.Lasts <= 0 || l.Lasts > maxLasts {
		r.Fail(n, "write a time up to 90d", "a login cannot last %v", l.Lasts)
	}
}

func login(r *yamlfile.Reader, n *yaml.Node, s *Settings, what string) {
	l := &Login{
		Scopes: []string{"openid", "profile", "groups"}, Mapping: Mapping{DefaultUserClaim, DefaultGroupsClaim},
		Role: Submitter, Lasts: DefaultLasts,
	}
	s.Login = l
	nodes := yamlfile.Take(r, n, l, what, LoginKeys, habits)
	issuer, err := url.Parse(l.Issuer)
	secure := err == nil && (issuer.Scheme == "https" || issuer.Scheme == "http" && isLoopback(issuer.Hostname()))
	switch {
	case !secure || issuer.Host == "":
		at := n
		if nodes["issuer"] != nil {
			at = nodes["issuer"]
		}
		r.Fail(at, "write issuer: https://HOST", "login needs the URL of an issuer, with https, not %q", l.Issuer)
	case l.Client == "":
		r.Fail(n, "write the client that you have registered at the issuer: `client: fairway`", "login names no client")
	}
}

func isLoopback(host string) bool {
	address, err := netip.ParseAddr(host)
	return host == "localhost" || err == nil && address.IsLoopback()
}

func addresses(r *yamlfile.Reader, n *yaml.Node, p *Proxy, what string) {
	for _, text := range r.Texts(n, what) {
		p.Addresses = append(p.Addresses, network(r, n, text))
	}
}

func proxy(r *yamlfile.Reader, n *yaml.Node, s *Settings, what string) {
	p := &Proxy{User: "X-Remote-User", Role: Submitter}
	s.Proxy = p
	nodes := yamlfile.Take(r, n, p, what, ProxyKeys, habits)
	for _, key := range []string{"user", "groups"} {
		name := map[string]string{"user": p.User, "groups": p.Groups}[key]
		if at := nodes[key]; at != nil && (name == "" || !isHeaderName(name) || takenHeaders[strings.ToLower(name)]) {
			r.Fail(at, "write the name of a header that the proxy sets, such as X-Remote-User", "%q cannot be that header", name)
		}
	}
	switch {
	case len(p.Addresses) == 0 && p.Socket == "":
		r.Fail(n, "write `addresses: [10.0.0.7]` or `socket: /run/fairway/proxy`", "proxy does not say where the proxy is")
	case p.Socket != "" && len(p.Peers) == 0:
		r.Fail(n, "write `peers: [www-data]`", "proxy has a socket, and does not say which users of this machine may use it")
	case p.Socket != "" && !strings.HasPrefix(p.Socket, "/"):
		r.Fail(nodes["socket"], "write a path that begins with /", "the socket %q has no absolute path", p.Socket)
	}
}

// network reads an address, or a network. Loopback is refused: everybody on the machine is there.
func network(r *yamlfile.Reader, n *yaml.Node, text string) netip.Prefix {
	network, err := netip.ParsePrefix(text)
	if address, bad := netip.ParseAddr(text); bad == nil {
		network, err = netip.PrefixFrom(address.Unmap(), address.Unmap().BitLen()), nil
	}
	switch {
	case err != nil:
		r.Fail(n, "write it as 10.0.0.7 or 10.0.0.0/28", "%q is no address", text)
	case network.Addr().IsLoopback():
		r.Fail(n, "write `socket: /run/fairway/proxy` and `peers:` for a proxy on this machine",
			"%s is every user of this machine, and not the proxy alone", text)
	case network.Bits() == 0:
		r.Fail(n, "name the proxies only", "%s is everybody", text)
	}
	return network.Masked()
}

// takenHeaders are those that mean something else.
var takenHeaders = map[string]bool{
	"authorization": true, "cookie": true, "host": true, "fairway-launch": true, "content-type": true,
	"content-length": true,
}

func isHeaderName(name string) bool {
	return !strings.ContainsFunc(name, func(c rune) bool {
		return (c < 'a' || c > 'z') && (c < 'A' || c > 'Z') && (c < '0' || c > '9') && c != '-'
	})
}
