//go:build linux

package listen

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"

	"fairway/internal/disk"
	"fairway/internal/server/folder"
)

// maxSocketPath is the longest path that fits a socket address, without the
// byte that ends it.
const maxSocketPath = 107

// Unix opens the server's socket in a state folder whose lock is held. Only the
// user may connect. address is the path that a pilot is to dial.
func Unix(state string) (listener net.Listener, address string, err error) {
	name := filepath.Join(state, folder.SocketName)
	if err := RemoveSocket(state); err != nil {
		return nil, "", err
	}
	address = name
	if len(name) > maxSocketPath {
		if address, err = shortAddress(state); err == nil {
			err = folder.IgnoreMissing(os.Remove(address))
		}
		if err != nil {
			return nil, "", err
		}
	}
	if listener, err = listenPrivately(address); err != nil {
		return nil, "", err
	}
	if address != name {
		if err := os.WriteFile(name, []byte(address+"\n"), 0o600); err != nil {
			_ = listener.Close()
			return nil, "", err
		}
	}
	return listener, address, nil
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
	ending := fmt.Sprintf("-%d", number)
	if len(p.link)+len(ending) > maxSocketPath {
		var err error
		if p.link, err = shortAddress(state + "\n" + folder.PilotsSocket); err != nil {
			return nil, err
		}
	}
	for _, path := range disk.Beginning(p.link + "-") {
		_ = os.Remove(path) // of servers that were killed, or replaced
	}
	p.own = p.link + ending
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
	listener, err := net.Listen("unix", address)
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

// shortAddress gives a socket path for a state folder whose own is too long: in
// the user's runtime folder, or in a folder of the user's under /tmp.
func shortAddress(state string) (string, error) {
	dir := os.Getenv("XDG_RUNTIME_DIR")
	if dir == "" {
		dir = fmt.Sprintf("/tmp/fairway-%d", os.Getuid())
		if err := os.Mkdir(dir, 0o700); err != nil && !errors.Is(err, fs.ErrExist) {
			return "", err
		}
	}
	if err := disk.CheckPrivate(dir); err != nil {
		return "", fmt.Errorf("a folder for the socket of %s: %w", state, err)
	}
	sum := sha256.Sum256([]byte(state))
	return filepath.Join(dir, fmt.Sprintf("fairway-%x", sum[:8])), nil
}

// RemoveSocket removes what an earlier server left. The lock must be held.
func RemoveSocket(state string) error {
	return folder.IgnoreMissing(os.Remove(filepath.Join(state, folder.SocketName)))
}

// Dial connects to the server of a state folder.
func Dial(ctx context.Context, state string) (net.Conn, error) {
	address := filepath.Join(state, folder.SocketName)
	if info, err := os.Lstat(address); err == nil && info.Mode().IsRegular() {
		text, err := os.ReadFile(address)
		if err != nil {
			return nil, err
		}
		address = strings.TrimSpace(string(text))
	}
	var dialer net.Dialer
	return dialer.DialContext(ctx, "unix", address)
}
