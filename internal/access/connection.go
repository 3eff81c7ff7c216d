package access

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"slices"
	"strconv"
	"strings"
)

// Connection is what a pilot needs to reach its server. The server writes it to
// a file for each launch.
type Connection struct {
	// Addresses are those of the server, as HOST:PORT, tried in order.
	Addresses []string `json:"addresses"`
	// Standby says that servers of the state stand by: where none is active, one will be soon.
	Standby bool `json:"standby,omitempty"`
	// Pin tells the server from all others: [Authority.Pin].
	Pin    string `json:"pin"`
	Launch string `json:"launch"`
	Token  Token  `json:"token"`
	Site   string `json:"site"`
	// Program is the hash of the program that the launch is submitted with.
	Program string `json:"program,omitempty"`
	// Certificate is [Authority.Certificate], for people's programs that know no pins.
	Certificate string `json:"certificate,omitempty"`
	// Pilot holds the settings of the pilot, those of pilot.Config.
	Pilot json.RawMessage `json:"pilot,omitempty"`
}

// Person is the name by which a person's own commands say who makes a call, in the place
// of a launch. No launch has it: theirs begin with the name of a site.
const Person = "person"

// Limits of a connection file.
const (
	MaxConnectionFile = 256 << 10
	MaxAddresses      = 32
	maxLaunch         = 200
	maxToken          = 200
)

// Write puts the connection into a file, which a pilot may be reading: it is
// replaced as a whole. Only its user may read it.
func (c *Connection) Write(path string) error {
	text, err := c.Encode()
	if err != nil {
		return err
	}
	return WritePrivate(path, text)
}

// Encode returns the text of a connection file.
func (c *Connection) Encode() ([]byte, error) {
	if err := c.check(); err != nil {
		return nil, err
	}
	text, err := json.MarshalIndent(c, "", "  ")
	return append(text, '\n'), err
}

// Headers are the lines by which a call says who makes it. They hold the token.
func (c *Connection) Headers() []string {
	return []string{launchHeader + ": " + c.Launch, tokenHeader + ": " + tokenScheme + string(c.Token)}
}

// ReadConnection reads a connection file. It refuses one that others may read.
func ReadConnection(path string) (Connection, error) {
	text, err := ReadPrivate(path, MaxConnectionFile)
	if err != nil {
		return Connection{}, err
	}
	c, err := decodeConnection(text)
	if err != nil {
		return Connection{}, fmt.Errorf("connection file %s: %w", path, err)
	}
	return c, nil
}

func readConnectionFrom(in io.Reader) (Connection, error) {
	text, err := io.ReadAll(io.LimitReader(in, MaxConnectionFile+1))
	if err == nil && len(text) > MaxConnectionFile {
		err = fmt.Errorf("it is longer than %d bytes", MaxConnectionFile)
	}
	if err != nil {
		return Connection{}, fmt.Errorf("connection: %w", err)
	}
	return decodeConnection(text)
}

// decodeConnection reads the text of a connection file. Names that it does not
// know are of a later version, and do no harm.
func decodeConnection(text []byte) (Connection, error) {
	var c Connection
	if err := json.Unmarshal(text, &c); err != nil {
		return Connection{}, fmt.Errorf("it is not a connection file: %w", err)
	}
	return c, c.check()
}

// ReadPublic reads a connection file of people that need not have a token, and then is no secret.
func ReadPublic(path string) (Connection, error) {
	file, err := os.Open(path)
	if err != nil {
		return Connection{}, err
	}
	defer func() { _ = file.Close() }()
	text, err := io.ReadAll(io.LimitReader(file, MaxConnectionFile))
	if err != nil {
		return Connection{}, err
	}
	return decodePublic(text)
}

// decodePublic reads the text of a connection file, whose token is left out: nobody sees it who may not.
func decodePublic(text []byte) (Connection, error) {
	var c Connection
	if err := json.Unmarshal(text, &c); err != nil {
		return Connection{}, fmt.Errorf("it is not a connection file: %w", err)
	}
	if c.Launch != Person {
		return Connection{}, errors.New("it is a connection file of a pilot, and not of people")
	}
	c.Token = publicToken
	if err := c.check(); err != nil {
		return Connection{}, err
	}
	c.Token = ""
	return c, nil
}

// publicToken stands for one while the rest of a file is checked.
const publicToken = "none"

func (c *Connection) check() error {
	digest, isSum := strings.CutPrefix(c.Pin, pinScheme)
	switch {
	case len(c.Addresses) == 0:
		return errors.New("it holds no addresses of the server")
	case len(c.Addresses) > MaxAddresses:
		return fmt.Errorf("it holds %d addresses, more than %d", len(c.Addresses), MaxAddresses)
	case !isSum || len(digest) != 64 || strings.Trim(digest, "0123456789abcdef") != "":
		return fmt.Errorf("the pin %.100q is not of the form sha256: and 64 hexadecimal digits", c.Pin)
	case !isHeader(c.Launch, maxLaunch):
		return fmt.Errorf("the launch %.100q is not a name", c.Launch)
	case !isHeader(string(c.Token), maxToken):
		return errors.New("the token is not one")
	}
	for _, address := range c.Addresses {
		host, port, err := net.SplitHostPort(address)
		if n, bad := strconv.ParseUint(port, 10, 16); err != nil || bad != nil || n == 0 || host == "" {
			return fmt.Errorf("the address %.100q is not of the form HOST:PORT", address)
		}
	}
	return nil
}

func isHeader(text string, most int) bool {
	return text != "" && len(text) <= most && !strings.ContainsFunc(text, func(c rune) bool { return c <= ' ' || c > '~' })
}

// Move writes new addresses and a new pin into a connection file, and leaves
// the rest of it. A file that says so already is not touched.
func Move(path string, addresses []string, pin string) (Connection, error) {
	c, err := ReadConnection(path)
	if err != nil || c.Pin == pin && slices.Equal(c.Addresses, addresses) {
		return c, err
	}
	c.Addresses, c.Pin = addresses, pin
	return c, c.Write(path)
}
