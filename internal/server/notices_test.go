package server

import (
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"fairway/internal/notice"
	"fairway/lib/sched"
	"fairway/test/files"
)

// Each end of a run of a lasting server is told once.
func TestEndsAreTold(t *testing.T) {
	told := make(chan notice.Notice, 10)
	place := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		var n notice.Notice
		body, _ := io.ReadAll(r.Body)
		if err := json.Unmarshal(body, &n); err != nil {
			t.Error(err)
		}
		told <- n
	}))
	defer place.Close()
	s := sched.New(sched.Config{})
	t.Cleanup(s.Close)
	root := t.TempDir()
	v := startServiceWith(t, root, Config{
		RunConfig:     RunConfig{Folder: root},
		ServiceConfig: ServiceConfig{Lasting: true},
		System:        newScripted(t, twoStepsScript).at, Sched: s, Notify: place.URL,
	})
	first := v.submit(twoSteps, files.Folder(t, threeTexts), nil)
	v.await(first)
	n := <-told
	if n.Event != notice.Succeeded || n.Run != first || n.Folder != root || !strings.Contains(n.Text, "has succeeded") {
		t.Errorf("%+v", n)
	}
	v.stop()
	select {
	case n := <-told:
		t.Errorf("it is told again: %+v", n)
	default:
	}
}
