package console

import (
	"errors"
	"log/slog"
	"slices"
	"testing"
)

// What goes wrong beside a run is read by people, and what is tried again is told once.
func TestWarningsAreSentences(t *testing.T) {
	var told []string
	log := slog.New(NewWarnings(func(text string) { told = append(told, text) })).With("site", "far")
	log.Info("nobody needs this")
	for range 3 {
		log.Warn("a batch system does not answer", "error", errors.New("exit status 1\n\x1b[2J"))
	}
	log.Error("a pilot is gone", "launch", "l1")
	want := []string{
		`warning: a batch system does not answer (site far): exit status 1 \x1b[2J`,
		"warning: a pilot is gone (site far, launch l1)",
	}
	if !slices.Equal(told, want) {
		t.Errorf("%q", told)
	}
}
