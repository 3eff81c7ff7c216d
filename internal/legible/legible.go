// Package legible makes text of others fit to be shown: what a pilot, a job or a server says,
// and what files are called. Nothing in it can move the cursor of a terminal, show text in
// another order, or begin a line of its own in a log. Passive.
package legible

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

// Obeyed reports whether a terminal may obey a character other than a line break or a tab, or
// show text in another order because of it. Bytes that are no UTF-8 are among them
// (utf8.RuneError): some terminals take 0x9b for the start of a sequence.
func Obeyed(r rune) bool {
	switch {
	case r == '\n', r == '\t':
		return false
	case r == utf8.RuneError, unicode.IsControl(r), r == '\u2028', r == '\u2029':
		return true
	}
	return r >= 0x202a && r <= 0x202e || r >= 0x2066 && r <= 0x2069 // overrides of the direction
}

// Escape appends the bytes of what a terminal would obey as text, such as \x1b.
func Escape(to *strings.Builder, text string) {
	const digits = "0123456789abcdef"
	for _, b := range []byte(text) {
		to.WriteString(`\x`)
		to.WriteByte(digits[b>>4])
		to.WriteByte(digits[b&15])
	}
}

// IsLine reports whether text is one line that needs no escaping.
func IsLine(text string) bool {
	return strings.IndexFunc(text, func(r rune) bool { return r == '\n' || r == '\t' || Obeyed(r) }) < 0
}

// Line is text as one line of most bytes at most, and "..." where it was cut. Line breaks and
// tabs are spaces, and what a terminal would obey is escaped.
func Line(text string, most int) string {
	if len(text) <= most && IsLine(text) {
		return text
	}
	var line strings.Builder
	for text != "" {
		r, size := utf8.DecodeRuneInString(text)
		before := line.Len()
		switch {
		case r == '\n' || r == '\t' || r == '\r':
			line.WriteString(" "[:min(before, 1)])
			for len(text) > size && strings.IndexByte("\n\t\r", text[size]) >= 0 {
				size++
			}
		case Obeyed(r) && !(r == utf8.RuneError && size > 1): // the character itself is none
			Escape(&line, text[:size])
		default:
			line.WriteString(text[:size])
		}
		if line.Len() > most {
			return line.String()[:before] + "..."
		}
		text = text[size:]
	}
	return strings.TrimRight(line.String(), " ")
}
