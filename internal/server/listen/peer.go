//go:build linux

package listen

import (
	"context"
	"net"
	"os/user"
	"strconv"
)

type peerKey struct{}

// PeerOf is the user who asks, where the system tells who that is: over a socket of this machine.
func PeerOf(ctx context.Context) (name string, ok bool) {
	name, ok = ctx.Value(peerKey{}).(string)
	return name, ok
}

// withPeer notes who has connected. Who passes a connection on, passes its rights on.
func withPeer(ctx context.Context, connection net.Conn) context.Context {
	peer := credentials(connection)
	if peer == nil {
		return ctx
	}
	id := strconv.FormatUint(uint64(peer.Uid), 10)
	name := "uid-" + id
	if u, err := user.LookupId(id); err == nil {
		name = u.Username
	}
	return context.WithValue(ctx, peerKey{}, name)
}
