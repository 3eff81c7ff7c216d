package console

import (
	"bytes"
	"testing"
	"time"

	"google.golang.org/protobuf/types/known/durationpb"
	"google.golang.org/protobuf/types/known/timestamppb"

	"fairway/internal/wire"
)

// A script may rely on every key being there, on numbers being numbers, and on
// the order of keys.
func TestJSONOfMessages(t *testing.T) {
	var out bytes.Buffer
	c := &Console{Out: &out}
	c.PrintJSON(&wire.AttemptDetail{
		Attempt: 1<<53 + 1,
		Outcome: "exited",
		Result: &wire.Result{
			Outcome: wire.Outcome_OUTCOME_OUT_OF_MEMORY,
			Message: "a <b> & c",
			Usage: &wire.Usage{
				Start: timestamppb.New(time.Date(2026, 11, 21, 8, 0, 0, 5000, time.UTC)),
				Cpu:   durationpb.New(1500 * time.Millisecond),
			},
		},
	})
	want := `{
  "attempt": 9007199254740993,
  "try": 0,
  "pilot": "",
  "outcome": "exited",
  "result": {
    "run": 0,
    "job": 0,
    "attempt": 0,
    "outcome": "out_of_memory",
    "exit_code": 0,
    "signal": 0,
    "message": "a <b> & c",
    "outputs": [],
    "usage": {
      "stage_in_start": null,
      "start": "2026-11-21T08:00:00.000005Z",
      "end": null,
      "stage_out_end": null,
      "cpu": 1.5,
      "max_rss_bytes": 0,
      "bytes_staged": 0,
      "bytes_cached": 0,
      "bytes_written": 0,
      "cache_hits": 0,
      "cache_misses": 0,
      "staged_ahead": null,
      "remote_hits": 0,
      "bytes_remote": 0,
      "prefetch_hits": 0,
      "bytes_prefetched": 0
    },
    "notes": [],
    "lost": [],
    "leader": 0,
    "task": 0
  },
  "host": "",
  "earlier": false,
  "task": 0
}
`
	if got := out.String(); got != want {
		t.Errorf("got %s\nwant %s", got, want)
	}
}
