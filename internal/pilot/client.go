package pilot

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"fmt"
	"net"
	"net/http"
	"os"
	"strings"

	"connectrpc.com/connect"

	"fairway/internal/wire"
)

// maxConnections is one for the Sync that is held and one for the newer one
// that supersedes it.
const maxConnections = 2

// maxAddressFile bounds a file that names a socket.
const maxAddressFile = 4096

func randomName() string {
	var b [4]byte
	_, _ = rand.Read(b[:]) // never fails
	return hex.EncodeToString(b[:])
}

// dial returns a client for the TaskQueue at an address of Config.Server.
func dial(server string) (wire.TaskQueueClient, error) {
	transport := &http.Transport{MaxIdleConnsPerHost: maxConnections, DisableCompression: true}
	url := server
	if path, isSocket := strings.CutPrefix(server, "unix:"); isSocket {
		path = socketPath(path)
		url = "http://fairway"
		transport.DialContext = func(ctx context.Context, _, _ string) (net.Conn, error) {
			return dialSocket(ctx, path)
		}
	} else if !strings.HasPrefix(server, "http://") && !strings.HasPrefix(server, "https://") {
		return nil, fmt.Errorf("server address %q is neither unix:PATH nor an http URL", server)
	}
	return wire.NewTaskQueueClient(&http.Client{Transport: transport}, url, connect.WithAcceptCompression("gzip", nil, nil)), nil
}

// socketPath drops the slashes of the form unix:///path.
func socketPath(path string) string {
	if strings.HasPrefix(path, "///") {
		return path[2:]
	}
	return path
}

// dialSocket follows a file that stands where the socket's path was too long.
func dialSocket(ctx context.Context, path string) (net.Conn, error) {
	if info, err := os.Stat(path); err == nil && info.Mode().IsRegular() && info.Size() <= maxAddressFile {
		name, err := os.ReadFile(path)
		if err != nil {
			return nil, err
		}
		path = strings.TrimSpace(string(name))
	}
	return (&net.Dialer{}).DialContext(ctx, "unix", path)
}
