package s3

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/minio/minio-go/v7"

	"fairway/internal/storage"
	"fairway/internal/storage/storagetest"
	"fairway/lib/sched"
)

var places atomic.Int64

func fixed(address string) func() (Config, error) {
	return func() (Config, error) {
		return Config{Endpoint: "http://" + address, Region: "us-east-1", AccessKey: storagetest.AccessKey,
			SecretKey: storagetest.SecretKey}, nil
	}
}

// atOnce tries again without a pause.
func atOnce(context.Context, time.Duration) error { return nil }

func element(address string) storage.Element {
	return storage.Retry(New(fixed(address)), storage.DefaultTries, storage.DefaultBackoff, atOnce)
}

func place(t *testing.T, address, buckets string) storagetest.Folder {
	t.Helper()
	if err := os.MkdirAll(buckets+"/bucket", 0o777); err != nil {
		t.Fatal(err)
	}
	return storagetest.Folder{Element: element(address), PFN: fmt.Sprintf("s3://bucket/%d", places.Add(1))}
}

func TestS3UnderFaults(t *testing.T) {
	address, buckets := storagetest.S3(t)
	storagetest.RunFaults(t, storagetest.Large, func(t *testing.T, proxy *storagetest.Proxy) storagetest.Faulty {
		direct := place(t, address, buckets)
		through := direct
		through.Element = element(proxy.Address)
		return storagetest.Faulty{Folder: through, Direct: direct, Checked: true, GoesOn: true}
	}, address)
}

// A server that sends requests to another place, to this machine or to a file of it, leads
// nowhere: the transfer fails, and nobody else is asked.
func TestRedirectionsLeadNowhere(t *testing.T) {
	var asked atomic.Bool
	other := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { asked.Store(true) }))
	t.Cleanup(other.Close)
	address, buckets := storagetest.S3(t)
	direct := place(t, address, buckets)
	there := direct.PFN + "/there"
	if err := direct.Element.Put(t.Context(), storagetest.Local(t, "text"), there); err != nil {
		t.Fatal(err)
	}
	proxy := storagetest.Before(t, address)
	e := element(proxy.Address)
	for _, to := range []string{"file:///etc/passwd", other.URL + "/bucket/x", "http://169.254.169.254/"} {
		for _, status := range []int{http.StatusMovedPermanently, http.StatusTemporaryRedirect} {
			proxy.Do(-1, storagetest.Answer(status, "Location", to))
			path := filepath.Join(t.TempDir(), "got")
			if _, err := e.Get(t.Context(), there, path); err == nil {
				t.Errorf("%d to %s: it was got", status, to)
			}
			if _, err := os.Lstat(path); !errors.Is(err, fs.ErrNotExist) {
				t.Errorf("%d to %s: something has come: %v", status, to, err)
			}
			if err := e.Put(t.Context(), storagetest.Local(t, "text"), there+"2"); err == nil {
				t.Errorf("%d to %s: it was put", status, to)
			}
		}
	}
	if asked.Load() {
		t.Error("the other server was asked")
	}
}

// Whichever checksum of the whole object the server tells, what was read is compared with it.
func TestEachChecksumIsCompared(t *testing.T) {
	address, buckets := storagetest.S3(t)
	p := place(t, address, buckets)
	proxy := storagetest.Before(t, address)
	direct, through := New(fixed(address)), New(fixed(proxy.Address))
	text := storagetest.Contents(100_000)
	for kind, sent := range map[string]minio.ChecksumType{
		"crc32c": minio.ChecksumCRC32C, "crc32": minio.ChecksumCRC32, "crc64nvme": minio.ChecksumCRC64NVME,
		"sha-1": minio.ChecksumSHA1, "sha-256": minio.ChecksumSHA256,
	} {
		pfn := p.PFN + "/" + kind
		o, err := direct.object(pfn)
		if err != nil {
			t.Fatal(err)
		}
		proxy.Do(0, nil)
		if _, err := o.Client.PutObject(t.Context(), o.bucket, o.key, strings.NewReader(text), int64(len(text)),
			minio.PutObjectOptions{Checksum: sent, DisableContentSha256: true}); err != nil {
			t.Fatal(kind, err)
		}
		path := filepath.Join(t.TempDir(), "got")
		if _, err := through.Get(t.Context(), pfn, path); err != nil {
			t.Errorf("%s: %v", kind, err)
		}
		proxy.Do(-1, storagetest.FlipAnswer)
		var wrong *storage.ChecksumError
		if _, err := through.Get(t.Context(), pfn, path+"2"); !errors.As(err, &wrong) || wrong.Kind != kind {
			t.Errorf("%s: with a changed byte: %v", kind, err)
		}
	}
}

func TestFullS3(t *testing.T) {
	address, buckets := storagetest.FullS3(t)
	storagetest.Full(t, place(t, address, buckets))
}

func TestS3Conforms(t *testing.T) {
	address, buckets := storagetest.S3(t)
	if err := os.Mkdir(buckets+"/bucket", 0o777); err != nil {
		t.Fatal(err)
	}
	storagetest.Run(t, func(t *testing.T) storagetest.Folder {
		// A server may refuse a conditional put by closing the connection while the
		// body is sent; the next try hears why.
		element := storage.Retry(New(fixed(address)), storage.DefaultTries, storage.DefaultBackoff, sched.Default().Sleep)
		return storagetest.Folder{Element: element, PFN: fmt.Sprintf("s3://bucket/%d", places.Add(1))}
	})
}

// A server that refuses a signature for its time need not say so, and a request for the head of
// an object has no words at all: the user is told by the clocks. What the server says stays, and
// other reasons are not blamed on the clock.
func TestAWrongClockIsTold(t *testing.T) {
	const clock, keys, day = "the clock", "AWS_ACCESS_KEY_ID", 48 * time.Hour
	for name, c := range map[string]struct {
		ahead            time.Duration // of the clock of this machine
		code             string        // what the server says; empty: nothing
		head, anonymous  bool
		wanted, unwanted []string
	}{
		"no words":                {head: true, wanted: []string{keys}, unwanted: []string{clock}},
		"no words, ahead":         {head: true, ahead: day, wanted: []string{"Forbidden (the clock of this machine is 48h0m0s ahead of that of the server: set it right"}},
		"no words, behind":        {head: true, ahead: -day, wanted: []string{"Forbidden (the clock of this machine is 48h0m0s behind that of the server: set it right"}},
		"denied":                  {code: "AccessDenied", wanted: []string{"AccessDenied", keys}, unwanted: []string{clock}},
		"denied, ahead":           {code: "AccessDenied", ahead: day, wanted: []string{"AccessDenied the server's own words (the clock of this machine is 48h0m0s ahead"}},
		"said to be skewed":       {code: "RequestTimeTooSkewed", wanted: []string{"RequestTimeTooSkewed the server's own words (the clocks of this machine and of the server differ: set it right"}},
		"another reason, ahead":   {code: "InvalidAccessKeyId", ahead: day, wanted: []string{"InvalidAccessKeyId", keys}, unwanted: []string{clock}},
		"nobody, denied, ahead":   {code: "AccessDenied", ahead: day, anonymous: true, wanted: []string{"AccessDenied", keys}, unwanted: []string{clock}},
		"nobody, no words, ahead": {head: true, ahead: day, anonymous: true, wanted: []string{keys}, unwanted: []string{clock}},
	} {
		t.Run(name, func(t *testing.T) {
			server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
				w.Header().Set("Date", time.Now().Add(-c.ahead).UTC().Format(http.TimeFormat))
				w.WriteHeader(http.StatusForbidden)
				if c.code != "" {
					fmt.Fprintf(w, "<Error><Code>%s</Code><Message>the server's own words</Message></Error>", c.code)
				}
			}))
			defer server.Close()
			config := fixed(server.Listener.Addr().String())
			if c.anonymous {
				config = func() (Config, error) { return Config{Endpoint: server.URL, Region: "us-east-1"}, nil }
			}
			e := New(config)
			var err error
			if c.head {
				_, err = e.Stat(t.Context(), "s3://bucket/key")
			} else {
				_, err = e.Open(t.Context(), "s3://bucket/key")
			}
			if !errors.Is(err, storage.ErrPermission) || !strings.HasPrefix(err.Error(),
				"s3://bucket/key: the server answered 403 ") {
				t.Fatal(err)
			}
			for _, text := range c.wanted {
				if !strings.Contains(err.Error(), text) {
					t.Errorf("%q is not in: %v", text, err)
				}
			}
			for _, text := range c.unwanted {
				if strings.Contains(err.Error(), text) {
					t.Errorf("%q is in: %v", text, err)
				}
			}
		})
	}
}
