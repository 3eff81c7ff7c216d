package yamlfile_test

import (
	"errors"
	"reflect"
	"strings"
	"testing"
	"time"

	"go.yaml.in/yaml/v3"

	"fairway/internal/quantity"
	"fairway/internal/yamlfile"
)

// size reads itself.
type size int64

func (s *size) ReadYAML(r *yamlfile.Reader, n *yaml.Node, path string) {
	*s = size(yamlfile.Read(r, n, path, quantity.Size))
}

type host struct {
	Name  string        `yaml:"name"`
	Slots int           `yaml:"slots"`
	Wait  time.Duration `yaml:"wait" negative:"never"`
}

type document struct {
	Name   string            `yaml:"name"`
	Seed   uint64            `yaml:"seed"`
	Factor float64           `yaml:"factor"`
	Open   bool              `yaml:"open"`
	Room   size              `yaml:"room"`
	Age    time.Duration     `yaml:"age"`
	Tools  []string          `yaml:"tools"`
	Hosts  []host            `yaml:"hosts"`
	Least  map[string]int    `yaml:"least"`
	Words  map[string]string `yaml:"words"`
	First  *host             `yaml:"first"`
}

// read decodes text and fails every path of failing that it contains.
func read(text string, failing ...string) (document, error) {
	r := yamlfile.Reader{File: "t.yaml", Kind: "document", Limit: 1 << 20, Begin: "start with `name: NAME`"}
	var d document
	root := r.Root([]byte(text))
	if root != nil {
		r.Decode(root, &d, "")
		for _, path := range failing {
			r.FailIn(root, path, "mend it", "100%% wrong: %d", 1)
		}
	}
	return d, r.Err()
}

func TestDecode(t *testing.T) {
	d, err := read(`name: a
seed: 18446744073709551615
factor: 0.5
open: true
room: 700MB
age: 2d
tools: cp
hosts: [&one {name: one, slots: 2, wait: -1s}, {name: two}]
least: {a: 1}
words: {b: "2", a: x}
first: *one
`)
	if err != nil {
		t.Fatal(err)
	}
	one := host{"one", 2, -time.Second}
	want := document{
		Name: "a", Seed: 1<<64 - 1, Factor: 0.5, Open: true, Room: 700e6, Age: 48 * time.Hour, Tools: []string{"cp"},
		Hosts: []host{one, {Name: "two"}}, Least: map[string]int{"a": 1},
		Words: map[string]string{"b": "2", "a": "x"}, First: &one,
	}
	if !reflect.DeepEqual(d, want) {
		t.Errorf("got  %+v\nwant %+v", d, want)
	}
}

// What a file does not set stays as it was: defaults may stand there before.
func TestDecodeLeavesAlone(t *testing.T) {
	r := yamlfile.Reader{File: "t.yaml", Kind: "document", Limit: 100}
	d := document{Seed: 7, Tools: []string{"cp"}}
	r.Decode(r.Root([]byte("name: a")), &d, "")
	if err := r.Err(); err != nil || d.Seed != 7 || len(d.Tools) != 1 || d.Name != "a" {
		t.Errorf("%+v, %v", d, err)
	}
}

func TestProblems(t *testing.T) {
	for text, want := range map[string]string{
		"":                        "t.yaml:1:1: the file is empty; start with `name: NAME`",
		"name: [\n":               "t.yaml:1:1: this is no YAML: did not find expected node content; indent with spaces, and quote texts that start with a special character",
		"name: a\n---\nname: b\n": "t.yaml:2:1: a second YAML document begins here, and a document is one; put each document into a file of its own, or remove the line ---",
		"- a\n":                   "t.yaml:1:1: the document must be a mapping, not a list; write it as lines of `key: value`",
		"nam: a\nhosts: [{name: x, slot: 1}]\n": `t.yaml:1:1: unknown key "nam" in the document; did you mean "name"?` + "\n" +
			`t.yaml:2:19: unknown key "slot" in hosts.x; did you mean "slots"?`,
		"name: a\nname: b\n":      `t.yaml:2:1: the document has "name" twice, first in line 1; give it another name, or remove one of the two`,
		"name: [a]\n":             "t.yaml:1:7: name must be a text, not a list; write a text",
		"name:\n":                 "t.yaml:1:6: name must be a text, not nothing; write a text",
		"seed: -1\nfactor: 1e3\n": `t.yaml:1:7: seed: "-1" is no such number; write a whole number from 0` + "\n" + `t.yaml:2:9: factor: "1e3" is no number of decimal digits, with at most one point among them; write a number such as 2 or 0.5`,
		"open: yes\n":             `t.yaml:1:7: open: "yes" is neither; write true or false`,
		"age: 5\n":                `t.yaml:1:6: age: "5" is no duration; write a number with ms, s, m, h or d, as in 90s or 1h30m`,
		"age: -5s\n":              `t.yaml:1:6: age: "-5s" is no duration; write a number with ms, s, m, h or d, as in 90s or 1h30m`,
		"tools: []\n":             "t.yaml:1:8: tools is an empty list; name at least one, or remove the key",
		"least: {a: -1}\n":        `t.yaml:1:12: least.a: "-1" is no such number; write a whole number from 0`,
		"hosts: [{slots: two}]\n": `t.yaml:1:17: hosts.0.slots: "two" is no such number; write a whole number from 0`,
		"words: &w {<<: {}, a: *w}\n": "t.yaml:1:8: words.a must be a text, not a mapping; write a text\n" +
			"t.yaml:1:12: words has a merge key, <<, which a document cannot have; repeat its keys here; single values can be " +
			"shared, as in needs: &small {cpus: 1} and needs: *small",
	} {
		if _, err := read(text); err == nil || err.Error() != want {
			t.Errorf("%s\ngot  %v\nwant %s", text, err, want)
		}
	}
}

// A problem of a path that the file does not set is told where it would stand.
func TestFailInFindsThePlace(t *testing.T) {
	_, err := read("name: a\nhosts:\n  - {name: x.y}\n  - {name: x, slots: 1}\n", "hosts.x.slots", "hosts.x.wait.more",
		"least.a", "")
	want := "t.yaml:1:1: least.a: 100% wrong: 1; mend it\nt.yaml:1:1: 100% wrong: 1; mend it\n" +
		"t.yaml:4:5: hosts.x.wait.more: 100% wrong: 1; mend it\nt.yaml:4:22: hosts.x.slots: 100% wrong: 1; mend it"
	if err == nil || err.Error() != want {
		t.Errorf("got\n%v\nwant\n%s", err, want)
	}
}

func TestProblemsAreToldOnceAndAreBounded(t *testing.T) {
	var r yamlfile.Reader
	for range 3 {
		for line := range 2 * yamlfile.MaxProblems {
			r.FailAt(2*yamlfile.MaxProblems-line, 1, "", "wrong")
		}
	}
	problems, ok := errors.AsType[yamlfile.Problems](r.Err())
	if !ok || len(problems) != yamlfile.MaxProblems || problems[0].Line != 1 || problems[1].Line != 2 {
		t.Errorf("%d problems: %v", len(problems), problems)
	}
}

func TestClosestWords(t *testing.T) {
	for word, want := range map[string]string{"cpu": "cpus", "mem": "", "memroy": "memory", "disc": "disk", "": ""} {
		if got := yamlfile.Closest(word, []string{"cpus", "memory", "disk"}); got != want {
			t.Errorf("%q: got %q, want %q", word, got, want)
		}
	}
	if got := yamlfile.DidYouMean("x", nil); got != "there are none here" {
		t.Error(got)
	}
}

func FuzzDecode(f *testing.F) {
	f.Add("name: a\nhosts: [&h {name: x}, *h]\nleast: {a: 1}\n")
	f.Add("a: &a [*a]\nhosts: *a\nwords: {<<: 1, ? [x] : y}\n")
	f.Add("first: {first}\nroom: 1GB\n---\n")
	f.Fuzz(func(t *testing.T, text string) {
		_, err := read(text, "hosts.x.slots", "words.0")
		problems, ok := errors.AsType[yamlfile.Problems](err)
		if !ok || len(problems) == 0 || len(problems) > yamlfile.MaxProblems {
			t.Fatalf("%T %v", err, err)
		}
		for _, p := range problems {
			if p.Line < 1 || p.Column < 1 || p.What == "" || strings.ContainsRune(p.What, '\n') {
				t.Errorf("%+v", p)
			}
		}
	})
}

// A fault is told where it is, and not where the list or mapping began in which it is.
func TestLineOfWhatIsNoYAML(t *testing.T) {
	for text, line := range map[string]int{
		"a: 1\nb:\n  c: 2\n\td: 3\n":                       4, // a tab
		"a: 1\nb: {c: 1\nd: 2\n":                           2, // no end of the mapping
		"a: 1\nb:\n  - [x, y\nc: 3\n":                      3,
		"a: 1\nb:\n  c:\n    d: 2\n   e: 3\n":              5, // indented by too little
		"a: 1\nb: {c: 1,\n  d: 2}\ne: f: g\n":              4,
		"a: 1\nb: \"x\nc: 2\n":                             2,
		"a: |\n  text\n more\nb: @x\n":                     3,
		"a: 1\nb: @x\n":                                    2,
		"a: 1\nb: *x\n":                                    2,
		"a: 1\n" + strings.Repeat("#\n", 3000) + "b: @x\n": 3002,
	} {
		r := &yamlfile.Reader{File: "t.yaml", Kind: "document", Limit: 1 << 20}
		r.Root([]byte(text))
		if len(r.Problems) != 1 || r.Problems[0].Line != line {
			t.Errorf("%q: %v, want line %d", text[:min(len(text), 40)], r.Problems, line)
		}
	}
}
