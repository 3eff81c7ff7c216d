package cli

import (
	"net"
	"os"
	"path/filepath"
	"testing"
)

func TestReadinessIsTold(t *testing.T) {
	socket := filepath.Join(t.TempDir(), "notify")
	manager, err := net.ListenUnixgram("unixgram", &net.UnixAddr{Name: socket, Net: "unixgram"})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = manager.Close() }()
	t.Setenv(readyVariable, socket)
	if err := tellReady(); err != nil {
		t.Fatal(err)
	}
	message := make([]byte, 100)
	n, err := manager.Read(message)
	if err != nil || string(message[:n]) != "READY=1" {
		t.Errorf("it heard %q, %v", message[:n], err)
	}
	if _, there := os.LookupEnv(readyVariable); there {
		t.Error("jobs would have the socket too")
	}
	if err := tellReady(); err != nil {
		t.Errorf("without a manager: %v", err)
	}
}
