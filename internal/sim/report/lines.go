package report

import (
	"fmt"
	"math"
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

// timelines draws the number of running jobs over time at each point (paper 3, figure 7), or at the
// first points if there are too many: the means of the repetitions, with bars of their standard
// deviations.
func timelines(res *sim.Results) (Figure, error) {
	p := newChart(title(res), "running jobs")
	p.X.Label.Text = "time since the first job was submitted (s)"
	most := 0.0
	drawn := res.Rows[:min(len(res.Rows), mostTimelines)]
	for i, r := range drawn {
		means, bars := runningOver(r.Runs, i)
		line, err := plotter.NewLine(means)
		if err != nil {
			return Figure{}, fmt.Errorf("draw the running jobs: %w", err)
		}
		line.Color, line.Width = colours[i%len(colours)], vg.Points(1.5)
		p.Add(line)
		if len(r.Runs) > 1 {
			whiskers, err := plotter.NewYErrorBars(bars)
			if err != nil {
				return Figure{}, fmt.Errorf("draw how far the running jobs spread: %w", err)
			}
			whiskers.Color, whiskers.Width = line.Color, vg.Points(0.75)
			p.Add(whiskers)
		}
		if len(r.Levels) > 0 {
			p.key.Add(wrapped(strings.Join(r.Levels, ", "), longestKey), line)
		}
		for _, m := range means {
			most = max(most, m.Y)
		}
		for k, b := range bars.XYs {
			most = max(most, b.Y+bars.YErrors[k].High)
		}
	}
	p.Y.Max = most * headroom
	caption := res.Plan.Name + ": running jobs over time"
	if n := len(drawn[0].Runs); n > 1 {
		caption += fmt.Sprintf(", means and standard deviations of %d runs", n)
	}
	if len(drawn) < len(res.Rows) {
		caption += fmt.Sprintf(", of the first %d points of %d", len(drawn), len(res.Rows))
	}
	png, err := p.render()
	return Figure{Name: "running_jobs", Caption: caption, PNG: png}, err
}

const (
	instants = 240 // at which the running jobs of several runs are compared
	barEvery = 12  // instants that have a bar
)

// spread are points with bars.
type spread struct {
	plotter.XYs
	plotter.YErrors
}

// runningOver is how many jobs run over time, and how far that differs between runs. The bars of
// lines stand beside each other.
func runningOver(runs []sim.Run, of int) (means plotter.XYs, bars spread) {
	all, end := make([]plotter.XYs, len(runs)), 0.0
	for i, r := range runs {
		all[i] = stairs(r)
		end = max(end, all[i][len(all[i])-1].X)
	}
	if len(runs) == 1 {
		return all[0], spread{}
	}
	at := make([]int, len(runs)) // the last point of each run by then
	for k := range instants + 1 {
		x := end * float64(k) / instants
		var sum, squares float64
		for i, points := range all {
			for at[i]+1 < len(points) && points[at[i]+1].X <= x {
				at[i]++
			}
			sum += points[at[i]].Y
			squares += points[at[i]].Y * points[at[i]].Y
		}
		n := float64(len(runs))
		mean := sum / n
		means = append(means, plotter.XY{X: x, Y: mean})
		if k%barEvery == (3*of)%barEvery {
			sd := math.Sqrt(max(0, (squares-n*mean*mean)/(n-1)))
			bars.XYs = append(bars.XYs, plotter.XY{X: x, Y: mean})
			bars.YErrors = append(bars.YErrors, struct{ Low, High float64 }{min(sd, mean), sd})
		}
	}
	return means, bars
}

func stairs(r sim.Run) plotter.XYs {
	points := plotter.XYs{{X: 0, Y: 0}}
	for _, s := range r.Timeline {
		x := (s.At - r.Submitted).Seconds()
		points = append(points, plotter.XY{X: x, Y: points[len(points)-1].Y}, plotter.XY{X: x, Y: float64(s.Running)})
	}
	return points
}
