package look

import (
	"bytes"
	"errors"
	"fmt"
	"hash/adler32"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"fairway/internal/cli/console"
	"fairway/internal/storage"
	"fairway/internal/storage/elements"
	"fairway/internal/wire"
	"fairway/lib/sched"
)

// A file on a server comes as its job stored it, or not at all, and the message names what
// makes it again.
func TestGetChecksWhatAServerHas(t *testing.T) {
	const text = "what the job wrote"
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/whole":
			_, _ = w.Write([]byte(text))
		case "/changed":
			_, _ = w.Write([]byte(strings.ToUpper(text)))
		case "/longer":
			_, _ = w.Write([]byte(text + text))
		default:
			http.NotFound(w, r)
		}
	}))
	defer server.Close()
	source := elements.New(storage.Roots{}, sched.Default().Sleep)
	for _, c := range []struct{ name, wrong string }{
		{"whole", ""}, {"changed", "other bytes"}, {"longer", "other bytes"}, {"gone", "is lost"},
	} {
		v := &wire.FileVersion{
			Version: 2, Pfn: server.URL + "/" + c.name, Size: int64(len(text)),
			Adler32: fmt.Sprintf("%08x", adler32.Checksum([]byte(text))), Writer: &wire.JobRef{Name: "make/1", State: "done"},
		}
		var got bytes.Buffer
		_, err := copyVersion(t.Context(), source, "made.txt", v, &got)
		if c.wrong == "" && (err != nil || got.String() != text) {
			t.Errorf("%s: %q, %v", c.name, got.String(), err)
		}
		if c.wrong == "" {
			continue
		}
		f, ok := errors.AsType[*console.Failure](err)
		if !ok || !strings.Contains(f.Error(), c.wrong) || !strings.Contains(f.Hint, "fairway run --force make/1") {
			t.Errorf("%s: %v", c.name, err)
		}
	}
}
