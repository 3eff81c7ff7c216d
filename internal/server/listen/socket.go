//go:build linux

package listen

import (
	"context"
	"fmt"
	"net"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"

	"fairway/internal/access"
	"fairway/internal/disk"
	"fairway/internal/server/folder"
)

// Unix opens the server's socket in a state folder whose lock is held. Only the
// user may connect. address is the path that a pilot is to dial (access.DialSocket).
func Unix(state string) (listener net.Listener, address string, err error) {
	if err := RemoveSocket(state); err != nil {
		return nil, "", err
	}
	address = filepath.Join(state, folder.SocketName)
	listener, err = listenPrivately(address)
	return listener, address, err
}

// PilotsSocket is the socket of the pilots of this machine, at a server of a state that may have
// others. The socket itself is this server's own; pilots dial a link to it, which the active server
// puts in the place of that of the one before.
type PilotsSocket struct {
	net.Listener
	link, own string
}

// OpenPilotsSocket opens the socket in a state folder, under a number that no other server has. Nobody
// finds it before Show.
func OpenPilotsSocket(state string, number uint64) (*PilotsSocket, error) {
	p := &PilotsSocket{link: filepath.Join(state, folder.PilotsSocket)}
	for _, path := range disk.Beginning(p.link + "-") {
		_ = os.Remove(path) // of servers that were killed, or replaced
	}
	p.own = fmt.Sprintf("%s-%d", p.link, number)
	var err error
	p.Listener, err = listenPrivately(p.own)
	return p, err
}

// Address is the path that a pilot is to dial.
func (p *PilotsSocket) Address() string { return p.link }

// Show has pilots find this server. The caller is the active one; it calls again, since one that was
// replaced may have been late.
func (p *PilotsSocket) Show() error {
	name := filepath.Base(p.own)
	if to, err := os.Readlink(p.link); err == nil && to == name {
		return nil
	}
	fresh := p.own + ".link"
	if err := folder.IgnoreMissing(os.Remove(fresh)); err != nil {
		return err
	}
	if err := os.Symlink(name, fresh); err != nil {
		return err
	}
	return os.Rename(fresh, p.link)
}

// listenPrivately makes the socket with its final mode, so that nobody else
// can connect before a chmod.
func listenPrivately(address string) (net.Listener, error) {
	before := unix.Umask(0o077)
	listener, err := access.ListenSocket(address)
	unix.Umask(before)
	if err != nil {
		return nil, err
	}
	if err := os.Chmod(address, 0o600); err != nil {
		_ = listener.Close()
		return nil, err
	}
	return listener, nil
}

// RemoveSocket removes what an earlier server left. The lock must be held.
func RemoveSocket(state string) error {
	return folder.IgnoreMissing(os.Remove(filepath.Join(state, folder.SocketName)))
}

// Dial connects to the server of a state folder.
func Dial(ctx context.Context, state string) (net.Conn, error) {
	return access.DialSocket(ctx, filepath.Join(state, folder.SocketName))
}
