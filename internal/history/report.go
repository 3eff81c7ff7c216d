package history

import (
	_ "embed"
	"fmt"
	"html/template"
	"io"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"fairway/internal/quantity"
)

//go:embed report.html
var reportText string

// reportPage is read when a report is written, and not whenever the program starts.
var reportPage = sync.OnceValue(func() *template.Template {
	return template.Must(template.New("report").Funcs(template.FuncMap{
		"bytes": quantity.Bytes, "span": func(d time.Duration) string { return quantity.Seconds(d.Seconds()) },
		"percent": func(part, all time.Duration) string {
			return fmt.Sprintf("%.0f", 100*float64(part)/float64(max(all, 1)))
		},
		"time": func(t time.Time) string { return t.UTC().Format("2006-01-02 15:04:05 UTC") },
	}).Parse(reportText))
})

// About is what a report tells beside the attempts.
type About struct {
	Version string // of Fairway
	Made    time.Time
	Results string
}

// rowsDrawn is the most pilots that the picture of a report shows, and columns into how many parts
// it divides the time.
const (
	rowsDrawn = 200
	columns   = 500
)

type reportStep struct {
	Step                      string
	Jobs, Done, Failed, Tries int
	Computing, Staging        time.Duration
	Read, Cached, Written     int64
	MaxRSS                    int64
}

// Mean is how long an attempt of the step computed.
func (s *reportStep) Mean() time.Duration { return s.Computing / time.Duration(max(s.Tries, 1)) }

type reportRow struct {
	Pilot, Host        string
	Y                  int
	Computing, Staging string // paths
}

// Report writes one page about a run that needs nothing else, as a supplement of a paper would have
// it: what was run, what set its time, what each step took, and what each pilot did when.
func (r *Run) Report(to io.Writer, about About) error {
	why := r.Explain()
	data := struct {
		*Run
		About
		Why    *Why
		Causes []Cause
		Steps  []*reportStep
		All    *reportStep
		Rows   []reportRow
		Height int
		More   int
		Failed []*Job
	}{Run: r, About: about, Why: why, Causes: Causes, Steps: r.steps(), All: &reportStep{}}
	for _, s := range data.Steps {
		data.All.add(s)
	}
	for i := range r.Jobs {
		if j := &r.Jobs[i]; j.State == "failed" {
			data.Failed = append(data.Failed, j)
		}
	}
	if why != nil {
		data.Rows, data.More = r.rows(why.Begin, why.End)
		data.Height = len(data.Rows) * rowHigh
	}
	return reportPage().Execute(to, data)
}

// rowHigh is the height of a row of the picture.
const rowHigh = 14

func (s *reportStep) add(o *reportStep) {
	s.Jobs, s.Done, s.Failed, s.Tries = s.Jobs+o.Jobs, s.Done+o.Done, s.Failed+o.Failed, s.Tries+o.Tries
	s.Computing, s.Staging = s.Computing+o.Computing, s.Staging+o.Staging
	s.Read, s.Cached, s.Written = s.Read+o.Read, s.Cached+o.Cached, s.Written+o.Written
	s.MaxRSS = max(s.MaxRSS, o.MaxRSS)
}

func (r *Run) steps() (list []*reportStep) {
	byName := map[string]*reportStep{}
	for i := range r.Jobs {
		j := &r.Jobs[i]
		s := byName[j.Step]
		if s == nil {
			s = &reportStep{Step: j.Step}
			byName[j.Step] = s
			list = append(list, s)
		}
		s.Jobs++
		switch j.State {
		case "done":
			s.Done++
		case "failed":
			s.Failed++
		}
		for k := range j.Attempts {
			a := &j.Attempts[k]
			s.Tries++
			s.Read, s.Cached, s.Written = s.Read+a.BytesRead, s.Cached+a.BytesCached, s.Written+a.BytesOut
			s.MaxRSS = max(s.MaxRSS, a.MaxRSS)
			if !a.Start.IsZero() {
				s.Computing += a.End.Sub(a.Start)
				s.Staging += a.Start.Sub(a.Begin()) + a.Ended().Sub(a.End)
			}
		}
	}
	return list
}

// rows draw what each pilot did, in columns of equal length.
func (r *Run) rows(begin, end time.Time) (rows []reportRow, more int) {
	pilots := r.attemptsByPilot()
	names := slices.Sorted(maps.Keys(pilots))
	if len(names) > rowsDrawn {
		names, more = names[:rowsDrawn], len(names)-rowsDrawn
	}
	width := max(end.Sub(begin)/columns, 1)
	for y, name := range names {
		var computing, staging [columns + 1]float64
		fill := func(bins *[columns + 1]float64, from, to time.Time) {
			for at := int(from.Sub(begin) / width); from.Before(to) && at <= columns; at++ {
				stop := begin.Add(time.Duration(at+1) * width)
				if stop.After(to) {
					stop = to
				}
				bins[at] += float64(stop.Sub(from)) / float64(width)
				from = stop
			}
		}
		for _, p := range pilots[name] {
			a := p.attempt
			if a.Start.IsZero() {
				fill(&staging, a.Begin(), a.Ended())
				continue
			}
			fill(&staging, a.Begin(), a.Start)
			fill(&computing, a.Start, a.End)
			fill(&staging, a.End, a.Ended())
		}
		most := 1.0
		for i := range computing {
			most = max(most, computing[i]) // files of others may be staged meanwhile
		}
		row := reportRow{Pilot: name, Host: pilots[name][0].attempt.Host, Y: y * rowHigh}
		var below, above strings.Builder
		for i := range computing {
			c := computing[i] / most * (rowHigh - 2)
			s := min(staging[i]/most*(rowHigh-2), rowHigh-2-c)
			base := float64(row.Y + rowHigh - 1)
			if c > 0 {
				fmt.Fprintf(&below, "M%d %.1fh1v-%.1fh-1z", i, base, c)
			}
			if s > 0 {
				fmt.Fprintf(&above, "M%d %.1fh1v-%.1fh-1z", i, base-c, s)
			}
		}
		row.Computing, row.Staging = below.String(), above.String()
		rows = append(rows, row)
	}
	return rows, more
}
