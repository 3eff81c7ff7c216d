// Package client asks a Fairway server: it submits workflows and jobs, watches them, and fetches what they made.
// It speaks the API (docs/api.md) as JSON over HTTP, and needs nothing but the standard library.
//
//	c, err := client.Open("srv", nil) // the folder of a server, or a copy of its file .fairway/service
//	submitted, err := c.SubmitWorkflow(ctx, &client.SubmitWorkflowRequest{Workflow: text, Folder: folder})
//	run := c.About(submitted.Run)
//	last, err := run.Wait(ctx)
//	err = run.Download(ctx, "total.txt", 0, "total.txt")
//
// Each call of the API is a method of [Client], with its messages as types. An error that a server answers is an
// [*Error].
package client

import (
	"context"
	"crypto/sha256"
	"crypto/tls"
	"crypto/x509"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"time"
)

const (
	stateFolder  = ".fairway"
	serverName   = "fairway" // in the certificate of every server
	maxService   = 256 << 10 // bytes of a service file
	maxSocket    = 107       // bytes of the path of a socket that the kernel takes
	dialTime     = 10 * time.Second
	standbyDial  = 3 * time.Second // a server that is frozen takes the connection, and says nothing
	callTime     = 330 * time.Second
	frozenTime   = 70 * time.Second // as callTime, where another server answers instead
	silentTime   = 130 * time.Second
	takeoverTime = 2 * time.Minute // for which a call is made again, where servers stand by
)

// Client asks one server. Any goroutine may use it.
type Client struct {
	location string
	service  *service // nil: the server is reached by a socket of this machine
	http     *http.Client
	run      uint32
}

// service is a service file: how a server is reached over a network.
type service struct {
	Addresses []string `json:"addresses"`
	Standby   bool     `json:"standby"`
	Pin       string   `json:"pin"`
	Launch    string   `json:"launch"`
	Token     string   `json:"token"`
}

// Open makes a client of the server of a folder: that of a run (fairway run, open) or of a server that lasts
// (fairway serve). The location may also be a copy of a server's file .fairway/service, for a server on another
// machine. Empty, it is what the variable FAIRWAY_SERVICE has or else the working folder. Open makes no call:
// a server that does not answer is the error of the first one.
func Open(location string) (*Client, error) {
	if location == "" {
		location = os.Getenv("FAIRWAY_SERVICE")
	}
	location, err := filepath.Abs(location)
	if err != nil {
		return nil, err
	}
	c := &Client{location: location}
	info, err := os.Stat(location)
	if err != nil {
		return nil, fmt.Errorf("the location of a server: %w", err)
	}
	if !info.IsDir() {
		if c.service, err = readService(location); err != nil {
			return nil, err
		}
	} else if s, err := readService(filepath.Join(location, stateFolder, "service")); err == nil && s.Standby {
		c.service = s // servers that stand by have no socket for people
	}
	dial := c.dialSocket
	if c.service != nil {
		dial = c.dialService
	}
	c.http = &http.Client{
		Transport: &http.Transport{
			DialContext:        func(ctx context.Context, _, _ string) (net.Conn, error) { return dial(ctx) },
			DisableCompression: true, // a server's answers are not compressed, and need not be
		},
		// A redirect would lead to another server.
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
	return c, nil
}

// About returns a client of the same server whose requests are about one of its runs, where they do not name
// another.
func (c *Client) About(run uint32) *Client {
	about := *c
	about.run = run
	return &about
}

// Run is the number of the run that the requests are about; 0: that of the folder.
func (c *Client) Run() uint32 { return c.run }

// Close closes the connections that are idle. The client can still be used.
func (c *Client) Close() { c.http.CloseIdleConnections() }

func (c *Client) standby() bool { return c.service != nil && c.service.Standby }

func readService(path string) (*service, error) {
	file, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer func() { _ = file.Close() }()
	text, err := io.ReadAll(io.LimitReader(file, maxService))
	if err != nil {
		return nil, fmt.Errorf("service file: %w", err)
	}
	s := new(service)
	if err := json.Unmarshal(text, s); err != nil {
		return nil, fmt.Errorf("%s is not a service file: %w", path, err)
	}
	if len(s.Addresses) == 0 || s.Pin == "" {
		return nil, fmt.Errorf("%s is not a service file: it has no addresses or no pin; copy .fairway/service of a server",
			path)
	}
	return s, nil
}

// dialSocket connects to the socket of the folder, whatever the length of its path.
func (c *Client) dialSocket(ctx context.Context) (net.Conn, error) {
	path := filepath.Join(c.location, stateFolder, "socket")
	if info, err := os.Stat(path); err == nil && info.Mode().IsRegular() { // it holds the path of one elsewhere
		text, err := os.ReadFile(path)
		if err != nil {
			return nil, err
		}
		path = strings.TrimSpace(string(text))
	}
	if len(path) > maxSocket {
		folder, err := os.Open(filepath.Dir(path))
		if err != nil {
			return nil, err
		}
		defer func() { _ = folder.Close() }()
		path = fmt.Sprintf("/proc/self/fd/%d/%s", folder.Fd(), filepath.Base(path))
	}
	var dialer net.Dialer
	return dialer.DialContext(ctx, "unix", path)
}

// dialService connects to the first address of the service that answers as its server.
func (c *Client) dialService(ctx context.Context) (net.Conn, error) {
	wait := dialTime
	if c.service.Standby {
		wait = standbyDial
	}
	var failures []error
	for _, address := range c.service.Addresses {
		dialling, cancel := context.WithTimeout(ctx, wait)
		conn, err := (&tls.Dialer{Config: c.service.tls()}).DialContext(dialling, "tcp", address)
		cancel()
		if err == nil {
			return conn, nil
		}
		failures = append(failures, fmt.Errorf("%s: %w", address, err))
	}
	return nil, errors.Join(failures...)
}

// tls are the settings by which only the server of the service file is believed.
func (s *service) tls() *tls.Config {
	return &tls.Config{
		MinVersion: tls.VersionTLS13,
		NextProtos: []string{"http/1.1"},
		ServerName: serverName,
		// The pin takes the place of the authorities of the system.
		InsecureSkipVerify: true,
		VerifyConnection:   func(state tls.ConnectionState) error { return s.verify(state.PeerCertificates) },
	}
}

var errOtherServer = errors.New("another server answers than that of the service file")

// verify makes sure that the first certificate was signed by that with the pin. It passes over the time, as the
// clocks of two machines may differ.
func (s *service) verify(chain []*x509.Certificate) error {
	if len(chain) == 0 {
		return errOtherServer
	}
	roots := x509.NewCertPool()
	for _, certificate := range chain {
		if sum := sha256.Sum256(certificate.Raw); "sha256:"+hex.EncodeToString(sum[:]) == s.Pin {
			roots.AddCert(certificate)
		}
	}
	_, err := chain[0].Verify(x509.VerifyOptions{
		DNSName: serverName, Roots: roots, CurrentTime: chain[0].NotBefore,
		KeyUsages: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
	})
	if err != nil {
		return fmt.Errorf("%w: %w", errOtherServer, err)
	}
	return nil
}

// unanswered says what is wrong where no server answers.
func (c *Client) unanswered(err error) error {
	if c.service == nil && (errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ECONNREFUSED)) {
		return &Error{Code: Unavailable, Message: fmt.Sprintf(
			"nothing runs in %s; start it with `fairway run` or `fairway serve`", c.location), cause: err}
	}
	return &Error{Code: Unavailable, Message: fmt.Sprintf("no server answers at %s: %v", c.location, err), cause: err}
}
