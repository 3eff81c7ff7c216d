package sim

import (
	"math"
	"strconv"

	"gonum.org/v1/plot"
)

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
