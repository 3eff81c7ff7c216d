package elements

import (
	"errors"
	"fmt"
	"io"
	"net/url"
	"os"
	"strings"
	"testing"
	"time"

	"fairway/internal/storage"
	"fairway/internal/storage/storagetest"
	"fairway/lib/sched"
)

// A command gets a URL that any program knows, with nothing in it that a URL cannot have. A
// name of XRootD stays as it is.
func TestURLsForPrograms(t *testing.T) {
	for _, name := range []string{
		"AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_SESSION_TOKEN", "AWS_ENDPOINT_URL_S3", "AWS_ENDPOINT_URL",
	} {
		t.Setenv(name, "")
	}
	t.Setenv("AWS_SHARED_CREDENTIALS_FILE", "/none")
	t.Setenv("AWS_CONFIG_FILE", "/none")
	for pfn, want := range map[string]string{
		"https://host/a.bam":             "https://host/a.bam",
		"davs://host:1094/a b\"<>.bam":   "https://host:1094/a%20b%22%3C%3E.bam",
		"DAV://host/a%2Fb%25?x=1 2#part": "http://host/a%2Fb%25?x=1%202",
		"http://host/ü;$(id)`.bam":       "http://host/%C3%BC;$%28id%29%60.bam",
		"root://host//store/a b.root":    "root://host//store/a b.root",
		"xroots://host:1095//store/../a": "roots://host:1095//a",
		"s3://bucket/a b/ü?.bam":         "https://bucket.s3.amazonaws.com/a%20b/%C3%BC%3F.bam",
		"s3://dotted.bucket/a":           "https://s3.amazonaws.com/dotted.bucket/a",
	} {
		got, err := NewURLs().Of(t.Context(), pfn, time.Hour)
		if err != nil || got != want {
			t.Errorf("%s: %q, %v; want %q", pfn, got, err, want)
		}
	}
	for _, pfn := range []string{
		"https://user:hunter2@host/a", "https://host/a%0Ab", "root://host//a?authz=secret", "root://user@host//a",
		"s3://user@bucket/a", "ftp://host/a", "file:/etc/passwd", "/etc/passwd", "state:a",
	} {
		if got, err := NewURLs().Of(t.Context(), pfn, time.Hour); err == nil || strings.Contains(err.Error(), "hunter2") ||
			strings.Contains(err.Error(), "secret") {
			t.Errorf("%s: %q, %v", pfn, got, err)
		}
	}
}

// A signed URL is of one file, for reading, and good for as long as is asked, at most 7 days.
func TestSignedURLs(t *testing.T) {
	for name, value := range map[string]string{
		"AWS_ACCESS_KEY_ID": "key", "AWS_SECRET_ACCESS_KEY": "secret-key", "AWS_SESSION_TOKEN": "session",
		"AWS_REGION": "eu-west-1", "AWS_ENDPOINT_URL_S3": "https://objects.example.org", "AWS_ENDPOINT_URL": "",
	} {
		t.Setenv(name, value)
	}
	for lasts, want := range map[time.Duration]string{90 * time.Minute: "5400", 1<<63 - 1: "604800"} {
		got, err := NewURLs().Of(t.Context(), "s3://bucket/a b", lasts)
		u, _ := url.Parse(got)
		if err != nil || u.Scheme != "https" || u.Host != "objects.example.org" || u.EscapedPath() != "/bucket/a%20b" ||
			u.Query().Get("X-Amz-Expires") != want || strings.Contains(got, "secret-key") {
			t.Errorf("%s: %v", got, err)
		}
	}
}

// withS3 starts a server with a bucket. Its keys are those of a file of ~/.aws, which keysAre
// writes.
func withS3(t *testing.T) (keysAre func(access, secret string)) {
	t.Helper()
	address, buckets := storagetest.S3(t)
	if err := os.Mkdir(buckets+"/bucket", 0o777); err != nil {
		t.Fatal(err)
	}
	file := t.TempDir() + "/credentials"
	for name, value := range map[string]string{
		"AWS_ACCESS_KEY_ID": "", "AWS_SECRET_ACCESS_KEY": "", "AWS_SESSION_TOKEN": "", "AWS_PROFILE": "",
		"AWS_REGION":          "us-east-1",
		"AWS_ENDPOINT_URL_S3": "http://" + address, "AWS_SHARED_CREDENTIALS_FILE": file, "AWS_CONFIG_FILE": "/none",
	} {
		t.Setenv(name, value)
	}
	return func(access, secret string) {
		t.Helper()
		text := fmt.Sprintf("[default]\naws_access_key_id = %s\naws_secret_access_key = %s\n", access, secret)
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
}

// A run may last for longer than keys are good.
func TestRenewedKeysCount(t *testing.T) {
	keysAre := withS3(t)
	e := New(storage.Roots{}, sched.Default().Sleep)
	keysAre(storagetest.AccessKey, "expired")
	if err := e.Put(t.Context(), storagetest.Local(t, "text"), "s3://bucket/a"); !errors.Is(err, storage.ErrPermission) {
		t.Errorf("with other keys: %v", err)
	}
	keysAre(storagetest.AccessKey, storagetest.SecretKey)
	if err := e.Put(t.Context(), storagetest.Local(t, "text"), "s3://bucket/a"); err != nil {
		t.Errorf("with renewed keys: %v", err)
	}
}

// A signed URL that others give is good for reading alone, and names a file all the same.
func TestASignedURLIsAFile(t *testing.T) {
	withS3(t)(storagetest.AccessKey, storagetest.SecretKey)
	e := New(storage.Roots{}, sched.Default().Sleep)
	for _, text := range []string{"", "text", strings.Repeat("long", 1<<20)} {
		pfn := fmt.Sprint("s3://bucket/", len(text))
		if err := e.Put(t.Context(), storagetest.Local(t, text), pfn); err != nil {
			t.Fatal(err)
		}
		signed, err := NewURLs().Of(t.Context(), pfn, time.Hour)
		if err != nil {
			t.Fatal(err)
		}
		info, err := e.Stat(t.Context(), signed)
		if err != nil || info.Size != int64(len(text)) || len(text) > 0 && info.ModTime.IsZero() {
			t.Errorf("%d bytes: %+v, %v", len(text), info, err)
		}
		body, err := e.Open(t.Context(), signed)
		if err != nil {
			t.Fatal(err)
		}
		if got, err := io.ReadAll(body); err != nil || string(got) != text || body.Close() != nil {
			t.Errorf("%d bytes of %d, %v", len(got), len(text), err)
		}
		if _, err := e.Stat(t.Context(), strings.Replace(signed, "Signature=", "Signature=0", 1)); !errors.Is(err,
			storage.ErrPermission) {
			t.Errorf("with another signature: %v", err)
		}
	}
}
