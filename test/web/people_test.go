package web

import (
	"archive/zip"
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/cdproto/browser"
	"github.com/chromedp/cdproto/page"
	"github.com/chromedp/chromedp"

	"fairway/internal/server/api"
	"fairway/internal/wire"
	"fairway/test/files"
)

// connect is a client of the server, as the user who has started it.
func (s *served) connect(t *testing.T) wire.WorkflowClient {
	t.Helper()
	client, err := api.Connect(t.Context(), s.folder)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(client.Close)
	return client
}

// begin submits a workflow, whose inputs are in a folder.
func begin(t *testing.T, client wire.WorkflowClient, r *wire.SubmitWorkflowRequest) uint32 {
	t.Helper()
	made, err := client.SubmitWorkflow(t.Context(), r)
	if err != nil {
		t.Fatal(err)
	}
	return made.GetRun()
}

// ended waits until a run has ended.
func ended(t *testing.T, client wire.WorkflowClient, run uint32) *wire.ProgressReport {
	t.Helper()
	stream, err := client.Progress(t.Context(), &wire.ProgressRequest{Run: run, Follow: true})
	if err != nil {
		t.Fatal(err)
	}
	defer stream.Close()
	var last *wire.ProgressReport
	for stream.Receive() {
		last = stream.Msg()
	}
	if !last.GetEnded() {
		t.Fatal("the run has not ended: ", stream.Err())
	}
	return last
}

// storesIn has the browser store what it downloads in a folder.
func (b *browserTab) storesIn(folder string) {
	b.t.Helper()
	_, err := chromedp.CallBrowser(b, browser.SetDownloadBehavior, browser.SetDownloadBehaviorParams{
		Behavior: browser.SetDownloadBehaviorBehaviorAllow, DownloadPath: folder,
	})
	if err != nil {
		b.t.Fatal(err)
	}
}

// stored waits until the browser has stored a file, which has this name when it is complete.
func (b *browserTab) stored(folder, name string) string {
	b.t.Helper()
	limited, cancel := context.WithTimeout(b, longest)
	defer cancel()
	for tick := time.NewTicker(20 * time.Millisecond); ; {
		text, err := os.ReadFile(filepath.Join(folder, name))
		if err == nil {
			return string(text)
		}
		select {
		case <-limited.Done():
			list, _ := filepath.Glob(filepath.Join(folder, "*"))
			b.t.Fatalf("%s has not been stored: %v", name, list)
		case <-tick.C:
		}
	}
}

// click clicks something that leads to another page.
func (b *browserTab) click(selector, leadsTo string) {
	b.t.Helper()
	b.do(chromedp.Click(selector))
	b.awaiting(fmt.Sprintf(`location.pathname + location.search === %q && document.readyState === "complete"`, leadsTo))
}

// text is what a part of the page says.
func (b *browserTab) text(selector string) string {
	b.t.Helper()
	return ask[string](b, fmt.Sprintf(`document.querySelector(%q)?.innerText ?? ""`, selector))
}

// Files, results and logs are stored by a click, and the first page of a run says where they are and what it was
// submitted with.
func TestDownloads(t *testing.T) {
	b := browse(t)
	s := serve(t)
	folder := files.Folder(t, map[string]string{"in/a.txt": "one\n", "in/b.txt": "two\n", "workflow.yaml": `workflow: letters
parameters: {greeting: hello}
inputs:
  texts: {files: "in/{s}.txt", as: "in/{s}.txt"}
steps:
  greet:
    each: in/{s}.txt
    writes: "out/{s}.txt"
    command: |
      seq 30000
      echo "the end of $s" >&2
      (echo "$greeting"; cat "$in") >"$out"
`})
	client := s.connect(t)
	text, err := os.ReadFile(filepath.Join(folder, "workflow.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	run := begin(t, client, &wire.SubmitWorkflowRequest{
		Workflow: text, Folder: folder, Parameters: map[string]string{"greeting": "servus"},
	})
	if report := ended(t, client, run); !report.GetSucceeded() {
		t.Fatal(report.GetProblems())
	}
	store := t.TempDir()
	b.open(s.link)
	b.storesIn(store)
	b.awaiting(`document.querySelector("h1")?.textContent === "Runs"`)
	b.click("#run1", "/runs/1")
	about := b.text(".facts")
	me, err := user.Current()
	if err != nil {
		t.Fatal(err)
	}
	for _, part := range []string{
		me.Username, "greeting = servus", "workflow.yaml", folder, filepath.Join(s.folder, "results"),
		"2 files", "submitted", "ended",
	} {
		if !strings.Contains(about, part) {
			t.Errorf("the first page does not tell %q: %s", part, about)
		}
	}
	if all := b.text("main"); strings.Contains(all, "+") {
		t.Error("it tells of more jobs of a run that has ended: ", all)
	}
	b.click(".facts a", "/runs/1/files")
	b.do(chromedp.Click("#live tbody a"))
	if got := b.stored(store, "a.txt"); got != "servus\none\n" {
		t.Errorf("the file is %q", got)
	}
	b.do(chromedp.Click("#zip"))
	b.zip(filepath.Join(store, "run-1.zip"), b.stored(store, "run-1.zip"))
	b.do(chromedp.SendKeys("#text", "b.tx"))
	b.awaiting(`document.querySelectorAll("#live tbody tr").length === 1`)
	job := s.jobNamed(t, "greet/b")
	b.click(`#live tbody td a`, "/runs/1/jobs/"+job)
	b.awaiting(`document.querySelector(".log")?.textContent.includes("the end of b")`)
	b.do(chromedp.Click("#whole"))
	log := b.stored(store, "job-"+job+".log")
	if !strings.HasPrefix(log, "1\n2\n3\n") || !strings.Contains(log, "\n30000\n") ||
		!strings.Contains(log, "the end of b") {
		t.Errorf("the log has %d bytes: %.40q", len(log), log)
	}
	b.do(chromedp.Click(`section[aria-labelledby="files"] tbody tr:last-child a`))
	if got := b.stored(store, "b.txt"); got != "servus\ntwo\n" {
		t.Errorf("the file is %q", got)
	}
	b.quiet("downloads")
}

// zip checks what a ZIP file of the results holds.
func (b *browserTab) zip(path, text string) {
	b.t.Helper()
	packed, err := zip.NewReader(strings.NewReader(text), int64(len(text)))
	if err != nil {
		b.t.Fatal(path, err)
	}
	have := map[string]string{}
	for _, file := range packed.File {
		in, err := file.Open()
		if err != nil {
			b.t.Fatal(err)
		}
		content, err := io.ReadAll(in)
		if err != nil {
			b.t.Fatal(err)
		}
		have[file.Name] = string(content)
	}
	if len(have) != 2 || have["out/a.txt"] != "servus\none\n" || have["out/b.txt"] != "servus\ntwo\n" {
		b.t.Errorf("the results are %q", have)
	}
}

// waiting is a workflow whose job waits for a file.
func waiting(gate string) []byte {
	return []byte("workflow: waits\nparameters: {shape: round}\nsteps:\n  gate:\n    writes: out.txt\n    command: |\n" +
		"      until [ -e " + gate + " ]; do sleep 0.05; done\n      echo through >\"$out\"\n")
}

// A run is stopped, gone on with, ended at once and removed by clicks, each after a question where nothing brings
// back what is lost.
func TestARunIsChangedByClicks(t *testing.T) {
	b := browse(t)
	s := serve(t)
	client := s.connect(t)
	folder := t.TempDir()
	gate := filepath.Join(folder, "open")
	begin(t, client, &wire.SubmitWorkflowRequest{Workflow: waiting(gate), Folder: folder})
	b.open(s.link)
	b.awaiting(`document.querySelector("h1")?.textContent === "Runs"`)
	b.open(s.base + "/runs/1")
	b.awaiting(`document.querySelector(".figures")?.textContent.includes("running1")`)
	if about := b.text(".facts"); !strings.Contains(about, "shape = round") {
		t.Errorf("the first page does not tell the parameter: %s", about)
	}
	b.click("#end", "/runs/1/ask/end")
	b.click("#no", "/runs/1")
	b.click("#end", "/runs/1/ask/end")
	b.click("#yes", "/runs/1")
	b.awaiting(`document.querySelector(".when .big")?.textContent === "Stopped" && document.querySelector("#goon") !== null`)
	b.click("#goon", "/runs/1")
	b.awaiting(`document.querySelector(".figures")?.textContent.includes("running1")`)
	b.click("#stop", "/runs/1/ask/stop")
	b.click("#yes", "/runs/1")
	files.Write(t, gate, "")
	b.awaiting(`["Done", "Stopped"].includes(document.querySelector(".when .big")?.textContent)`)
	b.awaiting(`document.querySelector("#remove") !== null`)
	b.accessible("a run that has ended")
	b.click("#remove", "/runs/1/ask/remove")
	b.accessible("the question before a removal")
	if says := b.text(".ask"); !strings.Contains(says, filepath.Join(s.folder, "results")) {
		t.Errorf("the question does not tell what goes: %s", says)
	}
	b.click("#yes", "/")
	b.awaiting(`document.querySelector("#live")?.textContent.includes("No runs")`)
	b.quiet("changes")
}

// One group of failures is tried again, and no other.
func TestOneGroupOfFailuresIsTriedAgain(t *testing.T) {
	b := browse(t)
	s := serve(t)
	client := s.connect(t)
	folder := files.Folder(t, map[string]string{
		"in/a.txt": "disk", "in/b.txt": "disk", "in/c.txt": "memory", "in/d.txt": "memory", "in/e.txt": "memory",
	})
	mended := filepath.Join(folder, "mended")
	begin(t, client, &wire.SubmitWorkflowRequest{Folder: folder, KeepGoing: true, Workflow: []byte(`workflow: faults
inputs:
  texts: {files: "in/{s}.txt", as: "in/{s}.txt"}
steps:
  try:
    each: in/{s}.txt
    writes: "out/{s}.txt"
    retry: {attempts: 1}
    command: |
      test -e ` + mended + ` || { echo "too little $(cat "$in")" >&2; exit 1; }
      cp "$in" "$out"
`)})
	ended(t, client, 1)
	b.open(s.link)
	b.awaiting(`document.querySelector("h1")?.textContent === "Runs"`)
	b.open(s.base + "/runs/1/failures")
	if got := ask[int](b, `document.querySelectorAll(".failures li").length`); got != 2 {
		t.Fatalf("there are %d groups: %s", got, b.text("main"))
	}
	b.accessible("groups of failures")
	files.Write(t, mended, "")
	b.do(chromedp.Click(".failures li:nth-child(2) button")) // the smaller one
	b.awaiting(`document.querySelectorAll(".failures li").length === 1 &&
		document.querySelector(".failures").textContent.includes("memory")`)
	ended(t, client, 1)
	list, err := client.ListJobs(t.Context(), &wire.ListJobsRequest{Run: 1})
	if err != nil {
		t.Fatal(err)
	}
	if n := list.GetByState(); n["done"] != 2 || n["failed"] != 3 {
		t.Errorf("the jobs are %v", n)
	}
	b.quiet("failures")
}

// Failures of many reasons are a short page, and each job is in one of its groups.
func TestManyReasonsAreAShortPage(t *testing.T) {
	b := browse(t)
	s := serve(t)
	client := s.connect(t)
	folder := t.TempDir()
	const reasons = 230
	for i := range reasons {
		word := string([]byte{'k' + byte(i%10), 'k' + byte(i/10%10), 'k' + byte(i/100)})
		files.Write(t, filepath.Join(folder, "in", fmt.Sprintf("%d.txt", i)), strings.Repeat(word+" ", 20))
	}
	begin(t, client, &wire.SubmitWorkflowRequest{Folder: folder, KeepGoing: true, Workflow: []byte(`workflow: faults
inputs:
  texts: {files: "in/{s}.txt", as: "in/{s}.txt"}
steps:
  try:
    each: in/{s}.txt
    writes: "out/{s}.txt"
    retry: {attempts: 1}
    command: cat "$in" >&2; exit 1
`)})
	ended(t, client, 1)
	b.open(s.link)
	b.awaiting(`document.querySelector("h1")?.textContent === "Runs"`)
	counted := func() int {
		return ask[int](b, `[...document.querySelectorAll(".failures li:not(.rest) .count")].reduce((n, e) => n + parseInt(e.textContent), 0)`)
	}
	rest := func() int {
		return ask[int](b, `parseInt(document.querySelector(".failures .rest .count")?.textContent.replace(/\D/g, "") ?? "0") || 0`)
	}
	seen := 0
	b.open(s.base + "/runs/1")
	if n := counted() + rest(); n != reasons {
		t.Errorf("the first page has %d jobs in groups", n)
	}
	for path := "/runs/1/failures"; path != ""; path = ask[string](b, `document.querySelector("a[rel=next]")?.getAttribute("href") ?? ""`) {
		b.open(s.base + path)
		b.accessible(path)
		if high := ask[int](b, `document.documentElement.scrollHeight`); high > 4000 {
			t.Errorf("%s is %d pixels high", path, high)
		}
		if seen += counted(); seen+rest() != reasons {
			t.Errorf("up to %s there are %d jobs in groups, and %d in the rest", path, seen, rest())
		}
	}
	b.quiet("failures")
}

// numbered is a workflow that a server has many of.
const numbered = `workflow: survey
parameters: {genome: human}
steps:
  one: {writes: out.txt, command: echo "$genome" >"$out"}
`

// Runs are found by what people know them by, and older ones are on further pages.
func TestRunsAreFound(t *testing.T) {
	b := browse(t)
	s := serve(t, "--listen", "127.0.0.1:0")
	client := s.connect(t)
	folder := files.Folder(t, map[string]string{"census.yaml": strings.Replace(numbered, "survey", "census", 1)})
	service := filepath.Join(folder, "grace.service")
	for _, arguments := range [][]string{
		{"token", "create", "--role", "submit", "--user", "grace", "--server", s.folder, "-o", service},
		{"submit", filepath.Join(folder, "census.yaml"), "--server", service, "--set", "genome=mouse"},
	} {
		if out, err := exec.Command(fairway, arguments...).CombinedOutput(); err != nil {
			t.Fatalf("%v\n%s", err, out)
		}
	}
	const runs = 205
	for range runs - 1 {
		begin(t, client, &wire.SubmitWorkflowRequest{Folder: folder, Workflow: []byte(numbered)})
	}
	b.open(s.link)
	b.awaiting(`document.querySelector("h1")?.textContent === "Runs"`)
	seen := map[string]bool{}
	for next := "/"; next != ""; next = ask[string](b, `document.querySelector("a[rel=next]")?.getAttribute("href") ?? ""`) {
		if next != "/" {
			b.click("a[rel=next]", next)
		}
		b.accessible("runs at " + next)
		for _, id := range ask[[]string](b, `[...document.querySelectorAll("#live tbody a[id]")].map(e => e.id)`) {
			seen[id] = true
		}
	}
	if len(seen) != runs {
		t.Errorf("%d runs are on the pages", len(seen))
	}
	for _, text := range []string{"genome=mouse", "GRACE", "cens", "grace mouse"} {
		b.open(s.base + "/")
		b.do(chromedp.SendKeys("#text", text))
		b.awaiting(`document.querySelectorAll("#live table a[id]").length === 1`)
		if found := b.text("#live table"); !strings.Contains(found, "census") || !strings.Contains(found, "genome=mouse") {
			t.Errorf("by %q is found: %s", text, found)
		}
	}
	b.quiet("runs")
}

// Everybody sees what each may have of the server, and has.
func TestSharesAreAPage(t *testing.T) {
	b := browse(t)
	shares := files.Write(t, filepath.Join(t.TempDir(), "shares.yaml"), "groups:\n  physics:\n    weight: 3\n"+
		"    running: 7\n    users: {ada: 2, bob: 1}\n")
	s := serve(t, "--shares", shares)
	b.open(s.link)
	b.awaiting(`document.querySelector("h1")?.textContent === "Runs"`)
	b.click(`nav a[href="/shares"]`, "/shares")
	b.accessible("shares")
	for _, part := range []string{"physics", "ada", "bob", "0 of 7 running"} {
		if text := b.text("table.shares"); !strings.Contains(text, part) {
			t.Errorf("there is no %q: %s", part, text)
		}
	}
	b.quiet("shares")
}

// After the server was started anew, an open page leads to the login and back, and what a form wanted is asked
// once more.
func TestAfterARestart(t *testing.T) {
	b := browse(t)
	s := serve(t)
	client := s.connect(t)
	folder := t.TempDir()
	gate := filepath.Join(folder, "open")
	begin(t, client, &wire.SubmitWorkflowRequest{Workflow: waiting(gate), Folder: folder})
	b.open(s.link)
	b.awaiting(`document.querySelector("h1")?.textContent === "Runs"`)
	b.open(s.base + "/runs/1/jobs?state=running")
	s.restart(t)
	b.awaiting(`location.pathname === "/login" && document.querySelector("#token") !== null`)
	b.accessible("the login")
	b.do(chromedp.SendKeys("#token", s.link+"\r"))
	b.awaiting(`location.pathname + location.search === "/runs/1/jobs?state=running"`)
	b.awaiting(`document.querySelector("#live tbody a")?.textContent === "gate"`)

	b.open(s.base + "/runs/1/ask/end")
	s.restart(t)
	b.do(chromedp.Click("#yes"))
	b.awaiting(`document.querySelector("[role=alert]")?.textContent.includes("nothing was done")`)
	b.do(chromedp.SendKeys("#token", s.link+"\r"))
	b.awaiting(`location.pathname === "/runs/1/ask/end" && document.querySelector("#yes") !== null`)
	b.click("#yes", "/runs/1")
	b.awaiting(`document.querySelector(".when .big")?.textContent === "Stopped"`)
}

// Who may only look is let in by a token, gets no buttons, and is refused what they would do.
func TestReadersOnlyLook(t *testing.T) {
	b := browse(t)
	s := serve(t, "--listen", "127.0.0.1:0")
	folder := t.TempDir()
	begin(t, s.connect(t), &wire.SubmitWorkflowRequest{Workflow: waiting(filepath.Join(folder, "open")), Folder: folder})
	me, err := user.Current()
	if err != nil {
		t.Fatal(err)
	}
	token, err := exec.Command(fairway, "token", "create", "--role", "read", "--user", me.Username, "--server",
		s.folder).Output()
	if err != nil {
		t.Fatal(err)
	}
	b.open(s.base + "/runs/1")
	b.do(chromedp.SendKeys("#token", strings.TrimSpace(string(token))+"\r"))
	b.awaiting(`location.pathname === "/runs/1" && document.querySelector(".facts") !== null`)
	for _, path := range []string{"/", "/runs/1", "/runs/1/jobs/1", "/runs/1/failures", "/runs/1/files", "/shares"} {
		b.open(s.base + path)
		if n := ask[int](b, `document.querySelectorAll("a.button, main form[method=post]").length`); n != 0 {
			t.Errorf("%s has %d buttons for who may only look", path, n)
		}
	}
	for _, action := range []string{"retry", "cancel", "stop", "end", "remove"} {
		code := ask[int](b, `fetch("/runs/1/`+action+`", {method: "POST", body: new URLSearchParams({job: "1"})}).then(a => a.status)`)
		if code != 403 {
			t.Errorf("%s is answered with %d", action, code)
		}
	}
}

// However many pages of a server are open, each is there and stays up to date.
func TestManyOpenPages(t *testing.T) {
	b := browse(t)
	s := serve(t)
	client := s.connect(t)
	folder := t.TempDir()
	gate := filepath.Join(folder, "open")
	begin(t, client, &wire.SubmitWorkflowRequest{Workflow: waiting(gate), Folder: folder})
	b.open(s.link)
	b.awaiting(`document.querySelector("h1")?.textContent === "Runs"`)
	b.open(s.base + "/runs/1")
	b.awaiting(`document.querySelector(".figures")?.textContent.includes("running1")`)
	tabs := []*browserTab{b}
	for range 15 {
		more := newTab(t, b.Context)
		more.open(s.base + "/runs/1/jobs/1")
		tabs = append(tabs, more)
	}
	files.Write(t, gate, "")
	for _, tab := range tabs {
		tab.awaiting(`document.querySelector(".when .big, .figures .state")?.textContent.toLowerCase() === "done"`)
	}
	b.quiet("many pages")
}

// All times of a page are by the clock of the server, also those of charts, and the page names its zone.
func TestOneTimeZone(t *testing.T) {
	b := browse(t)
	s := serve(t)
	client := s.connect(t)
	folder := t.TempDir()
	gate := filepath.Join(folder, "open")
	begin(t, client, &wire.SubmitWorkflowRequest{Workflow: waiting(gate), Folder: folder})
	_, err := chromedp.Call(b, page.Enable, page.EnableParams{})
	if err == nil {
		_, err = chromedp.Call(b, page.AddScriptToEvaluateOnNewDocument, page.AddScriptToEvaluateOnNewDocumentParams{
			Source: `window.drawn = []; const draw = CanvasRenderingContext2D.prototype.fillText;
				CanvasRenderingContext2D.prototype.fillText = function (text, ...at) {
					window.drawn.push(text); return draw.call(this, text, ...at);
				};`})
	}
	if err != nil {
		t.Fatal(err)
	}
	b.open(s.link)
	b.awaiting(`document.querySelector("h1")?.textContent === "Runs"`)
	b.open(s.base + "/runs/1")
	b.awaiting(`window.drawn.some(text => String(text).includes(":"))`)
	zone, err := time.LoadLocation(serverZone)
	if err != nil {
		t.Fatal(err)
	}
	now := time.Now().In(zone)
	hours := []string{now.Format("15:"), now.Add(-time.Hour).Format("15:"), now.Add(time.Hour).Format("15:")}
	for _, text := range ask[[]string](b, `window.drawn.map(String).filter(text => text.includes(":"))`) {
		if !strings.HasPrefix(text, hours[0]) && !strings.HasPrefix(text, hours[1]) && !strings.HasPrefix(text, hours[2]) {
			t.Errorf("at %v the chart tells %s", now, text)
		}
	}
	if foot := b.text("footer"); !strings.Contains(foot, "UTC+05:45") {
		t.Errorf("the page names its zone: %q", foot)
	}
	b.quiet("times")
}

// Long names of all kinds make no page wider than a telephone.
func TestLongNamesOnATelephone(t *testing.T) {
	b := browse(t)
	s := serve(t)
	client := s.connect(t)
	long := strings.Repeat("long", 20)
	folder := files.Folder(t, map[string]string{"in/" + long + ".txt": "x"})
	begin(t, client, &wire.SubmitWorkflowRequest{
		Folder: folder, Parameters: map[string]string{"p" + long: long + long},
		File: long + ".yaml", KeepGoing: true,
		Workflow: []byte("workflow: w" + long + "\nparameters: {p" + long + ": x}\ninputs:\n" +
			"  texts: {files: \"in/{s}.txt\", as: \"in/{s}.txt\"}\nsteps:\n  s" + long +
			":\n    each: in/{s}.txt\n    writes: \"" + long + "/{s}.txt\"\n    command: cp \"$in\" \"$out\"\n  t" + long +
			":\n    each: in/{s}.txt\n    retry: {attempts: 1}\n    writes: \"no/{s}.txt\"\n    command: echo " + long + long +
			" >&2; exit 1\n")})
	ended(t, client, 1)
	b.open(s.link)
	b.awaiting(`document.querySelector("h1")?.textContent === "Runs"`)
	for _, width := range []int64{360, 769} {
		for _, path := range []string{"/", "/runs/1", "/runs/1/jobs", "/runs/1/jobs/1", "/runs/1/jobs/2", "/runs/1/failures",
			"/runs/1/files?show=all", "/runs/1/files?text=" + long, "/runs/1/slots", "/runs/1/data", "/runs/1/why", "/pilots",
			"/shares", "/runs/1/ask/remove", "/runs/1/ask/cancel?job=1", "/runs/1/jobs?state=failed&message=" + long, "/login"} {
			b.as(look{"small", width, 640, false})
			b.open(s.base + path)
			b.fits(fmt.Sprint(path, " at ", width))
		}
	}
}
