package server

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
)

// maxSocketPath is the longest path that fits a socket address, without the
// byte that ends it.
const maxSocketPath = 107

// listenSocket opens the server's socket in a state folder whose lock is held.
// Only the user may connect. address is what a pilot is to dial.
func listenSocket(state string) (listener net.Listener, address string, err error) {
	name := filepath.Join(state, socketName)
	if err := removeSocket(state); err != nil {
		return nil, "", err
	}
	address = name
	if len(name) > maxSocketPath {
		if address, err = shortAddress(state); err != nil {
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
	folder := os.Getenv("XDG_RUNTIME_DIR")
	if folder == "" {
		folder = fmt.Sprintf("/tmp/fairway-%d", os.Getuid())
		if err := os.Mkdir(folder, 0o700); err != nil && !errors.Is(err, fs.ErrExist) {
			return "", err
		}
	}
	var st unix.Stat_t
	if err := unix.Lstat(folder, &st); err != nil {
		return "", err
	}
	if st.Mode&unix.S_IFMT != unix.S_IFDIR || int(st.Uid) != os.Getuid() || st.Mode&0o077 != 0 {
		return "", fmt.Errorf("%s must be a folder that only you may open, for the socket of %s", folder, state)
	}
	sum := sha256.Sum256([]byte(state))
	address := filepath.Join(folder, fmt.Sprintf("fairway-%x", sum[:8]))
	if err := os.Remove(address); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return "", err
	}
	return address, nil
}

// removeSocket removes what an earlier server left. The lock must be held.
func removeSocket(state string) error {
	err := os.Remove(filepath.Join(state, socketName))
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}

// dialSocket connects to the server of a state folder.
func dialSocket(ctx context.Context, state string) (net.Conn, error) {
	address := filepath.Join(state, socketName)
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
