package elements

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"fairway/internal/storage"
	"fairway/internal/storage/elements"
	"fairway/internal/storage/storagetest"
	"fairway/lib/sched"
	"fairway/test/files"
	"fairway/test/program"
)

var fairway string

func TestMain(m *testing.M) { program.Main(m, &fairway) }

// servers are one of each kind.
type servers struct {
	dav, root  string // PFNs of folders, without a slash at the end
	davAddress string
	s3Address  string
	element    storage.Element
}

func start(t *testing.T) *servers {
	t.Helper()
	s := &servers{davAddress: storagetest.WebDAV(t)}
	address, buckets := storagetest.S3(t)
	if err := os.Mkdir(filepath.Join(buckets, "bucket"), 0o777); err != nil {
		t.Fatal(err)
	}
	xrootd, _, _ := storagetest.XRootD(t)
	s.s3Address, s.dav, s.root = address, "dav://"+s.davAddress+"/in", "root://"+xrootd+"//store/in"
	for name, value := range map[string]string{
		"AWS_ENDPOINT_URL_S3": "http://" + address, "AWS_REGION": "us-east-1",
		"AWS_ACCESS_KEY_ID": storagetest.AccessKey, "AWS_SECRET_ACCESS_KEY": storagetest.SecretKey,
	} {
		t.Setenv(name, value)
	}
	s.element = elements.New(storage.Roots{}, sched.Default().Sleep)
	return s
}

func (s *servers) put(t *testing.T, pfn, path string) {
	t.Helper()
	if err := s.element.Put(t.Context(), path, pfn); err != nil {
		t.Fatal(err)
	}
}

func (s *servers) read(t *testing.T, pfn string) string {
	t.Helper()
	body, err := s.element.Open(t.Context(), pfn)
	if err != nil {
		t.Error(err)
		return ""
	}
	defer body.Close()
	text, err := io.ReadAll(body)
	if err != nil {
		t.Error(err)
	}
	return string(text)
}

// run runs fairway in a folder, and returns what it printed.
func run(folder string, environment []string, arguments ...string) (string, error) {
	c := exec.Command(fairway, arguments...)
	c.Dir, c.Env = folder, append(os.Environ(), environment...)
	out, err := c.CombinedOutput()
	return string(out), err
}

const counting = `workflow: counting
inputs:
  texts: {files: "%s/{name}.txt", as: "in/{name}.txt"}
  words: {files: "%s/words"}
steps:
  count:
    each: in/{name}.txt
    reads: {words: words}
    writes: count/{name}
    command: grep -c -f "$words" "in/$name.txt" > "$out"
  sum:
    merge: count/{name}
    writes: sum
    command: cat $in | sort > "$out"
`

// A workflow takes its inputs from servers of two kinds, stores what it makes on one of
// them and publishes on a third, and a second run finds all done.
func TestEachKindHasItsPart(t *testing.T) {
	s := start(t)
	folder := t.TempDir()
	for name, text := range map[string]string{"a": "one\ntwo\n", "b": "one\none\n", "d": "one\n"} {
		s.put(t, s.dav+"/"+name+".txt", storagetest.Local(t, text))
	}
	s.put(t, s.root+"/words", storagetest.Local(t, "one\n"))
	files.Write(t, folder+"/workflow.yaml", fmt.Sprintf(counting, s.dav, s.root))
	out, err := run(folder, nil, "run", "--storage", s.root, "--results", "s3://bucket/run1")
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	if got := s.read(t, "s3://bucket/run1/sum"); got != "1\n1\n2\n" {
		t.Errorf("%q\n%s", got, out)
	}
	if out, err = run(folder, nil, "run", "--dry-run", "--results", "s3://bucket/run1"); err != nil ||
		!strings.Contains(out, "nothing would run") {
		t.Errorf("%v\n%s", err, out)
	}
	if out, err = run(folder, nil, "clean", "--results"); err != nil || !strings.Contains(out, "s3://bucket/run1/sum") {
		t.Errorf("%v\n%s", err, out)
	}
	if left, err := s.element.List(t.Context(), "s3://bucket/run1"); err != nil || len(left) > 0 {
		t.Errorf("%v, %v", left, err)
	}
}

// The example of the README, on servers.
func TestLambdaOnServers(t *testing.T) {
	if os.Getenv(storagetest.Required) == "" {
		t.Skip("make test-storage runs it")
	}
	s := start(t)
	const data = "/usr/share/doc/bowtie2/examples/"
	for _, mate := range []string{"1", "2"} {
		s.put(t, s.dav+"/reads/reads_"+mate+".fq.gz", data+"reads/reads_"+mate+".fq.gz")
	}
	s.put(t, s.root+"/reference/lambda_virus.fa.gz", data+"reference/lambda_virus.fa.gz")
	example, err := os.ReadFile("../../examples/lambda/workflow.yaml")
	if err != nil {
		t.Fatal(err)
	}
	here, there := t.TempDir(), t.TempDir()
	files.Write(t, here+"/workflow.yaml", string(example))
	onServers := strings.NewReplacer("${data}/reads/", s.dav+"/reads/", "${data}/reference/", s.root+"/reference/",
		"  data: /usr/share/doc/bowtie2/examples # of the Debian package bowtie2-examples\n", "").Replace(string(example))
	files.Write(t, there+"/workflow.yaml", onServers)
	for folder, arguments := range map[string][]string{
		here:  {"run"},
		there: {"run", "--storage", s.root + "/lambda", "--results", "s3://bucket/lambda"},
	} {
		if out, err := run(folder, nil, arguments...); err != nil {
			t.Fatalf("%v\n%s", err, out)
		}
	}
	variants := func(text string) (lines []string) {
		for line := range strings.Lines(text) {
			if !strings.HasPrefix(line, "##") { // they name commands and paths
				lines = append(lines, line)
			}
		}
		return lines
	}
	local, err := os.ReadFile(here + "/results/lambda.vcf")
	if err != nil {
		t.Fatal(err)
	}
	want, got := variants(string(local)), variants(s.read(t, "s3://bucket/lambda/lambda.vcf"))
	if len(want) < 10 || strings.Join(want, "") != strings.Join(got, "") {
		t.Errorf("%d variants here, %d on servers", len(want), len(got))
	}
}

// The query of a URL may hold a token or a signature. No command shows it, whether the file
// could be read, or changed under the run.
func TestNoCommandShowsTheQueryOfAURL(t *testing.T) {
	const query = "sig=nobody-may-see-this"
	var asked atomic.Int64
	pages := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		edition := time.Unix(1_700_000_000, 0)
		switch {
		case r.URL.RawQuery != query:
			w.WriteHeader(http.StatusForbidden)
			return
		case r.URL.Path == "/changes":
			edition = edition.Add(time.Duration(asked.Add(1)) * time.Second)
		}
		http.ServeContent(w, r, "", edition, strings.NewReader("text\n"))
	}))
	defer pages.Close()
	folder := t.TempDir()
	files.Write(t, folder+"/list", fmt.Sprintf("%[1]s/same?%[2]s\n%[1]s/changes?%[2]s\n", pages.URL, query))
	files.Write(t, folder+"/workflow.yaml", `workflow: w
inputs:
  pages: {url_list: list, match: "{x}", as: "in/{x}", close: file list}
steps:
  copy: {each: "in/{x}", writes: "out/{x}", retry: {attempts: 1}, command: cat "$in" > "$out"}
`)
	all, err := run(folder, nil, "run", "--keep-going") // the other job may come second
	if err == nil || !strings.Contains(all, "/changes has changed") {
		t.Errorf("%v\n%s", err, all)
	}
	for _, command := range []string{
		"jobs", "show copy/same", "show copy/changes", "explain copy/changes", "files", "export", "logs copy/same",
	} {
		for _, json := range []string{"", " --json"} {
			out, err := run(folder, nil, strings.Fields(command+json)...)
			if err != nil {
				t.Errorf("%s: %v\n%s", command, err, out)
			}
			all += out
		}
	}
	if i := strings.Index(all, query); i >= 0 {
		t.Errorf("shown: %s", all[max(0, i-300):i+len(query)])
	}
	if !strings.Contains(all, pages.URL+"/same") {
		t.Errorf("the URL is not shown without it:\n%s", all)
	}
}

const token = "t0ken-that-nobody-may-see"

// Whatever fails, what the user proves himself with stands in no list of processes, in
// no log, in no record, in no message and in no result.
func TestSecretsStandNowhere(t *testing.T) {
	s := start(t)
	folder := t.TempDir()
	s.put(t, s.dav+"/a.txt", storagetest.Local(t, "one\n"))
	s.put(t, s.dav+"/words", storagetest.Local(t, "one\n"))
	known := s.closed(t)
	dav, s3 := storagetest.Before(t, s.davAddress), storagetest.Before(t, s.s3Address)
	var asked sync.Once
	needed := make(chan struct{})
	private := func(w http.ResponseWriter, r *http.Request, pass http.Handler) {
		if r.Header.Get("Authorization") != "Bearer "+token {
			w.WriteHeader(http.StatusUnauthorized)
			return
		}
		asked.Do(func() { close(needed) })
		pass.ServeHTTP(w, r)
	}
	dav.Do(-1, private)
	proxied := strings.Replace(s.dav, s.davAddress, dav.Address, 1)
	files.Write(t, folder+"/workflow.yaml", fmt.Sprintf(counting, proxied, known.url+"/in"))
	const wrong = "a-wrong-secret-that-nobody-may-see"
	secrets := append(known.secrets, token, wrong, storagetest.SecretKey)
	environment := append(known.user, "AWS_ENDPOINT_URL_S3=http://"+s3.Address, "BEARER_TOKEN="+token)
	watching, stop := context.WithCancel(t.Context())
	var watch sync.WaitGroup
	watch.Go(func() { watchProcesses(watching, t, secrets) })
	said := ""
	attempt := func(succeeds bool, environment ...string) {
		t.Helper()
		out, err := run(folder, environment, "run", "--results", "s3://bucket/private")
		if (err == nil) != succeeds {
			t.Errorf("%v\n%s", err, out)
		}
		said += out
	}
	attempt(false, append(environment, "BEARER_TOKEN="+wrong)...)
	attempt(false, append(environment, known.stranger)...)
	attempt(false, append(environment, known.broken)...)
	s3.Do(-1, storagetest.Answer(http.StatusInternalServerError))
	attempt(false, environment...)
	s3.Do(0, nil)
	attempt(false, append(environment, "AWS_SECRET_ACCESS_KEY="+wrong)...)
	attempt(true, environment...)
	stop()
	watch.Wait()
	select {
	case <-needed:
	default:
		t.Error("the token was not needed")
	}
	if got := s.read(t, "s3://bucket/private/sum"); got != "1\n" {
		t.Errorf("%q", got)
	}
	for _, secret := range secrets {
		if strings.Contains(said, secret) {
			t.Errorf("%q was printed:\n%s", secret, said)
		}
	}
	all := files.Below(t, folder)
	for path, text := range all {
		for _, secret := range secrets {
			if strings.Contains(text, secret) {
				t.Errorf("%q stands in %s", secret, path)
			}
		}
	}
	if len(all) < 5 {
		t.Errorf("%d files were looked at", len(all))
	}
}

// closed is a server whose users prove themselves with certificates.
type closed struct {
	url              string   // of the folder that WebDAV serves
	user             []string // variables of one who may read
	stranger, broken string   // variables that replace one of these: another user, and a key that is none
	secrets          []string // lines of all keys, and of the user's certificate
}

// closed starts such a server in front of WebDAV.
func (s *servers) closed(t *testing.T) *closed {
	t.Helper()
	authority := storagetest.Certify(t, "authority", nil)
	server := httptest.NewUnstartedServer(httputil.NewSingleHostReverseProxy(&url.URL{Scheme: "http", Host: s.davAddress}))
	server.Config.ErrorLog = slog.NewLogLogger(slog.DiscardHandler, slog.LevelError) // of those who are refused
	server.TLS = storagetest.Certify(t, "host", authority).Serves(authority)
	server.StartTLS()
	t.Cleanup(server.Close)
	folder := t.TempDir()
	if err := os.Mkdir(folder+"/authorities", 0o755); err != nil {
		t.Fatal(err)
	}
	authority.Write(t, folder+"/authorities/authority.pem", false)
	proxy := storagetest.Certify(t, "user", authority).Write(t, folder+"/proxy", true)
	strange := storagetest.Certify(t, "other", storagetest.Certify(t, "stranger", nil)).Write(t, folder+"/strange", true)
	broken := strings.Replace(proxy, "PRIVATE KEY-----\n", "PRIVATE KEY-----\nx", 1)
	if err := os.WriteFile(folder+"/broken", []byte(broken), 0o600); err != nil {
		t.Fatal(err)
	}
	c := &closed{
		url:      strings.Replace(server.URL, "127.0.0.1", "localhost", 1),
		user:     []string{"X509_CERT_DIR=" + folder + "/authorities", "X509_USER_PROXY=" + folder + "/proxy"},
		stranger: "X509_USER_PROXY=" + folder + "/strange", broken: "X509_USER_PROXY=" + folder + "/broken",
	}
	for line := range strings.Lines(proxy + strange) {
		if !strings.HasPrefix(line, "-") && len(line) > 20 {
			c.secrets = append(c.secrets, strings.TrimSpace(line))
		}
	}
	return c
}

// watchProcesses looks at the arguments of all processes all the time.
func watchProcesses(ctx context.Context, t *testing.T, secrets []string) {
	seen := 0
	for ctx.Err() == nil {
		lists, _ := filepath.Glob("/proc/[0-9]*/cmdline")
		for _, list := range lists {
			text, err := os.ReadFile(list)
			if err != nil {
				continue
			}
			seen++
			for _, secret := range secrets {
				if bytes.Contains(text, []byte(secret)) {
					t.Errorf("%q is an argument of %q", secret, text)
					return
				}
			}
		}
	}
	if seen == 0 {
		t.Error("no process was seen")
	}
}

const chained = `workflow: chained
inputs:
  texts: {files: "%s/{name}.txt", as: "in/{name}.txt"}
  first: {files: lines.txt}
steps:
  add:
    each: in/{name}.txt
    rewrites: lines.txt
    command: cat "in/$name.txt" >> lines.txt
  sort:
    each: in/{name}.txt
    writes: [sorted/{name}.txt, "kept/{name} at 100%%.txt"]
    command: sort "in/$name.txt" | tee "sorted/$name.txt" > "kept/$name at 100%%.txt"
  pack:
    each: sorted/{name}.txt
    writes: packed/{name}/
    storage: temporary
    command: mkdir -p "$out/deep" && cp "$in" "$out/deep/text"
  sum:
    merge: packed/{name}/
    writes: sum.txt
    publish: true
    command: cat packed/*/deep/text | sort > "$out"
`

// stored are the names of all files beneath a PFN.
func (s *servers) stored(t *testing.T, pfn string) (names []string) {
	t.Helper()
	entries, err := s.element.List(t.Context(), pfn)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		t.Fatal(err)
	}
	for _, entry := range entries {
		if !entry.Folder {
			names = append(names, pfn+"/"+entry.Name)
			continue
		}
		names = append(names, s.stored(t, pfn+"/"+entry.Name)...)
	}
	return names
}

// What jobs write is stored on an element, intermediate files too until temporary ones
// were read, and nothing of it in the folder of the state. Readers find it there without a cache, a second run finds it
// done, one that lost a file makes that again, and clean leaves nothing.
func TestOutputsAreStoredOnAnElement(t *testing.T) {
	s := start(t)
	for _, name := range []string{"a", "b"} {
		s.put(t, s.dav+"/chained/"+name+".txt", storagetest.Local(t, name+"2\n"+name+"1\n"))
	}
	local := "file:" + t.TempDir()
	for kind, place := range map[string]string{
		"root": s.root + "/stored", "s3": "s3://bucket/stored", "dav": strings.TrimSuffix(s.dav, "/in") + "/stored",
		"folder": local,
	} {
		t.Run(kind, func(t *testing.T) {
			folder := t.TempDir()
			files.Write(t, folder+"/workflow.yaml", fmt.Sprintf(chained, s.dav+"/chained"))
			files.Write(t, folder+"/lines.txt", "")
			arguments := []string{"run", "--cache", "none", "--storage", strings.TrimPrefix(place, "file:")}
			if out, err := run(folder, nil, arguments...); err != nil || !strings.Contains(out, "2 temporary files") {
				t.Fatalf("%v\n%s", err, out)
			}
			results := func() string {
				text, err := os.ReadFile(folder + "/results/sum.txt")
				if err != nil {
					t.Error(err)
				}
				return string(text)
			}
			if got := results(); got != "a1\na2\nb1\nb2\n" {
				t.Errorf("%q", got)
			}
			if text, err := os.ReadFile(folder + "/results/kept/a at 100%.txt"); err != nil || string(text) != "a1\na2\n" {
				t.Errorf("%q, %v", text, err)
			}
			there := s.stored(t, place)
			if len(there) != 6 { // nothing temporary, and of the file that is rewritten only what was written last
				t.Errorf("stored are %q", there)
			}
			if inState, err := filepath.Glob(folder + "/.fairway/storage/*/*"); err != nil || len(inState) > 0 {
				t.Errorf("in the state are %q, %v", inState, err)
			}
			if out, err := run(folder, nil, append(arguments, "--dry-run")...); err != nil ||
				!strings.Contains(out, "nothing would run") {
				t.Errorf("%v\n%s", err, out)
			}
			lost := there[slices.IndexFunc(there, func(name string) bool { return strings.Contains(name, "/sum.txt") })]
			if err := s.element.Remove(t.Context(), lost); err != nil {
				t.Fatal(err)
			}
			if err := os.Remove(folder + "/results/sum.txt"); err != nil {
				t.Fatal(err)
			}
			if out, err := run(folder, nil, arguments...); err != nil || !strings.Contains(out, "is not there") ||
				!strings.Contains(out, "2 temporary files") {
				t.Errorf("%v\n%s", err, out)
			}
			if got := results(); got != "a1\na2\nb1\nb2\n" {
				t.Errorf("%q", got)
			}
			if again := s.stored(t, place); len(again) != len(there) {
				t.Errorf("when a lost file was made again, stored are %q", again)
			}
			foreign := place + "/foreign.v1.a1"
			s.put(t, foreign, storagetest.Local(t, "x"))
			if out, err := run(folder, nil, "clean"); err != nil ||
				!strings.Contains(out, "removed "+strings.TrimPrefix(place, "file:")+"/fairway-") {
				t.Errorf("%v\n%s", err, out)
			}
			if left := s.stored(t, place); len(left) != 1 || left[0] != foreign {
				t.Errorf("after clean there are %q", left)
			}
		})
	}
}
