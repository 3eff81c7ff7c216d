package recording

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"

	"fairway/internal/flow"
	"fairway/internal/taskqueue"
)

// Difference is the first place where a replay did not decide as recorded.
type Difference struct {
	Line     int    // of the recording
	When     string // for a person: what the core was told
	Path     string // into the effects; empty if only one was refused
	Recorded string // what stands there, in JSON, or why it was refused
	Replayed string
}

func (d *Difference) Error() string {
	at := ""
	if d.Path != "" {
		at = " at " + d.Path
	}
	return fmt.Sprintf("line %d: when %s, the replay decides otherwise%s\n  recorded: %s\n  replayed: %s", d.Line, d.When,
		at, d.Recorded, d.Replayed)
}

// describe names an input so that a person finds it.
func describe(in any) string {
	switch in := in.(type) {
	case taskqueue.Sync:
		return fmt.Sprintf("Sync %d of pilot %s", in.Seq, in.Pilot)
	case taskqueue.Refused:
		return "refusal of pilot " + string(in.Pilot)
	case taskqueue.HangUp:
		return fmt.Sprintf("HangUp of Sync %d of pilot %s", in.Seq, in.Pilot)
	case taskqueue.PilotSubmitted:
		return "PilotSubmitted " + in.Launch
	case taskqueue.PilotEnded:
		return "PilotEnded " + in.Launch
	case taskqueue.Published:
		return fmt.Sprintf("Published %s version %d", in.File.LFN, in.File.Version)
	case flow.Happened:
		return "Happened to job " + in.Event.Name
	case flow.Arrived:
		return fmt.Sprintf("Arrived, %d files of %s", len(in.Files), in.Input)
	}
	return kindOf(in)
}

// shownDifference bounds how much of each side is shown.
const shownDifference = 300

func shown(v any) string {
	text, err := json.Marshal(v)
	if err != nil {
		return fmt.Sprint(v)
	}
	if len(text) > shownDifference {
		return string(text[:shownDifference]) + "..."
	}
	return string(text)
}

func refusal(why string) string {
	if why == "" {
		return "taken"
	}
	return "refused: " + why
}

// firstDifference finds where two JSON values differ first.
func firstDifference(recorded, replayed json.RawMessage) (path, a, b string) {
	path, x, y := diverge("effects", parsed(recorded), parsed(replayed))
	return path, shown(x), shown(y)
}

// parsed keeps numbers as they are written.
func parsed(text json.RawMessage) any {
	var v any
	d := json.NewDecoder(bytes.NewReader(text))
	d.UseNumber()
	if d.Decode(&v) != nil {
		return string(text)
	}
	return v
}

// absent stands for what only one of two values has.
const absent = "(absent)"

func diverge(path string, a, b any) (string, any, any) {
	switch x := a.(type) {
	case map[string]any:
		if y, ok := b.(map[string]any); ok {
			return divergeObjects(path, x, y)
		}
	case []any:
		if y, ok := b.([]any); ok {
			return divergeLists(path, x, y)
		}
	}
	return path, a, b
}

func divergeObjects(path string, a, b map[string]any) (string, any, any) {
	keys := slices.Collect(maps.Keys(a))
	for key := range b {
		if _, ok := a[key]; !ok {
			keys = append(keys, key)
		}
	}
	slices.Sort(keys)
	for _, key := range keys {
		x, inA := a[key]
		y, inB := b[key]
		switch {
		case !inA:
			return path + "." + key, absent, y
		case !inB:
			return path + "." + key, x, absent
		case shownWhole(x) != shownWhole(y):
			return diverge(path+"."+key, x, y)
		}
	}
	return path, a, b
}

func divergeLists(path string, a, b []any) (string, any, any) {
	for i := range max(len(a), len(b)) {
		at := path + "[" + strconv.Itoa(i) + "]"
		switch {
		case i >= len(a):
			return at, absent, b[i]
		case i >= len(b):
			return at, a[i], absent
		case shownWhole(a[i]) != shownWhole(b[i]):
			return diverge(at, a[i], b[i])
		}
	}
	return path, a, b
}

func shownWhole(v any) string {
	text, _ := json.Marshal(v) // it was parsed from JSON
	return string(text)
}
