package storage

import (
	"errors"
	"fmt"
	"net"
	"strings"
	"syscall"
)

// ErrRedirect says that a server redirects to where no redirection may lead.
var ErrRedirect = errors.New("the server redirects to where it may not")

// RefuseNear is the Control of a [net.Dialer] that follows a redirection: it refuses a
// connection to this machine, or to one that only this network segment reaches, by the
// address that was found for the name.
func RefuseNear(_, address string, _ syscall.RawConn) error {
	host, _, err := net.SplitHostPort(address)
	if err != nil {
		return err
	}
	if ip := net.ParseIP(host); ip == nil || ip.IsLoopback() || ip.IsLinkLocalUnicast() || ip.IsUnspecified() {
		return fmt.Errorf("%w: to %s", ErrRedirect, host)
	}
	return nil
}

// OnThisMachine reports whether the name of a host is one of those that mean this
// machine.
func OnThisMachine(host string) bool {
	ip := net.ParseIP(host)
	return strings.EqualFold(host, "localhost") || ip != nil && ip.IsLoopback()
}
