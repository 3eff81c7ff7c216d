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

// Key is a key of the file.
type Key struct {
	Name string
	Help string // one line for a person
}

// FileKeys, LoginKeys and ProxyKeys are those of the file, and of its parts.
var (
	FileKeys = []Key{
		{"admins", "users who are administrators when a login or a proxy names them"},
		{"login", "the identity provider (OpenID Connect) that `fairway login` uses"},
		{"proxy", "proxies that are trusted to name users"},
	}
	LoginKeys = []Key{
		{"issuer", "URL of the provider"},
		{"client", "the client by which the provider knows Fairway, with the device flow"},
		{"client_secret", "what some providers want of it; every user of `fairway login` gets to know it"},
		{"scopes", "scopes to ask for (default: openid, profile, groups)"},
		{"user", "claim with the name of the user (default preferred_username)"},
		{"groups", "claim with the groups, also inside others, as realm_access.roles (default groups)"},
		{"role", "read or submit (default submit)"},
		{"lasts", "time after which to log in again (default 12h, at most 90d)"},
		{"everybody", "true: all whom the provider knows; otherwise those whom the file of shares has, or a group of theirs"},
	}
	ProxyKeys = []Key{
		{"addresses", "addresses or networks of proxies that reach the server over TLS, such as 10.0.0.7"},
		{"socket", "path of a socket that the server makes for a proxy on its machine"},
		{"peers", "users of this machine who may use the socket, such as www-data"},
		{"user", "header that names the user (default X-Remote-User)"},
		{"groups", "header with the groups, divided by commas (default: none)"},
		{"role", "read or submit (default submit)"},
		{"everybody", "true: all whom the proxy names; otherwise those whom the file of shares has, or a group of theirs"},
	}
)

type reader struct{ yamlfile.Reader }

// Parse reads a file of rights. file is its name for messages. The error is [yamlfile.Problems].
func Parse(file string, data []byte) (*Settings, error) {
	r := &reader{yamlfile.Reader{
		File: file, Kind: "file of rights", Limit: MaxFile, Oversize: "name groups instead of users",
		Begin: "start with `login:` or `proxy:`",
	}}
	s := &Settings{}
	if root := r.Root(data); root != nil {
		nodes := r.known(root, "the file", FileKeys)
		if n := nodes["admins"]; n != nil {
			s.Admins = r.names(n, "admins")
		}
		if n := nodes["login"]; n != nil {
			s.Login = r.login(n)
		}
		if n := nodes["proxy"]; n != nil {
			s.Proxy = r.proxy(n)
		}
	}
	if err := r.Err(); err != nil {
		return nil, err
	}
	return s, nil
}

func (r *reader) known(n *yaml.Node, what string, keys []Key) map[string]*yaml.Node {
	names := make([]string, len(keys))
	for i := range keys {
		names[i] = keys[i].Name
	}
	return r.Known(n, what, names, map[string]string{
		"oidc": "write `login:`", "client_id": "write `client:`", "url": "write `issuer:`", "header": "write `user:`",
	})
}

// text reads a text into a field, if its key is there.
func (r *reader) text(nodes map[string]*yaml.Node, key string, into *string) {
	if n := nodes[key]; n != nil {
		*into, _ = r.Text(n, key)
	}
}

func (r *reader) names(n *yaml.Node, what string) []string {
	names := r.Texts(n, what)
	for _, name := range names {
		if !taskqueue.NamesShare(name) {
			r.Fail(n, "write a name without /, spaces and control characters", "%q cannot be the name of a user", name)
		}
	}
	return names
}

func (r *reader) role(nodes map[string]*yaml.Node) Role {
	role := string(Submitter)
	if r.text(nodes, "role", &role); Role(role) != Reader && Role(role) != Submitter {
		r.Fail(nodes["role"], "write read or submit; administrators are named under `admins:`", "%q is no role of users",
			role)
	}
	return Role(role)
}

func (r *reader) everybody(nodes map[string]*yaml.Node) bool {
	n := nodes["everybody"]
	if n == nil {
		return false
	}
	return yamlfile.Read(&r.Reader, n, "everybody", yamlfile.Flag)
}

const maxLasts = 90 * 24 * time.Hour

func (r *reader) login(n *yaml.Node) *Login {
	l := &Login{
		Scopes: []string{"openid", "profile", "groups"}, Mapping: Mapping{DefaultUserClaim, DefaultGroupsClaim},
		Lasts: DefaultLasts,
	}
	nodes := r.known(n, "login", LoginKeys)
	for key, into := range map[string]*string{
		"issuer": &l.Issuer, "client": &l.Client, "client_secret": &l.Secret, "user": &l.Mapping.User,
		"groups": &l.Mapping.Groups,
	} {
		r.text(nodes, key, into)
	}
	l.Role, l.Everybody = r.role(nodes), r.everybody(nodes)
	if n := nodes["scopes"]; n != nil {
		if l.Scopes = r.Texts(n, "scopes"); !slices.Contains(l.Scopes, "openid") {
			l.Scopes = append([]string{"openid"}, l.Scopes...)
		}
	}
	if at := nodes["lasts"]; at != nil {
		if text, ok := r.Text(at, "lasts"); ok {
			l.Lasts = yamlfile.Scalar(&r.Reader, at, text, "lasts", quantity.Duration)
		}
		if l.Lasts <= 0 || l.Lasts > maxLasts {
			r.Fail(at, "write a time up to 90d", "a login cannot last %v", l.Lasts)
		}
	}
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
	return l
}

func isLoopback(host string) bool {
	address, err := netip.ParseAddr(host)
	return host == "localhost" || err == nil && address.IsLoopback()
}

func (r *reader) proxy(n *yaml.Node) *Proxy {
	p := &Proxy{User: "X-Remote-User"}
	nodes := r.known(n, "proxy", ProxyKeys)
	for key, into := range map[string]*string{"socket": &p.Socket, "user": &p.User, "groups": &p.Groups} {
		r.text(nodes, key, into)
	}
	p.Role, p.Everybody = r.role(nodes), r.everybody(nodes)
	if at := nodes["peers"]; at != nil {
		p.Peers = r.Texts(at, "peers")
	}
	if at := nodes["addresses"]; at != nil {
		for _, text := range r.Texts(at, "addresses") {
			p.Addresses = append(p.Addresses, r.network(at, text))
		}
	}
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
	return p
}

// network reads an address, or a network. Loopback is refused: everybody on the machine is there.
func (r *reader) network(n *yaml.Node, text string) netip.Prefix {
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
