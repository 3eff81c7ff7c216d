// Package chrometrace writes the Trace Event Format of Chrome: one row for each task, and one for each
// location.
package chrometrace

import (
	"encoding/json"
	"fmt"
	"time"
)

type chromeEvent struct {
	Name  string            `json:"name"`
	Phase string            `json:"ph"`
	Start float64           `json:"ts"` // microseconds
	Dur   float64           `json:"dur,omitempty"`
	PID   int               `json:"pid"`
	TID   int               `json:"tid"`
	Args  map[string]string `json:"args,omitempty"`
}

type chromeFile struct {
	Events  []chromeEvent `json:"traceEvents"`
	Dropped int           `json:"droppedSpans,omitempty"`
}

const (
	taskRows     = 1
	locationRows = 2
)

// Span is a time in which a task waited for a location or held it.
type Span struct {
	Task, Location string
	Mode           string // read or write
	Waits          bool
	Start          time.Time
	Length         time.Duration
	By             string // whose release ended the waiting
}

// Encode writes spans as JSON, and that so many further ones were dropped.
func Encode(spans []Span, dropped int) ([]byte, error) { return json.Marshal(fileOf(spans, dropped)) }

func fileOf(spans []Span, dropped int) chromeFile {
	f := chromeFile{Dropped: dropped, Events: []chromeEvent{
		{Name: "process_name", Phase: "M", PID: taskRows, Args: map[string]string{"name": "tasks"}},
		{Name: "process_name", Phase: "M", PID: locationRows, Args: map[string]string{"name": "locations"}},
	}}
	rows := map[int]map[string]int{taskRows: {}, locationRows: {}}
	row := func(pid int, name string) int {
		id, ok := rows[pid][name]
		if !ok {
			id = len(rows[pid]) + 1
			rows[pid][name] = id
			f.Events = append(f.Events, chromeEvent{
				Name: "thread_name", Phase: "M", PID: pid, TID: id, Args: map[string]string{"name": name},
			})
		}
		return id
	}
	var epoch time.Time
	for _, s := range spans {
		if epoch.IsZero() || s.Start.Before(epoch) {
			epoch = s.Start
		}
	}
	for _, s := range spans {
		e := chromeEvent{
			Phase: "X", Start: micros(s.Start.Sub(epoch)), Dur: micros(s.Length), PID: taskRows, TID: row(taskRows, s.Task),
		}
		if s.Waits {
			e.Name, e.Args = "waits for "+s.Location, map[string]string{"mode": s.Mode, "released by": s.By}
			f.Events = append(f.Events, e)
			continue
		}
		e.Name = fmt.Sprintf("%ss %s", s.Mode, s.Location)
		f.Events = append(f.Events, e)
		e.Name, e.PID, e.TID = fmt.Sprintf("%s %ss", s.Task, s.Mode), locationRows, row(locationRows, s.Location)
		f.Events = append(f.Events, e)
	}
	return f
}

func micros(d time.Duration) float64 { return float64(d) / float64(time.Microsecond) }
