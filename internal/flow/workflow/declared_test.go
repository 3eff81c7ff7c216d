package workflow

import (
	"reflect"
	"testing"
)

// The files that are imagined for an input fit its patterns.
func TestNamedFiles(t *testing.T) {
	w, err := Parse("test.yaml", []byte(`
workflow: w
inputs:
  mates: {files: "/data/reads_{mate}.{lane}.gz", as: "raw/{lane}/{mate}.gz"}
  rest: {files: ["list.txt", "more/*.csv"]}
steps:
  all: {reads: list.txt, writes: out, command: cp}
`))
	if err != nil {
		t.Fatal(err)
	}
	for i, want := range []struct {
		placeholders []string
		values       map[string]string
		lfns         []string
	}{
		{[]string{"mate", "lane"}, map[string]string{"mate": "2"}, []string{"raw/1/2.gz"}},
		{[]string{"*"}, map[string]string{"*": "a"}, []string{"list.txt", "a.csv"}},
	} {
		in := w.Inputs[i]
		if got := in.Placeholders(); !reflect.DeepEqual(got, want.placeholders) {
			t.Errorf("placeholders of %s: %v, not %v", in.Name, got, want.placeholders)
		}
		if got := in.Named(want.values); !reflect.DeepEqual(got, want.lfns) {
			t.Errorf("files of %s: %v, not %v", in.Name, got, want.lfns)
		}
	}
}
