package sim

import (
	"fmt"
	"image/color"
	"math"
	"slices"
	"strconv"
	"strings"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/text"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
)

// Figure is a picture of results.
type Figure struct {
	Name    string // of its file, without suffix
	Caption string
	PNG     []byte
}

// pictured are the metrics that every report shows, with the axis of each.
var pictured = []struct{ metric, label string }{
	{"turnaround_s", "turnaround (s)"},
	{"stage_in_s", "time of a job reading from storage (s)"},
	{"job_time_s", "time of a job, all attempts (s)"},
	{"hit_ratio", "cache hit ratio"},
	{"read_gb", "read from storage (GB)"},
	{"wide_gb", "read from other sites (GB)"},
	{"money", "price of the slots (units of money)"},
}

// Okabe and Ito's colours, which people see apart whatever their eyes.
var colours = []color.RGBA{
	{0, 114, 178, 255},
	{230, 159, 0, 255},
	{0, 158, 115, 255},
	{204, 121, 167, 255},
	{86, 180, 233, 255},
	{213, 94, 0, 255},
	{120, 120, 120, 255},
	{0, 0, 0, 255},
}

const (
	figureWidth  = 16 * vg.Centimeter
	figureHeight = 10 * vg.Centimeter
)

// Figures draws the results: bars with the standard deviation, or lines where
// the first axis is a range of numbers; and the running jobs over time, where
// the experiment kept them. A metric that is zero everywhere is left out.
func (res *Results) Figures() ([]Figure, error) {
	var figures []Figure
	for _, p := range pictured {
		if res.everZero(metricIndex(p.metric)) || len(res.Plan.Axes) == 0 {
			continue
		}
		f, err := res.compare(p.metric, p.label)
		if err != nil {
			return nil, err
		}
		figures = append(figures, f)
	}
	if len(res.Rows[0].Runs[0].Timeline) > 0 {
		f, err := res.timelines()
		if err != nil {
			return nil, err
		}
		figures = append(figures, f)
	}
	return figures, nil
}

func (res *Results) everZero(m int) bool {
	for _, r := range res.Rows {
		if r.Mean[m] != 0 {
			return false
		}
	}
	return true
}

// series are the rows that share all levels but that of the axis along which
// a figure is drawn.
type series struct {
	name string
	rows []*Row // in the order of that axis
}

// along returns the axis along which figures are drawn: the first that is a
// range of numbers, if there is one, else the first.
func (res *Results) along() int {
	for a := range res.Plan.Axes {
		if xs, _, isRange := numbers(res.levels(a)); isRange && len(xs) > 3 {
			return a
		}
	}
	return 0
}

// levels are those of an axis, in the order in which they come.
func (res *Results) levels(axis int) []string {
	var levels []string
	for _, r := range res.Rows {
		if !slices.Contains(levels, r.Levels[axis]) {
			levels = append(levels, r.Levels[axis])
		}
	}
	return levels
}

func (res *Results) series(along int) []series {
	at := map[string]int{}
	var all []series
	for i := range res.Rows {
		r := &res.Rows[i]
		name := strings.Join(slices.Delete(slices.Clone(r.Levels), along, along+1), ", ")
		k, known := at[name]
		if !known {
			k = len(all)
			at[name] = k
			all = append(all, series{name: name})
		}
		all[k].rows = append(all[k].rows, r)
	}
	return all
}

func (res *Results) compare(metric, label string) (Figure, error) {
	along := res.along()
	groups, all := res.levels(along), res.series(along)
	p := newChart(res.title(), label)
	p.X.Label.Text = strings.ReplaceAll(res.Plan.Axes[along], "_", " ")
	m := metricIndex(metric)
	xs, unit, isRange := numbers(groups)
	var err error
	if isRange && len(groups) > 3 {
		if unit != "" {
			p.X.Label.Text += " (" + unit + ")"
		}
		err = addLines(p, all, xs, m)
	} else {
		err = addBars(p, all, groups, m)
	}
	if err != nil {
		return Figure{}, fmt.Errorf("draw %s: %w", metric, err)
	}
	png, err := p.render()
	return Figure{Name: metric, Caption: res.Plan.Name + ": " + label, PNG: png}, err
}

// numbers are the levels as numbers, in the unit of the last one, if all are.
func numbers(levels []string) (xs []float64, common string, ok bool) {
	_, common, _ = cutUnit(levels[len(levels)-1])
	for _, l := range levels {
		number, unit, hasUnit := cutUnit(l)
		x, err := strconv.ParseFloat(number, 64)
		if err != nil || !hasUnit {
			return nil, "", false
		}
		xs = append(xs, x*sizeUnits[unit]/sizeUnits[common])
	}
	return xs, common, true
}

// longestTitle is how many characters fit into a line over a figure.
const longestTitle = 75

// title is what the experiment is about, in lines that fit and are about as long
// as each other.
func (res *Results) title() string {
	about := strings.TrimSuffix(res.Plan.About, ".")
	lines := len(about)/longestTitle + 1
	return wrapped(about, min(longestTitle, len(about)/lines+10))
}

// cutUnit splits a level such as 0.5 or 10GB.
func cutUnit(level string) (number, unit string, ok bool) {
	cut := strings.LastIndexAny(level, "0123456789.") + 1
	_, ok = sizeUnits[level[cut:]]
	return level[:cut], level[cut:], ok
}

func newChart(title, y string) *chart {
	p := &chart{Plot: plot.New(), key: plot.NewLegend()}
	for _, style := range []*text.Style{
		&p.Title.TextStyle, &p.X.Label.TextStyle, &p.Y.Label.TextStyle,
		&p.X.Tick.Label, &p.Y.Tick.Label, &p.key.TextStyle,
	} {
		style.Font.Variant = "Sans"
	}
	p.Title.Text = title
	p.Title.TextStyle.Font.Size = 11
	p.Title.Padding = 3 * vg.Millimeter
	p.Y.Label.Text = y
	p.Y.Min = 0
	p.Y.Tick.Marker, p.X.Tick.Marker = ticks{}, ticks{}
	p.key.TextStyle.Font.Size = 10
	p.key.Top, p.key.Left = true, true
	p.key.Padding = vg.Millimeter
	p.key.ThumbnailWidth = 7 * vg.Millimeter
	grid := plotter.NewGrid()
	grid.Vertical.Width = 0
	grid.Horizontal.Color = color.Gray{225}
	p.Add(grid)
	return p
}

func addBars(p *chart, all []series, groups []string, m int) error {
	width := min(10*vg.Centimeter/vg.Length(len(groups)*(len(all)+1)), 1.5*vg.Centimeter)
	top := 0.0
	for i, s := range all {
		offset := width * vg.Length(float64(i)-float64(len(all)-1)/2)
		values := make(plotter.Values, len(s.rows))
		for k, r := range s.rows {
			values[k] = r.Mean[m]
			top = max(top, r.Mean[m]+r.SD[m])
		}
		bars, err := plotter.NewBarChart(values, width)
		if err != nil {
			return err
		}
		bars.Color, bars.Offset, bars.LineStyle.Width = colours[i%len(colours)], offset, 0
		p.Add(bars, &whiskers{s.rows, m, offset})
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

// headroom is left over what is drawn, as a part of it.
const headroom = 1.08

// whiskers draws the standard deviation over bars, moved sideways as they are.
type whiskers struct {
	rows   []*Row
	metric int
	offset vg.Length
}

func (w *whiskers) Plot(c draw.Canvas, p *plot.Plot) {
	tx, ty := p.Transforms(&c)
	line := draw.LineStyle{Color: color.Gray{60}, Width: vg.Points(0.8)}
	for i, r := range w.rows {
		if r.SD[w.metric] == 0 {
			continue
		}
		x := tx(float64(i)) + w.offset
		low, high := ty(max(r.Mean[w.metric]-r.SD[w.metric], 0)), ty(r.Mean[w.metric]+r.SD[w.metric])
		cap := vg.Points(3)
		c.StrokeLine2(line, x, low, x, high)
		c.StrokeLine2(line, x-cap, low, x+cap, low)
		c.StrokeLine2(line, x-cap, high, x+cap, high)
	}
}

func addLines(p *chart, all []series, xs []float64, m int) error {
	top := 0.0
	for i, s := range all {
		points := make(plotter.XYs, len(s.rows))
		for k, r := range s.rows {
			points[k] = plotter.XY{X: xs[k], Y: r.Mean[m]}
			top = max(top, r.Mean[m]+r.SD[m])
		}
		line, dots, err := plotter.NewLinePoints(points)
		if err != nil {
			return err
		}
		distinguish(line, dots, i, len(all))
		p.Add(line, dots)
		if s.name != "" {
			p.key.Add(wrapped(s.name, longestKey), line, dots)
		}
	}
	p.Y.Max = top * headroom
	return nil
}

// timelines draws the number of running jobs over time, of the first
// repetition at each point (paper 3, figure 7).
func (res *Results) timelines() (Figure, error) {
	p := newChart(res.title(), "running jobs")
	p.X.Label.Text = "time since the first job was submitted (s)"
	most := 0
	for i, r := range res.Rows {
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
	png, err := p.render()
	return Figure{Name: "running_jobs", Caption: res.Plan.Name + ": running jobs over time, one run each", PNG: png}, err
}

func stairs(r Run) (*plotter.Line, error) {
	points := plotter.XYs{{X: 0, Y: 0}}
	for _, s := range r.Timeline {
		x := (s.At - r.Submitted).Seconds()
		points = append(points, plotter.XY{X: x, Y: points[len(points)-1].Y}, plotter.XY{X: x, Y: float64(s.Running)})
	}
	return plotter.NewLine(points)
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
