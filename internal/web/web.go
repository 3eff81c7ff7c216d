package web

import (
	"bytes"
	"context"
	"embed"
	"errors"
	"html/template"
	"io/fs"
	"log/slog"
	"net/http"
	"path"
	"strconv"
	"strings"
	"sync"
	"time"

	"connectrpc.com/connect"

	"fairway/internal/rights"
	"fairway/internal/server/api"
)

//go:embed static vendored
var assets embed.FS

//go:embed templates
var sources embed.FS

// Config is what pages are made of.
type Config struct {
	Service *api.Service
	Access  *Access
	Door    Door   // nil: the server has its owner only
	Name    string // of the server, for people
	Log     *slog.Logger
}

// site are the pages of a server.
type site struct {
	Config
	lives    lives
	patterns []string // of all routes
}

// New makes the handler of the pages of a server.
func New(c Config) http.Handler { return (&site{Config: c}).routes() }

// routes makes the handler. What a route is, rights.Pages says; one that is not there is refused.
func (s *site) routes() http.Handler {
	pages, all := http.NewServeMux(), http.NewServeMux()
	route := func(mux *http.ServeMux, pattern string, h http.Handler) {
		s.patterns = append(s.patterns, pattern)
		mux.Handle(pattern, may(rights.Pages[pattern], h))
	}
	for pattern, p := range map[string]page{
		"/{$}":                     {"runs", s.runs},
		"/pilots":                  {"pilots", s.pilots},
		"/shares":                  {"shares", s.shares},
		"/runs/{run}":              {"run", s.run},
		"/runs/{run}/jobs":         {"jobs", s.jobs},
		"/runs/{run}/jobs/{id}":    {"job", s.job},
		"/runs/{run}/failures":     {"failures", s.failures},
		"/runs/{run}/files":        {"files", s.files},
		"/runs/{run}/slots":        {"slots", s.slots},
		"/runs/{run}/data":         {"data", s.data},
		"/runs/{run}/why":          {"why", s.why},
		"/runs/{run}/ask/{action}": {"ask", s.ask},
	} {
		route(pages, "GET "+pattern, s.serve(p))
	}
	for name, a := range actions {
		route(pages, "POST /runs/{run}/"+name, s.act(a))
	}
	for pattern, handle := range map[string]http.HandlerFunc{
		"GET /runs/{run}/series":            s.series,
		"GET /runs/{run}/file":              s.file,
		"GET /runs/{run}/files.zip":         s.filesZIP,
		"GET /runs/{run}/jobs/{id}/log":     s.log,
		"GET /runs/{run}/jobs/{id}/log.txt": s.wholeLog,
		"GET /metrics":                      newMetrics(s).ServeHTTP,
		"/": func(w http.ResponseWriter, _ *http.Request) {
			refuse(w, http.StatusNotFound, "There is no such page.")
		},
	} {
		route(pages, pattern, handle)
	}
	for pattern, handle := range map[string]http.HandlerFunc{
		"GET /healthz":       func(w http.ResponseWriter, _ *http.Request) { plain(w, http.StatusOK, "ok") },
		"GET /readyz":        s.ready,
		"GET /static/{name}": static,
		"GET /login":         s.loginPage,
		"POST /login":        ownSite(http.HandlerFunc(s.login)).ServeHTTP,
		"POST /logout":       ownSite(http.HandlerFunc(s.logout)).ServeHTTP,
	} {
		route(all, pattern, handle)
	}
	all.Handle("/", ownSite(s.guard(pages)))
	return secured(all)
}

func plain(w http.ResponseWriter, code int, text string) {
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	w.WriteHeader(code)
	_, _ = w.Write([]byte(text + "\n"))
}

func (s *site) ready(w http.ResponseWriter, r *http.Request) {
	ctx, cancel := context.WithTimeout(r.Context(), readyTime)
	defer cancel()
	if err := s.Service.Answers(ctx); err != nil {
		plain(w, http.StatusServiceUnavailable, "the server does not answer")
		return
	}
	plain(w, http.StatusOK, "ok")
}

const readyTime = 5 * time.Second

// static serves what belongs to the program. It is no secret.
func static(w http.ResponseWriter, r *http.Request) {
	name := path.Base(r.PathValue("name"))
	for _, folder := range []string{"static", "vendored"} {
		content, err := assets.ReadFile(path.Join(folder, name))
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		w.Header().Set("Cache-Control", "max-age=3600")
		http.ServeContent(w, r, name, time.Time{}, bytes.NewReader(content))
		return
	}
	refuse(w, http.StatusNotFound, "There is no such page.")
}

// page shows something that may change. load gets what that is.
type page struct {
	name string // of its template
	load func(*http.Request) (*content, error)
}

// content is what a page shows.
type content struct {
	Title string
	Run   api.Page // 0: it is about the server
	Name  string   // of the workflow of the run
	Over  bool     // nothing of it changes any more
	Body  any
}

// frame is what the template of all pages gets.
type frame struct {
	*content
	Server  string
	Lasting bool
	Page    string // the name of its template
	Live    string // the address that answers with the part that changes; empty: nothing does
	Who     string // has a session; empty: nobody
	Changes bool   // who looks may change runs
	Logins  bool   // who is not known can log in
}

// views are the templates, by the name of the page. They are read when the first page is asked for: to
// read them takes longer than all else that the program does before it begins, and every pilot is
// this program.
var views = sync.OnceValue(func() map[string]*template.Template {
	all := map[string]*template.Template{}
	names, err := fs.Glob(sources, "templates/*.html")
	if err != nil {
		panic(err)
	}
	parts := []string{"templates/frame.html", "templates/parts.html"}
	for _, name := range names {
		t := template.New("frame.html").Funcs(functions)
		all[strings.TrimSuffix(path.Base(name), ".html")] = template.Must(t.ParseFS(sources, append(parts, name)...))
	}
	return all
})

func show(w http.ResponseWriter, code int, name string, data any) {
	var text bytes.Buffer
	if err := views()[name].ExecuteTemplate(&text, name+".html", data); err != nil {
		http.Error(w, "the page could not be made", http.StatusInternalServerError)
		return
	}
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	w.WriteHeader(code)
	_, _ = w.Write(text.Bytes())
}

// serve answers with a page, or with the part of it that changes.
func (s *site) serve(p page) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Query().Has(liveParameter) {
			s.live(w, r, p)
			return
		}
		c, err := p.load(r)
		if to, ok := errors.AsType[elsewhere](err); ok {
			http.Redirect(w, r, string(to), http.StatusSeeOther)
			return
		}
		if err != nil {
			s.fail(w, err)
			return
		}
		text, err := s.render(r, p, c, "frame.html")
		if err != nil {
			s.fail(w, err)
			return
		}
		w.Header().Set("Content-Type", "text/html; charset=utf-8")
		_, _ = w.Write(text)
	})
}

// elsewhere is the path of the page that a person gets instead.
type elsewhere string

// Error is part of error.
func (e elsewhere) Error() string { return "the page is at " + string(e) }

func (s *site) render(r *http.Request, p page, c *content, part string) ([]byte, error) {
	who := rights.Of(r.Context())
	f := &frame{
		content: c, Server: s.Name, Lasting: s.Service.IsLasting(), Page: p.name,
		Changes: who.Role.May(rights.Change), Logins: s.Door != nil,
	}
	if who.Token != "" {
		f.Who = who.Name()
	}
	if !c.Over {
		query := r.URL.Query()
		query.Set(liveParameter, "1")
		f.Live = r.URL.Path + "?" + query.Encode()
	}
	var text bytes.Buffer
	err := views()[p.name].ExecuteTemplate(&text, part, f)
	return text.Bytes(), err
}

func (s *site) fail(w http.ResponseWriter, err error) {
	code := codeOf(err)
	if code == http.StatusInternalServerError {
		s.Log.Warn("a page could not be made", "error", err)
	}
	refuse(w, code, textOf(err))
}

func codeOf(err error) int {
	switch connect.CodeOf(err) {
	case connect.CodeNotFound:
		return http.StatusNotFound
	case connect.CodePermissionDenied, connect.CodeUnauthenticated:
		return http.StatusForbidden
	case connect.CodeInvalidArgument:
		return http.StatusBadRequest
	case connect.CodeFailedPrecondition:
		return http.StatusConflict
	case connect.CodeUnavailable, connect.CodeCanceled, connect.CodeDeadlineExceeded:
		return http.StatusServiceUnavailable
	}
	return http.StatusInternalServerError
}

func textOf(err error) string {
	if coded, ok := errors.AsType[*connect.Error](err); ok {
		return coded.Message()
	}
	return err.Error()
}

func runOf(r *http.Request) (api.Page, error) {
	number, err := strconv.ParseUint(r.PathValue("run"), 10, 32)
	if err != nil {
		return 0, errNoPage
	}
	return api.Page(number), nil
}

// jobOf is the job that the path of a request names: pages name it by its number.
func jobOf(r *http.Request) string { return numbered(r.PathValue("id")) }

// numbered makes a name that means the job with a number, also where another has that number for a name.
func numbered(id string) string {
	if _, err := strconv.ParseUint(id, 10, 32); err == nil {
		return api.JobNumber + id
	}
	return id
}

var errNoPage = connect.NewError(connect.CodeNotFound, errors.New("there is no such page"))

// number is a parameter of a request that counts something; what is wrong is 0.
func number(r *http.Request, name string) int {
	n, err := strconv.ParseUint(r.FormValue(name), 10, 31)
	if err != nil {
		return 0
	}
	return int(n)
}
