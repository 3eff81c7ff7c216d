package report

import (
	"fmt"
	"strings"

	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/vg"

	"fairway/internal/sim"
)

func addLines(p *chart, all []series, xs []float64, metric string) error {
	top := 0.0
	for i, s := range all {
		points := make(plotter.XYs, len(s.rows))
		for k, r := range s.rows {
			mean, sd := r.Of(metric)
			points[k] = plotter.XY{X: xs[k], Y: mean}
			top = max(top, mean+sd)
		}
		line, dots, err := plotter.NewLinePoints(points)
		if err != nil {
			return err
		}
		distinguish(line, dots, i, len(all))
		p.Add(line, dots, &whiskers{rows: s.rows, metric: metric, xs: xs})
		if s.name != "" {
			p.key.Add(wrapped(s.name, longestKey), line, dots)
		}
	}
	p.Y.Max = top * headroom
	return nil
}

// mostTimelines is how many lines can be told from each other where they cross
// again and again: one of each colour.
var mostTimelines = len(colours)

// timelines draws the number of running jobs over time, of the first
// repetition at each point (paper 3, figure 7), or of the first points if there
// are too many.
func timelines(res *sim.Results) (Figure, error) {
	p := newChart(title(res), "running jobs")
	p.X.Label.Text = "time since the first job was submitted (s)"
	most := 0
	drawn := res.Rows[:min(len(res.Rows), mostTimelines)]
	for i, r := range drawn {
		line, err := stairs(r.Runs[0])
		if err != nil {
			return Figure{}, fmt.Errorf("draw the running jobs: %w", err)
		}
		line.Color, line.Width = colours[i%len(colours)], vg.Points(1.5)
		p.Add(line)
		if len(r.Levels) > 0 {
			p.key.Add(wrapped(strings.Join(r.Levels, ", "), longestKey), line)
		}
		for _, s := range r.Runs[0].Timeline {
			most = max(most, s.Running)
		}
	}
	p.Y.Max = float64(most) * headroom
	caption := res.Plan.Name + ": running jobs over time, one run each"
	if len(drawn) < len(res.Rows) {
		caption += fmt.Sprintf(", of the first %d points of %d", len(drawn), len(res.Rows))
	}
	png, err := p.render()
	return Figure{Name: "running_jobs", Caption: caption, PNG: png}, err
}

func stairs(r sim.Run) (*plotter.Line, error) {
	points := plotter.XYs{{X: 0, Y: 0}}
	for _, s := range r.Timeline {
		x := (s.At - r.Submitted).Seconds()
		points = append(points, plotter.XY{X: x, Y: points[len(points)-1].Y}, plotter.XY{X: x, Y: float64(s.Running)})
	}
	return plotter.NewLine(points)
}
