package workflow

import (
	"regexp"
	"strings"

	"go.yaml.in/yaml/v3"

	"fairway/internal/flow/pattern"
)

// YAML reads the braces of {part} as a mapping where a text begins, and
// everywhere within [...] and {...}. People write
//
//	each: [parts/{part}.1.fq, parts/{part}.2.fq]
//
// all the same, and nothing else could be meant; so braces around one bare
// word are hidden from the YAML parser behind two private characters, which
// keeps columns as they are.
const (
	hiddenOpen  = "\ue000"
	hiddenClose = "\ue001"
)

var bareWord = regexp.MustCompile(`\{([A-Za-z_][A-Za-z0-9_]*)\}`)

func hidePlaceholders(data []byte) []byte {
	return bareWord.ReplaceAll(data, []byte(hiddenOpen+"${1}"+hiddenClose))
}

// hidingCharacters are those that texts from outside must not have.
const hidingCharacters = hiddenOpen + hiddenClose + pattern.HiddenLiterals

func hasHidden(text string) bool { return strings.ContainsAny(text, hidingCharacters) }

var showPlaceholders = strings.NewReplacer(hiddenOpen, "{", hiddenClose, "}")

func unhide(n *yaml.Node) {
	n.Value = showPlaceholders.Replace(n.Value)
	for _, child := range n.Content {
		unhide(child)
	}
}
