package report

import (
	"image/color"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"

	"fairway/internal/sim"
)

func addBars(p *chart, all []series, groups []string, metric string) error {
	width := min(10*vg.Centimeter/vg.Length(len(groups)*(len(all)+1)), 1.5*vg.Centimeter)
	top := 0.0
	for i, s := range all {
		offset := width * vg.Length(float64(i)-float64(len(all)-1)/2)
		values, places := make(plotter.Values, len(s.rows)), make([]float64, len(s.rows))
		for k, r := range s.rows {
			mean, sd := r.Of(metric)
			values[k], places[k] = mean, float64(k)
			top = max(top, mean+sd)
		}
		bars, err := plotter.NewBarChart(values, width)
		if err != nil {
			return err
		}
		bars.Color, bars.Offset, bars.LineStyle.Width = colours[i%len(colours)], offset, 0
		p.Add(bars, &whiskers{rows: s.rows, metric: metric, xs: places, offset: offset})
		if s.name != "" {
			p.key.Add(wrapped(s.name, longestKey), bars)
		}
	}
	p.NominalX(wrappedAll(groups, max(acrossGroups/len(groups), 1))...)
	p.X.Min, p.X.Max = -0.5, float64(len(groups))-0.5
	p.Y.Max = top * headroom
	return nil
}

// acrossGroups is how many characters fit below all bars together.
const acrossGroups = 60

// whiskers draws the standard deviation over bars, moved sideways as they are,
// or over the points of a line.
type whiskers struct {
	rows   []*sim.Row
	metric string
	xs     []float64 // of the rows
	offset vg.Length
}

// Plot draws them.
func (w *whiskers) Plot(c draw.Canvas, p *plot.Plot) {
	tx, ty := p.Transforms(&c)
	line := draw.LineStyle{Color: color.Gray{60}, Width: vg.Points(0.8)}
	for i, r := range w.rows {
		mean, sd := r.Of(w.metric)
		if sd == 0 {
			continue
		}
		x := tx(w.xs[i]) + w.offset
		low, high := ty(max(mean-sd, 0)), ty(mean+sd)
		cap := vg.Points(3)
		c.StrokeLine2(line, x, low, x, high)
		c.StrokeLine2(line, x-cap, low, x+cap, low)
		c.StrokeLine2(line, x-cap, high, x+cap, high)
	}
}
