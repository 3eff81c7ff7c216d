package yamlfile

import (
	"regexp"
	"slices"
	"strings"
	"unicode/utf8"

	"go.yaml.in/yaml/v3"
)

// Edit is the one certain answer to a problem: what stands at a place of the file, and what to write
// there. The zero value is none.
type Edit struct {
	Line, Column int    // from 1, in characters
	Old, New     string // of one line

	// tried says that the answer is certain only if the rest of the line is in order with it: a key
	// of another system may have values of another form.
	tried bool
}

// mend notes, of the last problem, what to write in the place of a text at a node. tried is that of
// Edit.
func (r *Reader) mend(n *yaml.Node, was, is string, tried bool) {
	if n.Style&(yaml.LiteralStyle|yaml.FoldedStyle) != 0 || strings.ContainsAny(was+is, "\n") {
		return // another text stands in the file
	}
	column := n.Column
	if n.Style&(yaml.SingleQuotedStyle|yaml.DoubleQuotedStyle) != 0 {
		column++
	}
	r.Problems[len(r.Problems)-1].Fix = Edit{n.Line, column, was, is, tried}
}

// MendAt gives the last problem its one certain answer, at a place.
func (r *Reader) MendAt(line, column int, was, is string) {
	r.Problems[len(r.Problems)-1].Fix = Edit{line, column, was, is, false}
}

// MendKey gives the last problem, of an unknown key, its answer if there is a certain one: advice
// that names a key for the same value, or else the one known key that is as good as the same word.
// taken are the keys that stand beside it.
func (r *Reader) MendKey(key *yaml.Node, advice string, known, taken []string) {
	meant, tried := renamed(advice), true
	if meant == "" && advice == "" {
		meant, tried = Surely(key.Value, known), false
	}
	if meant != "" && slices.Contains(known, meant) && !slices.Contains(taken, meant) {
		r.mend(key, key.Value, meant, tried)
	}
}

// MendRenamed gives the last problem, of a key that other systems have for another one, the name of
// that one. The answer stands if the value is in order under it.
func (r *Reader) MendRenamed(key *yaml.Node, meant string, taken []string) {
	if meant != "" && !slices.Contains(taken, meant) {
		r.mend(key, key.Value, meant, true)
	}
}

// rename is advice to give the same value another key: what stands for it is in capital letters.
var rename = regexp.MustCompile("^write `([a-z_]+):( \\[?[A-Z]+\\]?)?`(, such as .*)?$")

func renamed(advice string) string {
	if m := rename.FindStringSubmatch(advice); m != nil {
		return m[1]
	}
	return ""
}

// Surely finds the known word that somebody who wrote word must have meant: it differs in case or in
// dashes only, or by one letter, of eight or more by two, and from all others by more. Else it is "".
func Surely(word string, known []string) string {
	plain := strings.NewReplacer("-", "_", " ", "_")
	best, distance, next := "", len(word), len(word)
	for _, k := range known {
		d := editDistance(word, k)
		if plain.Replace(strings.ToLower(word)) == k {
			d = 0
		}
		switch {
		case d < distance:
			best, distance, next = k, d, distance
		case d < next:
			next = d
		}
	}
	most := 0
	switch n := utf8.RuneCountInString(word); {
	case n >= 8:
		most = 2
	case n >= 4:
		most = 1
	}
	if distance > most || distance == next {
		return ""
	}
	return best
}

// spelled is a duration with its units as people write them.
var spelled = regexp.MustCompile(`(?i)^(\d+(?:\.\d+)?) ?(ms|s|secs?|seconds?|m|mins?|minutes?|h|hrs?|hours?|d|days?)$`)

// otherwise gives what somebody may have meant by a text that cannot be read, in the words of files
// here: a unit that is spelled out, a flag of YAML 1.1.
func otherwise(text string) string {
	if m := spelled.FindStringSubmatch(text); m != nil {
		unit := strings.ToLower(m[2])
		if unit != "ms" {
			unit = unit[:1]
		}
		return m[1] + unit
	}
	switch strings.ToLower(text) {
	case "yes", "on", "true":
		return "true"
	case "no", "off", "false":
		return "false"
	}
	return ""
}

// entry is a line with a key or an item of a list and a value.
var entry = regexp.MustCompile(`^(\s*(?:- +)*(?:([A-Za-z0-9_.-]+): +|- +))(\S.*?)(?:\s+#.*|\s*)$`)

// texts are keys of texts in which there may be a colon with a space; elsewhere somebody may have
// meant a mapping.
var texts = []string{"about", "command", "count"}

// nearby is how many lines from where a file is no YAML the value is looked for that lacks quotes.
const nearby = 2

// quoteFor finds the value that has to stand in quotes for a file to be YAML beyond a line. until
// tells how far a text is YAML.
func quoteFor(data []byte, line int, until func([]byte) int) Edit {
	lines := strings.Split(string(data), "\n")
	for n := max(1, line-nearby); n <= min(len(lines), line+nearby); n++ {
		m := entry.FindStringSubmatch(lines[n-1])
		if m == nil || !needsQuotes(m[2], m[3]) {
			continue
		}
		edit := Edit{
			Line: n, Column: utf8.RuneCountInString(m[1]) + 1, Old: m[3],
			New: "'" + strings.ReplaceAll(m[3], "'", "''") + "'",
		}
		if mended, ok := edit.apply(data); ok && until(mended) > line {
			return edit
		}
	}
	return Edit{}
}

// needsQuotes reports whether the value of a key cannot stand without quotes as the text that it
// seems to be.
func needsQuotes(key, value string) bool {
	return strings.ContainsAny(value[:1], "*%@`") || strings.Contains(value, ": ") && slices.Contains(texts, key) &&
		!strings.ContainsAny(value[:1], `"'{[|>&!?`)
}

// apply makes the change in a file. It returns false where something else stands there.
func (e Edit) apply(data []byte) ([]byte, bool) {
	rest, at := string(data), 0
	for range e.Line - 1 {
		n := strings.IndexByte(rest[at:], '\n')
		if n < 0 {
			return nil, false
		}
		at += n + 1
	}
	for range e.Column - 1 {
		_, n := utf8.DecodeRuneInString(rest[at:])
		at += n
	}
	if !strings.HasPrefix(rest[at:], e.Old) {
		return nil, false
	}
	return []byte(rest[:at] + e.New + rest[at+len(e.Old):]), true
}

// maxEdits bounds the changes of one file: each shows what the ones before hid.
const maxEdits = 200

// Mend changes what has one certain answer in a file that check refuses, and nothing else: all
// else, comments and blanks too, stays as it is. It returns the file, and the changes in their order.
func Mend(data []byte, check func(data []byte) Problems) (mended []byte, made []Edit) {
	tried := map[Edit]bool{}
	problems := check(data)
	for len(made) < maxEdits {
		at := slices.IndexFunc(problems, func(p Problem) bool { return p.Fix != Edit{} && !tried[p.Fix] })
		if at < 0 {
			break
		}
		fix := problems[at].Fix
		tried[fix] = true
		changed, ok := fix.apply(data)
		if !ok {
			continue
		}
		left := check(changed)
		if fix.answers(problems, at, left) {
			data, problems, made = changed, left, append(made, fix)
		}
	}
	return data, made
}

// answers reports whether a change has done away with a problem, and, if it was tried, made no
// other one in its line.
func (e Edit) answers(before Problems, at int, after Problems) bool {
	if slices.Contains(after, before[at]) {
		return false
	}
	return !e.tried || !slices.ContainsFunc(after, func(p Problem) bool {
		known := func(b Problem) bool { return b.What == p.What && b.Line == p.Line }
		return p.Line == e.Line && p.Fix == (Edit{}) && !slices.ContainsFunc(before, known)
	})
}
