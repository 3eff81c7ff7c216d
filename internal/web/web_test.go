package web

import (
	"bufio"
	"context"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/cookiejar"
	"net/http/httptest"
	"net/url"
	"os"
	"os/user"
	"path/filepath"
	"strings"
	"testing"

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
		Lasting: true, Folder: root, Sched: s, Log: log,
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
	"/runs/1/failures", "/runs/1/slots", "/runs/1/data", "/runs/1/why", "/runs/1/series", "/metrics",
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
		for _, path := range []string{"/runs/1/cancel", "/runs/1/stop", "/runs/1/retry"} {
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

// A form of the page itself is carried out, and the stream of the page tells.
func TestFormsAndStreams(t *testing.T) {
	v := serve(t)
	r, _ := http.NewRequestWithContext(t.Context(), http.MethodGet, v.base+"/runs/1/jobs/1?live=1", nil)
	stream, err := v.client.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer stream.Body.Close()
	lines := bufio.NewScanner(stream.Body)
	lines.Buffer(nil, 1<<20)
	until := func(text string) {
		t.Helper()
		for lines.Scan() {
			if strings.Contains(lines.Text(), text) {
				return
			}
		}
		t.Fatalf("the stream ends before %q: %v", text, lines.Err())
	}
	until("state ready")
	header := map[string]string{
		"Content-Type": "application/x-www-form-urlencoded", "Sec-Fetch-Site": "same-origin", "Sec-Fetch-Mode": "navigate",
	}
	if code, body := v.send(http.MethodPost, "/runs/1/cancel", v.client, header, "job=1"); code != http.StatusOK {
		t.Errorf("%d %s", code, body)
	}
	until("state cancelled")
	if code, _ := v.send(http.MethodPost, "/runs/1/cancel", v.client, header, ""); code != http.StatusBadRequest {
		t.Errorf("cancelling nothing: %d", code)
	}
	if code, _ := v.send(http.MethodPost, "/runs/0/stop", v.client, header, ""); code == http.StatusOK {
		t.Error("a page stops the server")
	}
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

// More streams than the bound are refused, and a user has a part of them only.
func TestStreamsAreBounded(t *testing.T) {
	var s streams
	by := func(user string) *http.Request {
		r := httptest.NewRequest(http.MethodGet, "/", nil)
		return r.WithContext(rights.With(r.Context(), rights.Principal{User: user, Role: rights.Reader}))
	}
	var ends []func()
	begin := func(user string) bool {
		w := httptest.NewRecorder()
		_, end, ok := s.begin(w, by(user))
		if ok {
			ends = append(ends, end)
		} else if w.Code != http.StatusServiceUnavailable {
			t.Error(w.Code)
		}
		return ok
	}
	for range MaxUserStreams {
		if !begin("ada") {
			t.Fatal("one is refused too early")
		}
	}
	if begin("ada") {
		t.Error("ada has one too many")
	}
	for range MaxStreams - MaxUserStreams {
		if !begin("") {
			t.Fatal("one is refused too early")
		}
	}
	if begin("bob") || begin("") {
		t.Error("one too many is open")
	}
	for _, end := range ends {
		end()
	}
	if len(s.of) != 0 || s.open.Load() != 0 || !begin("ada") {
		t.Errorf("streams that have ended count: %v", s.of)
	}
}
