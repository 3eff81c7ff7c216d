package web

import (
	"bytes"
	"fmt"
	"html"
	"strings"
	"testing"
	"time"

	"fairway/internal/history"
)

// The page tells what set the time of a run, and what would have been under other conditions; names
// are text there.
func TestWhyAndWhatIf(t *testing.T) {
	begin := time.Date(2026, 11, 27, 10, 0, 0, 0, time.UTC)
	run := &history.Run{}
	for i := range 8 {
		from := begin.Add(time.Duration(i/2) * 10 * time.Second)
		to := from.Add(10 * time.Second)
		run.Jobs = append(run.Jobs, history.Job{
			ID: uint32(i + 1), Name: fmt.Sprint(odd, i), Step: odd, State: "done", Submitted: begin,
			Attempts: []history.Attempt{{
				Pilot: fmt.Sprintf("local-x.%d", i%2), Host: "h", Outcome: "succeeded", StageIn: from, Start: from, End: to,
				StageOut: to,
			}},
		})
	}
	body := &whyBody{Run: 1, Causes: history.Causes}
	if err := body.explain(run); err != nil {
		t.Fatal(err)
	}
	var text bytes.Buffer
	if err := views()["why"].ExecuteTemplate(&text, "live", &frame{content: &content{Body: body}}); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{
		"Under other conditions", "with half the slots (1)", "with twice the slots (4)",
		"with step " + html.EscapeString(odd) + " twice as fast",
	} {
		if !strings.Contains(strings.ReplaceAll(text.String(), "&#34;", "\""), strings.ReplaceAll(want, "&#34;", "\"")) {
			t.Errorf("the page does not have %q:\n%s", want, text.String())
		}
	}
	if strings.Contains(text.String(), odd) {
		t.Error("the name of a step is markup")
	}
}
