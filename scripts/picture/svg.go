package main

import (
	"fmt"
	"html"
	"strings"
)

// Sizes in units of the picture. Each run of characters is given its width, so
// that columns stand below each other in any font.
const (
	fontSize   = 14
	cellWidth  = 8.4
	lineHeight = 19
	margin     = 16
	titleBar   = 30
)

// svg draws a window with the command, what the command drew in the middle of
// its run if it drew anything, and what it printed after that.
func svg(command string, columns int, frames [][][]cell, end [][]cell) string {
	lines := [][]cell{text("$ "+command, "1")}
	if len(frames) > 0 {
		lines = append(lines, frames[len(frames)/2]...)
		lines = append(lines, text("⋮", "2"))
		end = end[min(len(frames[len(frames)-1]), len(end)):]
	}
	lines = append(lines, end...)

	width := 2*margin + cellWidth*float64(columns)
	height := titleBar + margin + lineHeight*len(lines)
	var out strings.Builder
	fmt.Fprintf(&out, `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %.0f %d" role="img">
<title>%s</title>
<style>
text { font: %dpx ui-monospace, "DejaVu Sans Mono", Menlo, Consolas, monospace; fill: #d8dee9; white-space: pre }
.bold { font-weight: bold; fill: #ffffff }
.dim { fill: #8b95a5 }
.green { fill: #8fce73 }
.yellow { fill: #e5c463 }
.red { fill: #f07178 }
.cyan { fill: #6cc7d9 }
.empty { fill: #343b47 }
</style>
<rect width="100%%" height="100%%" rx="8" fill="#1e232b"/>
<circle cx="18" cy="16" r="5" fill="#4b5563"/><circle cx="36" cy="16" r="5" fill="#4b5563"/><circle cx="54" cy="16" r="5" fill="#4b5563"/>
`, width, height, html.EscapeString(command), fontSize)
	for i, line := range lines {
		drawLine(&out, line, titleBar+lineHeight*(i+1)-5)
	}
	out.WriteString("</svg>\n")
	return out.String()
}

func text(words, style string) []cell {
	var line []cell
	for _, character := range words {
		line = append(line, cell{character, style})
	}
	return line
}

// drawLine draws characters of one look together, and bars as rectangles: fonts
// leave gaps between blocks.
func drawLine(out *strings.Builder, line []cell, baseline int) {
	for from := 0; from < len(line); {
		to := from
		for to < len(line) && alike(line[from], line[to]) {
			to++
		}
		look, filled := class(line[from].style), blocks[line[from].character]
		if line[from].character == '░' {
			look = ` class="empty"`
		}
		switch words := string(characters(line[from:to])); {
		case filled > 0:
			fmt.Fprintf(out, `<rect x="%.1f" y="%d" width="%.1f" height="11"%s/>`+"\n",
				left(from), baseline-10, cellWidth*filled*float64(to-from), look)
		case strings.TrimSpace(words) != "":
			fmt.Fprintf(out, `<text x="%.1f" y="%d" textLength="%.1f"%s>%s</text>`+"\n",
				left(from), baseline, cellWidth*float64(to-from), look, html.EscapeString(words))
		}
		from = to
	}
}

func left(column int) float64 { return margin + cellWidth*float64(column) }

// blocks are the characters of bars, and how much of a cell each fills.
var blocks = map[rune]float64{
	'█': 1, '▉': 7. / 8, '▊': 6. / 8, '▋': 5. / 8, '▌': 4. / 8, '▍': 3. / 8, '▎': 2. / 8, '▏': 1. / 8, '░': 1,
}

// alike reports whether two characters are drawn together: the letters of
// a word are, and equal blocks.
func alike(a, b cell) bool {
	if blocks[a.character] > 0 || blocks[b.character] > 0 {
		return a == b
	}
	return a.style == b.style && (a.character == ' ') == (b.character == ' ')
}

func characters(line []cell) []rune {
	var all []rune
	for _, c := range line {
		all = append(all, c.character)
	}
	return all
}

var classes = map[string]string{"1": "bold", "2": "dim", "31": "red", "32": "green", "33": "yellow", "36": "cyan"}

func class(style string) string {
	if name := classes[style]; name != "" {
		return ` class="` + name + `"`
	}
	return ""
}
