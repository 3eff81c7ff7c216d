package web

import (
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"

	"fairway/internal/quantity"
	"fairway/internal/server/api"
	"fairway/internal/server/state"
)

// chart is a picture of what pilots did when. Times are from 0 to chartWidth.
type chart struct {
	Rows  []chartRow
	Ticks []tick
	Exact bool // attempts are drawn one by one
}

type chartRow struct {
	Pilot, Host string
	Here        bool
	Height      int
	From, Width float64 // while the pilot was there
	Staging     string  // paths of what is together in bins
	Computing   string
	Boxes       []box
	Text        string // for who does not see it
}

type box struct {
	Kind          string // staging or computing, with failed
	X, Y, W, H    float64
	Title, Target string
}

type tick struct {
	X    float64
	Text string
	Last bool
}

const (
	chartWidth   = 1000.0
	rowHeight    = 22
	lanesHeight  = 14  // of an attempt where several run at a time
	chartColumns = 128 // in which bins are drawn
	boxesDrawn   = 300 // attempts on a page that are drawn one by one
	ticksDrawn   = 5
)

// scale turns times into places.
type scale struct {
	begin time.Time
	span  time.Duration
}

func (s scale) at(t time.Time) float64 {
	return min(max(chartWidth*float64(t.Sub(s.begin))/float64(s.span), 0), chartWidth)
}

// drawSlots draws what pilots did. over says that nothing follows.
func drawSlots(run api.Page, s *api.Slots, over bool) *chart {
	if s.Begin.IsZero() {
		return nil
	}
	first := s.Begin.Add(time.Duration(leading(s)) * s.Width)
	end := s.Begin.Add(time.Duration(len(s.All.Ended)) * s.Width)
	if !over && s.Now.After(end) {
		end = s.Now
	}
	by := scale{first, max(end.Sub(first), s.Width)}
	c := &chart{Exact: true}
	boxes := 0
	for i := range s.Lanes {
		boxes += len(s.Lanes[i].Spans)
		c.Exact = c.Exact && s.Attempts <= int64(state.TimelineSpans)
	}
	c.Exact = c.Exact && boxes <= boxesDrawn
	for i := range s.Lanes {
		c.Rows = append(c.Rows, newRow(run, s, &s.Lanes[i], by, c.Exact))
	}
	for i := range ticksDrawn {
		at := first.Add(by.span * time.Duration(i) / (ticksDrawn - 1))
		c.Ticks = append(c.Ticks, tick{by.at(at), "+" + quantity.Clock(at.Sub(first).Seconds()), i == ticksDrawn-1})
	}
	c.Ticks[0].Text = first.Local().Format("15:04:05")
	return c
}

func leading(s *api.Slots) int {
	n := 0
	for n < len(s.All.Ended) && value(s.All.Staging, n) == 0 && value(s.All.Computing, n) == 0 && s.All.Ended[n] == 0 {
		n++
	}
	return n
}

func value(bins []float32, at int) float32 {
	if at < len(bins) {
		return bins[at]
	}
	return 0
}

func sum(bins []float32) (all float64) {
	for _, v := range bins {
		all += float64(v)
	}
	return all
}

func newRow(run api.Page, s *api.Slots, l *api.SlotLane, by scale, exact bool) chartRow {
	end := l.End(s.Now)
	row := chartRow{Pilot: l.Pilot, Host: l.Host, Here: l.Here, Height: rowHeight, From: by.at(l.From)}
	row.Width = max(by.at(end)-row.From, 1)
	staging, computing := sum(l.Staging), sum(l.Computing)
	row.Text = fmt.Sprintf("%.0f attempts, computing %s, staging %s, there for %s", sum(l.Ended),
		quantity.Seconds(computing), quantity.Seconds(staging), quantity.Seconds(end.Sub(l.From).Seconds()))
	if exact {
		row.Boxes, row.Height = boxesOf(run, l, by, s.Now)
		return row
	}
	row.Staging, row.Computing = columns(s, l, by)
	return row
}

// boxesOf draws attempts one by one, those that compute at the same time one below the other.
func boxesOf(run api.Page, l *api.SlotLane, by scale, now time.Time) (boxes []box, height int) {
	for i := range l.Spans {
		if l.Spans[i].End.IsZero() && l.Spans[i].StageOut.IsZero() { // it runs
			l.Spans[i].End, l.Spans[i].StageOut = now, now
		}
	}
	slices.SortFunc(l.Spans, func(a, b api.SlotSpan) int { return a.StageIn.Compare(b.StageIn) })
	var free []time.Time // when each line is
	for _, span := range l.Spans {
		computes := span.Start
		if computes.IsZero() {
			computes = span.StageOut
		}
		line := slices.IndexFunc(free, func(at time.Time) bool { return !at.After(computes) })
		if line < 0 {
			line = len(free)
			free = append(free, time.Time{})
		}
		free[line] = span.End
		if span.End.IsZero() {
			free[line] = span.StageOut
		}
		title := span.Name + ": " + quantity.Seconds(span.StageOut.Sub(span.StageIn).Seconds())
		target := fmt.Sprintf("%s/jobs/%d?attempt=%d", runPath(run), span.Job.Number(), uint64(span.Attempt))
		add := func(kind string, from, to time.Time) {
			if !to.After(from) {
				return
			}
			x := by.at(from)
			boxes = append(boxes, box{kind, x, float64(line) * lanesHeight, max(by.at(to)-x, 0.5), 1, title, target})
		}
		if span.Start.IsZero() {
			add("staging", span.StageIn, span.StageOut)
			continue
		}
		computing := "computing"
		if span.Failed {
			computing = "failed"
		}
		add("staging", span.StageIn, span.Start)
		add(computing, span.Start, span.End)
		add("staging", span.End, span.StageOut)
	}
	height = max(rowHeight, len(free)*lanesHeight)
	each := float64(height) / float64(max(len(free), 1))
	for i := range boxes {
		boxes[i].Y = boxes[i].Y / lanesHeight * each
		boxes[i].H = each - 1
	}
	return boxes, height
}

// columns draws the bins of a lane: computing below, staging above it.
func columns(s *api.Slots, l *api.SlotLane, by scale) (staging, computing string) {
	per := max(1, (len(s.All.Ended)+chartColumns-1)/chartColumns)
	slots := 1.0
	for _, seconds := range l.Computing { // files of others may be staged meanwhile
		slots = max(slots, float64(seconds)/s.Width.Seconds())
	}
	var below, above strings.Builder
	for at := 0; at < max(len(l.Staging), len(l.Computing)); at += per {
		var c, g float64
		for i := at; i < at+per; i++ {
			c += float64(value(l.Computing, i))
			g += float64(value(l.Staging, i))
		}
		unit := rowHeight / (slots * float64(per) * s.Width.Seconds())
		g = min(g, rowHeight/unit-c)
		begin := s.Begin.Add(time.Duration(at) * s.Width)
		x := by.at(begin)
		w := by.at(begin.Add(time.Duration(per)*s.Width)) - x
		if c > 0 {
			fmt.Fprintf(&below, "M%.1f %.1fh%.1fv%.1fh-%.1fz", x, rowHeight-c*unit, w, c*unit, w)
		}
		if g > 0 {
			fmt.Fprintf(&above, "M%.1f %.1fh%.1fv%.1fh-%.1fz", x, rowHeight-(c+g)*unit, w, g*unit, w)
		}
	}
	return above.String(), below.String()
}

// seriesAnswer are lines over time, for uPlot: the times in seconds since 1970, then what is at each.
type seriesAnswer struct {
	Over  bool        `json:"over"`
	Zone  int         `json:"zone"` // the clock of the server, in seconds east of Greenwich
	Names []string    `json:"names"`
	Data  [][]float64 `json:"data"`
}

// series answers with how many slots did what over the time of a run.
func (s *site) series(w http.ResponseWriter, r *http.Request) {
	c, _, err := s.about(r)
	if err != nil {
		s.fail(w, err)
		return
	}
	slots, err := s.Service.Slots(r.Context(), c.Run, 0, 0)
	if err != nil {
		s.fail(w, err)
		return
	}
	_, zone := time.Now().Zone()
	a := seriesAnswer{Over: c.Over, Zone: zone, Names: []string{"computing", "staging", "waiting"}}
	a.Data = make([][]float64, 4)
	width := slots.Width.Seconds()
	for at := leading(slots); at < max(len(slots.All.Ended), len(slots.Present)); at++ {
		computing := float64(value(slots.All.Computing, at)) / width
		staging := float64(value(slots.All.Staging, at)) / width
		a.Data[0] = append(a.Data[0], float64(slots.Begin.Add(time.Duration(at)*slots.Width).UnixMilli())/1000)
		a.Data[1] = append(a.Data[1], computing)
		a.Data[2] = append(a.Data[2], computing+staging)
		a.Data[3] = append(a.Data[3], max(computing+staging, float64(value(slots.Present, at))))
	}
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(a)
}
