package shelltext

import (
	"slices"
	"strings"

	"mvdan.cc/sh/v3/syntax"
)

// Word is a word of a command: its parts, one after the other.
type Word []Part

// Part is a text, or a variable whose value stands there, whatever it holds.
type Part struct{ Text, Variable string }

// Simple gives the words of a command that a shell would do nothing with but start a program: the
// first is the name of the program, the others have nothing to expand but variables in double
// quotes. False for any other command, such as one of the shell itself.
func (t *Text) Simple() (words []Word, ok bool) {
	if t == nil || len(t.file.Stmts) != 1 {
		return nil, false
	}
	s := t.file.Stmts[0]
	call, isCall := s.Cmd.(*syntax.CallExpr)
	if !isCall || s.Negated || s.Background || s.Coprocess || s.Disown || len(s.Redirs) > 0 || len(call.Assigns) > 0 ||
		len(call.Args) == 0 {
		return nil, false
	}
	for _, arg := range call.Args {
		word, ok := wordOf(arg)
		if !ok {
			return nil, false
		}
		words = append(words, word)
	}
	name := words[0]
	if len(name) != 1 || name[0].Variable != "" || name[0].Text == "" || slices.Contains(builtins, name[0].Text) {
		return nil, false
	}
	return words, true
}

// builtins are what bash does itself (compgen -b), and its reserved words (compgen -k).
var builtins = strings.Fields(`. : [ alias bg bind break builtin caller cd command compgen complete compopt continue
	declare dirs disown echo enable eval exec exit export false fc fg getopts hash help history jobs kill let local
	logout mapfile popd printf pushd pwd read readarray readonly return set shift shopt source suspend test times
	trap true type typeset ulimit umask unalias unset wait
	case coproc do done elif else esac fi for function if in select then time until while`)

func wordOf(w *syntax.Word) (word Word, ok bool) {
	for _, part := range w.Parts {
		switch part := part.(type) {
		case *syntax.Lit:
			if strings.ContainsFunc(part.Value, expands) {
				return nil, false
			}
			word = append(word, Part{Text: part.Value})
		case *syntax.SglQuoted:
			if part.Dollar {
				return nil, false
			}
			word = append(word, Part{Text: part.Value})
		case *syntax.DblQuoted:
			quoted, ok := quotedOf(part)
			if !ok {
				return nil, false
			}
			word = append(word, quoted...)
		default:
			return nil, false
		}
	}
	return word, true
}

func quotedOf(q *syntax.DblQuoted) (word Word, ok bool) {
	word = Word{{}} // "" is a word too
	for _, part := range q.Parts {
		switch part := part.(type) {
		case *syntax.Lit:
			if strings.Contains(part.Value, `\`) {
				return nil, false
			}
			word = append(word, Part{Text: part.Value})
		case *syntax.ParamExp:
			if !part.Short || part.Index != nil || !isPlainName(part.Param.Value) {
				return nil, false
			}
			word = append(word, Part{Variable: part.Param.Value})
		default:
			return nil, false
		}
	}
	return word, !q.Dollar
}

// expands tells the characters with which a shell may do something where no quotes are. What is
// not known to be harmless is taken to be so.
func expands(c rune) bool {
	return (c < 'a' || c > 'z') && (c < 'A' || c > 'Z') && (c < '0' || c > '9') && !strings.ContainsRune("_-+=.,:/@%", c)
}

// isPlainName reports whether a variable has a name in small letters: all to which a shell gives a
// meaning of its own have others.
func isPlainName(name string) bool {
	for i, c := range name {
		if (c < 'a' || c > 'z') && (i == 0 || c != '_' && (c < '0' || c > '9')) {
			return false
		}
	}
	return name != ""
}
