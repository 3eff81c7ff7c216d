package legible

import (
	"strings"
	"testing"
	"unicode/utf8"
)

func TestLine(t *testing.T) {
	for text, want := range map[string]string{
		"":                                "",
		"as it is":                        "as it is",
		"naïve 日本":                        "naïve 日本",
		"a\nb":                            "a b",
		"a\r\n\tb\n":                      "a b",
		"\x1b[2Jgone":                     `\x1b[2Jgone`,
		"\x9b31m":                         `\x9b31m`,
		"bell\a, null\x00":                `bell\x07, null\x00`,
		"\u202egnp.exe":                   `\xe2\x80\xaegnp.exe`,
		"one\u2028two":                    `one\xe2\x80\xa8two`,
		"\ufffd stays":                    "\ufffd stays",
		strings.Repeat("a", 21):           strings.Repeat("a", 20) + "...",
		strings.Repeat("a", 19) + "é":     strings.Repeat("a", 19) + "...",
		strings.Repeat("a", 19) + "\x1b]": strings.Repeat("a", 19) + "...",
	} {
		if got := Line(text, 20); got != want {
			t.Errorf("%q: got %q, want %q", text, got, want)
		}
	}
}

func FuzzLine(f *testing.F) {
	f.Add("a\nb\x1b", 3)
	f.Fuzz(func(t *testing.T, text string, most int) {
		most = max(0, min(most, 1000))
		got := Line(text, most)
		if len(got) > most+3 || !IsLine(strings.ReplaceAll(got, "\ufffd", "")) || !utf8.ValidString(got) {
			t.Fatalf("%q", got)
		}
	})
}
