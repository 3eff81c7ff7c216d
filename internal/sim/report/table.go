package report

import (
	"encoding/csv"
	"encoding/json"
	"fmt"
	"io"
	"strconv"

	"fairway/internal/sim"
)

// writeCSV writes one line for each run: the levels, the repetition, the
// seed and the metrics.
func writeCSV(res *sim.Results, out io.Writer) error {
	w := csv.NewWriter(out)
	header := append([]string{}, res.Plan.Axes...)
	if err := w.Write(append(append(header, "repetition", "seed"), sim.Metrics...)); err != nil {
		return fmt.Errorf("write the table: %w", err)
	}
	for _, row := range res.Rows {
		for rep, run := range row.Runs {
			line := append(append([]string{}, row.Levels...), strconv.Itoa(rep+1), strconv.FormatUint(run.Seed, 10))
			for _, v := range run.Metrics {
				line = append(line, strconv.FormatFloat(v, 'g', 10, 64))
			}
			if err := w.Write(line); err != nil {
				return fmt.Errorf("write the table: %w", err)
			}
		}
	}
	w.Flush()
	if err := w.Error(); err != nil {
		return fmt.Errorf("write the table: %w", err)
	}
	return nil
}

// resultJSON and rowJSON are what writeJSON prints.
type resultJSON struct {
	Experiment string    `json:"experiment"`
	About      string    `json:"about"`
	Axes       []string  `json:"axes"`
	Rows       []rowJSON `json:"rows"`
}

type rowJSON struct {
	Levels      map[string]string  `json:"levels"`
	Repetitions int                `json:"repetitions"`
	Mean        map[string]float64 `json:"mean"`
	SD          map[string]float64 `json:"sd"`
}

// JSON returns mean and standard deviation of every metric at every point,
// ready to be encoded.
func JSON(res *sim.Results) any {
	out := resultJSON{Experiment: res.Plan.Name, About: res.Plan.About, Axes: res.Plan.Axes, Rows: []rowJSON{}}
	for _, row := range res.Rows {
		r := rowJSON{
			Levels: map[string]string{}, Repetitions: len(row.Runs), Mean: map[string]float64{}, SD: map[string]float64{},
		}
		for i, a := range res.Plan.Axes {
			r.Levels[a] = row.Levels[i]
		}
		for i, m := range sim.Metrics {
			r.Mean[m], r.SD[m] = row.Mean[i], row.SD[i]
		}
		out.Rows = append(out.Rows, r)
	}
	return out
}

// writeJSON writes what JSON returns.
func writeJSON(res *sim.Results, out io.Writer) error {
	e := json.NewEncoder(out)
	e.SetIndent("", "  ")
	if err := e.Encode(JSON(res)); err != nil {
		return fmt.Errorf("write the results: %w", err)
	}
	return nil
}
