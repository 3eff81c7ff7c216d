package rules

import (
	"flag"
	"fmt"
	"go/ast"
	"go/constant"
	"go/token"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"
)

const (
	limitsPage     = "docs/limits.md"
	limitsTemplate = "rules/limits.template"
)

var update = flag.Bool("update", false, "rewrite the pages that come from code")

// bound is what stands for a value in the template: the package, the name, and its unit.
var bound = regexp.MustCompile(`\{(\w+)\.(\w+)(:bytes)?\}`)

// The page of limits has the values that the code has.
func TestPageOfLimitsIsCurrent(t *testing.T) {
	template, err := os.ReadFile(filepath.Join(root, limitsTemplate))
	if err != nil {
		t.Fatal(err)
	}
	values := constants{}
	eachSource(t, func(s *source) { values.declare(s) })
	made := bound.ReplaceAllStringFunc(string(template), func(found string) string {
		match := bound.FindStringSubmatch(found)
		value, isTime := values.of(match[1], match[2])
		n, exact := constant.Int64Val(constant.ToInt(value))
		switch {
		case !exact:
			t.Errorf("%s: %s.%s has no constant value", limitsTemplate, match[1], match[2])
			return found
		case isTime:
			return spelled(time.Duration(n))
		case match[3] != "":
			return binary(n)
		}
		return grouped(n)
	})
	generated(t, limitsPage, made)
}

// generated compares a page with what it is to be, or makes it so.
func generated(t *testing.T, page, want string) {
	t.Helper()
	file := filepath.Join(root, page)
	if content, err := os.ReadFile(file); err == nil && string(content) == want {
		return
	}
	if !*update {
		t.Fatalf("%s is not what the code has; run go test ./rules -update", page)
	}
	if err := os.WriteFile(file, []byte(want), 0o644); err != nil {
		t.Fatal(err)
	}
}

// constants are the expressions of what packages declare, by the last part of a package's path and
// the name.
type constants map[string]ast.Expr

func (c constants) declare(s *source) {
	for _, declaration := range s.syntax.Decls {
		general, ok := declaration.(*ast.GenDecl)
		if !ok || s.test() {
			continue
		}
		for _, spec := range general.Specs {
			if v, ok := spec.(*ast.ValueSpec); ok && len(v.Names) == len(v.Values) {
				for i, name := range v.Names {
					c[path.Base(s.folder)+"."+name.Name] = v.Values[i]
				}
			}
		}
	}
}

// of evaluates a name, and tells whether it is a time. What has no constant value is unknown.
func (c constants) of(pkg, name string) (value constant.Value, isTime bool) {
	if unit, ok := units[pkg+"."+name]; ok {
		return constant.MakeInt64(int64(unit)), true
	}
	if e, ok := c[pkg+"."+name]; ok {
		return c.evaluate(pkg, e)
	}
	return constant.MakeUnknown(), false
}

var units = map[string]time.Duration{
	"time.Millisecond": time.Millisecond, "time.Second": time.Second, "time.Minute": time.Minute, "time.Hour": time.Hour,
}

func (c constants) evaluate(pkg string, e ast.Expr) (value constant.Value, isTime bool) {
	switch e := e.(type) {
	case *ast.BasicLit:
		return constant.MakeFromLiteral(e.Value, e.Kind, 0), false
	case *ast.ParenExpr:
		return c.evaluate(pkg, e.X)
	case *ast.Ident:
		return c.of(pkg, e.Name)
	case *ast.SelectorExpr:
		if from, ok := e.X.(*ast.Ident); ok {
			return c.of(from.Name, e.Sel.Name)
		}
	case *ast.BinaryExpr:
		x, xTime := c.evaluate(pkg, e.X)
		y, yTime := c.evaluate(pkg, e.Y)
		if x.Kind() != constant.Int || y.Kind() != constant.Int {
			break
		}
		if e.Op == token.SHL {
			n, _ := constant.Uint64Val(y)
			return constant.Shift(x, e.Op, uint(n)), xTime
		}
		return constant.BinaryOp(x, e.Op, y), xTime || yTime
	}
	return constant.MakeUnknown(), false
}

// spelled is a time in its largest unit.
func spelled(d time.Duration) string {
	const day, year = 24 * time.Hour, 365 * 24 * time.Hour
	for _, u := range []struct {
		size time.Duration
		name string
	}{{year, "years"}, {2 * day, "days"}, {time.Hour, "h"}, {time.Minute, "min"}, {time.Second, "s"}} {
		if d >= u.size {
			if u.name == "days" {
				u.size = day
			}
			return fmt.Sprintf("%g %s", float64(d)/float64(u.size), u.name)
		}
	}
	return fmt.Sprintf("%d ms", d.Milliseconds())
}

// binary is a size in the largest unit of which it is a whole number.
func binary(n int64) string {
	units := []string{"bytes", "KiB", "MiB", "GiB"}
	unit := 0
	for ; unit+1 < len(units) && n%1024 == 0; unit++ {
		n /= 1024
	}
	return fmt.Sprintf("%d %s", n, units[unit])
}

// grouped is a number with commas between thousands.
func grouped(n int64) string {
	digits := fmt.Sprint(n)
	if n < 10_000 {
		return digits
	}
	var groups []string
	for ; len(digits) > 3; digits = digits[:len(digits)-3] {
		groups = append([]string{digits[len(digits)-3:]}, groups...)
	}
	return strings.Join(append([]string{digits}, groups...), ",")
}
