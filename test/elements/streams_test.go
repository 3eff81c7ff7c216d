package elements

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"fairway/internal/storage/storagetest"
	"fairway/test/files"
)

const streaming = `workflow: streaming
inputs:
  root: {files: "%s/{name}.txt", as: "root/{name}.txt", access: stream}
  s3: {files: "s3://bucket/in/{name}.txt", as: "s3/{name}.txt", access: stream}
  dav: {files: "%s/{name}.txt", as: "dav/{name}.txt", access: stream}
steps:
  root:
    each: {file: "root/{name}.txt"}
    writes: "made/root {name}"
    command: xrdcp -s "$file" - > "$out"
  s3:
    each: {file: "s3/{name}.txt"}
    writes: "made/s3 {name}"
    command: |
      case $file in (*X-Amz-Signature=*) ;; (*) exit 1 ;; esac
      curl -fsS "$file" > "$out"
  dav:
    each: {file: "dav/{name}.txt"}
    writes: "made/dav {name}"
    command: curl -fsS "$file" > "$out"
  again:
    each: "made/{which}"
    writes: "again/{which}"
    access: stream
    command: |
      echo "${in%%%%:*}" > "$out"
      case $in in
      (root:*) xrdcp -s "$in" - >> "$out" ;;
      (*) curl -fsS "$in" >> "$out" ;;
      esac
`

// Commands read what they stream from each kind of server by the URL that they get: inputs,
// and what other jobs have stored. The node keeps no copy, and nothing that Fairway writes
// holds a signature.
func TestStreamedFromEachKind(t *testing.T) {
	s := start(t)
	for _, place := range []string{s.root, "s3://bucket/in", s.dav} {
		s.put(t, place+"/plain.txt", storagetest.Local(t, "plain\n"))
	}
	for _, pfn := range []string{s.root + "/a b.txt", "s3://bucket/in/a b.txt", s.dav + "/a%20b.txt"} {
		s.put(t, pfn, storagetest.Local(t, "odd\n"))
	}
	for storage, scheme := range map[string]string{
		s.root + "/made":   "root",
		"s3://bucket/made": "http",
		s.dav + "/made":    "http",
	} {
		folder := t.TempDir()
		files.Write(t, folder+"/workflow.yaml", fmt.Sprintf(streaming, s.root, s.dav))
		out, err := run(folder, nil, "run", "--cache", "none", "--storage", storage)
		if err != nil {
			t.Fatalf("%s: %v\n%s", storage, err, out)
		}
		if !strings.Contains(out, "no inputs staged in") || !strings.Contains(out, "0 B from storage") ||
			strings.Contains(out, "was copied") {
			t.Errorf("%s: not streamed:\n%s", storage, out)
		}
		for _, kind := range []string{"root", "s3", "dav"} {
			odd := "a b"
			if kind == "dav" {
				odd = "a%20b" // as its URL has it
			}
			for name, text := range map[string]string{"plain": "plain\n", odd: "odd\n"} {
				if got := files.Read(t, folder+"/results/again/"+kind+" "+name); got != scheme+"\n"+text {
					t.Errorf("%s: %s %s: %q", storage, kind, name, got)
				}
			}
		}
		shown, err := run(folder, nil, "show", "--json", "s3/plain")
		if err != nil || !strings.Contains(shown, `"s3://bucket/in/plain.txt"`) || strings.Contains(shown, "X-Amz-Credential") {
			t.Errorf("%v\n%s", err, shown)
		}
		check := func(path string, d fs.DirEntry, err error) error {
			if err != nil || !d.Type().IsRegular() {
				return err
			}
			data, err := os.ReadFile(path)
			if strings.Contains(string(data), "X-Amz-Credential") {
				t.Errorf("%s holds a signed URL", path)
			}
			return err
		}
		if err := filepath.WalkDir(folder, check); err != nil {
			t.Error(err)
		}
	}
}
