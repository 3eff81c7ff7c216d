package workflow

import (
	"slices"
	"strings"

	"fairway/internal/logical"
)

// MaxListBytes bounds the variables `in` and `out`, since the kernel refuses
// long ones. A shell command whose inputs do not fit reads `in` from the list
// that the pilot keeps in a file; then the names are separated by line breaks.
// `out` is then missing; $FAIRWAY_OUTPUTS_FILE names a file with the outputs.
const MaxListBytes = 100_000

// Listed sets a variable to the paths of files, if that is not too long.
func Listed(env map[string]string, name string, files []string) {
	paths := make([]string, len(files))
	for i, lfn := range files {
		paths[i] = logical.Path(lfn)
	}
	if joined := strings.Join(paths, " "); len(joined) <= MaxListBytes {
		env[name] = joined
	}
}

// Mentions reports whether a word occurs in a command. A parameter that a
// command does not name is not given to it, so that another value does not
// run it again.
func Mentions(text, word string) bool {
	for rest := text; ; {
		at := strings.Index(rest, word)
		if at < 0 {
			return false
		}
		end := at + len(word)
		if (at == 0 || !isWord(rest[at-1])) && (end == len(rest) || !isWord(rest[end])) {
			return true
		}
		rest = rest[at+1:]
	}
}

func isWord(c byte) bool {
	return c == '_' || '0' <= c && c <= '9' || 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z'
}

// Words that mean something else to a shell than the program of that name, if there is one.
var shellWords = strings.Fields(`. : [ alias bg bind break builtin caller case cd command compgen complete compopt continue
	coproc declare dirs disown do done echo elif else enable esac eval exec exit export fc fg fi for function getopts hash
	help history if in jobs kill let local logout mapfile popd printf pushd pwd read readarray readonly return select set
	shift shopt source suspend test then time times trap type typeset ulimit umask unalias unset until wait while`)

// PlainWords splits a command that needs no shell, or gives nil.
func PlainWords(text string) []string {
	text = strings.TrimSpace(text)
	for i := range len(text) {
		if c := text[i]; !isWord(c) && strings.IndexByte(" _@%+=:,./-", c) < 0 {
			return nil
		}
	}
	words := strings.Fields(text)
	if len(words) == 0 || strings.Contains(words[0], "=") || slices.Contains(shellWords, words[0]) {
		return nil
	}
	return words
}
