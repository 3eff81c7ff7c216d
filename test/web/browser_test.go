package web

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/cdproto/log"
	"github.com/chromedp/cdproto/network"
	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/cdproto/storage"
	"github.com/chromedp/chromedp"

	"fairway/test/files"
	"fairway/test/program"
)

// fairway is the path of the binary under test.
var fairway string

func TestMain(m *testing.M) { program.Main(m, &fairway) }

// Variables that say what is tested and where that is.
const (
	wanted   = "FAIRWAY_TEST_WEB"     // 1: there is a browser
	axePath  = "FAIRWAY_AXE"          // the file axe.min.js
	pictures = "FAIRWAY_WEB_PICTURES" // a folder for pictures; empty: none are taken
)

const workflow = `workflow: survey
inputs:
  samples: {files: "in/{sample}.txt", as: "in/{sample}.txt"}
steps:
  clean:
    each: in/{sample}.txt
    writes: clean/{sample}.txt
    command: |
      echo "cleaning $sample"
      sed 's/x//' "$in" >"$out"; sleep 0.$((RANDOM % 8 + 1))
  table:
    each: clean/{sample}.txt
    writes: table/{sample}.tsv
    retry: {attempts: 1}
    command: |
      case "$sample" in
      s05|s11|s17) echo "line 4: sample $sample has no header" >&2; exit 3;;
      s09) echo "<script>alert('$sample')</script> & others cannot be read" >&2; exit 4;;
      esac
      wc -l <"$in" >"$out"; sleep 0.$((RANDOM % 4 + 1))
  plot:
    each: clean/{sample}.txt
    writes: plot/{sample}.svg
    command: echo "<svg/>" >"$out"; sleep 0.$((RANDOM % 5 + 2))
  merge:
    merge: table/{sample}.tsv
    writes: all.tsv
    command: cat $in >"$out"
  report:
    reads: all.tsv
    writes: report.html
    command: echo done >"$out"
  gate:
    reads: in/s01.txt
    writes: gate.txt
    command: |
      echo "waiting at the gate"
      until [ -e %GATE% ]; do sleep 0.05; done
      echo "<i>through</i>" >&2
      cp "$in" "$out"
`

// served is a server with its pages.
type served struct {
	folder, link, base string
	more               []string // arguments
	command            *exec.Cmd
}

var link = regexp.MustCompile(`http://\S+`)

// serve starts a server with further arguments.
func serve(t *testing.T, more ...string) *served {
	t.Helper()
	folder, err := os.MkdirTemp("", "survey")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(folder) })
	s := &served{folder: folder, more: append([]string{"--pilots", "4"}, more...)}
	t.Cleanup(s.end)
	s.start(t, "--web")
	return s
}

// start starts the server, and waits until it serves.
func (s *served) start(t *testing.T, web string) {
	t.Helper()
	s.command = exec.Command(fairway, append([]string{"serve", "--state", s.folder, web}, s.more...)...)
	s.command.Env = append(os.Environ(), "TZ="+serverZone)
	printed, err := s.command.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := s.command.Start(); err != nil {
		t.Fatal(err)
	}
	lines := bufio.NewScanner(printed)
	for lines.Scan() && !strings.Contains(lines.Text(), "fairway: serving ") {
		if link.MatchString(lines.Text()) {
			t.Error("the server prints a link where no terminal is")
		}
	}
	text, err := os.ReadFile(filepath.Join(s.folder, ".fairway", "link"))
	if err != nil {
		t.Fatal(err)
	}
	s.link = link.FindString(string(text))
	go func() {
		for lines.Scan() {
			t.Log(lines.Text())
		}
	}()
	s.base, _, _ = strings.Cut(s.link, "/?")
	if s.base == "" {
		t.Fatal("the server has no link")
	}
}

// end ends the server and what runs, at once.
func (s *served) end() {
	_ = s.command.Process.Signal(syscall.SIGQUIT)
	_ = s.command.Wait()
}

// restart kills the server, and starts it at the same address with another link.
func (s *served) restart(t *testing.T) {
	t.Helper()
	_, address, _ := strings.Cut(s.base, "//")
	_ = s.command.Process.Kill()
	_ = s.command.Wait()
	s.start(t, "--web="+address)
}

// Time zones of the server and of the browser: pages have one of them only.
const (
	serverZone  = "Asia/Kathmandu"
	browserZone = "America/St_Johns"
)

// submit begins a run whose gate opens when the returned function is called.
func (s *served) submit(t *testing.T, samples int) (open func()) {
	t.Helper()
	folder := t.TempDir()
	gate := filepath.Join(folder, "open")
	for i := range samples {
		files.Write(t, filepath.Join(folder, fmt.Sprintf("in/s%02d.txt", i+1)), strings.Repeat("x line\n", 1000*(i+1)))
	}
	file := files.Write(t, filepath.Join(folder, "workflow.yaml"), strings.ReplaceAll(workflow, "%GATE%", gate))
	out, err := exec.Command(fairway, "submit", file, "--server", s.folder, "-C", folder, "--keep-going").CombinedOutput()
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	return func() { files.Write(t, gate, "") }
}

// browserTab is a tab of a real Chromium. What its console says of errors fails the test.
type browserTab struct {
	context.Context
	t  *testing.T
	mu sync.Mutex // guards said
	// said are errors of scripts and of the rules of the page.
	said []string
}

func browse(t *testing.T) *browserTab {
	t.Helper()
	if os.Getenv(wanted) == "" {
		t.Skip("there may be no browser: `make test-web` installs one, and runs this")
	}
	options := append(chromedp.DefaultExecAllocatorOptions[:], chromedp.NoSandbox)
	starting, stop := chromedp.NewExecAllocator(context.Background(), options...)
	t.Cleanup(stop)
	return newTab(t, starting)
}

// newTab opens a tab: the first of a browser, or one beside another.
func newTab(t *testing.T, of context.Context) *browserTab {
	t.Helper()
	tab, end := chromedp.NewContext(of)
	t.Cleanup(end)
	b := &browserTab{Context: tab, t: t}
	err := chromedp.Listen(tab, func(event any) {
		b.mu.Lock()
		defer b.mu.Unlock()
		switch e := event.(type) {
		case *runtime.EventExceptionThrown:
			b.said = append(b.said, e.ExceptionDetails.Text)
		case *log.EventEntryAdded:
			if e.Entry.Level == log.EntryLevelError {
				b.said = append(b.said, e.Entry.Text+" "+e.Entry.URL)
			}
		}
	})
	if err == nil {
		_, err = chromedp.Call(tab, log.Enable, cdp.Empty{})
	}
	if err == nil {
		_, err = chromedp.Call(tab, emulation.SetTimezoneOverride,
			emulation.SetTimezoneOverrideParams{TimezoneID: browserZone})
	}
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func (b *browserTab) do(steps ...chromedp.Action[chromedp.Void]) {
	b.t.Helper()
	limited, cancel := context.WithTimeout(b, longest)
	defer cancel()
	if err := chromedp.Do(limited, steps...); err != nil {
		b.t.Fatal(err)
	}
}

// longest is how long the browser may take for anything.
const longest = time.Minute

// ask evaluates an expression.
func ask[T any](b *browserTab, expression string) T {
	b.t.Helper()
	limited, cancel := context.WithTimeout(b, longest)
	defer cancel()
	answer, err := chromedp.Run(limited, chromedp.Evaluate[T](expression, chromedp.EvalAwaitPromise))
	if err != nil {
		b.t.Fatal(err)
	}
	return answer
}

// quiet checks that the console has said nothing.
func (b *browserTab) quiet(page string) {
	b.t.Helper()
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, text := range b.said {
		b.t.Errorf("%s: %s", page, text)
	}
	b.said = nil
}

// open goes to a page.
func (b *browserTab) open(url string) {
	b.t.Helper()
	b.do(chromedp.Navigate(url), chromedp.WaitReady("main"))
}

// awaiting waits until an expression is true, also on the page that comes after this one.
func (b *browserTab) awaiting(expression string) {
	b.t.Helper()
	limited, cancel := context.WithTimeout(b, longest)
	defer cancel()
	for {
		_, err := chromedp.Run(limited, chromedp.Poll[bool](expression, chromedp.WithPollingTimeout(longest)))
		switch {
		case err == nil:
			return
		case limited.Err() != nil:
			b.t.Fatalf("it has not come to %s: %v\n%s", expression, err, ask[string](b, "document.body.innerText"))
		}
	}
}

// look is how a page is looked at.
type look struct {
	name          string
	width, height int64
	dark          bool
}

// pictured are the pages of which docs/web.md has pictures, besides that of a run that goes on.
var pictured = map[string]bool{
	"run, dark": true, "run, phone": true, "slots, wide": true, "failed, wide": true,
	"failures, wide": true, "files, wide": true,
}

var looks = []look{
	{"wide", 1280, 900, false}, {"dark", 1280, 900, true}, {"phone", 390, 844, false}, {"small phone", 360, 640, false},
}

func (b *browserTab) as(l look) {
	b.t.Helper()
	scheme := "light"
	if l.dark {
		scheme = "dark"
	}
	_, err := chromedp.Call(b, emulation.SetDeviceMetricsOverride, emulation.SetDeviceMetricsOverrideParams{
		Width: l.width, Height: l.height, DeviceScaleFactor: 1, Mobile: l.width < 500,
	})
	if err == nil {
		_, err = chromedp.Call(b, emulation.SetEmulatedMedia, emulation.SetEmulatedMediaParams{
			Features: []*emulation.MediaFeature{{Name: "prefers-color-scheme", Value: scheme}},
		})
	}
	if err != nil {
		b.t.Fatal(err)
	}
}

// accessible has axe look for what some people could not use.
func (b *browserTab) accessible(page string) {
	b.t.Helper()
	axe, err := os.ReadFile(os.Getenv(axePath))
	if err != nil {
		b.t.Fatalf("%s must name axe.min.js: %v", axePath, err)
	}
	ask[int](b, string(axe)+";1")
	found := ask[string](b, `axe.run(document, {resultTypes: ["violations"]}).then(r => JSON.stringify(r.violations.map(v =>
		v.id + ": " + v.help + ": " + v.nodes.slice(0, 3).map(n => n.html.slice(0, 160) + ": " + n.failureSummary).join(" | "))))`)
	var violations []string
	if err := json.Unmarshal([]byte(found), &violations); err != nil {
		b.t.Fatal(err)
	}
	for _, v := range violations {
		b.t.Errorf("%s: %s", page, v)
	}
}

// fits checks that the page is not wider than the window.
func (b *browserTab) fits(page string) {
	b.t.Helper()
	if over := ask[int](b, `document.documentElement.scrollWidth - document.documentElement.clientWidth`); over > 0 {
		b.t.Errorf("%s is %d pixels wider than the window", page, over)
	}
}

func (b *browserTab) picture(name string) {
	b.t.Helper()
	folder := os.Getenv(pictures)
	if folder == "" {
		return
	}
	png, err := chromedp.Run(b, chromedp.CaptureScreenshot())
	if err != nil {
		b.t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(folder, name+".png"), png, 0o644); err != nil {
		b.t.Fatal(err)
	}
}

// Pages show a run as it goes on, to everybody, and nothing that a job says becomes a part of them.
func TestPagesInABrowser(t *testing.T) {
	b := browse(t)
	s := serve(t)
	openGate := s.submit(t, 24)

	b.open(s.link)
	b.awaiting(`document.querySelector("h1")?.textContent === "Runs"`)
	if address := ask[string](b, "location.href"); address != s.base+"/" {
		t.Errorf("the address has become %s", address)
	}
	if visible := ask[string](b, "document.cookie"); visible != "" {
		t.Errorf("scripts see the cookie %q", visible)
	}
	stored, err := chromedp.Call(b, storage.GetCookies, storage.GetCookiesParams{})
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range stored.Cookies {
		if !c.HTTPOnly || c.SameSite != network.CookieSameSiteStrict || len(stored.Cookies) != 1 {
			t.Errorf("the cookie is %+v", c)
		}
	}

	// It changes while it is looked at.
	b.open(s.base + "/runs/1")
	b.awaiting(`document.querySelector(".figures .bad")?.textContent.includes("4")`)
	b.awaiting(`document.querySelectorAll("#plot canvas").length === 1`)
	b.as(looks[0])
	b.picture("run")
	gate := s.jobNamed(t, "gate")
	b.open(fmt.Sprintf("%s/runs/1/jobs/%s", s.base, gate))
	b.awaiting(`document.querySelector(".log")?.textContent.includes("waiting at the gate")`)

	pages := map[string]string{
		"runs": "/", "run": "/runs/1", "jobs": "/runs/1/jobs?state=failed", "job": "/runs/1/jobs/" + gate,
		"failed": "/runs/1/jobs/" + s.jobNamed(t, "table/s09"), "failures": "/runs/1/failures", "slots": "/runs/1/slots",
		"data": "/runs/1/data", "why": "/runs/1/why", "pilots": "/pilots", "refused": "/runs/7",
		"files": "/runs/1/files", "shares": "/shares", "ask": "/runs/1/ask/end",
	}
	for name, path := range pages {
		for _, l := range looks {
			page := name + ", " + l.name
			b.as(l)
			b.open(s.base + path)
			if strings.Contains("run slots", name) {
				b.awaiting(`document.querySelectorAll("#plot canvas").length === 1`)
			}
			b.accessible(page)
			b.fits(page)
			if pictured[page] {
				b.picture(strings.TrimSuffix(name+"-"+l.name, "-wide"))
			}
		}
	}
	b.mu.Lock()
	b.said = nil // the page that is not there is an error for the console
	b.mu.Unlock()

	b.as(looks[0])
	b.open(s.base + "/runs/1/jobs/" + gate)
	b.awaiting(`document.querySelector(".log")?.textContent.includes("waiting at the gate")`)
	openGate()
	b.awaiting(`document.querySelector(".log")?.textContent.includes("<i>through</i>")`)
	b.awaiting(`document.querySelector(".figures .state")?.textContent === "done"`)
	b.searches(s)
	b.acts(s)
	b.quiet("all pages")
}

// jobNamed is the number of a job.
func (s *served) jobNamed(t *testing.T, name string) string {
	t.Helper()
	out, err := exec.Command(fairway, "show", name, "--server", s.folder, "--run", "1", "--json").Output()
	var job struct {
		Summary struct {
			ID int `json:"id"`
		} `json:"summary"`
	}
	if err == nil {
		err = json.Unmarshal(out, &job)
	}
	if err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	return fmt.Sprint(job.Summary.ID)
}

// searches types a name, and follows what is found by keyboard alone.
func (b *browserTab) searches(s *served) {
	b.t.Helper()
	b.open(s.base + "/runs/1/jobs")
	b.do(chromedp.SendKeys("#text", "ot/s07"))
	b.awaiting(`document.querySelectorAll("#live tbody tr").length === 1`)
	if got := ask[string](b, `document.querySelector("#live tbody th").textContent`); !strings.Contains(got, "plot/s07") {
		b.t.Errorf("it found %q", got)
	}
	b.awaiting(`location.search.includes("text=ot%2Fs07") && document.activeElement.id === "text"`)
	b.open(s.base + "/runs/1")
	b.do(chromedp.KeyEvent("\t"))
	b.awaiting(`document.activeElement.className === "skip"`)
	b.do(chromedp.KeyEvent("\r"))
	b.awaiting(`document.activeElement.id === "main"`)
}

// acts has failed jobs run once more.
func (b *browserTab) acts(s *served) {
	b.t.Helper()
	b.open(s.base + "/runs/1/failures")
	b.do(chromedp.Click("#retry"))
	b.awaiting(`location.pathname === "/runs/1/ask/retry" && document.querySelector("#yes") !== null`)
	b.do(chromedp.Click("#yes"))
	b.awaiting(`location.pathname === "/runs/1"`)
	b.awaiting(`document.querySelector("h1")?.textContent === "Overview"`)
}
