package report

import (
	"fmt"
	"image/color"
	"slices"
	"strconv"
	"strings"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/text"
	"gonum.org/v1/plot/vg"

	"fairway/internal/quantity"
	"fairway/internal/sim"
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
func Figures(res *sim.Results) ([]Figure, error) {
	var figures []Figure
	for _, p := range pictured {
		if everZero(res, p.metric) || len(res.Plan.Axes) == 0 {
			continue
		}
		f, err := compare(res, p.metric, p.label)
		if err != nil {
			return nil, err
		}
		figures = append(figures, f)
	}
	if len(res.Rows[0].Runs[0].Timeline) > 0 {
		f, err := timelines(res)
		if err != nil {
			return nil, err
		}
		figures = append(figures, f)
	}
	return figures, nil
}

func everZero(res *sim.Results, metric string) bool {
	return !slices.ContainsFunc(res.Rows, func(r sim.Row) bool { return r.Value(metric) != 0 })
}

// series are the rows that share all levels but that of the axis along which
// a figure is drawn.
type series struct {
	name string
	rows []*sim.Row // in the order of that axis
}

// alongOf returns the axis along which figures are drawn: the first that is a
// range of numbers, if there is one, else the first.
func alongOf(res *sim.Results) int {
	for a := range res.Plan.Axes {
		if xs, _, isRange := numbers(levelsOf(res, a)); isRange && len(xs) > 3 {
			return a
		}
	}
	return 0
}

// levelsOf are those of an axis, in the order in which they come.
func levelsOf(res *sim.Results, axis int) []string {
	var levels []string
	for _, r := range res.Rows {
		if !slices.Contains(levels, r.Levels[axis]) {
			levels = append(levels, r.Levels[axis])
		}
	}
	return levels
}

func seriesOf(res *sim.Results, along int) []series {
	at := map[string]int{}
	var all []series
	for i := range res.Rows {
		r := &res.Rows[i]
		name := seriesName(res, r, along)
		k, ok := at[name]
		if !ok {
			k = len(all)
			at[name] = k
			all = append(all, series{name: name})
		}
		all[k].rows = append(all[k].rows, r)
	}
	return all
}

// seriesName names the levels of a row on all axes but one. A number alone
// says little, so it gets its axis before it.
func seriesName(res *sim.Results, r *sim.Row, along int) string {
	var names []string
	for a, level := range r.Levels {
		if a == along {
			continue
		}
		if _, _, isNumber := numbers([]string{level}); isNumber {
			level = strings.ReplaceAll(res.Plan.Axes[a], "_", " ") + " " + level
		}
		names = append(names, level)
	}
	return strings.Join(names, ", ")
}

func compare(res *sim.Results, metric, label string) (Figure, error) {
	along := alongOf(res)
	groups, all := levelsOf(res, along), seriesOf(res, along)
	p := newChart(title(res), label)
	p.X.Label.Text = strings.ReplaceAll(res.Plan.Axes[along], "_", " ")
	xs, unit, isRange := numbers(groups)
	var err error
	if isRange && len(groups) > 3 {
		if unit != "" {
			p.X.Label.Text += " (" + unit + ")"
		}
		err = addLines(p, all, xs, metric)
	} else {
		err = addBars(p, all, groups, metric)
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
		mine, _ := quantity.Unit(unit)
		shared, _ := quantity.Unit(common)
		xs = append(xs, x*mine/shared)
	}
	return xs, common, true
}

// longestTitle is how many characters fit into a line over a figure.
const longestTitle = 75

// title is what the experiment is about, in lines that fit and are about as long
// as each other.
func title(res *sim.Results) string {
	about := strings.TrimSuffix(res.Plan.About, ".")
	lines := len(about)/longestTitle + 1
	return wrapped(about, min(longestTitle, len(about)/lines+10))
}

// cutUnit splits a level such as 0.5 or 10GB.
func cutUnit(level string) (number, unit string, ok bool) {
	cut := strings.LastIndexAny(level, "0123456789.") + 1
	_, ok = quantity.Unit(level[cut:])
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

// headroom is left over what is drawn, as a part of it.
const headroom = 1.08
