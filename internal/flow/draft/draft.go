// Package draft makes a first workflow for files that are there, by their names.
package draft

import (
	"bytes"
	"encoding/json"
	"fmt"
	"path"
	"path/filepath"
	"regexp"
	"strings"
	"unicode"
	"unicode/utf8"
)

// group is the files of one folder that have the same ending.
type group struct {
	folder   string
	patterns []string // of the last part of the path: one, or that of each mate
}

// mate is the last part of the path of a file that is one of two.
var mate = regexp.MustCompile(`^(.+)([._]R?)([12])(\.[^/]*)?$`)

func grouped(files []string) (groups []group) {
	names := map[[2]string][]string{} // by folder and ending
	var keys [][2]string
	for _, file := range files {
		folder, name := path.Split(filepath.ToSlash(file))
		_, ending, _ := strings.Cut(name[1:], ".") // a name may begin with a dot
		key := [2]string{folder, ending}
		if names[key] == nil {
			keys = append(keys, key)
		}
		names[key] = append(names[key], name)
	}
	for _, key := range keys {
		patterns := mates(names[key])
		if patterns == nil {
			patterns = []string{pattern(names[key])}
		}
		groups = append(groups, group{key[0], patterns})
	}
	return groups
}

// mates are the patterns of names that all come in pairs; nil where they do not.
func mates(names []string) []string {
	seen := map[string]string{} // by stem, the numbers
	var between, ending string
	for i, name := range names {
		m := mate.FindStringSubmatch(name)
		if m == nil || i > 0 && (m[2] != between || m[4] != ending) {
			return nil
		}
		between, ending = m[2], m[4]
		seen[m[1]] += m[3]
	}
	for _, numbers := range seen {
		if numbers != "12" {
			return nil
		}
	}
	return []string{"{sample}" + between + "1" + ending, "{sample}" + between + "2" + ending}
}

// pattern is one for all names: the name itself where there is one. What is common to all is cut
// where a word ends.
func pattern(names []string) string {
	if len(names) == 1 {
		return names[0]
	}
	prefix, suffix := names[0], names[0]
	for _, name := range names {
		for !strings.HasPrefix(name, prefix) {
			prefix = prefix[:len(prefix)-1]
		}
		for !strings.HasSuffix(name, suffix) {
			suffix = suffix[1:]
		}
	}
	const ends = "._-"
	prefix = prefix[:strings.LastIndexAny(prefix, ends)+1]
	suffix = suffix[len(suffix)-len(fromAny(suffix, ends)):]
	for _, name := range names { // a.b.c and a.c have a dot for both
		for len(name) <= len(prefix)+len(suffix) && prefix != "" {
			prefix = prefix[:strings.LastIndexAny(prefix[:len(prefix)-1], ends)+1]
		}
		for len(name) <= len(suffix) {
			suffix = fromAny(suffix[1:], ends)
		}
	}
	return prefix + "{sample}" + suffix
}

// fromAny is a text from the first of some characters on.
func fromAny(text, characters string) string {
	if at := strings.IndexAny(text, characters); at >= 0 {
		return text[at:]
	}
	return ""
}

// Workflow is the text of a workflow for files, whose paths are relative to a folder or absolute, in their
// order. Its steps count bytes, until a person puts commands in their place.
func Workflow(folder string, files []string) []byte {
	var inputs, steps bytes.Buffer
	taken := map[string]bool{}
	for _, g := range grouped(files) {
		name := unique(taken, nameFrom(path.Base(strings.TrimSuffix(g.folder, "/")), "input"))
		logical := g.folder
		if path.IsAbs(g.folder) {
			logical = name + "/"
		}
		var lfns []string
		for i, p := range g.patterns {
			input := name
			if len(g.patterns) > 1 {
				input = fmt.Sprintf("%s_%d", name, i+1)
			}
			lfns = append(lfns, logical+p)
			fmt.Fprintf(&inputs, "  %s:\n    files: %s\n    as: %s\n", input, quoted(g.folder+p), quoted(logical+p))
		}
		writeStep(&steps, name, lfns)
	}
	return fmt.Appendf(nil, `# Which files there are, and which steps make further files from them.
# `+"`fairway check`"+` says what is wrong, `+"`fairway run`"+` runs it. Results are in results/.
workflow: %s
inputs: # files: where they are; as: the name that steps and commands know them by
%ssteps: # each runs once for each {sample}
%s`, quoted(nameFrom(filepath.Base(folder), "workflow")), &inputs, &steps)
}

func writeStep(steps *bytes.Buffer, name string, lfns []string) {
	step, result, from := "count_"+name, "counts/"+name+".txt", "reads"
	if strings.Contains(lfns[0], "{sample}") {
		result, from = "counts/"+name+"/{sample}.txt", "each"
	}
	read, command := quoted(lfns[0]), `wc -c < "$in" > "$out"`
	if len(lfns) > 1 {
		var words, lists []string
		for _, lfn := range lfns {
			lists = append(lists, quoted(lfn))
			words = append(words, `"`+strings.ReplaceAll(lfn, "{sample}", "${sample}")+`"`)
		}
		read, command = "["+strings.Join(lists, ", ")+"]", "cat "+strings.Join(words, " ")+` | wc -c > "$out"`
	}
	fmt.Fprintf(steps, "  %s:\n    %s: %s\n    writes: %s\n"+
		"    # Put your command here; it reads and writes the files above.\n    command: |\n      %s\n",
		step, from, read, quoted(result), command)
}

func nameFrom(text, otherwise string) string {
	name := strings.Trim(strings.Map(func(r rune) rune {
		if r < utf8.RuneSelf && (unicode.IsLetter(r) || unicode.IsDigit(r)) {
			return r
		}
		return '_'
	}, text), "_")
	if name == "" || unicode.IsDigit(rune(name[0])) {
		return strings.Trim(otherwise+"_"+name, "_")
	}
	return name
}

func unique(taken map[string]bool, name string) string {
	found := name
	for n := 2; taken[found]; n++ {
		found = fmt.Sprintf("%s%d", name, n)
	}
	taken[found] = true
	return found
}

// quoted is a text in the quotes of JSON, which YAML has too.
func quoted(text string) string {
	var out strings.Builder
	encoder := json.NewEncoder(&out)
	encoder.SetEscapeHTML(false)
	_ = encoder.Encode(text) // a text always can be
	return strings.TrimSpace(out.String())
}
