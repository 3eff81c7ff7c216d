package main

import (
	"bufio"
	"context"
	"crypto/tls"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"time"

	"fairway/internal/access"
	"fairway/lib/subprocess"
	"fairway/test/netns"
)

// relayPiece is how much a relay reads and writes at once, in bytes.
const relayPiece = 256 << 10

// floor is a chain of the plainest programs in the place of pilots: each writes what comes to
// a file and sends it on, without a checksum. It returns how long the bytes take to the last
// of them, and what processor time all take.
func (c *cluster) floor(ctx context.Context, self string, secure bool, mb int) (s spread, err error) {
	folder := c.bench.TempDir()
	size := int64(mb) * 1_000_000
	if err := os.WriteFile(filepath.Join(folder, "big"), make([]byte, size), 0o600); err != nil {
		return s, err
	}
	from, pin := "", ""
	var chain []*subprocess.Child
	for i, h := range append([]*netns.Host{c.server}, c.hosts...) {
		file := filepath.Join(folder, h.Name)
		if i == 0 {
			file = filepath.Join(folder, "big")
		}
		child, err := subprocess.Start(h.Command(ctx, self, "-relay", h.Address, from, pin, file,
			strconv.FormatInt(size, 10), strconv.FormatBool(secure), strconv.FormatBool(i == len(c.hosts))))
		if err != nil {
			return s, err
		}
		defer child.Kill()
		if from, err = child.Hear(); err == nil {
			pin, err = child.Hear()
		}
		if err != nil {
			return s, err
		}
		chain = append(chain, child)
	}
	began := time.Now()
	if err := chain[0].Tell("begin"); err != nil {
		return s, err
	}
	if _, err := chain[len(chain)-1].Hear(); err != nil {
		return s, err
	}
	s.seconds = time.Since(began).Seconds()
	for _, child := range chain {
		if err := child.Stop(); err != nil {
			return s, err
		}
		if used, ok := child.Used(); ok {
			s.cpu += time.Duration(used.Utime.Nano() + used.Stime.Nano()).Seconds()
		}
	}
	return s, nil
}

// relay is what one host of the chain does.
func relay(arguments []string) error {
	if len(arguments) != relayArguments {
		return fmt.Errorf("it is for the benchmark itself")
	}
	at, upstream, pin, path := arguments[0], arguments[1], arguments[2], arguments[3]
	size, err := strconv.ParseInt(arguments[4], 10, 64)
	if err != nil {
		return err
	}
	secure, last := arguments[5] == "true", arguments[6] == "true"
	listener, err := net.Listen("tcp", net.JoinHostPort(at, "0"))
	if err != nil {
		return err
	}
	fmt.Println(listener.Addr())
	identity, err := access.NewAuthority("relay")
	if err != nil {
		return err
	}
	fmt.Println(identity.Pin())
	if secure {
		settings, err := identity.ServerTLS()
		if err != nil {
			return err
		}
		listener = tls.NewListener(listener, settings)
	}
	var in io.Reader
	down := []io.Writer{}
	if upstream == "" {
		if in, err = os.Open(path); err != nil {
			return err
		}
	} else {
		conn, err := net.Dial("tcp", upstream)
		if err != nil {
			return err
		}
		if secure {
			conn = tls.Client(conn, access.ClientTLS(pin))
		}
		if _, err := conn.Write([]byte("\n")); err != nil { // the handshake is no part of it
			return err
		}
		file, err := os.Create(path)
		if err != nil {
			return err
		}
		in, down = conn, append(down, file)
	}
	if !last {
		conn, err := listener.Accept()
		if err != nil {
			return err
		}
		if _, err := conn.Read(make([]byte, 1)); err != nil {
			return err
		}
		down = append(down, conn)
	}
	told := bufio.NewReader(os.Stdin)
	if upstream == "" {
		if _, err := told.ReadString('\n'); err != nil {
			return err
		}
	}
	buffer := make([]byte, relayPiece)
	for left := size; left > 0; {
		n, err := io.ReadAtLeast(in, buffer[:min(left, relayPiece)], int(min(left, relayPiece/2)))
		if err != nil {
			return err
		}
		for _, w := range down {
			if _, err := w.Write(buffer[:n]); err != nil {
				return err
			}
		}
		left -= int64(n)
	}
	fmt.Println("done")
	_, _ = told.ReadString('\n') // until it is to end
	return nil
}

const relayArguments = 7
