package main

import (
	"fmt"
	"go/ast"
	"go/constant"
	"go/token"
	"go/types"
	"os"
	"slices"
	"strings"
)

// mutant is one small change of the code of a package. All those that are chosen are compiled into one
// program of tests, which makes the one that a variable names: so a package is compiled once.
type mutant struct {
	number   int
	path     string // of the file
	line     int
	name     string // function: what stands there → what stands there instead; unique in the package
	from, to int    // offsets in the file
	// render makes the code that stands there, of what stood there, which may have other mutants in it.
	render func(number int, before string) string
}

// source is a file whose mutants are looked for.
type source struct {
	path    string
	text    []byte
	set     *token.FileSet
	info    *types.Info
	own     *types.Package
	imports map[string]string // names by paths
	mutants []*mutant
	within  string         // the function that is looked at
	results *types.Tuple   // what it returns
	named   map[string]int // how often a name was given
}

// mutantsOf finds all mutants of a package, without its tests, in the order of their places.
func (p *checked) mutantsOf() (all []*mutant, err error) {
	named := map[string]int{}
	for i, file := range p.files {
		text, err := os.ReadFile(p.paths[i])
		if err != nil {
			return nil, err
		}
		if strings.HasPrefix(string(text), "// Code generated") {
			continue
		}
		s := &source{
			path: p.paths[i], text: text, set: p.set, info: p.info, own: p.own, imports: p.namesIn(file), named: named,
		}
		for _, d := range file.Decls {
			if f, ok := d.(*ast.FuncDecl); ok && f.Body != nil {
				s.within = nameOf(f)
				s.results = p.info.Defs[f.Name].Type().(*types.Signature).Results()
				ast.Inspect(f.Body, s.visit)
			}
		}
		all = append(all, s.mutants...)
	}
	return all, nil
}

func (s *source) offset(p token.Pos) int { return s.set.Position(p).Offset }

func (s *source) of(n ast.Node) string { return string(s.text[s.offset(n.Pos()):s.offset(n.End())]) }

// add notes a mutant of a node, which is made by render.
func (s *source) add(n ast.Node, instead string, render func(number int, before string) string) {
	name := fmt.Sprintf("%s: %s → %s", s.within, short(s.of(n)), short(instead))
	s.named[name]++
	if k := s.named[name]; k > 1 {
		name += fmt.Sprintf(" (%d)", k)
	}
	s.mutants = append(s.mutants, &mutant{
		path: s.path, line: s.set.Position(n.Pos()).Line, name: name, from: s.offset(n.Pos()), to: s.offset(n.End()),
		render: render,
	})
}

// short is a text on one line, of at most 70 characters.
func short(text string) string {
	words := []rune(strings.Join(strings.Fields(text), " "))
	if len(words) > 70 {
		return string(words[:69]) + "…"
	}
	return string(words)
}

// spelled is how a file writes a type, if it can.
func (s *source) spelled(t types.Type) (text string, ok bool) {
	ok = true
	text = types.TypeString(t, func(p *types.Package) string {
		name := s.imports[p.Path()]
		ok = ok && (p == s.own || name != "")
		return name
	})
	b, basic := t.(*types.Basic)
	return text, ok && (!basic || b.Info()&types.IsUntyped == 0 && b.Kind() != types.Invalid)
}

// replace has another value of the same type in the place of an expression.
func (s *source) replace(e ast.Expr, t types.Type, instead string) {
	if text, ok := s.spelled(t); ok {
		s.add(e, instead, func(number int, before string) string {
			return fmt.Sprintf("mutantPick[%s](%d, %s, %s)", text, number, instead, before)
		})
	}
}

// replaceByNil has nil in the place of an expression.
func (s *source) replaceByNil(e ast.Expr, t types.Type) {
	if text, ok := s.spelled(t); ok {
		s.add(e, "nil", func(number int, before string) string {
			return fmt.Sprintf("mutantNil[%s](%d, %s, func(v %[1]s) bool { return v == nil })", text, number, before)
		})
	}
}

func (s *source) visit(n ast.Node) bool {
	switch n := n.(type) {
	case *ast.FuncLit:
		outer := s.results
		s.results = s.info.TypeOf(n).(*types.Signature).Results()
		ast.Inspect(n.Body, s.visit)
		s.results = outer
		return false
	case *ast.GenDecl:
		return n.Tok == token.VAR
	case *ast.ArrayType:
		return false
	case *ast.BinaryExpr:
		s.operator(n)
	case *ast.BasicLit:
		if t := s.info.Types[n]; n.Kind == token.INT && t.Type != nil {
			s.replace(n, t.Type, n.Value+"+1")
		}
	case *ast.IfStmt:
		s.condition(n.Cond)
	case *ast.BlockStmt:
		s.statements(n.List)
	case *ast.CaseClause:
		s.statements(n.Body)
	case *ast.CommClause:
		s.statements(n.Body)
	case *ast.ReturnStmt:
		s.returned(n)
	}
	return true
}

// others are the operators that stand in the place of one. None divides: that may not be possible.
var others = map[token.Token][]token.Token{
	token.LSS: {token.LEQ, token.GEQ}, token.LEQ: {token.LSS, token.GTR}, token.GTR: {token.GEQ, token.LEQ},
	token.GEQ: {token.GTR, token.LSS}, token.EQL: {token.NEQ}, token.NEQ: {token.EQL},
	token.LAND: {token.LOR}, token.LOR: {token.LAND},
	token.ADD: {token.SUB}, token.SUB: {token.ADD}, token.MUL: {token.ADD}, token.QUO: {token.MUL}, token.REM: {token.MUL},
}

// operator has another operator in the place of one. Of two truth values only the one is found out that
// counts; of two numbers both are, so that they must be without effect.
func (s *source) operator(n *ast.BinaryExpr) {
	t := s.info.Types[n]
	if t.Value != nil { // a constant
		return
	}
	for _, op := range others[n.Op] {
		instead := s.of(n.X) + " " + op.String() + " " + s.of(n.Y)
		if b, ok := t.Type.Underlying().(*types.Basic); !ok || b.Info()&types.IsBoolean == 0 {
			if ok && b.Info()&types.IsNumeric != 0 && s.pure(n) {
				s.replace(n, t.Type, instead)
			}
			continue
		}
		compares, pure := op != token.LAND && op != token.LOR, s.pure(n)
		s.add(n, instead, func(number int, before string) string {
			if compares && pure {
				return fmt.Sprintf("mutantPick[bool](%d, %s, %s)", number, instead, before)
			}
			return fmt.Sprintf("(mutantIs(%[1]d) && (%[2]s) || !mutantIs(%[1]d) && (%[3]s))", number, instead, before)
		})
	}
}

// pure reports whether an expression can be found out twice.
func (s *source) pure(e ast.Expr) bool {
	is := true
	ast.Inspect(e, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.CallExpr:
			f := s.info.Types[n.Fun]
			id, named := n.Fun.(*ast.Ident)
			is = is && (f.IsType() || named && f.IsBuiltin() && slices.Contains([]string{"len", "cap", "min", "max"}, id.Name))
		case *ast.FuncLit:
			is = false
		case *ast.UnaryExpr:
			is = is && n.Op != token.ARROW
		}
		return is
	})
	return is
}

// condition has an if go the other way, unless a mutant of its operator does.
func (s *source) condition(e ast.Expr) {
	if b, ok := e.(*ast.BinaryExpr); ok && b.Op != token.LAND && b.Op != token.LOR {
		return
	}
	s.add(e, "not "+s.of(e), func(number int, before string) string {
		return fmt.Sprintf("((%s) != mutantIs(%d))", before, number)
	})
}

// returned has another value returned: nothing, or what is not nothing.
func (s *source) returned(n *ast.ReturnStmt) {
	if s.results == nil || len(n.Results) != s.results.Len() {
		return
	}
	for i, r := range n.Results {
		t, v := s.results.At(i).Type(), s.info.Types[r]
		_, compares := r.(*ast.BinaryExpr)
		switch u := t.Underlying().(type) {
		case *types.Basic:
			zero := v.Value != nil && (v.Value.Kind() == constant.Int && constant.Sign(v.Value) == 0)
			switch {
			case t == types.Typ[types.Bool] && !compares:
				s.add(r, "not "+s.of(r), func(number int, before string) string {
					return fmt.Sprintf("((%s) != mutantIs(%d))", before, number)
				})
			case u.Info()&types.IsNumeric != 0 && !zero:
				s.replace(r, t, "0")
			case u.Info()&types.IsString != 0 && s.of(r) != `""`:
				s.replace(r, t, `""`)
			}
		case *types.Slice, *types.Map, *types.Pointer:
			if !v.IsNil() {
				s.replaceByNil(r, t)
			}
		case *types.Interface:
			if _, generic := t.(*types.TypeParam); !generic && !v.IsNil() {
				s.replaceByNil(r, t)
			}
		}
	}
}

// unmeant are calls that are not left out: without them a test waits for ever, or a log lacks a line.
var unmeant = []string{
	"Lock", "Unlock", "RLock", "RUnlock", "Debug", "Info", "Warn", "Error", "panic", "close",
}

// statements leaves out assignments, calls and continue, and has counters go the other way.
func (s *source) statements(list []ast.Stmt) {
	leave := func(number int, before string) string {
		return fmt.Sprintf("if !mutantIs(%d) { %s }", number, before)
	}
	for _, n := range list {
		switch n := n.(type) {
		case *ast.ExprStmt:
			if call, ok := n.X.(*ast.CallExpr); ok && !slices.Contains(unmeant, called(call)) {
				s.add(n, "nothing", leave)
			}
		case *ast.AssignStmt:
			if n.Tok != token.DEFINE && s.of(n.Lhs[0]) != "_" {
				s.add(n, "nothing", leave)
			}
		case *ast.BranchStmt:
			if n.Tok == token.CONTINUE {
				s.add(n, "nothing", leave)
			}
		case *ast.IncDecStmt:
			other := s.of(n.X) + "--"
			if n.Tok == token.DEC {
				other = s.of(n.X) + "++"
			}
			s.add(n, other, func(number int, before string) string {
				return fmt.Sprintf("if mutantIs(%d) { %s } else { %s }", number, other, before)
			})
		}
	}
}

// called is the last part of the name of what is called.
func called(c *ast.CallExpr) string {
	switch f := c.Fun.(type) {
	case *ast.Ident:
		return f.Name
	case *ast.SelectorExpr:
		return f.Sel.Name
	}
	return ""
}

// rewritten is the text of a file with mutants, which become part of it.
func rewritten(text []byte, mutants []*mutant) string {
	mutants = slices.Clone(mutants)
	slices.SortStableFunc(mutants, func(a, b *mutant) int {
		if a.from != b.from {
			return a.from - b.from
		}
		return b.to - a.to
	})
	return renderBetween(text, 0, len(text), mutants)
}

// renderBetween is a part of a file with the mutants that are in it, the outer ones first.
func renderBetween(text []byte, from, to int, among []*mutant) string {
	var b strings.Builder
	at := from
	for i, m := range among {
		if m.from < at || m.to > to {
			continue
		}
		b.Write(text[at:m.from])
		b.WriteString(m.render(m.number, renderBetween(text, m.from, m.to, among[i+1:])))
		at = m.to
	}
	b.Write(text[at:to])
	return b.String()
}

// selecting is the file by which a program of tests makes the mutant that is asked for. Where there is a
// file for that, it notes each that makes a difference: what is the same with a mutant and without it is
// not looked at by any test.
func selecting(pkg string, mutants int) string {
	return fmt.Sprintf(`package %s

import (
	"os"
	"strconv"
	"sync/atomic"
)

var (
	mutantAsked, _ = strconv.Atoi(os.Getenv(%q))
	mutantsNoted, _ = os.OpenFile(os.Getenv(%q), os.O_APPEND|os.O_WRONLY, 0)
	mutantsMet [%d]atomic.Bool
)

func mutantDiffers(n int) {
	if mutantsNoted != nil && !mutantsMet[n].Swap(true) {
		mutantsNoted.WriteString(strconv.Itoa(n) + "\n")
	}
}

func mutantIs(n int) bool {
	mutantDiffers(n)
	return n == mutantAsked
}

func mutantPick[T comparable](n int, instead, before T) T {
	if instead != before {
		mutantDiffers(n)
	}
	if n == mutantAsked {
		return instead
	}
	return before
}

func mutantNil[T any](n int, before T, isNil func(T) bool) (none T) {
	if !isNil(before) {
		mutantDiffers(n)
	}
	if n == mutantAsked {
		return none
	}
	return before
}
`, pkg, mutantVariable, reachedVariable, mutants+1)
}

const (
	mutantVariable  = "FAIRWAY_MUTANT"
	reachedVariable = "FAIRWAY_MUTANTS_REACHED"
)
