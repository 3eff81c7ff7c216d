package server

import (
	"bytes"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"testing"

	"connectrpc.com/connect"

	"fairway/internal/server/folder"
	"fairway/internal/wire"
)

// copyIn is a script of pilots whose jobs write what they read as in.
func copyIn(a *wire.Assignment, read func(string) string) (map[string]string, int) {
	return map[string]string{a.GetOutputs()[0].GetLfn(): read("in")}, 0
}

// What a program brings in parts is a file that jobs read, also if a part comes twice or the server is
// started again; it goes with the run.
func TestUploadedParts(t *testing.T) {
	root := t.TempDir()
	v := startService(t, root, copyIn)
	run := v.submit("workflow: w\nopen: true\n", "", nil)
	send := func(name string, offset int64, text string, last bool) (*wire.UploadResponse, error) {
		return v.client.Upload(t.Context(), &wire.UploadRequest{
			Run: run, Name: name, Offset: offset, Content: []byte(text), Last: last,
		})
	}
	for _, part := range []struct {
		offset int64
		text   string
		size   int64
	}{{0, "one ", 4}, {0, "one ", 4}, {4, "two ", 8}, {0, "one ", 8}} {
		got, err := send("n", part.offset, part.text, false)
		if err != nil || got.GetSize() != part.size || got.GetFile() != "" {
			t.Fatalf("%q at %d: %v, %v", part.text, part.offset, got, err)
		}
	}
	if _, err := send("n", 9, "x", false); connect.CodeOf(err) != connect.CodeOutOfRange {
		t.Errorf("a gap: %v", err)
	}
	v.stop()
	v = startService(t, root, copyIn)
	defer v.stop()
	whole, err := send("n", 8, "three", true)
	if err != nil {
		t.Fatal(err)
	}
	again, err := send("n", 0, "other", true)
	if err != nil || again.GetFile() != whole.GetFile() || again.GetSize() != 13 {
		t.Errorf("once more: %v, %v", again, err)
	}
	if text, err := os.ReadFile(whole.GetFile()); err != nil || string(text) != "one two three" {
		t.Errorf("%q, %v", text, err)
	}
	for name, want := range map[string]connect.Code{
		"../x": connect.CodeInvalidArgument, ".x": connect.CodeInvalidArgument, "": connect.CodeInvalidArgument,
		"a/b": connect.CodeInvalidArgument,
	} {
		if _, err := send(name, 0, "x", true); connect.CodeOf(err) != want {
			t.Errorf("%q: %v", name, err)
		}
	}
	if _, err := send("m", wire.MaxUploadedFile, "x", true); connect.CodeOf(err) != connect.CodeResourceExhausted {
		t.Error(err)
	}
	if _, err := send("m", 0, string(bytes.Repeat([]byte("x"), wire.MaxPart+1)), true); connect.CodeOf(err) !=
		connect.CodeResourceExhausted {
		t.Error(err)
	}
	_, err = v.client.Submit(t.Context(), &wire.SubmitRequest{Run: run, Jobs: []*wire.SubmittedJob{{
		Name: "j", Payload: &wire.Payload{Argv: []string{"cat", "in"}},
		Reads: []*wire.SubmittedInput{{Lfn: "in", File: whole.GetFile()}}, Writes: []*wire.SubmittedOutput{{Lfn: "out"}},
	}}})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := v.client.CloseInput(t.Context(), &wire.CloseInputRequest{Run: run}); err != nil {
		t.Fatal(err)
	}
	if v.await(run); v.result(run, "out") != "one two three" {
		t.Error(v.result(run, "out"))
	}
	if _, err := v.client.RemoveRuns(t.Context(), &wire.RemoveRunsRequest{Runs: []uint32{run}}); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(whole.GetFile()); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("it is left: %v", err)
	}
	if left, err := os.ReadDir(filepath.Join(root, ".fairway", folder.UploadsName)); err != nil || len(left) > 0 {
		t.Errorf("%v, %v", left, err)
	}
}
