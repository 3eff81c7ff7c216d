package client

import (
	"bytes"
	"context"
	"crypto/ed25519"
	"crypto/rand"
	"crypto/sha256"
	"crypto/tls"
	"crypto/x509"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/big"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// served is a client of a handler that stands for a server, at the socket of a folder.
func served(t *testing.T, folder string, handler http.HandlerFunc) *Client {
	t.Helper()
	if err := os.MkdirAll(filepath.Join(folder, ".fairway"), 0o777); err != nil {
		t.Fatal(err)
	}
	at := filepath.Join(folder, ".fairway", "socket")
	if len(at) > maxSocket {
		short := filepath.Join(t.TempDir(), "s")
		if err := os.WriteFile(at, []byte(short+"\n"), 0o666); err != nil {
			t.Fatal(err)
		}
		at = short
	}
	listener, err := net.Listen("unix", at)
	if err != nil {
		t.Fatal(err)
	}
	serve(t, listener, handler)
	c, err := Open(folder)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	return c
}

func serve(t *testing.T, listener net.Listener, handler http.HandlerFunc) {
	server := &http.Server{Handler: handler, ErrorLog: nil}
	done := make(chan struct{})
	go func() {
		defer close(done)
		_ = server.Serve(listener)
	}()
	t.Cleanup(func() {
		_ = server.Close()
		<-done
	})
}

// message writes a message of a stream; the flag 2 ends it.
func message(w io.Writer, flag byte, text string) {
	_, _ = w.Write(append(binary.BigEndian.AppendUint32([]byte{flag}, uint32(len(text))), text...))
}

func TestRequestsAreAboutTheRun(t *testing.T) {
	var got []string
	c := served(t, t.TempDir(), func(w http.ResponseWriter, r *http.Request) {
		text, _ := io.ReadAll(r.Body)
		got = append(got, r.URL.Path+" "+string(text))
		_, _ = io.WriteString(w, `{"jobs": [{"id": 3, "name": "a"}], "total": "5", "byState": {"done": "7"},
			"later": "a field of a newer server"}`)
	})
	request := &ListJobsRequest{States: []string{"done"}}
	answer, err := c.About(7).ListJobs(t.Context(), request)
	if err != nil || request.Run != 0 || answer.Total != 5 || answer.ByState["done"] != 7 || answer.Jobs[0].ID != 3 {
		t.Fatal(answer, request, err)
	}
	if _, err := c.About(7).ListJobs(t.Context(), &ListJobsRequest{Run: 2}); err != nil {
		t.Fatal(err)
	}
	if _, err := c.ListPilots(t.Context(), nil); err != nil {
		t.Fatal(err)
	}
	want := []string{
		`/fairway.v1.Workflow/ListJobs {"states":["done"],"run":7}`, `/fairway.v1.Workflow/ListJobs {"run":2}`,
		`/fairway.v1.Workflow/ListPilots {}`,
	}
	if strings.Join(got, "\n") != strings.Join(want, "\n") {
		t.Errorf("got %q", got)
	}
}

func TestErrorsHaveCodes(t *testing.T) {
	answers := []string{`{"code": "not_found", "message": "there is no run 3"}`, `<html>502`, `{}`}
	next := 0
	c := served(t, t.TempDir(), func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(http.StatusNotFound)
		_, _ = io.WriteString(w, answers[next])
		next++
	})
	_, err := c.ShowJob(t.Context(), &ShowJobRequest{Job: "x"})
	if CodeOf(err) != NotFound || err.Error() != "there is no run 3" {
		t.Error(err)
	}
	for range 2 {
		if _, err := c.ShowJob(t.Context(), nil); CodeOf(err) != Unavailable {
			t.Error(err)
		}
	}
	for _, err := range c.Progress(t.Context(), nil) { // the handler panics: there is no fourth answer
		if CodeOf(err) != Unavailable {
			t.Error(err)
		}
	}
	if CodeOf(io.EOF) != "" {
		t.Error("an error of others has a code")
	}
}

func TestStreams(t *testing.T) {
	left := make(chan struct{}, 1)
	c := served(t, t.TempDir(), func(w http.ResponseWriter, r *http.Request) {
		head := make([]byte, 5)
		_, _ = io.ReadFull(r.Body, head)
		text, _ := io.ReadAll(r.Body)
		if int(binary.BigEndian.Uint32(head[1:])) != len(text) {
			t.Errorf("the request is %q %q", head, text)
		}
		message(w, 0, `{"workflow": "one"}`)
		message(w, 0, `{"workflow": "two"}`)
		_ = http.NewResponseController(w).Flush()
		switch {
		case bytes.Contains(text, []byte(`"run":1`)):
			message(w, 2, `{}`)
		case bytes.Contains(text, []byte(`"run":2`)):
			message(w, 2, `{"error": {"code": "aborted", "message": "no more"}}`)
		case bytes.Contains(text, []byte(`"run":3`)):
			_, _ = w.Write([]byte{0, 0, 0, 9, 9, 'x'}) // cut in the middle of a message
		default:
			<-r.Context().Done()
			left <- struct{}{}
		}
	})
	for run, want := range map[uint32]Code{1: "", 2: Aborted, 3: Unavailable} {
		var names []string
		var failure error
		for report, err := range c.Progress(t.Context(), &ProgressRequest{Run: run}) {
			if err != nil {
				failure = err
				continue
			}
			names = append(names, report.Workflow)
		}
		if strings.Join(names, " ") != "one two" || CodeOf(failure) != want {
			t.Error(run, names, failure)
		}
	}
	for report, err := range c.Progress(t.Context(), &ProgressRequest{Run: 4}) {
		if err != nil || report.Workflow != "one" {
			t.Error(report, err)
		}
		break
	}
	<-left
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	var failure error
	for report, err := range c.Progress(ctx, &ProgressRequest{Run: 5}) {
		if failure = err; err == nil && report.Workflow == "two" {
			cancel()
		}
	}
	if !errors.Is(failure, context.Canceled) {
		t.Error(failure)
	}
	<-left
}

// A file that breaks off is gone on with, and stands under its name when all of it is there.
func TestDownloadsGoOn(t *testing.T) {
	var asked []string
	broken := false
	c := served(t, t.TempDir(), func(w http.ResponseWriter, r *http.Request) {
		text, _ := io.ReadAll(r.Body)
		asked = append(asked, string(text[5:]))
		if !broken {
			broken = true
			message(w, 0, `{"version": {"version": 4, "pfn": "p"}, "data": "YWJj"}`)
			return
		}
		message(w, 0, `{"data": "ZGVm"}`)
		message(w, 2, `{}`)
	})
	at := filepath.Join(t.TempDir(), "made.txt")
	if err := c.Download(t.Context(), "made.txt", 0, at); err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(at)
	if err != nil || string(text) != "abcdef" {
		t.Error(string(text), err)
	}
	want := `{"lfn":"made.txt"} {"lfn":"made.txt","version":4,"offset":"3","pfn":"p"}`
	if strings.Join(asked, " ") != want {
		t.Errorf("asked %q", asked)
	}
}

func TestFailedDownloadsLeaveNothing(t *testing.T) {
	folder := t.TempDir()
	c := served(t, folder, func(w http.ResponseWriter, _ *http.Request) {
		message(w, 0, `{"data": "YWJj"}`)
		message(w, 2, `{"error": {"code": "not_found", "message": "lost"}}`)
	})
	to := t.TempDir()
	if err := c.Download(t.Context(), "x", 0, filepath.Join(to, "x")); CodeOf(err) != NotFound {
		t.Error(err)
	}
	if list, _ := os.ReadDir(to); len(list) != 0 {
		t.Error(list)
	}
}

func TestLongFolders(t *testing.T) {
	folder := filepath.Join(t.TempDir(), strings.Repeat("long", 30))
	c := served(t, folder, func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "{}") })
	if _, err := c.ListRuns(t.Context(), nil); err != nil {
		t.Error(err)
	}
}

func TestWhereNothingRuns(t *testing.T) {
	if _, err := Open(filepath.Join(t.TempDir(), "nowhere")); err == nil {
		t.Error("a folder that is not there is opened")
	}
	c, err := Open(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	_, err = c.ListRuns(t.Context(), nil)
	if CodeOf(err) != Unavailable || !strings.Contains(err.Error(), "nothing runs in") {
		t.Error(err)
	}
	// A server that was killed leaves its socket.
	left := t.TempDir()
	if err := os.Mkdir(filepath.Join(left, ".fairway"), 0o777); err != nil {
		t.Fatal(err)
	}
	listener, err := net.ListenUnix("unix", &net.UnixAddr{Name: filepath.Join(left, ".fairway", "socket"), Net: "unix"})
	if err != nil {
		t.Fatal(err)
	}
	listener.SetUnlinkOnClose(false)
	if err := listener.Close(); err != nil {
		t.Fatal(err)
	}
	if c, err = Open(left); err != nil {
		t.Fatal(err)
	}
	_, err = c.ListRuns(t.Context(), nil)
	if CodeOf(err) != Unavailable || !strings.Contains(err.Error(), "nothing runs in") {
		t.Error(err)
	}
	odd := filepath.Join(t.TempDir(), "service")
	if err := os.WriteFile(odd, []byte("{}"), 0o666); err != nil {
		t.Fatal(err)
	}
	if _, err := Open(odd); err == nil || !strings.Contains(err.Error(), "is not a service file") {
		t.Error(err)
	}
}

// Of servers that stand by, a call is made until one takes it; a submission has a key, and a pin tells the server.
func TestServersThatStandBy(t *testing.T) {
	pair, pin := identity(t)
	listener, err := tls.Listen("tcp", "127.0.0.1:0",
		&tls.Config{Certificates: []tls.Certificate{pair}, MinVersion: tls.VersionTLS13})
	if err != nil {
		t.Fatal(err)
	}
	var tries atomic.Int32
	var keys []string
	serve(t, listener, func(w http.ResponseWriter, r *http.Request) {
		var request SubmitWorkflowRequest
		_ = json.NewDecoder(r.Body).Decode(&request)
		keys = append(keys, request.Key)
		if r.Header.Get("Authorization") != "Bearer secret" || r.Header.Get("Fairway-Launch") != "person" {
			t.Error(r.Header)
		}
		if tries.Add(1) < 3 {
			w.WriteHeader(http.StatusServiceUnavailable)
			_, _ = io.WriteString(w, `{"code": "unavailable", "message": "not active"}`)
			return
		}
		_, _ = io.WriteString(w, `{"run": 4}`)
	})
	file := filepath.Join(t.TempDir(), "service")
	write := func(pin string) *Client {
		text := fmt.Sprintf(`{"addresses": ["127.0.0.1:1", %q], "standby": true, "pin": %q, "launch": "person",
			"token": "secret"}`, listener.Addr(), pin)
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		c, err := Open(file)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(c.Close)
		return c
	}
	answer, err := write(pin).SubmitWorkflow(t.Context(), nil)
	if err != nil || answer.Run != 4 || len(keys) != 3 || keys[0] == "" || keys[0] != keys[2] {
		t.Error(answer, keys, err)
	}
	if _, err := write("sha256:"+strings.Repeat("0", 64)).Stop(t.Context(), nil); !errors.Is(err, errOtherServer) {
		t.Error(err)
	}
	if tries.Load() != 3 {
		t.Error("a server with another pin was asked")
	}
}

// identity is a certificate of a server, and its pin.
func identity(t *testing.T) (tls.Certificate, string) {
	t.Helper()
	public, key, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), DNSNames: []string{serverName}, IsCA: true, BasicConstraintsValid: true,
		NotBefore: time.Unix(1, 0), NotAfter: time.Unix(2, 0), // long over: clocks differ
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
		KeyUsage:    x509.KeyUsageDigitalSignature | x509.KeyUsageCertSign,
	}
	raw, err := x509.CreateCertificate(rand.Reader, template, template, public, key)
	if err != nil {
		t.Fatal(err)
	}
	return tls.Certificate{Certificate: [][]byte{raw}, PrivateKey: key}, fmt.Sprintf("sha256:%x", sha256.Sum256(raw))
}

func TestDurations(t *testing.T) {
	for text, want := range map[string]time.Duration{
		`"0s"`: 0, `"1s"`: time.Second, `"1.500000000s"`: 1500 * time.Millisecond, `"-0.250000000s"`: -time.Second / 4,
		`"-7200s"`: -2 * time.Hour, `"0.000000001s"`: 1,
	} {
		var got Duration
		if err := json.Unmarshal([]byte(text), &got); err != nil || time.Duration(got) != want {
			t.Error(text, got, err)
		}
		if back, err := json.Marshal(Duration(want)); err != nil || string(back) != text {
			t.Error(text, string(back), err)
		}
	}
	if json.Unmarshal([]byte(`"soon"`), new(Duration)) == nil || json.Unmarshal([]byte(`"x"`), new(Int64)) == nil {
		t.Error("words are taken for numbers")
	}
}

// Whatever a server answers is an answer or an error.
func FuzzAnswers(f *testing.F) {
	f.Add([]byte(`{"total": "5"}`))
	f.Add([]byte{0, 0, 0, 0, 2, '{', '}', 2, 0, 0, 0, 2, '{', '}'})
	f.Add([]byte{0, 255, 255, 255, 255})
	f.Fuzz(func(t *testing.T, text []byte) {
		c := &Client{http: &http.Client{Transport: answering(text)}}
		messages, failures := 0, 0
		for _, err := range c.Progress(t.Context(), nil) {
			if messages++; err != nil {
				failures++
			}
		}
		if failures > 1 || failures == 0 && !bytes.Contains(text, []byte{2}) && messages == 0 {
			t.Error(messages, failures)
		}
		answer, err := c.ListJobs(t.Context(), nil)
		if (err == nil) != json.Valid(text) && err == nil || (answer == nil) != (err != nil) {
			t.Error(answer, err)
		}
	})
}

type answering []byte

// RoundTrip is part of http.RoundTripper.
func (a answering) RoundTrip(*http.Request) (*http.Response, error) {
	return &http.Response{StatusCode: http.StatusOK, Body: io.NopCloser(bytes.NewReader(a))}, nil
}
