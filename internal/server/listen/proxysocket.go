//go:build linux

package listen

import (
	"fmt"
	"net"
	"os"
	"os/user"
	"strconv"

	"golang.org/x/sys/unix"

	"fairway/internal/access"
	"fairway/internal/server/folder"
)

// Socket opens a socket that some users of this machine may use: connections of others are closed before
// anything is read.
func Socket(path string, users []string) (net.Listener, error) {
	allowed := map[uint32]bool{}
	for _, name := range users {
		u, err := user.Lookup(name)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", path, err)
		}
		id, err := strconv.ParseUint(u.Uid, 10, 32)
		if err != nil {
			return nil, fmt.Errorf("%s: user %s: %w", path, name, err)
		}
		allowed[uint32(id)] = true
	}
	if info, err := os.Lstat(path); err == nil && info.Mode()&os.ModeSocket == 0 {
		return nil, fmt.Errorf("%s is there, and is no socket", path)
	}
	if err := folder.IgnoreMissing(os.Remove(path)); err != nil {
		return nil, err
	}
	listener, err := access.ListenSocket(path)
	if err != nil {
		return nil, err
	}
	if err := os.Chmod(path, 0o666); err != nil { // who may use it is known by the user
		_ = listener.Close()
		return nil, err
	}
	return &usersListener{listener, allowed}, nil
}

type usersListener struct {
	net.Listener
	users map[uint32]bool
}

// Accept is part of net.Listener.
func (l *usersListener) Accept() (net.Conn, error) {
	for {
		conn, err := l.Listener.Accept()
		if err != nil {
			return nil, err
		}
		if peer := credentials(conn); peer != nil && l.users[peer.Uid] {
			return conn, nil
		}
		_ = conn.Close()
	}
}

// credentials are those of who has connected over a socket; nil where the system does not tell.
func credentials(connection net.Conn) *unix.Ucred {
	socket, ok := connection.(*net.UnixConn)
	if !ok {
		return nil
	}
	raw, err := socket.SyscallConn()
	if err != nil {
		return nil
	}
	var peer *unix.Ucred
	if raw.Control(func(fd uintptr) {
		peer, err = unix.GetsockoptUcred(int(fd), unix.SOL_SOCKET, unix.SO_PEERCRED)
	}) != nil || err != nil {
		return nil
	}
	return peer
}
