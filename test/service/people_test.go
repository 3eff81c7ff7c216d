package service

import (
	"bufio"
	"bytes"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"net"
	"net/http"
	"net/http/cookiejar"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/zitadel/oidc/v3/example/server/exampleop"
	"github.com/zitadel/oidc/v3/example/server/storage"

	"fairway/internal/access"
	"fairway/test/files"
)

// users are those of the identity provider.
type users struct{ issuer string }

func (users) find(name string) *storage.User {
	for _, known := range []string{"ada", "bob", "eve"} {
		if name == known {
			return &storage.User{ID: name, Username: name, Password: "password of " + name, FirstName: name, Email: name +
				"@example.org"}
		}
	}
	return nil
}

func (u users) GetUserByID(id string) *storage.User         { return u.find(id) }
func (u users) GetUserByUsername(name string) *storage.User { return u.find(name) }
func (users) ExampleClientID() string                       { return "service" }

// provider starts the example provider of zitadel/oidc, and returns its issuer.
func provider(t *testing.T) (issuer string) {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	issuer = fmt.Sprintf("http://localhost:%d/", listener.Addr().(*net.TCPAddr).Port)
	storage.RegisterClients(storage.DeviceClient("fairway", "known to all"))
	quiet := slog.Default()
	handler := exampleop.SetupServer(issuer, storage.NewStorage(users{issuer}), slog.New(slog.DiscardHandler), false)
	t.Cleanup(func() { slog.SetDefault(quiet) })
	server := &http.Server{Handler: handler}
	go func() { _ = server.Serve(listener) }()
	t.Cleanup(func() { _ = server.Close() })
	return issuer
}

// person is somebody with a machine of their own.
type person struct {
	t      *testing.T
	name   string
	home   string
	server string // the file by which the server is reached
}

// run runs a command of a person, and returns what it prints and its exit code.
func (p *person) run(arguments ...string) (out, errors string, code int) {
	p.t.Helper()
	command := exec.Command(fairway, arguments...)
	command.Dir, command.Env = p.home, append(os.Environ(), "HOME="+p.home, "XDG_CONFIG_HOME="+p.home,
		"FAIRWAY_SERVICE="+p.server)
	var printed, complained bytes.Buffer
	command.Stdout, command.Stderr = &printed, &complained
	_ = command.Run()
	return printed.String(), complained.String(), command.ProcessState.ExitCode()
}

// must is run for what ends well.
func (p *person) must(arguments ...string) string {
	p.t.Helper()
	out, complained, code := p.run(arguments...)
	if code != 0 {
		p.t.Fatalf("%s: fairway %s ends with %d: %s%s", p.name, strings.Join(arguments, " "), code, out, complained)
	}
	return out
}

var deviceCode = regexp.MustCompile(`open (\S+) in a browser and confirm the code (\S+)`)

// logIn logs in at the provider, with the browser of the person.
func (p *person) logIn(public, password string) error {
	p.t.Helper()
	command := exec.Command(fairway, "login", "--server", public)
	command.Dir, command.Env = p.home, append(os.Environ(), "HOME="+p.home, "XDG_CONFIG_HOME="+p.home, "FAIRWAY_SERVICE=")
	said, err := command.StderrPipe()
	if err != nil {
		p.t.Fatal(err)
	}
	if err := command.Start(); err != nil {
		p.t.Fatal(err)
	}
	var all strings.Builder
	lines := bufio.NewReader(said)
	for {
		line, err := lines.ReadString('\n')
		all.WriteString(line)
		if found := deviceCode.FindStringSubmatch(line); found != nil {
			p.confirm(found[1], found[2], password)
		}
		if err != nil {
			break
		}
	}
	if err := command.Wait(); err != nil {
		return fmt.Errorf("%w: %s", err, all.String())
	}
	return nil
}

// confirm says to the provider that it is the person who logs in.
func (p *person) confirm(at, code, password string) {
	p.t.Helper()
	jar, _ := cookiejar.New(nil)
	browser := &http.Client{Jar: jar}
	base, err := url.Parse(at)
	if err != nil {
		p.t.Fatal(err)
	}
	answer, err := browser.PostForm(base.ResolveReference(&url.URL{Path: "/device/login"}).String(),
		url.Values{"user_code": {code}, "username": {p.name}, "password": {password}})
	if err != nil {
		p.t.Fatal(err)
	}
	_ = answer.Body.Close()
	answer, err = browser.Get(base.ResolveReference(&url.URL{Path: "/device/confirm",
		RawQuery: "action=allowed"}).String())
	if err != nil {
		p.t.Fatal(err)
	}
	text, _ := io.ReadAll(answer.Body)
	_ = answer.Body.Close()
	if !strings.Contains(string(text), "authorization allowed") {
		p.t.Fatalf("the provider says: %s", text)
	}
}

const words = `workflow: words
inputs: {texts: {files: "in/{t}.txt", as: "in/{t}.txt"}}
steps:
  shout:
    each: in/{t}.txt
    writes: out/{t}.txt
    command: echo a secret of this job; tr a-z A-Z <"$in" >"$out"
`

// Two people share a server over TLS. Each logs in at the identity provider, sees and changes the own runs,
// and is told nothing of those of the other; the owner sees who has done what, and ends it.
func TestTwoPeopleLogIn(t *testing.T) {
	issuer := provider(t)
	state := t.TempDir()
	settings := files.Folder(t, map[string]string{
		"shares.yaml": "groups: {physics: {users: {ada: 1}}, biology: {users: {bob: 1}}}\n",
		"rights.yaml": "login: {issuer: '" + issuer + "', client: fairway, client_secret: known to all}\n",
	})
	s := serve(t, state, []string{
		"--listen", "127.0.0.1:0", "--shares", filepath.Join(settings, "shares.yaml"), "--rights",
		filepath.Join(settings, "rights.yaml"), "--web", "--cache", "host",
	})
	if s.client == nil {
		t.Fatal(s.output.String())
	}
	defer s.kill()
	public := filepath.Join(state, ".fairway", "public")
	someone := func(name string) *person {
		home := files.Folder(t, map[string]string{
			"workflow.yaml": words, "in/one.txt": "hello", "in/of-" + name + ".txt": name + "'s world",
		})
		return &person{t, name, home, filepath.Join(home, "fairway", "service")}
	}
	ada, bob, eve := someone("ada"), someone("bob"), someone("eve")
	owner := &person{t, "owner", t.TempDir(), state}
	logins := make(chan error, 3)
	for _, p := range []*person{ada, bob, eve} {
		go func() { logins <- p.logIn(public, "password of "+p.name) }()
	}
	refused := 0
	for range 3 {
		if err := <-logins; err != nil {
			if refused++; !strings.Contains(err.Error(), `"eve" may not use this server`) {
				t.Error(err)
			}
		}
	}
	if refused != 1 {
		t.Errorf("%d people are refused, and eve should be", refused)
	}
	if out := ada.must("whoami"); !strings.Contains(out, "ada") || !strings.Contains(out, "physics") ||
		!strings.Contains(out, "submit") {
		t.Errorf("ada is %s", out)
	}
	if run := strings.TrimSpace(ada.must("submit", "--upload", "in")); run != "1" {
		t.Fatalf("ada's run is %s", run)
	}
	ada.must("watch", "1")
	ada.must("get", "out/one.txt", "--run", "1")
	if out := ada.must("runs"); !strings.Contains(out, "words") {
		t.Errorf("ada's runs: %s", out)
	}
	if out := ada.must("logs", "shout/one", "--run", "1"); !strings.Contains(out, "secret") {
		t.Errorf("ada's log: %s", out)
	}
	bobSeesNothing(t, bob)
	if run := strings.TrimSpace(bob.must("submit", "--upload", "in", "--watch=false")); run != "2" {
		t.Fatalf("bob's run is %s", run)
	}
	cached := bob.must("cache", "--run", "2", "--files")
	bob.must("watch", "2")
	cached += bob.must("cache", "--run", "2", "--files")
	if strings.Contains(cached, "of-ada") {
		t.Errorf("bob sees what is cached of ada: %s", cached)
	}
	everythingStaysHidden(t, state, s, ada, bob)
	curlWorks(t, ada)
	log := owner.must("audit", "--json")
	for _, want := range []string{`"SubmitWorkflow"`, `"ada"`, `"Login"`, `"127.0.0.1:`} {
		if !strings.Contains(log, want) {
			t.Errorf("the audit log has no %s: %s", want, log)
		}
	}
	if out, complained, code := ada.run("audit"); code != 1 || !strings.Contains(complained, "role submit") {
		t.Errorf("ada looks at the audit log: %d %s%s", code, out, complained)
	}
	for range 2 {
		owner.must("token", "create", "--user", "ada", "-o", filepath.Join(t.TempDir(), "more"))
	}
	if revoked := owner.must("token", "revoke", "--user", "ada"); len(strings.Fields(revoked)) < 4 {
		t.Errorf("revoked: %s", revoked)
	}
	if out, complained, code := owner.run("token", "revoke", "--user", "ada"); code != 6 {
		t.Errorf("tokens of ada that are revoked already: %d %s%s", code, out, complained)
	}
	if out, complained, code := ada.run("runs"); code != 1 || !strings.Contains(complained, "the token is not good here") {
		t.Errorf("ada's token was revoked: %d %s%s", code, out, complained)
	}
	bob.must("runs")
	owner.must("token", "create", "--user", "ada", "--role", "read", "--expires", "1h", "-o", ada.server)
	ada.must("runs")
	if out, complained, code := ada.run("rm", "1"); code != 1 || !strings.Contains(complained, "the role read") {
		t.Errorf("a reader removes a run: %d %s%s", code, out, complained)
	}
}

// bobSeesNothing has bob ask for ada's run by all commands, and for one that is not there.
func bobSeesNothing(t *testing.T, bob *person) {
	t.Helper()
	if out := bob.must("runs"); strings.Contains(out, "words") || strings.Contains(out, "ada") {
		t.Errorf("bob's runs: %s", out)
	}
	for _, command := range [][]string{
		{"jobs"}, {"show", "shout/one"}, {"explain", "shout/one"}, {"logs", "shout/one"}, {"files"}, {"cache"},
		{"get", "out/one.txt"}, {"cancel", "shout/one"}, {"retry"}, {"close"}, {"stop"}, {"why"},
	} {
		is, complained, code := bob.run(append(command, "--run", "1")...)
		isNot, other, codeNot := bob.run(append(command, "--run", "99")...)
		other = strings.ReplaceAll(other, "99", "1")
		if is != isNot || complained != other || code != codeNot || code == 0 {
			t.Errorf("bob: fairway %s says of ada's run (%d) %s%s, and of none (%d) %s%s", strings.Join(command, " "), code, is,
				complained, codeNot, isNot, other)
		}
	}
	is, complained, code := bob.run("rm", "1")
	_, other, _ := bob.run("rm", "99")
	if code == 0 || complained != strings.ReplaceAll(other, "99", "1") {
		t.Errorf("bob removes ada's run: %d %s%s", code, is, complained)
	}
}

// everythingStaysHidden looks for tokens where none may be.
func everythingStaysHidden(t *testing.T, state string, s *server, people ...*person) {
	t.Helper()
	var secrets []string
	for _, p := range people {
		c, err := access.ReadConnection(p.server)
		if err != nil {
			t.Fatal(err)
		}
		secrets = append(secrets, string(c.Token))
	}
	has := func(where string, text []byte) {
		for i, secret := range secrets {
			if bytes.Contains(text, []byte(secret)) {
				t.Errorf("%s has the token of %s", where, people[i].name)
			}
		}
	}
	has("what the server prints", []byte(s.output.String()))
	lines, _ := filepath.Glob("/proc/[0-9]*/cmdline")
	for _, name := range lines {
		text, _ := os.ReadFile(name)
		has(name, text)
	}
	err := filepath.WalkDir(state, func(name string, entry fs.DirEntry, err error) error {
		if err == nil && entry.Type().IsRegular() {
			text, _ := os.ReadFile(name)
			has(name, text)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}

// curlWorks makes the calls of docs/rights.md, with the certificate and the token of a person's file.
func curlWorks(t *testing.T, p *person) {
	t.Helper()
	c, err := access.ReadConnection(p.server)
	if err != nil {
		t.Fatal(err)
	}
	pool := x509.NewCertPool()
	if !pool.AppendCertsFromPEM([]byte(c.Certificate)) {
		t.Fatal("the file has no certificate")
	}
	client := &http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{RootCAs: pool}}}
	for token, want := range map[string]int{string(c.Token): http.StatusOK, "": http.StatusUnauthorized} {
		r, err := http.NewRequestWithContext(t.Context(), http.MethodPost,
			"https://"+c.Addresses[len(c.Addresses)-1]+"/fairway.v1.Workflow/ListRuns", strings.NewReader("{}"))
		if err != nil {
			t.Fatal(err)
		}
		r.Header.Set("Content-Type", "application/json")
		if token != "" {
			r.Header.Set("Authorization", "Bearer "+token)
		}
		answer, err := client.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		text, _ := io.ReadAll(answer.Body)
		_ = answer.Body.Close()
		if answer.StatusCode != want {
			t.Errorf("a program gets %s: %s", answer.Status, text)
		}
	}
}
