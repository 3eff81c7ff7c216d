package listen

import (
	"context"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestSocketOfALongPath(t *testing.T) {
	for _, state := range []string{shortFolder(t), filepath.Join(shortFolder(t), strings.Repeat("long/", 30))} {
		if err := os.MkdirAll(state, 0o700); err != nil {
			t.Fatal(err)
		}
		for range 2 { // the second time something is left of the first
			listener, address, err := Unix(state)
			if err != nil {
				t.Fatal(err)
			}
			if filepath.Dir(address) != filepath.Clean(state) {
				t.Fatalf("the socket is not in the state folder: %s", address)
			}
			if info, err := os.Lstat(address); err != nil || info.Mode().Perm() != 0o600 {
				t.Fatalf("the socket has mode %v, %v", info.Mode(), err)
			}
			go func() {
				if connection, err := listener.Accept(); err == nil {
					_, _ = io.WriteString(connection, "hello")
					_ = connection.Close()
				}
			}()
			connection, err := Dial(context.Background(), state)
			if err != nil {
				t.Fatal(err)
			}
			if text, err := io.ReadAll(connection); string(text) != "hello" {
				t.Fatalf("got %q, %v", text, err)
			}
			_ = connection.Close()
			_ = listener.Close()
		}
	}
}

// shortFolder is one whose path leaves room for the name of a socket.
func shortFolder(t *testing.T) string {
	t.Helper()
	folder, err := os.MkdirTemp("/tmp", "fw")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(folder) })
	return folder
}
