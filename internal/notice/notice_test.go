package notice

import (
	"encoding/json"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"

	"fairway/test/files"
)

var failed = Notice{
	Event: Failed, Text: "Run 3 of w has failed: it's $(odd).", Run: 3, Workflow: "w", Folder: "/f",
	Problems: []string{"p"},
}

// A URL gets the notice, also if it does not answer well the first time.
func TestURL(t *testing.T) {
	var calls atomic.Int32
	told := make(chan Notice, 2)
	place := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if calls.Add(1) == 1 {
			http.Error(w, "later", http.StatusServiceUnavailable)
			return
		}
		var n Notice
		body, _ := io.ReadAll(r.Body)
		if err := json.Unmarshal(body, &n); err != nil || r.Method != http.MethodPost {
			t.Error(r.Method, err)
		}
		told <- n
	}))
	defer place.Close()
	s := NewSender(place.URL+"/secret", slog.New(slog.DiscardHandler))
	s.pause = 1
	s.Send(failed)
	s.Close()
	if n := <-told; n.Text != failed.Text || n.Run != 3 || len(n.Problems) != 1 {
		t.Errorf("%+v", n)
	}
}

// A command gets it on its standard input, as one line, and in its environment.
func TestCommand(t *testing.T) {
	out := filepath.Join(t.TempDir(), "out")
	s := NewSender(`{ cat; echo "$FAIRWAY_EVENT $FAIRWAY_RUN $FAIRWAY_TEXT"; } >`+out, slog.New(slog.DiscardHandler))
	s.Send(failed)
	s.Close()
	s.Close()
	lines := strings.Split(files.Read(t, out), "\n")
	var n Notice
	if err := json.Unmarshal([]byte(lines[0]), &n); err != nil || n.Workflow != "w" {
		t.Error(lines[0], err)
	}
	if want := "failed 3 " + failed.Text; lines[1] != want {
		t.Errorf("%q, not %q", lines[1], want)
	}
}

// What is written to the log has nothing of the place, which may be a secret.
func TestLogHasNoPlace(t *testing.T) {
	gone := httptest.NewServer(http.NotFoundHandler())
	gone.Close()
	var log strings.Builder
	s := NewSender(gone.URL+"/secret", slog.New(slog.NewTextHandler(&log, nil)))
	s.pause = 1
	s.tell(t.Context(), &failed)
	s.Close()
	if text := log.String(); strings.Contains(text, "secret") || !strings.Contains(text, "could not be told") {
		t.Error(text)
	}
}

func TestPlaces(t *testing.T) {
	for place, good := range map[string]bool{
		"https://h/x": true, "http://h": true, "mail me": true, "": false, " ": false, "http://": false, "https://%zz": false,
	} {
		if err := CheckPlace(place); (err == nil) != good {
			t.Errorf("%q: %v", place, err)
		}
	}
}
