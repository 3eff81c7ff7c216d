package web

import (
	"html"
	"net/http"
	"net/http/cookiejar"
	"net/url"
	"slices"
	"strings"
	"testing"

	"fairway/internal/rights"
	"fairway/internal/wire"
)

// token makes a token for bob, who has no runs.
func (v *served) token(role rights.Role) (text, number string) {
	v.t.Helper()
	made, err := v.api.Rights.CreateToken(v.t.Context(), &wire.CreateTokenRequest{Role: string(role), User: "bob"})
	if err != nil {
		v.t.Fatal(err)
	}
	return made.GetToken(), made.GetSummary().GetNumber()
}

// Every route has a row in the table, and there are no other rows.
func TestEveryRouteHasARow(t *testing.T) {
	v := serve(t)
	for _, pattern := range v.site.patterns {
		if rights.Pages[pattern] == rights.Nobody {
			t.Errorf("%s has no row: say in rights.Pages who may see it", pattern)
		}
	}
	for pattern := range rights.Pages {
		if !slices.Contains(v.site.patterns, pattern) {
			t.Errorf("%s has a row, and there is no such route", pattern)
		}
	}
}

// The table of all routes against all roles: what a role may not do is refused, and a run of another user
// is answered as one that is not there.
func TestEveryRouteAgainstEveryRole(t *testing.T) {
	v := serve(t)
	tokens := map[string]string{"nobody": "", "forged": "fairway_aaaaaaaaaa_" + strings.Repeat("A", rights.SecretLength)}
	roles := map[string]rights.Role{}
	for _, role := range []rights.Role{rights.Reader, rights.Submitter, rights.Admin} {
		tokens[string(role)], _ = v.token(role)
		roles[string(role)] = role
	}
	revoked, number := v.token(rights.Admin)
	if _, err := v.api.Rights.RevokeToken(t.Context(), &wire.RevokeTokenRequest{Number: number}); err != nil {
		t.Fatal(err)
	}
	tokens["revoked"] = revoked
	ask := func(token, method, path string) (int, string) {
		header := map[string]string{}
		if token != "" {
			header["Authorization"] = "Bearer " + token
		}
		client := &http.Client{CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
		body := ""
		if method == http.MethodPost {
			header["Content-Type"], body = "application/x-www-form-urlencoded", "job=1"
		}
		return v.send(method, path, client, header, body)
	}
	for name, token := range tokens {
		for _, pattern := range v.site.patterns {
			method, path, ok := strings.Cut(pattern, " ")
			if !ok {
				method, path = http.MethodGet, "/nothing"
			}
			path = strings.NewReplacer("{$}", "", "{name}", "fairway.css", "{id}", "1", "{action}", "stop").Replace(path)
			action := rights.Pages[pattern]
			about := strings.Contains(path, "{run}")
			there := strings.ReplaceAll(path, "{run}", "1")
			if name == "admin" && method == http.MethodPost { // it would be carried out
				there = strings.ReplaceAll(path, "{run}", "99")
			}
			code, text := ask(token, method, there)
			switch role := roles[name]; {
			case action == rights.Anybody:
				if code == http.StatusForbidden || code == http.StatusUnauthorized && path != "/login" {
					t.Errorf("%s gets %d for %s", name, code, pattern)
				}
			case role == "":
				if code != http.StatusUnauthorized || strings.Contains(text, "odd") {
					t.Errorf("%s gets %d for %s: %s", name, code, pattern, text)
				}
			case !role.May(action):
				if code != http.StatusForbidden {
					t.Errorf("%s gets %d for %s: %s", name, code, pattern, text)
				}
			case about && role != rights.Admin:
				isNot, says := ask(token, method, strings.ReplaceAll(path, "{run}", "99"))
				says = strings.ReplaceAll(says, "99", "1")
				if code != isNot || text != says || strings.Contains(text, "odd") ||
					code != http.StatusNotFound && !strings.Contains(text, "there is no run 1 here") {
					t.Errorf("%s gets %d for %s of another user: %s; and %d of a run that is not there: %s", name, code, pattern,
						text, isNot, says)
				}
			case code == http.StatusForbidden || code == http.StatusUnauthorized:
				t.Errorf("%s gets %d for %s: %s", name, code, pattern, text)
			}
		}
	}
	if code, text := ask(tokens["read"], http.MethodGet, "/"); code != http.StatusOK || strings.Contains(text, "run1") {
		t.Errorf("bob's runs: %d %s", code, text)
	}
}

// A token begins a session, which a page of another site cannot do, and which ends with the token.
func TestSessionsOfThePages(t *testing.T) {
	v := serve(t)
	token, number := v.token(rights.Admin)
	jar, _ := cookiejar.New(nil)
	browser := &http.Client{Jar: jar}
	form := map[string]string{"Content-Type": "application/x-www-form-urlencoded"}
	logIn := func(with string, more map[string]string) (int, string) {
		header := map[string]string{}
		for _, all := range []map[string]string{form, more} {
			for k, x := range all {
				header[k] = x
			}
		}
		return v.send(http.MethodPost, "/login", browser, header, url.Values{"token": {with}}.Encode())
	}
	if code, text := v.get("/", browser, nil); code != http.StatusUnauthorized || !strings.Contains(text, "Your token") {
		t.Errorf("%d %s", code, text)
	}
	if code, _ := logIn("wrong", nil); code != http.StatusUnauthorized {
		t.Error("a wrong token: ", code)
	}
	if code, _ := logIn(token, map[string]string{"Origin": "https://evil.example",
		"Sec-Fetch-Site": "cross-site"}); code != http.StatusForbidden {
		t.Error("from another site: ", code)
	}
	if code, text := logIn(token, nil); code != http.StatusOK || !strings.Contains(text, "Log out") ||
		!strings.Contains(text, "run1") {
		t.Errorf("%d %s", code, text)
	}
	base, _ := url.Parse(v.base)
	for _, cookie := range jar.Cookies(base) {
		if strings.Contains(token, cookie.Value) || strings.Contains(cookie.Value, token) {
			t.Error("the cookie has the token")
		}
	}
	if _, err := v.api.Rights.RevokeToken(t.Context(), &wire.RevokeTokenRequest{Number: number}); err != nil {
		t.Fatal(err)
	}
	if code, _ := v.get("/", browser, nil); code != http.StatusUnauthorized {
		t.Error("with a revoked token: ", code)
	}
	token, _ = v.token(rights.Admin)
	if code, _ := logIn(token, nil); code != http.StatusOK {
		t.Fatal(code)
	}
	if code, text := v.send(http.MethodPost, "/logout", browser, nil, ""); code != http.StatusOK ||
		!strings.Contains(text, "Your token") {
		t.Errorf("%d %s", code, text)
	}
	if code, _ := v.get("/", browser, nil); code != http.StatusUnauthorized {
		t.Error("after logging out: ", code)
	}
	for range MaxSessions + 10 {
		p, good, err := v.site.Door.Token(token)
		if err != nil {
			t.Fatal(err)
		}
		v.access.sessions.begin(p, good)
	}
	if n := len(v.access.sessions.known); n > MaxSessions || n != len(v.access.sessions.order) {
		t.Errorf("%d sessions", n)
	}
}

// Who was not known is led to where they were when they have logged in, and nowhere else. What a form wanted
// was not done then, and is asked once more.
func TestLoginLeadsBack(t *testing.T) {
	v := serve(t)
	token, _ := v.token(rights.Admin)
	form := map[string]string{"Content-Type": "application/x-www-form-urlencoded"}
	for next, want := range map[string]string{
		"/runs/1/jobs?state=ready&live=1": "/runs/1/jobs?state=ready", "https://evil.example/x": "/", "//evil.example": "/",
		`/\evil.example`: "/evil.example", "javascript:alert(1)": "/", "": "/", "/login?next=/": "/", "x": "/",
		`\\evil.example`: "/", "/runs/1#x": "/runs/1",
	} {
		client := &http.Client{CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
		r, _ := http.NewRequestWithContext(t.Context(), http.MethodPost, v.base+"/login",
			strings.NewReader(url.Values{"token": {token}, "next": {next}}.Encode()))
		r.Header.Set("Content-Type", form["Content-Type"])
		answer, err := client.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		answer.Body.Close()
		if to := answer.Header.Get("Location"); answer.StatusCode != http.StatusSeeOther || to != want {
			t.Errorf("%q leads to %q (%d), and not to %q", next, to, answer.StatusCode, want)
		}
	}
	stranger := &http.Client{}
	for path, lead := range map[string]string{
		"/runs/1/jobs?state=ready": "/runs/1/jobs?state=ready", "/runs/1?live=1": "/runs/1",
	} {
		_, text := v.get(path, stranger, nil)
		if want := `name="next" value="` + html.EscapeString(lead) + `"`; !strings.Contains(text, want) {
			t.Errorf("%s does not lead to %s: %s", path, lead, text)
		}
	}
	code, text := v.send(http.MethodPost, "/runs/1/cancel", stranger, form, "job=1")
	if code != http.StatusUnauthorized || !strings.Contains(text, "nothing was done") ||
		!strings.Contains(text, `value="/runs/1/ask/cancel?job=1"`) {
		t.Errorf("%d %s", code, text)
	}
	if _, text := v.get("/runs/1/jobs/1", v.client, nil); !strings.Contains(text, "state ready") {
		t.Error("it was done")
	}
	jar, _ := cookiejar.New(nil)
	owner := &http.Client{Jar: jar}
	given := url.Values{"token": {"http://localhost/?token=" + v.access.token}, "next": {"/runs/1/ask/cancel?job=1"}}
	if code, text := v.send(http.MethodPost, "/login", owner, form, given.Encode()); code != http.StatusOK ||
		!strings.Contains(text, "Cancel this job?") {
		t.Errorf("the link of the owner: %d %s", code, text)
	}
}

// Who may not change runs gets no button for it.
func TestReadersGetNoButtons(t *testing.T) {
	v := serve(t)
	made, err := v.api.Rights.CreateToken(t.Context(), &wire.CreateTokenRequest{Role: string(rights.Reader),
		User: v.owner(1)})
	if err != nil {
		t.Fatal(err)
	}
	for _, path := range []string{"/", "/runs/1", "/runs/1/jobs/1", "/runs/1/failures", "/runs/1/files", "/shares"} {
		code, text := v.get(path, &http.Client{}, map[string]string{"Authorization": "Bearer " + made.GetToken()})
		text = strings.ReplaceAll(text, `action="/logout"`, "")
		if code != http.StatusOK || strings.Contains(text, "/ask/") || strings.Contains(text, `method="post" action`) {
			t.Errorf("%s: %d %s", path, code, text)
		}
		if _, text = v.get(path, v.client, nil); strings.HasSuffix(path, "/1") && !strings.Contains(text, "/ask/") {
			t.Errorf("%s has no button for the owner", path)
		}
	}
}

// owner is the user who has submitted a run.
func (v *served) owner(run uint32) string {
	v.t.Helper()
	listed, err := v.api.ListRuns(v.t.Context(), &wire.ListRunsRequest{})
	if err != nil {
		v.t.Fatal(err)
	}
	for _, r := range listed.GetRuns() {
		if r.GetRun() == run {
			return r.GetUser()
		}
	}
	v.t.Fatal("there is no run ", run)
	return ""
}
