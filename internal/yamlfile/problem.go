package yamlfile

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
)

// MaxProblems bounds how many problems one file is told of at once; what is
// beyond is left out, since most of it would follow from the first.
const MaxProblems = 50

// Problem is one thing wrong in a file.
type Problem struct {
	File    string `json:"file"`
	Line    int    `json:"line"`
	Column  int    `json:"column"`
	What    string `json:"what"`
	Instead string `json:"instead,omitempty"` // what to write instead
	Fix     Edit   `json:"-"`                 // the one certain answer, if there is one
}

// String is the problem in one line, as compilers print them.
func (p Problem) String() string {
	s := fmt.Sprintf("%s:%d:%d: %s", p.File, p.Line, p.Column, p.What)
	if p.Instead != "" {
		s += "; " + p.Instead
	}
	return s
}

// Problems are all that is wrong in a file. As an error they are in the order of
// its lines.
type Problems []Problem

// Error gives one problem a line.
func (p Problems) Error() string {
	lines := make([]string, len(p))
	for i, problem := range p {
		lines[i] = problem.String()
	}
	return strings.Join(lines, "\n")
}

// Sorted are the problems in the order of files and lines, each once, and at
// most MaxProblems of them.
func (p Problems) Sorted() Problems {
	slices.SortStableFunc(p, func(a, b Problem) int {
		return cmp.Or(strings.Compare(a.File, b.File), a.Line-b.Line, a.Column-b.Column)
	})
	p = slices.Compact(p)
	if len(p) > MaxProblems {
		p = p[:MaxProblems]
	}
	return p
}

// Closest finds the known word that somebody who wrote word most likely
// meant, or "".
func Closest(word string, known []string) string {
	best, distance := "", 3
	if len(word) <= 3 {
		distance = 2
	}
	for _, k := range known {
		if d := editDistance(word, k); d < distance {
			best, distance = k, d
		}
	}
	return best
}

// editDistance counts the insertions, removals, replacements and swaps of
// neighbours between two words (optimal string alignment).
func editDistance(a, b string) int {
	rows := make([][]int, len(a)+1)
	for i := range rows {
		rows[i] = make([]int, len(b)+1)
		rows[i][0] = i
	}
	for j := range rows[0] {
		rows[0][j] = j
	}
	for i := 1; i <= len(a); i++ {
		for j := 1; j <= len(b); j++ {
			cost := 1
			if a[i-1] == b[j-1] {
				cost = 0
			}
			rows[i][j] = min(rows[i-1][j]+1, rows[i][j-1]+1, rows[i-1][j-1]+cost)
			if i > 1 && j > 1 && a[i-1] == b[j-2] && a[i-2] == b[j-1] {
				rows[i][j] = min(rows[i][j], rows[i-2][j-2]+1)
			}
		}
	}
	return rows[len(a)][len(b)]
}

// DidYouMean is the advice for an unknown word among known ones.
func DidYouMean(word string, known []string) string {
	if k := Closest(word, known); k != "" {
		return fmt.Sprintf("did you mean %q?", k)
	}
	if len(known) == 0 {
		return "there are none here"
	}
	return "known here: " + strings.Join(known, ", ")
}
