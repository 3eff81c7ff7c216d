// Package report writes the results of a simulation for people and for other
// programs: tables as CSV and JSON, figures as PNG, and one HTML page with all
// of it. The same results always give the same bytes. The page needs nothing
// from elsewhere, and lists every assumption of its experiments with the reason.
package report

import (
	"embed"
	"encoding/base64"
	"fmt"
	"html/template"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"

	"fairway/internal/sim"
)

//go:embed report.html
var reportFiles embed.FS

// reportTemplate parses the page when one is made first, and not in each program that could make one.
var reportTemplate = sync.OnceValue(func() *template.Template {
	return template.Must(template.New("report.html").Funcs(template.FuncMap{
		"join":    strings.Join,
		"heading": heading,
		"cell":    valueCell,
		"picture": func(png []byte) template.URL {
			return template.URL("data:image/png;base64," + base64.StdEncoding.EncodeToString(png))
		},
	}).ParseFS(reportFiles, "report.html"))
})

// Chapter is one experiment in a report.
type Chapter struct {
	Results *sim.Results
	Figures []Figure
	Claims  []Claim
}

// Assumptions are the paths of what the experiment assumes and why, sorted.
func (c Chapter) Assumptions() [][2]string {
	reasons := c.Results.Plan.Points[0].Experiment.Because
	var list [][2]string
	for _, path := range slices.Sorted(maps.Keys(reasons)) {
		list = append(list, [2]string{path, reasons[path]})
	}
	return list
}

// Shown are the metrics of the table in a report: those that are not zero
// everywhere.
func (c Chapter) Shown() []string {
	var shown []string
	for _, m := range sim.Metrics {
		if !everZero(c.Results, m) {
			shown = append(shown, m)
		}
	}
	return shown
}

// Repeated reports whether any point was run more than once.
func (c Chapter) Repeated() bool {
	return slices.ContainsFunc(c.Results.Rows, func(r sim.Row) bool { return len(r.Runs) > 1 })
}

// Doubted reports whether a claim did not hold.
func (c Chapter) Doubted() bool {
	return slices.ContainsFunc(c.Claims, func(c Claim) bool { return !c.Held })
}

// heading is the name of a metric with its unit in brackets.
func heading(metric string) string {
	for suffix, unit := range map[string]string{"_s": " (s)", "_gb": " (GB)"} {
		if name, has := strings.CutSuffix(metric, suffix); has {
			return strings.ReplaceAll(name, "_", " ") + unit
		}
	}
	return strings.ReplaceAll(metric, "_", " ")
}

// Text is the mean of a metric with its standard deviation, for a person.
func Text(r *sim.Row, metric string) string {
	mean, sd := r.Of(metric)
	if len(r.Runs) < 2 {
		return plainly(mean)
	}
	return plainly(mean) + " ± " + deviation(sd)
}

// valueCell is the mean of a metric, with its standard deviation where there is
// one.
func valueCell(r sim.Row, metric string) template.HTML {
	mean, sd := r.Of(metric)
	text := plainly(mean)
	if len(r.Runs) > 1 {
		text += `<span class="sd">± ` + deviation(sd) + `</span>`
	}
	return template.HTML(text)
}

// deviation writes a standard deviation with two digits.
func deviation(v float64) string {
	if v >= 99.5 && v < 1e9 {
		return fmt.Sprintf("%.0f", v)
	}
	return fmt.Sprintf("%.2g", v)
}

// plainly writes a mean with four digits, and without an exponent as long as a
// person would read it so.
func plainly(v float64) string {
	if v >= 1e4 && v < 1e9 {
		return fmt.Sprintf("%.0f", v)
	}
	return fmt.Sprintf("%.4g", v)
}

// Write puts the results of an experiment into a folder, which it makes:
// runs.csv, results.json, a PNG for each figure and report.html.
func Write(folder string, chapters []Chapter) error {
	for _, c := range chapters {
		at := folder
		if len(chapters) > 1 {
			at = filepath.Join(folder, c.Results.Plan.Name)
		}
		if err := c.write(at); err != nil {
			return err
		}
	}
	return writeFile(filepath.Join(folder, "report.html"), func(w io.Writer) error { return HTML(w, chapters) })
}

// HTML writes one HTML page with the figures, the tables and the
// assumptions of all chapters. It needs nothing from elsewhere.
func HTML(w io.Writer, chapters []Chapter) error {
	if err := reportTemplate().Execute(w, chapters); err != nil {
		return fmt.Errorf("write the report: %w", err)
	}
	return nil
}

func (c *Chapter) write(folder string) error {
	if err := os.MkdirAll(folder, 0o755); err != nil {
		return fmt.Errorf("make the folder for the results: %w", err)
	}
	if err := writeFile(
		filepath.Join(folder, "runs.csv"), func(w io.Writer) error { return writeCSV(c.Results, w) },
	); err != nil {
		return err
	}
	if err := writeFile(
		filepath.Join(folder, "results.json"), func(w io.Writer) error { return writeJSON(c.Results, w) },
	); err != nil {
		return err
	}
	for _, f := range c.Figures {
		if err := os.WriteFile(filepath.Join(folder, f.Name+".png"), f.PNG, 0o644); err != nil {
			return fmt.Errorf("write a figure: %w", err)
		}
	}
	return nil
}

func writeFile(name string, write func(io.Writer) error) error {
	f, err := os.Create(name)
	if err != nil {
		return fmt.Errorf("write the results: %w", err)
	}
	if err := write(f); err != nil {
		f.Close()
		return err
	}
	if err := f.Close(); err != nil {
		return fmt.Errorf("write the results: %w", err)
	}
	return nil
}

// Claim is a statement of paper 3 about one of its figures, checked on
// simulated results.
type Claim struct {
	ID       string `json:"id"`
	Figure   string `json:"figure"`
	Claim    string `json:"claim"`
	Held     bool   `json:"held"`
	Value    string `json:"value"`    // what was found
	Expected string `json:"expected"` // what makes the claim hold
	Reason   string `json:"reason"`   // why it does not hold, as far as it is known
	Chance   string `json:"chance"`   // which of the differences that decide it chance alone could make; empty: none
}
