package sim

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
)

//go:embed report.html
var reportFiles embed.FS

var reportTemplate = template.Must(template.New("report.html").Funcs(template.FuncMap{
	"join":   strings.Join,
	"number": func(v float64) string { return fmt.Sprintf("%.4g", v) },
	"picture": func(png []byte) template.URL {
		return template.URL("data:image/png;base64," + base64.StdEncoding.EncodeToString(png))
	},
}).ParseFS(reportFiles, "report.html"))

// Chapter is one experiment in a report.
type Chapter struct {
	Results *Results
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

// Shown are the metrics of the table in a report.
func (c Chapter) Shown() []string { return Metrics }

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
	return writeFile(filepath.Join(folder, "report.html"), func(w io.Writer) error { return Report(w, chapters) })
}

// Report writes one HTML page with the figures, the tables and the
// assumptions of all chapters. It needs nothing from elsewhere.
func Report(w io.Writer, chapters []Chapter) error {
	if err := reportTemplate.Execute(w, chapters); err != nil {
		return fmt.Errorf("write the report: %w", err)
	}
	return nil
}

func (c *Chapter) write(folder string) error {
	if err := os.MkdirAll(folder, 0o755); err != nil {
		return fmt.Errorf("make the folder for the results: %w", err)
	}
	if err := writeFile(filepath.Join(folder, "runs.csv"), c.Results.WriteCSV); err != nil {
		return err
	}
	if err := writeFile(filepath.Join(folder, "results.json"), c.Results.WriteJSON); err != nil {
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
