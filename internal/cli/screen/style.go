package screen

import (
	"io"
	"os"
	"strings"
)

type style struct {
	colour  bool
	unicode bool
}

// StyleOf is what the terminal behind w can show; nothing else can show colours.
func StyleOf(w io.Writer) style {
	_, _, terminal := TerminalSize(w)
	return style{
		colour:  terminal && os.Getenv("NO_COLOR") == "",
		unicode: speaksUTF8(),
	}
}

func speaksUTF8() bool {
	for _, name := range []string{"LC_ALL", "LC_CTYPE", "LANG"} {
		if value := os.Getenv(name); value != "" {
			value = strings.ToUpper(value)
			return strings.Contains(value, "UTF-8") || strings.Contains(value, "UTF8")
		}
	}
	return false
}

// Colours, as terminals know them.
const (
	Red    = "31"
	Green  = "32"
	Yellow = "33"
	Blue   = "34"
	Dim    = "2"
	Bold   = "1"
)

func (s style) Paint(colour, text string) string {
	if !s.colour || colour == "" || text == "" {
		return text
	}
	return "\x1b[" + colour + "m" + text + "\x1b[0m"
}
