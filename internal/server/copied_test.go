package server

import (
	"bytes"
	"errors"
	"io/fs"
	"log/slog"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"fairway/internal/access"
	"fairway/internal/server/api"
	"fairway/internal/server/folder"
)

// A copy of the folder of a server is another server: it has a token of its own and says so, and
// keeps no file that leads to the first one. The first one keeps its token.
func TestCopiesOfAServerHaveTokensOfTheirOwn(t *testing.T) {
	root := t.TempDir()
	first, said := servedAt(t, filepath.Join(root, "first"), true)
	if out, err := exec.Command("cp", "-a", filepath.Join(root, "first"), filepath.Join(root, "second")).
		CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	if strings.Contains(said, "copy") {
		t.Error(said)
	}
	if again, _ := servedAt(t, filepath.Join(root, "first"), true); again.Token != first.Token || again.Pin != first.Pin {
		t.Error("the token of a server that was started again is another one")
	}
	silent, said := servedAt(t, filepath.Join(root, "second"), false)
	if silent.Token != "" || !strings.Contains(said, "is a copy of that of another server") {
		t.Errorf("a copy that does not listen leads to the first one; it says %s", said)
	}
	second, said := servedAt(t, filepath.Join(root, "second"), true)
	if second.Token == first.Token || second.Pin == first.Pin || strings.Contains(said, "copy") {
		t.Errorf("a copy has the token of the first one; it says %s", said)
	}
}

// Of servers that stood by for each other one may go on alone, without a port: who asks in its folder
// reaches it at its socket, and copies of the file keep their token.
func TestAServerGoesOnAloneAfterOthersStoodBy(t *testing.T) {
	root := filepath.Join(t.TempDir(), "state")
	first, _ := servedAt(t, root, true)
	file := filepath.Join(root, folder.StateFolder, folder.ServiceName)
	first.Standby = true
	if err := first.Write(file); err != nil {
		t.Fatal(err)
	}
	defer startServiceAs(t, root, twoStepsScript, func(*Config) {}).stop()
	asked, err := api.Connect(t.Context(), root)
	if err != nil {
		t.Fatal(err)
	}
	defer asked.Close()
	if after, err := access.ReadConnection(file); err != nil || after.Standby || after.Token != first.Token {
		t.Errorf("a server that is alone says %t of others that stand by (%v)", after.Standby, err)
	}
}

// servedAt starts and ends a server, and returns what is in its file for people, and what it said.
func servedAt(t *testing.T, root string, listens bool) (access.Connection, string) {
	t.Helper()
	var said bytes.Buffer
	v := startServiceAs(t, root, twoStepsScript, func(c *Config) {
		if c.Log = slog.New(slog.NewTextHandler(&said, nil)); listens {
			c.Listen = "127.0.0.1:0"
		}
	})
	connection, err := access.ReadConnection(v.server.serviceFile())
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		t.Fatal(err)
	}
	v.stop()
	return connection, said.String()
}
