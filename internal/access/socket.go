package access

import (
	"context"
	"fmt"
	"net"
	"os"
	"path/filepath"
)

// maxSocketPath is the longest path of a socket that the kernel takes, without the byte that ends it.
const maxSocketPath = 107

// SocketPath returns a path by which a socket can be made, dialled and removed however long its own
// is: over the folder that it is in, which stays open until done is called.
func SocketPath(path string) (short string, done func(), err error) {
	if len(path) <= maxSocketPath {
		return path, func() {}, nil
	}
	folder, err := os.Open(filepath.Dir(path))
	if err != nil {
		return "", nil, fmt.Errorf("the folder of a socket: %w", err)
	}
	short = fmt.Sprintf("/proc/self/fd/%d/%s", folder.Fd(), filepath.Base(path))
	return short, func() { _ = folder.Close() }, nil
}

// DialSocket connects to a socket of this machine, whatever the length of its path.
func DialSocket(ctx context.Context, path string) (net.Conn, error) {
	short, done, err := SocketPath(path)
	if err != nil {
		return nil, err
	}
	defer done()
	var dialer net.Dialer
	return dialer.DialContext(ctx, "unix", short)
}

// ListenSocket makes a socket, whatever the length of its path. It is removed when the listener is
// closed.
func ListenSocket(path string) (net.Listener, error) {
	short, done, err := SocketPath(path)
	if err != nil {
		return nil, err
	}
	listener, err := net.ListenUnix("unix", &net.UnixAddr{Name: short, Net: "unix"})
	if err != nil {
		done()
		return nil, err
	}
	return &socketListener{listener, done}, nil
}

// socketListener is a net.UnixListener with what its address needs until it is closed.
type socketListener struct {
	*net.UnixListener
	done func()
}

// Close is part of net.Listener.
func (l *socketListener) Close() error {
	defer l.done()
	return l.UnixListener.Close()
}
