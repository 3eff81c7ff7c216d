package report

import (
	"log/slog"
	"os"
	"path/filepath"
	"testing"

	"google.golang.org/protobuf/proto"

	"fairway/internal/wire"
)

func TestASpoolWithOtherThings(t *testing.T) {
	folder := t.TempDir()
	s := NewSpool(folder, slog.New(slog.DiscardHandler))
	r := &wire.Report{Result: &wire.Result{Job: 1, Attempt: 2, Message: "m"}, Ticket: []byte("t")}
	of := func(attempt uint64) *wire.Report { return &wire.Report{Result: &wire.Result{Attempt: attempt}} }
	if !s.Put([]*wire.Report{r, of(3)}) || s.Put([]*wire.Report{of(4)}) {
		t.Error("one writer, please")
	}
	s.Told([]*wire.Report{of(3)})
	s.Write()
	for name, text := range map[string]string{
		"0000000000000009.result": "\xff\xff",
		"notes":                   "of somebody",
		".fairway-part":           "",
	} {
		if err := os.WriteFile(filepath.Join(folder, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for name, target := range map[string]string{"000000000000000a.result": "/etc/passwd", "000000000000000b.result": "."} {
		if err := os.Symlink(target, filepath.Join(folder, name)); err != nil {
			t.Fatal(err)
		}
	}
	renamed, err := proto.Marshal(r)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(folder, "000000000000000c.result"), renamed, 0o600); err != nil {
		t.Fatal(err)
	}
	found := NewSpool(folder, slog.New(slog.DiscardHandler)).Found()
	if len(found) != 2 || !proto.Equal(found[0], r) || found[1].GetResult().GetAttempt() != 4 {
		t.Error(found)
	}
	for name, stays := range map[string]bool{
		"notes":                   true,
		"0000000000000009.result": false,
		"000000000000000c.result": false,
		"0000000000000003.result": false,
	} {
		if _, err := os.Lstat(filepath.Join(folder, name)); (err == nil) != stays {
			t.Error(name, err)
		}
	}
	if none := NewSpool(filepath.Join(folder, "no", "folder"), slog.New(slog.DiscardHandler)).Found(); none != nil {
		t.Error(none)
	}
}
