package storage

import (
	"strings"
	"testing"
)

func TestMatches(t *testing.T) {
	for pattern, names := range map[string]string{
		"a*.fq":    "a.fq abc.fq a*.fq !b.fq !a/b.fq !afq",
		"*":        "x .x !x/y",
		"a/*/b*c":  "a/x/bc a//bc a/x/bbcc !a/x/y/bc !a/x/b/c",
		"*.*.gz":   "a.b.gz ..gz !a.gz !a/b.c.gz",
		"plain":    "plain !plain2",
		"p/*x*x*y": "p/xxy p/axbxcy !p/xy !p/x/xy",
	} {
		for name := range strings.FieldsSeq(names) {
			bare, not := strings.CutPrefix(name, "!")
			if Matches(pattern, bare) == not {
				t.Errorf("%s, %s: %v", pattern, bare, !not)
			}
		}
	}
}
