package pilot

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"fmt"
	"net"
	"net/http"
	"strings"

	"connectrpc.com/connect"

	"fairway/internal/access"
	"fairway/internal/wire"
)

// maxConnections is one for the Sync that is held and one for the newer one
// that supersedes it.
const maxConnections = 2

func randomName() string {
	var b [4]byte
	_, _ = rand.Read(b[:]) // never fails
	return hex.EncodeToString(b[:])
}

// clientOptions: no compression, which would cost more than the whole rest of a
// call, and no answer without end.
var clientOptions = []connect.ClientOption{
	connect.WithAcceptCompression("gzip", nil, nil),
	connect.WithReadMaxBytes(access.MaxAnswer),
}

// dial returns a client for the TaskQueue: over the line, or else at the address
// of Config.Server.
func (c *Config) dial() (wire.TaskQueueClient, error) {
	if c.Line != nil {
		return wire.NewTaskQueueClient(c.Line.Client(maxConnections), access.BaseURL, clientOptions...), nil
	}
	path, isSocket := strings.CutPrefix(c.Server, "unix:")
	if !isSocket {
		return nil, fmt.Errorf("server address %q is not of the form unix:PATH; over a network a pilot is started with "+
			"`fairway pilot --connect FILE`", c.Server)
	}
	path = socketPath(path)
	transport := &http.Transport{
		MaxIdleConnsPerHost: maxConnections, DisableCompression: true,
		DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) { return access.DialSocket(ctx, path) },
	}
	return wire.NewTaskQueueClient(&http.Client{Transport: transport}, "http://fairway", clientOptions...), nil
}

func socketPath(path string) string {
	if strings.HasPrefix(path, "///") {
		return path[2:]
	}
	return path
}
