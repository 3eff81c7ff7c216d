package access

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"time"
)

// BaseURL is that of every call over a [Line]. Where it leads, the connection
// file says.
const BaseURL = "https://" + ServerName

// Headers by which a caller says who it is.
const (
	launchHeader = "Fairway-Launch"
	tokenHeader  = "Authorization"
	tokenScheme  = "Bearer "
)

// DialTime bounds the attempt to reach one address of a server.
const DialTime = 10 * time.Second

// Line is a pilot's way to its server. Whenever it makes a new connection it
// looks into the connection file, so it follows a server that moves. Any
// goroutine may use it.
type Line struct {
	file  string      // empty: there is none to look into
	above []aboveFile // the folders in which that is

	mu    sync.Mutex // guards what follows
	at    Connection
	told  []string // addresses that the server has told since
	good  string   // the address at which the server was reached last
	local net.IP   // from which
}

// OpenLine reads a connection file; "-" is standard input, which is read once.
func OpenLine(file string) (*Line, error) {
	if file == "-" {
		c, err := readConnectionFrom(os.Stdin)
		if err != nil {
			return nil, err
		}
		return NewLine(c), nil
	}
	c, err := ReadConnection(file)
	if err != nil {
		return nil, err
	}
	return &Line{file: file, above: foldersAbove(file), at: c}, nil
}

// NewLine is a Line that nothing moves.
func NewLine(c Connection) *Line { return &Line{at: c} }

// File is the connection file, empty if there is none.
func (l *Line) File() string { return l.file }

// Connection is what the line knows now.
func (l *Line) Connection() Connection {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.at
}

// reread reads the connection file again. While it cannot be read, or is of
// another launch, what was known holds.
func (l *Line) reread() Connection {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.file != "" {
		if c, err := ReadConnection(l.file); err == nil && c.Launch == l.at.Launch {
			l.at = c
		}
	}
	return l.at
}

// Client makes calls over the line with at most so many idle connections. The
// token goes to the server with the pin, and to no other.
func (l *Line) Client(idle int) *http.Client {
	return &http.Client{
		Transport: &bearer{l, &http.Transport{
			DialTLSContext:      func(ctx context.Context, _, _ string) (net.Conn, error) { return l.dial(ctx) },
			MaxIdleConnsPerHost: idle,
			DisableCompression:  true,
			// Plain text would go to whoever answers.
			DialContext: func(context.Context, string, string) (net.Conn, error) {
				return nil, errors.New("a server is reached over TLS only")
			},
		}},
		// A redirect would lead to another server.
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
}

// Dial makes a connection over which nothing was said yet.
func (l *Line) Dial(ctx context.Context) (net.Conn, error) { return l.dial(ctx) }

// dial tries the addresses one after the other, the one that was good last before
// the others. It does not wait for long at one that is silent: the next are tried
// beside it, and the first that answers is taken.
func (l *Line) dial(ctx context.Context) (net.Conn, error) {
	c := l.reread()
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	left := l.addresses()
	if good := l.Reached(); slices.Contains(left, good) {
		left = append([]string{good}, slices.DeleteFunc(slices.Clone(left), func(a string) bool { return a == good })...)
	}
	type attempt struct {
		address string
		conn    net.Conn
		err     error
	}
	ended := make(chan attempt)
	next := time.NewTimer(0)
	defer next.Stop()
	var failures []error
	for trying := 0; trying > 0 || len(left) > 0; {
		select {
		case <-next.C:
			if len(left) == 0 {
				continue
			}
			address := left[0]
			left = left[1:]
			trying++
			next.Reset(dialPause)
			go func() {
				conn, err := dialOne(ctx, address, c.Pin)
				select {
				case ended <- attempt{address, conn, err}:
				case <-ctx.Done():
					if conn != nil {
						_ = conn.Close()
					}
				}
			}()
		case a := <-ended:
			trying--
			if a.err == nil {
				l.setGood(a.address, a.conn)
				return a.conn, nil
			}
			failures = append(failures, fmt.Errorf("%s: %w", a.address, a.err))
			next.Reset(0)
		case <-ctx.Done():
			return nil, errors.Join(append(failures, ctx.Err())...)
		}
	}
	return nil, errors.Join(failures...)
}

// Learn takes the addresses of all servers of the state that an answer has: where nothing moves the
// line, it finds the next server by them.
func (l *Line) Learn(addresses []string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.told = addresses[:min(len(addresses), MaxAddresses)]
}

func (l *Line) addresses() []string {
	l.mu.Lock()
	defer l.mu.Unlock()
	all := slices.Clone(l.at.Addresses)
	for _, address := range l.told {
		if !slices.Contains(all, address) {
			all = append(all, address)
		}
	}
	return all
}

// dialPause is how long one address is tried before the next is, too.
const dialPause = 300 * time.Millisecond

// Reached is the address at which the server was reached last; empty: it was not.
func (l *Line) Reached() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.good
}

// Local is the address of this machine from which the server was reached last, and by
// which others on that network reach this machine; nil: it was not reached.
func (l *Line) Local() net.IP {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.local
}

func (l *Line) setGood(address string, conn net.Conn) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.good = address
	if at, ok := conn.LocalAddr().(*net.TCPAddr); ok {
		l.local = at.IP
	}
}

func dialOne(ctx context.Context, address, pin string) (net.Conn, error) {
	ctx, cancel := context.WithTimeout(ctx, DialTime)
	defer cancel()
	return (&tls.Dialer{Config: ClientTLS(pin)}).DialContext(ctx, "tcp", address)
}

// bearer says in each call who makes it.
type bearer struct {
	line *Line
	next http.RoundTripper
}

// RoundTrip is part of http.RoundTripper.
func (b *bearer) RoundTrip(r *http.Request) (*http.Response, error) {
	c := b.line.Connection()
	r = r.Clone(r.Context())
	r.Header.Set(launchHeader, c.Launch)
	if c.Token != "" {
		r.Header.Set(tokenHeader, tokenScheme+string(c.Token))
	}
	return b.next.RoundTrip(r)
}

// CloseIdleConnections is what http.Client.CloseIdleConnections calls.
func (b *bearer) CloseIdleConnections() {
	if next, ok := b.next.(interface{ CloseIdleConnections() }); ok {
		next.CloseIdleConnections()
	}
}

// Gone reports whether the connection file was removed from a folder that still is there, or with the state
// of the folder of a workflow that still is there: its launch is not wanted any more. Where a file system
// is away or a workflow was moved, that folder is not there either, or is another one.
func (l *Line) Gone() bool {
	if l.file == "" {
		return false
	}
	if _, err := os.Lstat(l.file); !errors.Is(err, fs.ErrNotExist) {
		return false
	}
	for _, above := range l.above {
		now, err := os.Stat(above.path)
		if err == nil && os.SameFile(now, above.was) {
			return true
		}
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return false
		}
	}
	return false
}

// aboveFile is a folder in which a connection file is, as it was when the line was opened.
type aboveFile struct {
	path string
	was  os.FileInfo
}

// foldersAbove are those in which a connection file of a state is, up to that of its workflow:
// WORKFLOW/.fairway/pilots/ID/LAUNCH.connect. Of another file it is the one in which it is.
func foldersAbove(file string) (all []aboveFile) {
	for at := filepath.Dir(file); len(all) < 4; at = filepath.Dir(at) {
		info, err := os.Stat(at)
		if err != nil {
			break
		}
		all = append(all, aboveFile{at, info})
	}
	if len(all) == 4 && filepath.Base(all[2].path) == stateFolder {
		return all
	}
	return all[:min(len(all), 1)]
}

// stateFolder is the name of the folder of a state.
const stateFolder = ".fairway"
