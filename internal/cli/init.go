package cli

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/spf13/cobra"

	"fairway/internal/cli/console"
	"fairway/internal/cli/look"
	"fairway/internal/cli/screen"
	"fairway/internal/flow/workflow"
	"fairway/internal/quantity"
	"fairway/internal/wfformat"
)

func (c *commands) initCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "init FILES...",
		Short: "Make a workflow file for files that are there",
		Long: `Make a workflow.yaml in this folder (or that of -C) for FILES. Files of one folder
with the same ending become one input, with the placeholder {sample} for what
differs; files in pairs (..._R1, ..._R2, or ..._1, ..._2) become two. Each input has a
step that counts bytes: put your command in its place. The file can be checked and
run as it is. A file that is there is not replaced.`,
		Example: "  fairway init reads/*.fq.gz genome.fa\n  fairway check\n  fairway run",
		Args:    console.Takes(1, console.AnyNumber, "FILE"),
		RunE: func(_ *cobra.Command, arguments []string) error {
			file := filepath.Join(c.Dir, console.DefaultFile)
			folder, err := filepath.Abs(filepath.Dir(file))
			if err != nil {
				return err
			}
			shown, err := shownFiles(folder, arguments)
			if err != nil {
				return err
			}
			text := initialWorkflow(folder, grouped(shown))
			if _, err := wfformat.ParseEither(file, text, workflow.Scales{}); err != nil {
				return console.Fail(console.ExitUsage, "write the workflow by hand", "these names cannot be made a workflow: %w",
					err)
			}
			err = look.WriteNew(file, func(out io.Writer) error { _, err := out.Write(text); return err })
			if errors.Is(err, fs.ErrExist) {
				return console.Fail(console.ExitUsage, "move it away first", "there is a %s already", screen.DisplayPath(file))
			}
			if err != nil {
				return err
			}
			return c.Answer(initialised{file, len(shown)}, func() {
				fmt.Fprintf(c.Out, "made %s for %s: replace its commands, then `fairway check` and `fairway run`\n",
					screen.DisplayPath(file), quantity.Count(int64(len(shown)), "file"))
			})
		},
	}
}

type initialised struct {
	File  string `json:"file"`
	Files int    `json:"files"`
}

// unfit are characters that mean something in a pattern or in the command of a step.
const unfit = "*?{}[]\"$`\\'"

func shownFiles(folder string, arguments []string) (files []string, err error) {
	for _, argument := range arguments {
		info, err := os.Stat(argument)
		switch {
		case errors.Is(err, fs.ErrNotExist):
			return nil, console.Fail(console.ExitUsage, "name files that are there", "there is no file %s", argument)
		case err != nil:
			return nil, err
		case !info.Mode().IsRegular():
			return nil, console.Fail(console.ExitUsage, "name files, as with "+filepath.Join(argument, "*"), "%s is no file",
				argument)
		}
		file, err := filepath.Abs(argument)
		if err != nil {
			return nil, err
		}
		if within, err := filepath.Rel(folder, file); err == nil && filepath.IsLocal(within) {
			file = within
		}
		bad := strings.ContainsAny(file, unfit) || strings.ContainsFunc(file, unicode.IsControl)
		if bad || !utf8.ValidString(file) {
			return nil, console.Fail(console.ExitUsage, "rename it, or write the workflow by hand",
				"%q has a character in its name that patterns or shells take for something else", argument)
		}
		files = append(files, file)
	}
	slices.Sort(files)
	return slices.Compact(files), nil
}

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

func initialWorkflow(folder string, groups []group) []byte {
	var inputs, steps bytes.Buffer
	taken := map[string]bool{}
	for _, g := range groups {
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
