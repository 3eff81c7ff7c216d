package launch

import (
	"context"
	"errors"
	"io"
	"io/fs"
	"log/slog"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"fairway/internal/access"
)

// A pilot that shares no folder with its server, and dies, must leave behind why. It writes
// its own log, of a bounded size, and no other file.
func TestPilotsTellWhatTheySay(t *testing.T) {
	folder := filepath.Join(t.TempDir(), "run[1]*", "pilots")
	authority, err := access.OpenAuthority(filepath.Join(t.TempDir(), "authority"), "id")
	if err != nil {
		t.Fatal(err)
	}
	listener, addresses, err := access.Listen("127.0.0.1:0", 0, authority)
	if err != nil {
		t.Fatal(err)
	}
	c, err := OpenConnections(folder, authority, addresses, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	server := access.NewServer(access.Handler(c.Tokens, map[string]http.Handler{access.PilotLogPath: c.LogHandler()}),
		slog.New(slog.DiscardHandler))
	go server.Serve(listener)
	t.Cleanup(func() { server.Close() })
	way := c.must(t, "site-1.1")
	elsewhere := filepath.Join(t.TempDir(), "elsewhere")
	if err := os.WriteFile(elsewhere, []byte("kept"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(elsewhere, filepath.Join(folder, "site-1.1.log")); err != nil {
		t.Fatal(err)
	}
	said := filepath.Join(t.TempDir(), "log")
	line := access.NewLine(way.Connection)
	for _, text := range []string{"first\n", strings.Repeat("a line of it\n", access.MaxPilotLog/10) + "the end\n"} {
		if err := os.WriteFile(said, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if err := line.TellLog(context.Background(), said, "fairway: why\n"); err != nil {
			t.Fatal(err)
		}
		file, err := OpenLog(folder, "site-1.1-abcdef")
		if err != nil {
			t.Fatal(err)
		}
		got, err := io.ReadAll(file)
		_ = file.Close()
		if end := text[max(0, len(text)-20):] + "fairway: why\n"; err != nil || len(got) > access.MaxPilotLog ||
			!strings.HasSuffix(string(got), end) {
			t.Errorf("%d bytes, %v, and at the end %q", len(got), err, got[max(0, len(got)-40):])
		}
		if !strings.HasPrefix(string(got), "a line") && !strings.HasPrefix(string(got), "first") {
			t.Errorf("it begins within a line: %.20q", got)
		}
	}
	if text, _ := os.ReadFile(elsewhere); string(text) != "kept" {
		t.Error("what a link led to was changed")
	}
	if all := Logs(folder); len(all) != 1 || all[0] != "site-1.1" {
		t.Error(all)
	}
	if _, err := OpenLog(folder, "site-1"); !errors.Is(err, fs.ErrNotExist) {
		t.Error("the log of another launch:", err)
	}
	request, _ := http.NewRequest(http.MethodPost, access.BaseURL+access.PilotLogPath,
		strings.NewReader(strings.Repeat("x", access.MaxPilotLog+1)))
	answer, err := line.Client(1).Do(request)
	if err != nil || answer.StatusCode != http.StatusRequestEntityTooLarge {
		t.Error("more than the limit:", answer, err)
	}
	c.Forget("site-1.1")
	if err := line.TellLog(context.Background(), said, ""); err == nil {
		t.Error("a launch that has ended was heard")
	}
}
