package access

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"os"
	"strconv"
	"time"
)

// DefaultListen is every interface, at a port that is free.
const DefaultListen = ":0"

// maxInterfaces bounds the addresses of this machine that pilots are told.
const maxInterfaces = 16

// Listen opens the server's port, for a server of [NewServer], and returns the addresses by which pilots may
// reach it. Where the address names no port, it takes the one that pilots know
// from before, if that is free, so that they find the server again at once.
func Listen(address string, before int, a *Authority) (listener net.Listener, addresses []string, err error) {
	return listenAs(address, before, a.ServerTLS)
}

// ListenStandby is Listen for a server that stands by. The address names a port.
func ListenStandby(address string, a *Authority) (listener net.Listener, addresses []string, err error) {
	return listenAs(address, 0, a.StandbyTLS)
}

func listenAs(
	address string, before int, settingsOf func(names ...string) (*tls.Config, error),
) (listener net.Listener, addresses []string, err error) {
	if address == "" {
		address = DefaultListen
	}
	host, port, err := net.SplitHostPort(address)
	if err != nil {
		return nil, nil, fmt.Errorf("--listen %s: write HOST:PORT, or :PORT for all interfaces: %w", address, err)
	}
	names := namesOf(host)
	settings, err := settingsOf(names...)
	if err != nil {
		return nil, nil, err
	}
	var plain net.Listener
	if port == "" || port == "0" {
		err = errors.New("no port is known")
		if before > 0 {
			plain, err = listening.Listen(context.Background(), "tcp", net.JoinHostPort(host, strconv.Itoa(before)))
		}
		port = "0"
	}
	if plain == nil {
		plain, err = listening.Listen(context.Background(), "tcp", net.JoinHostPort(host, port))
	}
	if err != nil {
		return nil, nil, fmt.Errorf("--listen %s: %w", address, err)
	}
	port = strconv.Itoa(plain.Addr().(*net.TCPAddr).Port)
	for _, name := range names {
		addresses = append(addresses, net.JoinHostPort(name, port))
	}
	return Guard(plain, settings, MaxStrangers), addresses, nil
}

// listening has the kernel notice a line that was cut while nothing is sent on it, as while a Sync
// is held: after ProbeIdle and ProbeCount questions that get no answer.
var listening = net.ListenConfig{KeepAliveConfig: net.KeepAliveConfig{
	Enable: true, Idle: ProbeIdle, Interval: ProbeInterval, Count: ProbeCount,
}}

// When a silent connection of a pilot counts as broken: 11 s after the line was cut.
const (
	ProbeIdle     = 5 * time.Second
	ProbeInterval = 2 * time.Second
	ProbeCount    = 3
)

// Guard has a listener speak TLS, for a server of [NewServer], and let in at most so many
// strangers at a time.
func Guard(l net.Listener, settings *tls.Config, strangers int) net.Listener {
	g := newGate(l)
	g.most = strangers
	return newSecured(tls.NewListener(g, settings))
}

// Names are the hosts and addresses by which others may know a host that a server listens at.
func Names(host string) []string { return namesOf(host) }

// namesOf are the names and addresses by which others may know a host that a
// server listens at: of all interfaces, those of this machine. The loopback
// comes last, for pilots that run beside the server; at another machine it leads
// to somebody else, whom the pin tells apart.
func namesOf(host string) []string {
	if ip := net.ParseIP(host); host != "" && (ip == nil || !ip.IsUnspecified()) {
		return []string{host}
	}
	var names []string
	if name, err := os.Hostname(); err == nil && name != "" {
		names = append(names, name)
	}
	assigned, _ := net.InterfaceAddrs() // without them the name must do
	for _, a := range assigned {
		if network, ok := a.(*net.IPNet); ok && network.IP.IsGlobalUnicast() && len(names) < maxInterfaces {
			names = append(names, network.IP.String())
		}
	}
	return append(names, "127.0.0.1")
}

// PortOf is the port of the addresses of a server, 0 where they have none.
func PortOf(addresses []string) int {
	for _, address := range addresses {
		if _, port, err := net.SplitHostPort(address); err == nil {
			n, _ := strconv.Atoi(port)
			return n
		}
	}
	return 0
}
