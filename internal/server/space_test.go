package server

import (
	"errors"
	"log/slog"
	"strings"
	"testing"
	"time"

	"fairway/internal/server/loop"
)

// A disk that will be full is foreseen by what is free, how fast that goes, and what is to be stored.
func TestForeseenDisks(t *testing.T) {
	const gib = 1 << 30
	for name, c := range map[string]struct {
		free     []int64 // one each minute, of 1000 GiB
		expected int64
		want     string // part of it; empty: nothing
	}{
		"there is room":                {[]int64{500 * gib}, 100 * gib, ""},
		"the known jobs need more":     {[]int64{500 * gib}, 600 * gib, "will be full: 537 GB are free"},
		"and it fills":                 {[]int64{502 * gib, 501 * gib, 500 * gib}, 600 * gib, "will be full in about"},
		"it fills fast":                {[]int64{90 * gib, 70 * gib, 50 * gib}, 0, "it fills by"},
		"it fills while much is there": {[]int64{900 * gib, 880 * gib, 860 * gib}, 0, ""},
		"it fills slowly":              {[]int64{90*gib + 2, 90*gib + 1, 90 * gib}, 0, ""},
		"it gets emptier":              {[]int64{50 * gib, 60 * gib, 70 * gib}, 0, ""},
	} {
		var s space
		for i, free := range c.free {
			s.look(time.Unix(int64(60*i), 0), free, 1000*gib)
		}
		got := s.foresee(c.expected)
		if c.want == "" && got != "" || !strings.Contains(got, c.want) {
			t.Errorf("%s: %q", name, got)
		}
	}
}

// A disk that cannot be asked is asked again: jobs that are held would be for ever.
func TestADiskIsAskedAgain(t *testing.T) {
	bad := errors.New("bad")
	answers := []error{bad, bad, nil, bad, nil}
	looks, told := 0, 0
	lookAgain(
		func() error { looks++; return answers[looks-1] },
		func() error {
			if looks == len(answers) {
				return bad
			}
			return nil
		},
		func(error) { told++ })
	if looks != len(answers) || told != 2 {
		t.Errorf("it was asked %d times, and told of %d errors", looks, told)
	}
}

// What is looked at now and then, when the loop has just ended, is nothing to warn of.
func TestNothingIsWarnedOfWhenAServerEnds(t *testing.T) {
	v := startService(t, t.TempDir(), twoStepsScript)
	v.stop()
	var said strings.Builder
	v.server.log = slog.New(slog.NewTextHandler(&said, &slog.HandlerOptions{Level: slog.LevelWarn}))
	v.server.cutResults(t.Context())
	v.server.space.folder = t.TempDir()
	err := v.server.lookAtSpace(t.Context(), time.Now())
	if !errors.Is(err, loop.ErrEnded) || failed(t.Context(), err) {
		t.Errorf("a look at the disk gives %v", err)
	}
	if said.Len() > 0 {
		t.Error(said.String())
	}
	if !failed(t.Context(), errors.New("bad")) {
		t.Error("other errors are not told")
	}
}
