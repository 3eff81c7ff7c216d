package main

import (
	"strings"
	"testing"
)

// What is drawn over does not show, however the stream is cut.
func TestTerminalShowsTheLastFrame(t *testing.T) {
	const stream = "\x1b[1mwords\x1b[0m  0:01\x1b[K\r\ncount  \x1b[32m██\x1b[0m--  1/2\x1b[K\r\n" +
		"\x1b[?25l\x1b[2A\r\x1b[1mwords\x1b[0m  0:2\x1b[K\r\ncount  \x1b[32m████\x1b[0m  2/2\x1b[K\r\n\x1b[Jdone\r\n"
	for cut := range len(stream) {
		screen := newTerminal(20)
		for _, part := range []string{stream[:cut], stream[cut:]} {
			if _, err := screen.Write([]byte(part)); err != nil {
				t.Fatal(err)
			}
		}
		if got, want := show(screen.lines()), "words  0:2\ncount  ████  2/2\ndone"; got != want {
			t.Fatalf("cut at %d: the screen shows\n%s\nwant\n%s", cut, got, want)
		}
		if len(screen.frames) != 1 || show(screen.frames[0]) != "words  0:01\ncount  ██--  1/2" {
			t.Fatalf("cut at %d: frames are %v", cut, screen.frames)
		}
		if style := screen.lines()[1][7].style; style != "32" {
			t.Fatalf("cut at %d: the bar has the style %q, want 32", cut, style)
		}
	}
}

func TestTerminalWrapsLongLines(t *testing.T) {
	screen := newTerminal(4)
	if _, err := screen.Write([]byte("abcdefgh\r\ni")); err != nil {
		t.Fatal(err)
	}
	if got, want := show(screen.lines()), "abcd\nefgh\ni"; got != want {
		t.Fatalf("the screen shows\n%s\nwant\n%s", got, want)
	}
}

func TestPictureEscapesText(t *testing.T) {
	picture := svg("a <b>", 20, nil, [][]cell{text("x & y", "")})
	for _, want := range []string{"<title>a &lt;b&gt;</title>", ">&amp;</text>"} {
		if !strings.Contains(picture, want) {
			t.Errorf("the picture lacks %q:\n%s", want, picture)
		}
	}
}

func show(lines [][]cell) string {
	var rows []string
	for _, line := range lines {
		rows = append(rows, strings.TrimRight(string(characters(line)), " "))
	}
	return strings.Join(rows, "\n")
}
