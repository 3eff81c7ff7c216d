package yamlfile

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io"
	"math"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"

	"fairway/internal/quantity"
)

// Reader collects the problems of one file while it is read.
type Reader struct {
	File     string   // its name, for messages
	Kind     string   // what it is, for messages: workflow
	Limit    int      // its greatest size in bytes
	Oversize string   // what to do about a larger one
	Begin    string   // what to write into an empty one
	Problems Problems // so far
}

// Fail notes a problem at a node, and what to write instead.
func (r *Reader) Fail(n *yaml.Node, instead, what string, args ...any) {
	r.FailAt(n.Line, n.Column, instead, what, args...)
}

// FailAt notes a problem at a place, and what to write instead.
func (r *Reader) FailAt(line, column int, instead, what string, args ...any) {
	r.Problems = append(r.Problems, Problem{
		File: r.File, Line: line, Column: column, What: fmt.Sprintf(what, args...), Instead: instead,
	})
}

// Err gives the problems so far, as [Problems], or nil.
func (r *Reader) Err() error {
	if r.Problems = r.Problems.Sorted(); len(r.Problems) > 0 {
		return r.Problems
	}
	return nil
}

var yamlLine = regexp.MustCompile(`line (\d+): (.*)`)

// Root parses the file, and returns the one thing in it, or nil after a problem.
func (r *Reader) Root(data []byte) *yaml.Node {
	if len(data) > r.Limit {
		r.FailAt(1, 1, r.Oversize, "the file has %d bytes, the limit is %d", len(data), r.Limit)
		return nil
	}
	documents := yaml.NewDecoder(bytes.NewReader(data))
	var document, second yaml.Node
	if err := documents.Decode(&document); err != nil && !errors.Is(err, io.EOF) {
		line, what := placeOf(err, data)
		r.FailAt(line, 1, "indent with spaces, and quote texts that start with a special character",
			"this is no YAML: %s", what)
		r.Problems[len(r.Problems)-1].Fix = quoteFor(data, line, yamlUntil)
		return nil
	}
	if err := documents.Decode(&second); !errors.Is(err, io.EOF) { // what follows a line of ---
		r.FailAt(max(second.Line, 1), 1, fmt.Sprintf("put each %s into a file of its own, or remove the line ---", r.Kind),
			"a second YAML document begins here, and a %s is one", r.Kind)
		return nil
	}
	if len(document.Content) == 0 {
		r.FailAt(1, 1, r.Begin, "the file is empty")
		return nil
	}
	return document.Content[0]
}

// yamlUntil is the line from which on a text is no YAML, or one that it does not have.
func yamlUntil(data []byte) int {
	var n yaml.Node
	err := yaml.Unmarshal(data, &n)
	if err == nil {
		return math.MaxInt
	}
	line, _ := placeOf(err, data)
	return line
}

// placeOf is the line from which on a text is no YAML, and what the parser says of it.
func placeOf(err error, data []byte) (line int, what string) {
	what = strings.TrimPrefix(err.Error(), "yaml: ")
	if m := yamlLine.FindStringSubmatch(what); m != nil {
		line, _ = strconv.Atoi(m[1])
		return brokenFrom(data, line), m[2]
	}
	if m := unknownAnchor.FindStringSubmatch(what); m != nil { // it tells no line
		use := regexp.MustCompile(`(?:^|[\s\[{,])\*` + regexp.QuoteMeta(m[1]) + `(?:[\s\]},]|$)`)
		if at := use.FindIndex(data); at != nil {
			return 1 + bytes.Count(data[:at[0]+1], []byte("\n")), what
		}
	}
	return 1, what
}

// maxBrokenLines bounds the lines of a text in which the place of a fault is looked for: each is parsed.
const maxBrokenLines = 2000

// brokenFrom is the line after the last one up to which a text is YAML. The parser tells another one,
// such as that where a list or a mapping began; its word counts in a long text.
func brokenFrom(data []byte, told int) int {
	ends := []int{0}
	for i, b := range data {
		if b == '\n' {
			ends = append(ends, i+1)
		}
	}
	if len(ends) > maxBrokenLines {
		return told
	}
	if ends[len(ends)-1] == len(data) {
		ends = ends[:len(ends)-1] // nothing begins there
	}
	for line := len(ends) - 1; line > 0; line-- {
		var n yaml.Node
		if yaml.Unmarshal(data[:ends[line]], &n) == nil {
			return line + 1
		}
	}
	return 1
}

var unknownAnchor = regexp.MustCompile(`^unknown anchor '(.*)' referenced$`)

// KeysOf are the keys of a mapping.
func KeysOf(n *yaml.Node) (keys []string) {
	if n = Follow(n); n.Kind != yaml.MappingNode {
		return nil
	}
	for i := 0; i+1 < len(n.Content); i += 2 {
		keys = append(keys, n.Content[i].Value)
	}
	return keys
}

// Field is one key of a mapping with its value.
type Field struct {
	Key   *yaml.Node
	Value *yaml.Node
}

// Follow gives the node that an alias stands for.
func Follow(n *yaml.Node) *yaml.Node {
	for range 8 {
		if n.Kind != yaml.AliasNode {
			break
		}
		n = n.Alias
	}
	return n
}

// Mapping gives the fields of n, in order, each key once. what names n in
// messages.
func (r *Reader) Mapping(n *yaml.Node, what string) []Field {
	n = Follow(n)
	if n.Kind != yaml.MappingNode {
		r.Fail(n, "write it as lines of `key: value`", "%s must be a mapping, not %s", what, KindName(n))
		return nil
	}
	var fields []Field
	lines := map[string]int{}
	for i := 0; i+1 < len(n.Content); i += 2 {
		key := n.Content[i]
		if key.Kind != yaml.ScalarNode {
			r.Fail(key, "write a word", "a key of %s must be a word, not %s", what, KindName(key))
			continue
		}
		if key.Value == "<<" {
			r.Fail(key, "repeat its keys here; single values can be shared, as in needs: &small {cpus: 1} and needs: *small",
				"%s has a merge key, <<, which a %s cannot have", what, r.Kind)
			continue
		}
		if line := lines[key.Value]; line != 0 {
			r.Fail(key, "give it another name, or remove one of the two", "%s has %q twice, first in line %d", what,
				key.Value, line)
			continue
		}
		lines[key.Value] = key.Line
		fields = append(fields, Field{key, n.Content[i+1]})
	}
	return fields
}

// Known gives the fields of n by key and reports the keys that are not in
// keys. habits advise those who come from other systems.
func (r *Reader) Known(n *yaml.Node, what string, keys []string, habits map[string]string) map[string]*yaml.Node {
	found := map[string]*yaml.Node{}
	for _, f := range r.Mapping(n, what) {
		if !slices.Contains(keys, f.Key.Value) {
			advice := habits[f.Key.Value]
			r.Fail(f.Key, cmp.Or(advice, DidYouMean(f.Key.Value, keys)), "unknown key %q in %s", f.Key.Value, what)
			r.MendKey(f.Key, advice, keys, KeysOf(n))
			continue
		}
		found[f.Key.Value] = f.Value
	}
	return found
}

// KindName is what a node is, for messages.
func KindName(n *yaml.Node) string {
	switch {
	case n.Kind == yaml.MappingNode:
		return "a mapping"
	case n.Kind == yaml.SequenceNode:
		return "a list"
	case n.Tag == "!!null":
		return "nothing"
	}
	return strconv.Quote(n.Value)
}

// Text gives a scalar.
func (r *Reader) Text(n *yaml.Node, what string) (string, bool) {
	n = Follow(n)
	if n.Kind != yaml.ScalarNode || n.Tag == "!!null" {
		r.Fail(n, "write a text", "%s must be a text, not %s", what, KindName(n))
		return "", false
	}
	return n.Value, true
}

// Texts gives a scalar as a list of one, or a list of scalars.
func (r *Reader) Texts(n *yaml.Node, what string) (texts []string) {
	for _, item := range r.Items(n, what) {
		if s, ok := r.Text(item, what); ok {
			texts = append(texts, s)
		}
	}
	return texts
}

// Items gives the nodes of a list, and any other node as a list of one.
func (r *Reader) Items(n *yaml.Node, what string) []*yaml.Node {
	n = Follow(n)
	if n.Kind != yaml.SequenceNode {
		return []*yaml.Node{n}
	}
	if len(n.Content) == 0 {
		r.Fail(n, "name at least one, or remove the key", "%s is an empty list", what)
	}
	return n.Content
}

// Integer reads a whole number from least on that stands as text in a node.
func (r *Reader) Integer(n *yaml.Node, text, what string, least int64) int64 {
	digits, negative := strings.CutPrefix(strings.TrimSpace(text), "-")
	value, err := quantity.Whole(digits)
	if negative {
		value = -value
	}
	if err != nil || value < least {
		r.Fail(Follow(n), fmt.Sprintf("write a whole number from %d", least), "%s: %q is no such number", what, text)
		return 0
	}
	return value
}

// Scalar reads a text of a node with parse, whose error says after a semicolon
// what to write instead.
func Scalar[T any](r *Reader, n *yaml.Node, text, what string, parse func(string) (T, error)) T {
	value, err := parse(text)
	if err != nil {
		says, instead, _ := strings.Cut(err.Error(), "; ")
		n = Follow(n)
		r.Fail(n, instead, "%s: %s", what, says)
		if meant := otherwise(text); meant != "" && text == n.Value {
			if _, err := parse(meant); err == nil {
				r.mend(n, text, meant, false)
			}
		}
	}
	return value
}
