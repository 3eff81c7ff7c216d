package logical

import (
	"strings"
	"testing"
)

func TestWhyNot(t *testing.T) {
	for name, why := range map[string]string{
		"a/b.txt": "", "index/": "", "é x": "",
		"": "is empty", "/": "is empty", "/a": "starts with '/'", "a\nb": "contains a line break or a zero byte",
		"a\xff": "is not UTF-8",
		"a//b":  `has the part ""`, "a/../b": `has the part ".."`, "./a": `has the part "."`,
		strings.Repeat("ab/", MaxName/3) + "a": "", strings.Repeat("a", MaxName+1): "is longer than 1024 bytes",
		"a/" + strings.Repeat("b", 255): "", strings.Repeat("a", 256) +
			"/b": "has a part of 256 bytes, and a file can have 255",
	} {
		if got := WhyNot(name); got != why {
			t.Errorf("%.40q: %q, want %q", name, got, why)
		}
	}
}

func TestLongPart(t *testing.T) {
	long := strings.Repeat("a", MaxPart+1)
	for name, part := range map[string]string{"a/" + long[1:] + "/b": "", "a/" + long + "/b": long} {
		if got := LongPart(name); got != part {
			t.Errorf("%q: %q, want %q", name, got, part)
		}
	}
}

func TestMatches(t *testing.T) {
	for pattern, names := range map[string]string{
		"a*.fq":    "a.fq abc.fq a*.fq !b.fq !a/b.fq !afq",
		"*":        "x .x !x/y",
		"a/*/b*c":  "a/x/bc a//bc a/x/bbcc !a/x/y/bc !a/x/b/c",
		"*.*.gz":   "a.b.gz ..gz !a.gz !a/b.c.gz",
		"plain":    "plain !plain2",
		"p/*x*x*y": "p/xxy p/axbxcy !p/xy !p/x/xy",
		`\*/*.t`:   "*/a.t !x/a.t",
		`*\**`:     "* a*b !ab",
		`a\\*`:     `a\ a\b !ab !a*`,
		`a\`:       `a\ !a`,
	} {
		for name := range strings.FieldsSeq(names) {
			bare, not := strings.CutPrefix(name, "!")
			if Matches(pattern, bare) == not {
				t.Errorf("%s, %s: %v", pattern, bare, !not)
			}
		}
	}
}

func TestEscape(t *testing.T) {
	for _, name := range []string{"", "a", "*", `\`, `\*`, `a\`, `p*q/[x]\*`, "{y}/?"} {
		if p := Escape(name); !Matches(p, name) || Unescape(p) != name || Star(p) >= 0 || name != "" && Matches(p, name+"x") {
			t.Errorf("%q: %q", name, p)
		}
	}
	for pattern, folder := range map[string]string{"a/*": "a", "*": "", "a/b*/c": "a", `p\*q/*/f`: "p*q", `p\*q\\/x*/f`: `p*q\`, "a/b": "a"} {
		if got := Above(pattern); got != folder {
			t.Errorf("above %s: %q", pattern, got)
		}
	}
}
