package main

import (
	"fmt"
	"image/color"
	"time"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/vg"
)

// draw plots the distributions of the latencies side by side.
func draw(file string, results []measurement) error {
	p := plot.New()
	p.Title.Text = "Latency of /hello while the server draws pictures"
	p.X.Label.Text = "milliseconds"
	p.X.Scale = plot.LogScale{}
	p.X.Tick.Marker = plot.LogTicks{Prec: -1}
	p.Y.Label.Text = "share of requests answered within"
	p.Y.Min, p.Y.Max = 0, 1.2 // the legend stands above the curves
	p.Y.Tick.Marker = plot.ConstantTicks{
		{Value: 0, Label: "0"}, {Value: 0.5, Label: "0.5"}, {Value: 0.9, Label: "0.9"}, {Value: 1, Label: "1"},
	}
	p.Legend.Top, p.Legend.Left = true, true
	colors := []color.Color{color.RGBA{0xc0, 0x39, 0x2b, 0xff}, color.RGBA{0x1f, 0x77, 0x9b, 0xff}}
	for i, m := range results {
		line, err := plotter.NewLine(m.distribution())
		if err != nil {
			return err
		}
		line.Width, line.Color = vg.Points(2), colors[i%len(colors)]
		p.Add(line)
		p.Legend.Add(fmt.Sprintf("%s: half within %v", m.with, m.quantile(0.5).Round(10*time.Microsecond)), line)
	}
	p.Add(plotter.NewGrid())
	if err := p.Save(16*vg.Centimeter, 10*vg.Centimeter, file); err != nil {
		return fmt.Errorf("save plot: %w", err)
	}
	return nil
}

// distribution is the share of latencies up to each of 200 quantiles.
func (m measurement) distribution() plotter.XYs {
	const steps = 200
	xys := make(plotter.XYs, steps+1)
	for i := range xys {
		q := float64(i) / steps
		xys[i].X, xys[i].Y = float64(m.quantile(q))/float64(time.Millisecond), q
	}
	return xys
}
