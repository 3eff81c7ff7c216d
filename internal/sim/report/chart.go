package report

import (
	"bytes"
	"fmt"
	"math"
	"strconv"
	"strings"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
	"gonum.org/v1/plot/vg/vgimg"
)

// chart is a plot whose key stands to its right, where it hides nothing.
type chart struct {
	*plot.Plot
	key plot.Legend
}

// longestKey is how many characters fit into a line of the key.
const longestKey = 20

func (p *chart) render() ([]byte, error) {
	const margin = 3 * vg.Millimeter
	canvas := vgimg.NewWith(vgimg.UseWH(figureWidth, figureHeight), vgimg.UseDPI(144))
	all := draw.Crop(draw.New(canvas), margin, -2*margin, margin, -margin)
	key := p.key.Rectangle(all)
	width := key.Size().X
	if width > 0 {
		width += 2 * margin
	}
	p.key.Draw(draw.Crop(all, all.Size().X-width+2*margin, margin, 0, -4*margin))
	p.Draw(draw.Crop(all, 0, -width, 0, 0))
	var b bytes.Buffer
	if _, err := (vgimg.PngCanvas{Canvas: canvas}).WriteTo(&b); err != nil {
		return nil, fmt.Errorf("draw a figure: %w", err)
	}
	return b.Bytes(), nil
}

var (
	glyphs = []draw.GlyphDrawer{draw.CircleGlyph{}, draw.SquareGlyph{}, draw.TriangleGlyph{}, draw.CrossGlyph{}}
	dashes = [][]vg.Length{nil, {6, 3}, {2, 2}}
)

// distinguish has lines that lie upon each other seen all the same: each is
// narrower than those below it, and has dots and dashes of its own.
func distinguish(line *plotter.Line, dots *plotter.Scatter, i, of int) {
	line.Color, dots.Color = colours[i%len(colours)], colours[i%len(colours)]
	line.Width = vg.Points(1.2 + 0.5*float64(of-1-i))
	if i > 0 {
		line.Dashes = dashes[i%len(dashes)]
	}
	dots.Shape = glyphs[i%len(glyphs)]
}

// wrapped breaks a text into lines of at most so many characters, between words.
func wrapped(text string, limit int) string {
	var lines []string
	for _, word := range strings.Fields(text) {
		last := len(lines) - 1
		if last < 0 || len(lines[last])+1+len(word) > limit {
			lines = append(lines, word)
			continue
		}
		lines[last] += " " + word
	}
	return strings.Join(lines, "\n")
}

func wrappedAll(texts []string, limit int) []string {
	lines := make([]string, len(texts))
	for i, text := range texts {
		lines[i] = wrapped(text, limit)
	}
	return lines
}

// ticks marks about six round numbers.
type ticks struct{}

// Ticks returns the marks between two values.
func (ticks) Ticks(low, high float64) []plot.Tick {
	if !(high > low) {
		return []plot.Tick{{Value: low, Label: strconv.FormatFloat(low, 'g', 4, 64)}}
	}
	step := math.Pow(10, math.Floor(math.Log10((high-low)/5)))
	for _, factor := range []float64{1, 2, 2.5, 5, 10} {
		if (high-low)/(step*factor) <= 7 {
			step *= factor
			break
		}
	}
	var marks []plot.Tick
	for i := math.Ceil(low / step); i*step <= high; i++ {
		marks = append(marks, plot.Tick{Value: i * step, Label: strconv.FormatFloat(i*step, 'g', 6, 64)})
	}
	return marks
}
