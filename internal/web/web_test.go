package web

import (
	"archive/zip"
	"context"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/cookiejar"
	"net/url"
	"os"
	"os/user"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"fairway/internal/rights"
	"fairway/internal/server"
	"fairway/internal/server/api"
	"fairway/internal/server/listen"
	"fairway/internal/server/people"
	"fairway/internal/wire"
	"fairway/lib/sched"
	"fairway/test/files"
)

// odd is the name of a sample that a page must not take for markup.
const odd = `<img src=x onerror="alert(1)">'&`

const oddWorkflow = `workflow: odd
inputs:
  texts: {files: "in/{s}.txt", as: "in/{s}.txt"}
steps:
  copy:
    each: in/{s}.txt
    writes: "out/{s}.txt"
    command: cat "$in" >"$out" # </pre><script>alert(2)</script>
`

// served are the pages of a lasting server without pilots, with one run.
type served struct {
	t      *testing.T
	base   string
	access *Access
	client *http.Client // that is let in
	api    *listen.Connection
	site   *site
}

func serve(t *testing.T) *served {
	t.Helper()
	s := sched.New(sched.Config{})
	t.Cleanup(s.Close)
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	address := listener.Addr().String()
	v := &served{t: t, base: "http://" + address, access: NewAccess(address, false)}
	log := slog.New(slog.NewTextHandler(t.Output(), nil))
	root := t.TempDir()
	config := server.Config{
		RunConfig:     server.RunConfig{Folder: root},
		ServiceConfig: server.ServiceConfig{Lasting: true},
		Sched:         s, Log: log,
		Web: &server.Web{Listener: listener, Handler: func(service *api.Service, door *people.Door) http.Handler {
			v.site = &site{Config: Config{Service: service, Access: v.access, Door: door, Name: root, Log: log}}
			return v.site.routes()
		}},
	}
	opened, err := server.Open(t.Context(), config)
	if err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() {
		_, err := opened.Run(context.Background())
		ended <- err
	}()
	t.Cleanup(func() {
		opened.Stop(false)
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
	client, err := api.Connect(t.Context(), root)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(client.Close)
	v.api = client
	folder := files.Folder(t, map[string]string{"in/plain.txt": "x"})
	if err := os.WriteFile(filepath.Join(folder, "in", odd+".txt"), []byte("y"), 0o600); err != nil {
		t.Fatal(err)
	}
	_, err = client.SubmitWorkflow(t.Context(), &wire.SubmitWorkflowRequest{Workflow: []byte(oddWorkflow), Folder: folder})
	if err != nil {
		t.Fatal(err)
	}
	progress, err := client.Progress(t.Context(), &wire.ProgressRequest{Run: 1, Follow: true})
	if err != nil {
		t.Fatal(err)
	}
	defer progress.Close()
	for progress.Receive() && progress.Msg().GetSteps()[0].GetReady() < 2 {
	}
	jar, _ := cookiejar.New(nil)
	v.client = &http.Client{Jar: jar}
	if code, _ := v.get(v.access.Link(address), v.client, nil); code != http.StatusOK {
		t.Fatal("the link leads to ", code)
	}
	return v
}

// get asks for a path, or an address, and returns the answer's code and body.
func (v *served) get(path string, client *http.Client, header map[string]string) (int, string) {
	v.t.Helper()
	return v.send(http.MethodGet, path, client, header, "")
}

func (v *served) send(method, path string, client *http.Client, header map[string]string, body string) (int, string) {
	v.t.Helper()
	if strings.HasPrefix(path, "/") {
		path = v.base + path
	}
	r, err := http.NewRequestWithContext(v.t.Context(), method, path, strings.NewReader(body))
	if err != nil {
		v.t.Fatal(err)
	}
	for name, value := range header {
		r.Header.Set(name, value)
	}
	answer, err := client.Do(r)
	if err != nil {
		v.t.Fatal(err)
	}
	defer answer.Body.Close()
	text, err := io.ReadAll(answer.Body)
	if err != nil {
		v.t.Fatal(err)
	}
	for header, want := range map[string]string{
		"X-Content-Type-Options": "nosniff", "Referrer-Policy": "same-origin", "Cross-Origin-Resource-Policy": "same-origin",
	} {
		if got := answer.Header.Get(header); got != want {
			v.t.Errorf("%s: %s is %q", path, header, got)
		}
	}
	policy := answer.Header.Get("Content-Security-Policy")
	if !strings.Contains(policy, "default-src 'none'") || strings.Contains(policy, "unsafe") ||
		strings.Contains(policy, "http") {
		v.t.Errorf("%s: the policy is %q", path, policy)
	}
	return answer.StatusCode, string(text)
}

var paths = []string{
	"/", "/pilots", "/runs/1", "/runs/1/jobs", "/runs/1/jobs?text=IMG&state=ready", "/runs/1/jobs/1", "/runs/1/jobs/2",
	"/runs/1/failures", "/runs/1/slots", "/runs/1/data", "/runs/1/why", "/runs/1/series", "/metrics", "/shares",
	"/runs/1/files", "/runs/1/files?show=all&text=IMG", "/?text=o&state=underway&before=9", "/runs/1/ask/stop",
	"/runs/1/ask/end", "/runs/1/ask/cancel?job=1", "/runs/1/ask/retry?message=" + url.QueryEscape(odd),
}

// Who has no token sees nothing but what belongs to the program; who has one sees all pages.
func TestTokenLetsIn(t *testing.T) {
	v := serve(t)
	stranger := &http.Client{CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	for _, path := range paths {
		if code, body := v.get(path, v.client, nil); code != http.StatusOK {
			t.Errorf("%s: %d %s", path, code, body)
		}
		bearer := map[string]string{"Authorization": "Bearer " + v.access.token}
		if code, _ := v.get(path, stranger, bearer); code != http.StatusOK {
			t.Errorf("%s with the token in a header: %d", path, code)
		}
		for what, header := range map[string]map[string]string{
			"nothing": nil, "another token": {"Authorization": "Bearer x"}, "another cookie": {"Cookie": v.access.cookie + "=x"},
		} {
			code, body := v.get(path, stranger, header)
			if code != http.StatusUnauthorized || strings.Contains(body, "odd") {
				t.Errorf("%s with %s: %d %s", path, what, code, body)
			}
		}
	}
	if code, _ := v.get("/?token=wrong", stranger, nil); code != http.StatusUnauthorized {
		t.Errorf("a wrong link: %d", code)
	}
	for _, path := range []string{"/healthz", "/readyz", "/static/fairway.css", "/static/htmx.min.js"} {
		if code, _ := v.get(path, stranger, nil); code != http.StatusOK {
			t.Errorf("%s: %d", path, code)
		}
	}
}

// The token becomes a cookie that no script and no other site sees, and leaves the address.
func TestTokenBecomesACookie(t *testing.T) {
	v := serve(t)
	link := v.base + "//other.example/x?a=1&token=" + v.access.token
	r, _ := http.NewRequestWithContext(t.Context(), http.MethodGet, link, nil)
	answer, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	text, _ := io.ReadAll(answer.Body)
	if strings.Contains(string(text), v.access.token) || strings.Contains(string(text), "url=//") {
		t.Errorf("it leads to %s", text)
	}
	cookies := answer.Cookies()
	if len(cookies) != 1 || !cookies[0].HttpOnly || cookies[0].SameSite != http.SameSiteStrictMode {
		t.Errorf("the cookies are %v", cookies)
	}
}

// What a page of another site has a browser ask is refused, also with the cookie.
func TestOtherSitesAreRefused(t *testing.T) {
	v := serve(t)
	for what, header := range map[string]map[string]string{
		"an image":     {"Sec-Fetch-Site": "cross-site", "Sec-Fetch-Mode": "no-cors"},
		"a script":     {"Sec-Fetch-Site": "same-site", "Sec-Fetch-Mode": "cors"},
		"another port": {"Sec-Fetch-Site": "same-site", "Sec-Fetch-Mode": "no-cors"},
	} {
		if code, _ := v.get("/runs/1/series", v.client, header); code != http.StatusForbidden {
			t.Errorf("%s: %d", what, code)
		}
	}
	form := map[string]string{"Content-Type": "application/x-www-form-urlencoded"}
	for what, header := range map[string]map[string]string{
		"a form":                   {"Sec-Fetch-Site": "cross-site", "Sec-Fetch-Mode": "navigate"},
		"a form of an old browser": {"Origin": "http://other.example"},
		"a form of another port":   {"Sec-Fetch-Site": "same-site", "Sec-Fetch-Mode": "navigate"},
	} {
		for name, value := range form {
			header[name] = value
		}
		for _, path := range []string{"/runs/1/cancel", "/runs/1/stop", "/runs/1/retry", "/runs/1/end", "/runs/1/remove"} {
			if code, _ := v.send(http.MethodPost, path, v.client, header, "job=1"); code != http.StatusForbidden {
				t.Errorf("%s at %s: %d", what, path, code)
			}
		}
	}
	link := map[string]string{"Sec-Fetch-Site": "cross-site", "Sec-Fetch-Mode": "navigate"}
	if code, _ := v.get("/runs/1", v.client, link); code != http.StatusOK {
		t.Errorf("a link from another site: %d", code)
	}
}

// Names and commands are text, whatever they are.
func TestOddNamesAreText(t *testing.T) {
	v := serve(t)
	for _, path := range append(paths, "/runs/1/jobs?text="+url.QueryEscape(odd),
		"/runs/1/jobs/1?attempt="+url.QueryEscape(`"><script>`)) {
		if strings.HasSuffix(path, "series") || path == "/metrics" {
			continue
		}
		_, body := v.get(path, v.client, nil)
		for _, markup := range []string{"<img src=x", "<script>", ` onerror="`, "style="} {
			if strings.Contains(body, markup) {
				t.Errorf("%s has %s", path, markup)
			}
		}
	}
	if _, body := v.get("/runs/1/jobs?text=IMG", v.client, nil); !strings.Contains(body, "&lt;img src=x") {
		t.Error("the job with the odd name is not found")
	}
}

func TestWhatIsNotThere(t *testing.T) {
	v := serve(t)
	for path, want := range map[string]int{
		"/runs/7": 404, "/runs/x": 404, "/runs/1/jobs/99": 404, "/runs/1/nothing": 404, "/nothing": 404, "/static/x": 404,
		"/runs/1/ask/nothing": 404, "/runs/1/ask/cancel?job=x": 400, "/runs/1/ask/cancel?job=99": 404,
		"/runs/7/ask/stop":    404,
		"/static/..%2fweb.go": 404, "/runs/99999999999": 404, "/runs/7/slots": 404, "/runs/7/series": 404,
		"/runs/1/jobs?after=-3&before=x": 200, "/runs/1/slots?from=99999": 200, "/pilots?from=5": 200,
	} {
		if code, body := v.get(path, v.client, nil); code != want {
			t.Errorf("%s: %d %s", path, code, body)
		}
	}
	if code, _ := v.send(http.MethodPut, "/runs/1/stop", v.client, nil, ""); code != http.StatusNotFound && code != 405 {
		t.Errorf("PUT: %d", code)
	}
}

// live asks how a page looks now, until it has a text. It returns the tag of that, and what the last answer was.
func (v *served) live(path, text string) (tag string, code int) {
	v.t.Helper()
	ctx, cancel := context.WithTimeout(v.t.Context(), time.Minute)
	defer cancel()
	for {
		r, _ := http.NewRequestWithContext(ctx, http.MethodGet, v.base+path, nil)
		r.Header.Set("If-None-Match", tag)
		answer, err := v.client.Do(r)
		if err != nil {
			v.t.Fatal(err)
		}
		body, err := io.ReadAll(answer.Body)
		answer.Body.Close()
		switch {
		case err != nil:
			v.t.Fatal(err)
		case answer.StatusCode == http.StatusNotModified:
			continue
		case answer.StatusCode != http.StatusOK || strings.Contains(string(body), text):
			return answer.Header.Get(tagHeader), answer.StatusCode
		}
		tag = answer.Header.Get(tagHeader)
	}
}

// A form of the page itself is carried out, and the page tells when it asks again.
func TestFormsAndChanges(t *testing.T) {
	v := serve(t)
	v.live("/runs/1/jobs/1?live=1", "state ready")
	header := map[string]string{
		"Content-Type": "application/x-www-form-urlencoded", "Sec-Fetch-Site": "same-origin", "Sec-Fetch-Mode": "navigate",
	}
	if code, body := v.send(http.MethodPost, "/runs/1/cancel", v.client, header, "job=1"); code != http.StatusOK {
		t.Errorf("%d %s", code, body)
	}
	v.live("/runs/1/jobs/1?live=1", "state cancelled")
	if code, _ := v.send(http.MethodPost, "/runs/1/cancel", v.client, header, ""); code != http.StatusBadRequest {
		t.Errorf("cancelling nothing: %d", code)
	}
	for _, path := range []string{"/runs/0/stop", "/runs/0/end", "/runs/0/remove"} {
		if code, _ := v.send(http.MethodPost, path, v.client, header, ""); code == http.StatusOK {
			t.Error("a page stops the server: ", path)
		}
	}
	if code, _ := v.send(http.MethodPost, "/runs/1/remove", v.client, header, ""); code != http.StatusConflict {
		t.Errorf("removing a run that is under way: %d", code)
	}
	if _, code := v.live("/runs/7?live=1", "x"); code != http.StatusNotFound {
		t.Errorf("a run that is not there: %d", code)
	}
	v.live("/shares?live=1", "<table")
}

// Where people share a server, its first page says whose a run is.
func TestRunsAreThoseOfUsers(t *testing.T) {
	v := serve(t)
	me, err := user.Current()
	if err != nil {
		t.Skip(err)
	}
	if _, text := v.get("/", v.client, nil); !strings.Contains(text, "<td>"+me.Username+"</td>") {
		t.Errorf("%s is not named in\n%s", me.Username, text)
	}
}

func TestMetrics(t *testing.T) {
	v := serve(t)
	_, text := v.get("/metrics", v.client, nil)
	for _, line := range []string{`fairway_jobs{state="ready"} 2`, `fairway_queue_length{queue="ready"} 2`, "fairway_runs 1"} {
		if !strings.Contains(text, line) {
			t.Errorf("there is no %s in\n%s", line, text)
		}
	}
	if strings.Contains(text, `state=""`) {
		t.Errorf("a state has no name in\n%s", text)
	}
}

// More pages than the bound are refused, and a user has a part of them only. A page that is asked for again is
// none more, and one that nobody asks for any more is none.
func TestLivePagesAreBounded(t *testing.T) {
	var l lives
	now := time.Now()
	asks := func(user string, page int) bool {
		p := rights.Principal{User: user, Role: rights.Reader}
		v, _ := l.find(p, fmt.Sprint(page), now)
		return v != nil
	}
	for page := range MaxUserPages {
		for range 2 {
			if !asks("ada", page) {
				t.Fatal("one is refused too early")
			}
		}
	}
	if asks("ada", MaxUserPages) {
		t.Error("ada has one too many")
	}
	for page := range MaxPages - MaxUserPages {
		if !asks("", page) {
			t.Fatal("one is refused too early")
		}
	}
	if asks("bob", 0) || asks("", MaxPages) || !asks("ada", 0) {
		t.Error("one too many is open")
	}
	now = now.Add(quietTime)
	if !asks("bob", 0) || len(l.all) != 1 || len(l.of) != 1 {
		t.Errorf("pages that nobody looks at count: %v", l.of)
	}
}

// A page is made again when something has changed and it has rested, and else after a time.
func TestWhenAPageIsMadeAgain(t *testing.T) {
	changed := make(chan struct{})
	close(changed)
	now := time.Now()
	for _, c := range []struct {
		age, rest time.Duration
		changed   <-chan struct{}
		want      bool
	}{
		{MinPause / 2, MinPause, changed, true},
		{MinPause, MinPause, changed, false},
		{MinPause, MinPause, make(chan struct{}), true},
		{MinPause, MinPause, nil, false},
		{quietTime, MinPause, make(chan struct{}), false},
		{MinPause, 2 * MinPause, changed, true},
	} {
		v := &livePage{text: []byte("x"), made: now.Add(-c.age), changed: c.changed}
		if got := v.isFresh(now, c.rest); got != c.want {
			t.Errorf("after %v with a rest of %v: fresh is %v", c.age, c.rest, got)
		}
	}
	if new(livePage).isFresh(now, MinPause) {
		t.Error("what was never made is fresh")
	}
}

// Pages rest by what making all of them takes, and no longer for those that nobody looks at any more.
func TestPagesRestByWhatTheyTake(t *testing.T) {
	var l lives
	begin := time.Now()
	var all []*livePage
	for i := range 50 {
		page, _ := l.find(rights.Owner, fmt.Sprint(i), begin)
		l.took(page, 2*time.Millisecond)
		l.took(page, time.Millisecond)
		all = append(all, page)
	}
	if pause := l.keep(all[0], begin, begin); pause != 50*Rest*time.Millisecond {
		t.Errorf("50 pages that take 1 ms each ask again in %v", pause)
	}
	if pause := l.keep(all[0], begin, begin.Add(time.Hour)); pause != MinPause {
		t.Errorf("what was made long ago is asked for again in %v", pause)
	}
	_, rest := l.find(rights.Owner, "new", begin.Add(2*time.Hour))
	l.took(all[0], time.Minute) // its answer was under way
	if rest != MinPause || l.cost != 0 || l.open() != 1 {
		t.Errorf("%d pages rest for %v, and cost %v", l.open(), rest, l.cost)
	}
}

// Files of a run and logs come whole, as what a browser stores and never shows.
func TestFilesAreStoredByTheBrowser(t *testing.T) {
	v := serve(t)
	address := v.base + "/runs/1/file?name=in%2Fplain.txt&version=0"
	r, _ := http.NewRequestWithContext(t.Context(), http.MethodGet, address, nil)
	answer, err := v.client.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	body, _ := io.ReadAll(answer.Body)
	answer.Body.Close()
	if string(body) != "x" || answer.Header.Get("Content-Disposition") != "attachment; filename=plain.txt" ||
		answer.Header.Get("Content-Type") != "application/octet-stream" {
		t.Errorf("%d %q %v", answer.StatusCode, body, answer.Header)
	}
	for path, want := range map[string]int{
		"/runs/1/file?name=out%2Fplain.txt": 404, "/runs/1/file": 404, "/runs/7/file?name=in%2Fplain.txt": 404,
		"/runs/1/file?name=in%2Fplain.txt&version=7": 404, "/runs/1/file?name=..%2F..%2Fetc%2Fpasswd": 404,
		"/runs/1/jobs/1/log.txt": 404, "/runs/1/jobs/1/log": 404, "/runs/7/files.zip": 404,
	} {
		if code, body := v.get(path, v.client, nil); code != want {
			t.Errorf("%s: %d %s", path, code, body)
		}
	}
	_, text := v.get("/runs/1/files.zip?show=all", v.client, nil)
	packed, err := zip.NewReader(strings.NewReader(text), int64(len(text)))
	if err != nil {
		t.Fatal(err)
	}
	have := map[string]string{}
	for _, file := range packed.File {
		from, err := file.Open()
		if err != nil {
			t.Fatal(err)
		}
		content, _ := io.ReadAll(from)
		have[file.Name] = string(content)
	}
	if have["in/plain.txt"] != "x" || have["in/"+odd+".txt"] != "y" ||
		!strings.Contains(have[missingName], "out/plain.txt: ") {
		t.Errorf("it holds %q", have)
	}
}

// A file whose bytes are not those that were stored does not come to its end.
func TestWrongBytesDoNotArrive(t *testing.T) {
	for want, fails := range map[string]bool{"": false, "00790079": false, "00780078": true} {
		var came []byte
		c := &checked{to: func(data []byte) error {
			came = append(came, data...)
			return nil
		}}
		_ = c.take(&wire.FetchChunk{Version: &wire.FileVersion{Adler32: want}})
		_ = c.take(&wire.FetchChunk{Data: []byte("x")})
		if len(came) > 0 {
			t.Error("the last piece comes before the checksum is known")
		}
		if err := c.end("file"); (err != nil) != fails || (string(came) == "x") == fails {
			t.Errorf("with the checksum %q: %q, %v", want, came, err)
		}
	}
}

// Each failed job is in a group that is shown, before those, or in the rest.
func TestEachFailureIsInAGroup(t *testing.T) {
	all := &api.FailureGroups{Rest: 40, Messages: 30}
	for i := range 50 {
		all.Groups = append(all.Groups, &api.FailureGroup{Jobs: int64(100 - i)})
	}
	const jobs = 50*100 - 49*50/2 + 40
	pages, before := 0, int64(0)
	for from := 0; pages == 0 || from > 0; pages++ {
		f := failedFrom(1, all, from, failuresListed)
		sum := before + f.Jobs
		for _, g := range f.Groups {
			sum += g.Jobs
			before += g.Jobs
		}
		if sum != jobs || f.Reasons != 80-from-len(f.Groups) {
			t.Errorf("from group %d on there are %d jobs, and %d other reasons", from, sum, f.Reasons)
		}
		from = f.Next
	}
	if f := failedFrom(1, all, 999, failuresListed); pages != 3 || len(f.Groups) != 0 || f.Jobs != 40 {
		t.Errorf("%d pages, and then %+v", pages, f)
	}
}
