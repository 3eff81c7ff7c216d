package convert

import (
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"fairway/internal/wire"
)

// A pilot cannot fill the store with what it tells of one attempt.
func TestWhatAPilotTellsIsBounded(t *testing.T) {
	long := strings.Repeat("é", MaxText)
	r := &wire.Result{Message: long}
	for range 10 * MaxNotes {
		r.Notes = append(r.Notes, long)
	}
	got := SyncFromWire(&wire.SyncRequest{Ended: []*wire.Report{{Result: r}}, Hello: &wire.PilotInfo{Error: long}},
		time.Time{})
	if len(got.Ended[0].Notes) != MaxNotes {
		t.Error(len(got.Ended[0].Notes), "notes")
	}
	for _, text := range append(got.Ended[0].Notes, got.Ended[0].Message, got.Hello.Error) {
		if len(text) > MaxText+len("...") || !utf8.ValidString(text) {
			t.Errorf("%d bytes", len(text))
		}
	}
	forged := SyncFromWire(&wire.SyncRequest{
		Ended: []*wire.Report{{Result: &wire.Result{
			Message: "no\nJob a/1 is done", Notes: []string{"x\r\n\x1b[2Jall is well"},
			Lost: []*wire.LostFile{{Why: "a\u2028b"}},
		}}},
		Hello: &wire.PilotInfo{Error: "\x1b]0;title\a"},
	}, time.Time{})
	for got, want := range map[string]string{
		forged.Ended[0].Message: "no Job a/1 is done", forged.Ended[0].Notes[0]: `x \x1b[2Jall is well`,
		forged.Ended[0].Lost[0].Why: `a\xe2\x80\xa8b`, forged.Hello.Error: `\x1b]0;title\x07`,
	} {
		if got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
	short := SyncFromWire(&wire.SyncRequest{
		Ended: []*wire.Report{{Result: &wire.Result{Message: "m", Notes: []string{"n"}}}},
	}, time.Time{}).Ended[0]
	if short.Message != "m" || len(short.Notes) != 1 || short.Notes[0] != "n" {
		t.Error(short)
	}
}
