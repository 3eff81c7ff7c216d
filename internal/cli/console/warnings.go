package console

import (
	"context"
	"fmt"
	"log/slog"
	"strings"
	"sync"

	"fairway/internal/cli/screen"
)

// warnings prints what goes wrong beside a run, without ending it, as sentences: the
// message, what it is about, and the error.
type warnings struct {
	tell  func(text string)
	attrs []slog.Attr

	last *lastWarning // of all that come from one newWarnings
}

// lastWarning is what was told last: what is tried again and fails again is told once.
type lastWarning struct {
	mu   sync.Mutex
	text string
}

// NewWarnings has tell told of each warning, unless it is the last one again.
func NewWarnings(tell func(text string)) slog.Handler {
	return &warnings{tell: tell, last: new(lastWarning)}
}

// Enabled is part of slog.Handler.
func (w *warnings) Enabled(_ context.Context, level slog.Level) bool { return level >= slog.LevelWarn }

// Handle is part of slog.Handler.
func (w *warnings) Handle(_ context.Context, r slog.Record) error {
	var about []string
	why := ""
	add := func(a slog.Attr) bool {
		if a.Key == "error" || a.Key == "reason" {
			why = ": " + a.Value.String()
		} else {
			about = append(about, fmt.Sprintf("%s %s", a.Key, a.Value))
		}
		return true
	}
	for _, a := range w.attrs {
		add(a)
	}
	r.Attrs(add)
	text := r.Message
	if len(about) > 0 {
		text += " (" + strings.Join(about, ", ") + ")"
	}
	text = "warning: " + screen.OneLine(text+why)
	w.last.mu.Lock()
	again := w.last.text == text
	w.last.text = text
	w.last.mu.Unlock()
	if !again {
		w.tell(text)
	}
	return nil
}

// WithAttrs is part of slog.Handler.
func (w *warnings) WithAttrs(attrs []slog.Attr) slog.Handler {
	return &warnings{tell: w.tell, attrs: append(w.attrs[:len(w.attrs):len(w.attrs)], attrs...), last: w.last}
}

// WithGroup is part of slog.Handler. A sentence has no groups.
func (w *warnings) WithGroup(string) slog.Handler { return w }
