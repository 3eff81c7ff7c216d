package server

import (
	"encoding/binary"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"fairway/internal/access"
	"fairway/internal/wire"
)

// Requests that are too large, or no messages, are refused by each call, of people as of
// pilots, whether they come through the socket or over a network.
func TestEachCallRefusesWhatItCannotRead(t *testing.T) {
	handler := farServer(t).handler()
	framed := func(size uint32, body string) string {
		return string(binary.BigEndian.AppendUint32([]byte{0}, size)) + body
	}
	people := wire.File_api_proto.Services().ByName("Workflow").Methods()
	pilots := wire.File_pilot_proto.Services().ByName("TaskQueue").Methods()
	calls, streams := []string{}, map[string]bool{}
	for i := range people.Len() {
		m := people.Get(i)
		path := "/" + string(m.Parent().FullName()) + "/" + string(m.Name())
		calls, streams[path] = append(calls, path), m.IsStreamingServer()
	}
	calls = append(calls, "/"+string(pilots.Get(0).Parent().FullName())+"/"+string(pilots.Get(0).Name()))
	if len(calls) < 10 {
		t.Fatal(calls)
	}
	for _, path := range calls {
		limit := access.MaxRequest
		if strings.HasSuffix(path, "/Sync") {
			limit = access.MaxMessage
		}
		for what, c := range map[string]struct{ unary, stream, says string }{
			"no message":            {"\xff\xff\xff\xff", framed(4, "\xff\xff\xff\xff"), "unmarshal"},
			"a message without end": {strings.Repeat("\n", limit+1), framed(uint32(limit)+1, "\n"), "larger than"},
			"no frame":              {"\xff", framed(1<<31, ""), ""},
		} {
			body, kind := c.unary, "application/proto"
			if streams[path] {
				body, kind = c.stream, "application/connect+proto"
			}
			r := httptest.NewRequestWithContext(t.Context(), http.MethodPost, path, strings.NewReader(body))
			r.Header.Set("Content-Type", kind)
			answer := httptest.NewRecorder()
			handler.ServeHTTP(answer, r)
			if said := answer.Body.String(); !strings.Contains(said, c.says) || !strings.Contains(said, "\"code\"") {
				t.Errorf("%s, %s: %d %.200q", path, what, answer.Code, said)
			}
		}
	}
}
