package hq

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"fairway/internal/shelltext"
)

// hqToken begins a line of a script that has options for `hq submit`.
const hqToken = "#HQ"

type hqScript struct {
	options     []string // words of the lines that begin with #HQ, which stand before the first command
	interpreter []string // words of the first line; none: the script is executed itself
}

func readHQScript(text string) (hqScript, error) {
	script := hqScript{interpreter: shelltext.Interpreter(text)}
	for line := range strings.Lines(text) {
		line = strings.TrimSpace(line)
		if line != "" && line[0] != '#' {
			break
		}
		options, ok := strings.CutPrefix(line, hqToken)
		if !ok || options != "" && options[0] != ' ' && options[0] != '\t' {
			continue
		}
		if name, ok := nextflowName(options); ok {
			script.options = append(script.options, "--name", name)
			continue
		}
		words, err := shellWords(options)
		if err != nil {
			return hqScript{}, fmt.Errorf("%q: %w", line, err)
		}
		script.options = slices.Concat(script.options, words)
	}
	return script, nil
}

// nextflowName gives the name of a task of Nextflow, which writes it without quotes, on a line of its
// own. The tag in it may hold anything: it is a label.
func nextflowName(options string) (name string, ok bool) {
	name, ok = strings.CutPrefix(strings.TrimSpace(options), "--name ")
	name = strings.TrimSpace(name)
	if !ok || !strings.HasPrefix(name, "nf-") || !strings.HasSuffix(name, ")") {
		return "", false
	}
	return strings.ToValidUTF8(shortened(name), "\uFFFD"), true
}

// maxHQName bounds the name of a task of Nextflow, in bytes; a longer one is cut.
const maxHQName = 512

func shortened(name string) string { return name[:min(len(name), maxHQName)] }

// shellWords splits a line as a shell does that expands nothing, but for one thing: a backslash
// between double quotes takes the meaning of any character away. Nextflow writes the paths of its
// folders with both.
func shellWords(line string) (words []string, err error) {
	var word strings.Builder
	var quote rune // that is open
	begun, escaped := false, false
	for _, r := range line {
		switch {
		case escaped:
			escaped = false
			word.WriteRune(r)
		case r == '\\' && quote != '\'':
			escaped, begun = true, true
		case quote != 0 && r == quote:
			quote = 0
		case quote == 0 && (r == '\'' || r == '"'):
			quote, begun = r, true
		case quote == 0 && (r == ' ' || r == '\t'):
			if begun {
				words = append(words, word.String())
				word.Reset()
			}
			begun = false
		default:
			begun = true
			word.WriteRune(r)
		}
	}
	if quote != 0 || escaped {
		return nil, errors.New("a quote is not closed")
	}
	if begun {
		words = append(words, word.String())
	}
	return words, nil
}
