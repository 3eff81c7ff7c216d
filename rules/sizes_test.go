package rules

import (
	"fmt"
	"go/ast"
	"slices"
	"testing"
)

// Bounds within which this code is good to read, in lines between the braces of a function. They
// ask for no short functions: what belongs together stands together.
const (
	longestFile     = 900 // lines
	longestFunction = 100 // lines; hardly any is over 70
	overSeventy     = 0.01
	overInPassive   = 0.03 // of those in passive packages, whose stages read downwards
	underThirtyFive = 0.90
)

func TestSizes(t *testing.T) {
	var lengths []int
	cores, long := 0, 0
	eachSource(t, func(s *source) {
		if s.lines > longestFile {
			t.Errorf("%s: %d lines, at most %d: it holds more than one idea", s.path, s.lines, longestFile)
		}
		for _, declaration := range s.syntax.Decls {
			d, ok := declaration.(*ast.FuncDecl)
			if !ok || d.Body == nil {
				continue
			}
			length := linesInside(d.Body)
			if !s.test() {
				lengths = append(lengths, length)
			}
			if !s.test() && isPassive(s.folder) {
				if cores++; length > 70 {
					long++
				}
			}
			if length > longestFunction {
				complain(t, d, fmt.Sprintf("%s has %d lines, at most %d", d.Name.Name, length, longestFunction))
			}
		}
	})
	slices.Sort(lengths)
	share := func(lines int) float64 {
		at, _ := slices.BinarySearch(lengths, lines)
		return float64(at) / float64(len(lengths))
	}
	t.Logf("%d functions; below 35 lines: %.0f %%, over 70: %.1f %%", len(lengths), 100*share(35), 100*(1-share(71)))
	t.Logf("in passive packages: %d, over 70: %d", cores, long)
	if share(35) < underThirtyFive || float64(long) > overInPassive*float64(cores) || 1-share(71) > overSeventy {
		t.Error("functions have grown long: see the proportions at the top of this file")
	}
}

// linesInside counts the lines between the braces.
func linesInside(body *ast.BlockStmt) int {
	return max(0, positions.Position(body.Rbrace).Line-positions.Position(body.Lbrace).Line-1)
}
