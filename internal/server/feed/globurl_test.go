package feed

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"fairway/internal/flow"
	"fairway/internal/flow/workflow"
	"fairway/internal/storage"
	"fairway/internal/storage/s3"
	"fairway/internal/storage/storagetest"
	"fairway/internal/storage/web"
	"fairway/internal/storage/xrootd"
)

// A pattern of a URL finds what the same pattern of a path finds, with the values
// of its placeholders; nothing is listed where nothing is open.
func TestPatternsOfURLs(t *testing.T) {
	t.Run("WebDAV", func(t *testing.T) {
		e := web.New(web.Credentials{})
		t.Cleanup(e.Close)
		patterns(t, e, "dav", "dav://"+storagetest.WebDAV(t)+"/d/")
	})
	t.Run("S3", func(t *testing.T) {
		address, buckets := storagetest.S3(t)
		if err := os.Mkdir(buckets+"/bucket", 0o777); err != nil {
			t.Fatal(err)
		}
		e := s3.New(func() (s3.Config, error) {
			return s3.Config{Endpoint: "http://" + address, Region: "us-east-1", AccessKey: storagetest.AccessKey,
				SecretKey: storagetest.SecretKey}, nil
		})
		patterns(t, e, "s3", "s3://bucket/d/")
	})
	t.Run("XRootD", func(t *testing.T) {
		address, _, _ := storagetest.XRootD(t)
		patterns(t, new(xrootd.Element), "root", "root://"+address+"//store/d/")
	})
}

// Host and bucket stand for themselves, also an address of IPv6, and so does a quoted character.
func TestTextOfPatternsOfURLs(t *testing.T) {
	for glob, want := range map[string]string{
		`http://\[::1]:8080/d/x`:   "http://[::1]:8080/d/x",
		`s3://bucket/a\*b\\c/\[x]`: `s3://bucket/a*b\c/[x]`,
		"http://*.example.org/x":   "",
		"s3://run?/x":              "",
	} {
		found, err := globURL(t.Context(), nil, glob)
		if got := strings.Join(found, " "); got != want || (err == nil) != (want != "") {
			t.Errorf("%s: %q, %v", glob, got, err)
		}
	}
}

// A name that no file of the workflow can have is not passed over.
func TestNamesWithLineBreaksAreTold(t *testing.T) {
	address, buckets := storagetest.S3(t)
	if err := os.MkdirAll(buckets+"/bucket/d", 0o777); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"new\nline.txt", "plain.txt"} {
		if err := os.WriteFile(buckets+"/bucket/d/"+name, nil, 0o666); err != nil {
			t.Fatal(err)
		}
	}
	e := s3.New(func() (s3.Config, error) {
		return s3.Config{Endpoint: "http://" + address, Region: "us-east-1", AccessKey: storagetest.AccessKey,
			SecretKey: storagetest.SecretKey}, nil
	})
	_, _, err := NewFinder(t.TempDir(), storage.Schemes{"s3": e}).Find(t.Context(),
		inputOf(t, "s3://bucket/d/{name}.txt", "{name}"), nil)
	if err == nil || !strings.Contains(err.Error(), "line break") {
		t.Error(err)
	}
}

// inputOf is an input with one pattern.
func inputOf(t *testing.T, files, as string) *workflow.DeclaredInput {
	t.Helper()
	w, err := workflow.Parse("w.yaml", fmt.Appendf(nil,
		"workflow: w\ninputs:\n  i: {files: '%s', as: 'in/%s'}\nsteps:\n  "+
			"s: {each: 'in/%[2]s', writes: 'out/%[2]s', command: cp \"$in\" \"$out\"}\n", files, as))
	if err != nil {
		t.Fatal(err)
	}
	f, err := flow.New(w)
	if err != nil {
		t.Fatal(err)
	}
	return f.Inputs()[0]
}

func patterns(t *testing.T, e storage.Element, scheme, folder string) {
	local := filepath.Join(t.TempDir(), "x")
	if err := os.WriteFile(local, []byte("contents"), 0o666); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{
		"run1/a.fq", "run1/b.fq", "run2/a.fq", "run2/a.txt", "other/a.fq", "run10/a.fq", "fairway-abcdefghijklm237/s.fq",
	} {
		if err := e.Put(t.Context(), local, folder+name); err != nil {
			t.Fatal(err)
		}
	}
	for glob, want := range map[string]string{
		"run2/a.fq": "run2/a.fq",
		"none/*.fq": "",
		"*":         "",
		"other/*":   "other/a.fq",
		"*/s.*":     "",

		"fairway-*/s.*": "fairway-abcdefghijklm237/s.fq",
	} {
		found, err := globURL(t.Context(), e, folder+glob)
		for i := range found {
			found[i] = strings.TrimPrefix(found[i], folder)
		}
		if got := strings.Join(found, " "); got != want || err != nil {
			t.Errorf("%s: %q, %v", glob, got, err)
		}
	}

	files, _, err := NewFinder(t.TempDir(), storage.Schemes{scheme: e}).Find(t.Context(),
		inputOf(t, folder+"run{run}/{sample}.fq", "{run}/{sample}"), nil)
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, file := range files {
		names = append(names, file.LFN)
		if file.Size != int64(len("contents")) {
			t.Errorf("%s has %d bytes", file.LFN, file.Size)
		}
	}
	if !slices.Equal(names, []string{"in/1/a", "in/1/b", "in/2/a", "in/10/a"}) {
		t.Error(names)
	}
}
