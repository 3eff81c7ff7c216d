package screen

import (
	"strings"
	"testing"
	"unicode"

	"pgregory.net/rapid"
)

// A file or a job could otherwise clear the screen, retitle the window, or have
// the terminal type for the person who reads of it.
func TestForeignTextDoesNotSteerTheTerminal(t *testing.T) {
	for text, want := range map[string]string{
		"plain, é ø\tand\n":                           "plain, é ø\tand\n",
		"\x1b[31mred\x1b[0m \x1b[1;38;5;9mbold\x1b[m": "\x1b[31mred\x1b[0m \x1b[1;38;5;9mbold\x1b[m",
		"\x1b[2Jgone":                                 `\x1b[2Jgone`,
		"\x1b[8mhidden":                               `\x1b[8mhidden`,
		"\x1b[08mhidden":                              `\x1b[08mhidden`,
		"\x1b]0;title\a":                              `\x1b]0;title\x07`,
		"10 %\r20 %\r\n":                              "10 %\n20 %\n",
		"\x9b2J":                                      `\x9b2J`,
		"\u009b2J":                                    `\xc2\x9b2J`,
		"caf\xe9":                                     `caf\xe9`,
		"\ufffd":                                      "\ufffd",
		"a\u202egnp.exe":                              `a\xe2\x80\xaegnp.exe`,
		"\x7f\x00":                                    `\x7f\x00`,
	} {
		if got := shown(text); got != want {
			t.Errorf("%q appears as %q, want %q", text, got, want)
		}
	}
}

func TestNothingIllegiblePasses(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		text := string(rapid.SliceOf(rapid.SampledFrom([]byte("\x1b[]m08;1JaA\r\n\t\a\x9b\xc2\x80\xff"))).Draw(t, "text"))
		got := shown(text)
		for rest := got; rest != ""; {
			if colour := colours.FindString(rest); colour != "" {
				rest = rest[len(colour):]
				continue
			}
			if rest[0] != '\n' && rest[0] != '\t' && rest[0] < ' ' {
				t.Fatalf("%q passes in %q", rest[0], got)
			}
			rest = rest[1:]
		}
		if again := shown(got); again != got {
			t.Fatalf("%q appears as %q, and that as %q", text, got, again)
		}
		line := OneLine(text)
		if strings.IndexFunc(line, unicode.IsControl) >= 0 {
			t.Fatalf("%q as one line is %q", text, line)
		}
	})
}
