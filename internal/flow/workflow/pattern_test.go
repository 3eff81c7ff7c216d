package workflow

import (
	"slices"
	"testing"
)

func TestDeclaredInputsNameFiles(t *testing.T) {
	_, err := Parse("t.yaml", []byte(`
workflow: w
inputs:
  a: {files: ["./raw/{s}_{n}.fq", "more/*.fq"], as: "x/{n}"}
steps:
  s: {each: "x/{n}", writes: "y/{n}", command: "true"}
`))
	if err == nil {
		t.Fatal("a wildcard that binds nothing cannot give {n}")
	}
	w, err := Parse("t.yaml", []byte(`
workflow: w
inputs:
  a: {files: ["./raw/{s}_{n}.fq", "more/{s}-{n}.fq"], as: "x/{s}/{n}"}
  b: {files: "sub*/z*.txt"}
  c: {url_list: urls, match: "{run}.root", as: "c/{run}"}
  d: {url_list: urls}
steps:
  s: {each: "x/{s}/{n}", writes: "y/{s}/{n}", command: "true"}
  t: {merge: ["c/{run}", "z*.txt"], writes: t/all, command: "true"}
`))
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		input      int
		path, want string
	}{
		{0, "raw/a_7.fq", "x/a/7"},
		{0, "more/b-8.fq", "x/b/8"},
		{0, "raw/a7.fq", ""},
		{1, "sub1/z9.txt", "z9.txt"},
		{2, "https://h/p/12.root?sig=1", "c/12"},
		{2, "https://h/p/12.txt", ""},
		{3, "file:///p/12.txt", "12.txt"},
	} {
		lfn, fits, err := w.Inputs[c.input].LFN(c.path)
		if err != nil || lfn != c.want || fits != (c.want != "") {
			t.Errorf("%s: got %q %v %v, want %q", c.path, lfn, fits, err, c.want)
		}
	}
	if got := w.Inputs[0].Globs; !slices.Equal(got, []string{"raw/*_*.fq", "more/*-*.fq"}) {
		t.Errorf("globs %q", got)
	}
	got := w.Inputs[0].Order([]string{"more/a-1.fq", "raw/a_10.fq", "raw/a_9.fq", "raw/a_9.fq"})
	if !slices.Equal(got, []string{"raw/a_9.fq", "raw/a_10.fq", "more/a-1.fq"}) {
		t.Errorf("order %q", got)
	}
}
