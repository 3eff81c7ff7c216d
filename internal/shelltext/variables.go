package shelltext

import (
	"regexp"
	"slices"
	"strings"
	"unicode"

	"mvdan.cc/sh/v3/syntax"
)

// Mention is a place in a command where a name stands.
type Mention struct {
	Name   string
	Text   string // as it stands there, such as ${name
	Offset int    // in bytes
}

// Expected gives the variables that must be set before the command begins,
// at the first place of each: those that it uses, without a default of their
// own, and sets nowhere. Arguments such as $1 are among them, outside of
// functions. It gives none for a command that may set any variable, as with
// eval.
func (t *Text) Expected() []Mention {
	if t == nil {
		return nil
	}
	r := &reader{sets: map[string]bool{}}
	r.walk(t.file)
	if r.anything {
		return nil
	}
	var expected []Mention
	for _, use := range r.uses {
		known := r.sets[use.Name] || r.arguments && use.Name[0] <= '9'
		if !known && !slices.ContainsFunc(expected, func(m Mention) bool { return m.Name == use.Name }) {
			expected = append(expected, use)
		}
	}
	return expected
}

// reader collects what a command uses and sets.
type reader struct {
	uses      []Mention
	sets      map[string]bool
	arguments bool // it sets $1, $2, ...
	anything  bool // it may set whatever there is
	function  int  // so many function bodies are around
}

var name = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]*$`)

func (r *reader) walk(n syntax.Node) {
	syntax.Walk(n, func(n syntax.Node) bool {
		switch n := n.(type) {
		case *syntax.FuncDecl:
			r.function++
			r.walk(n.Body)
			r.function--
			return false
		case *syntax.ParamExp:
			return r.parameter(n)
		case *syntax.ArithmExp:
			r.arithmetic(n.X)
			return false
		case *syntax.ArithmCmd:
			r.arithmetic(n.X)
			return false
		case *syntax.LetClause:
			for _, x := range n.Exprs {
				r.let(x)
			}
			return false
		case *syntax.CStyleLoop:
			for _, x := range []syntax.ArithmExpr{n.Init, n.Cond, n.Post} {
				r.arithmetic(x)
			}
			return false
		case *syntax.CallExpr:
			r.call(n)
		case *syntax.DeclClause:
			r.declare(n)
		case *syntax.Assign:
			r.assign(n)
		case *syntax.WordIter:
			r.sets[n.Name.Value] = true
		case *syntax.CoprocClause:
			r.anything = r.anything || n.Name != nil
		case *syntax.Redirect:
			if n.N != nil {
				r.sets[strings.Trim(n.N.Value, "{}")] = true
			}
		case *syntax.UnaryTest:
			if word, ok := n.X.(*syntax.Word); ok && n.Op == syntax.TsVarSet {
				r.setWord(word)
			}
		}
		return true
	})
}

// parameter is $x, or ${x...}. It reports whether to look at its parts.
func (r *reader) parameter(n *syntax.ParamExp) bool {
	if n.Param == nil || n.Names != 0 {
		return true
	}
	of := n.Param.Value
	isName, isArgument := name.MatchString(of), of >= "1" && of <= "9"
	if n.Exp != nil && n.Exp.Op <= syntax.AssignUnsetOrNull {
		if n.Exp.Op >= syntax.AssignUnset {
			r.sets[of] = true
		}
	} else if isName || isArgument && r.function == 0 {
		r.uses = append(r.uses, Mention{of, opening(n) + of, int(n.Pos().Offset())})
	}
	return true
}

func opening(n *syntax.ParamExp) string {
	switch {
	case n.Short:
		return "$"
	case n.Length:
		return "${#"
	case n.Excl:
		return "${!"
	}
	return "${"
}

// arithmetic reads an expression, in which names are variables. The keys of
// arrays may be texts, so they are passed over.
func (r *reader) arithmetic(x syntax.ArithmExpr) {
	switch x := x.(type) {
	case *syntax.BinaryArithm:
		if word, ok := x.X.(*syntax.Word); ok && assigns(x.Op) {
			r.setWord(word)
		} else {
			r.arithmetic(x.X)
		}
		r.arithmetic(x.Y)
	case *syntax.UnaryArithm:
		if word, ok := x.X.(*syntax.Word); ok && (x.Op == syntax.Inc || x.Op == syntax.Dec) {
			r.setWord(word)
		} else {
			r.arithmetic(x.X)
		}
	case *syntax.ParenArithm:
		r.arithmetic(x.X)
	case *syntax.Word:
		if of, ok := literal(x); ok && name.MatchString(of) {
			r.uses = append(r.uses, Mention{of, of, int(x.Pos().Offset())})
			return
		}
		r.walk(x)
	}
}

// let reads one argument of let. A quoted one is an expression too; what it
// uses has no place of its own and is left out.
func (r *reader) let(x syntax.ArithmExpr) {
	word, ok := x.(*syntax.Word)
	if !ok {
		r.arithmetic(x)
		return
	}
	text, ok := literal(word)
	inner, err := syntax.NewParser().Arithmetic(strings.NewReader(text))
	switch {
	case !ok || err != nil:
		r.anything = true
	case name.MatchString(text):
		r.arithmetic(x)
	default:
		quoted := &reader{sets: r.sets}
		quoted.arithmetic(inner)
		r.anything = r.anything || quoted.anything
	}
}

func assigns(op syntax.BinAritOperator) bool {
	switch op {
	case syntax.Eql, syntax.Neq, syntax.Leq, syntax.Geq:
		return false
	}
	return strings.HasSuffix(op.String(), "=")
}

func (r *reader) setWord(w *syntax.Word) {
	of, ok := literal(w)
	if !ok {
		r.anything = true
	}
	of, _, _ = strings.Cut(of, "[")
	r.sets[of] = true
}

func (r *reader) assign(n *syntax.Assign) {
	if n.Name != nil {
		r.sets[n.Name.Value] = true
	}
}

// declare is local, export and the like. A name may come from an expansion.
func (r *reader) declare(n *syntax.DeclClause) {
	for _, a := range n.Args {
		if a.Name == nil && a.Value != nil {
			if text, ok := literal(a.Value); !ok || !strings.HasPrefix(text, "-") || strings.ContainsRune(text, 'n') {
				r.anything = true // a name by reference is another one
			}
		}
	}
}

// call is a command with arguments. Some set the variables that they name.
func (r *reader) call(n *syntax.CallExpr) {
	words := n.Args
	for len(words) > 0 {
		if called, _ := literal(words[0]); called != "command" && called != "builtin" {
			break
		}
		words = words[1:]
	}
	if len(words) == 0 {
		return
	}
	called, _ := literal(words[0])
	arguments := words[1:]
	switch called {
	case "eval", "source", ".":
		r.anything = true
	case "set":
		r.arguments = true
	case "read", "mapfile", "readarray", "getopts":
		for _, w := range arguments {
			r.setWord(w)
		}
	case "printf", "wait":
		for i, w := range arguments {
			if option, _ := literal(w); (option == "-v" || option == "-p") && i+1 < len(arguments) {
				r.setWord(arguments[i+1])
			}
		}
	case "test", "[":
		for i, w := range arguments {
			if option, _ := literal(w); option == "-v" && i+1 < len(arguments) {
				r.setWord(arguments[i+1])
			}
		}
	}
}

// Braces gives the names in braces that the shell does not replace, such as
// {sample}: what stands within single quotes, in here-documents and in
// programs given with -c or -e is another language, and left out.
func (t *Text) Braces() []Mention {
	if t == nil {
		return nil
	}
	var found []Mention
	foreign := map[syntax.Node]bool{}
	syntax.Walk(t.file, func(n syntax.Node) bool {
		switch n := n.(type) {
		case *syntax.Redirect:
			if n.Hdoc != nil {
				foreign[n.Hdoc] = true
			}
		case *syntax.CallExpr:
			for i, w := range n.Args[:max(0, len(n.Args)-1)] {
				if option, _ := literal(w); option == "-c" || option == "-e" {
					foreign[n.Args[i+1]] = true
				}
			}
		case *syntax.DblQuoted:
			if strings.Contains(t.text[n.Pos().Offset():n.End().Offset()], "\n") {
				return false
			}
		case *syntax.Lit:
			found = append(found, t.bracesIn(n)...)
		}
		return !foreign[n]
	})
	return found
}

var braced = regexp.MustCompile(`\{([A-Za-z_][A-Za-z0-9_]*)((\.[A-Za-z0-9_]+)|(\[[A-Za-z0-9_]+\]))?\}`)

func isNameRune(c rune) bool {
	return c < 128 && (c == '_' || unicode.IsLetter(c) || unicode.IsDigit(c))
}

func (t *Text) bracesIn(n *syntax.Lit) (found []Mention) {
	start, end := int(n.Pos().Offset()), int(n.End().Offset())
	text := t.text[start:end]
	for _, at := range braced.FindAllStringSubmatchIndex(text, -1) {
		if strings.HasSuffix(strings.TrimRightFunc(text[:at[0]], isNameRune), `\$`) {
			continue // \$h{s}, a variable of another language
		}
		found = append(found, Mention{text[at[2]:at[3]], text[at[0]:at[1]], start + at[0]})
	}
	return found
}
