package launch

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"fairway/internal/access"
)

const connectionEnding = ".connect"

// Connections are the files by which pilots reach this server over a network, one
// for each launch, with its token. A file is there from before the launch is
// submitted until the launch has ended. Any goroutine may call the methods.
type Connections struct {
	// Tokens are those of the files.
	Tokens *access.Tokens

	folder    string
	pin       string
	addresses []string
	log       *slog.Logger
}

// KnownPort is the port at which the launches in a folder know their server, 0 where
// there is none.
func KnownPort(folder string) int {
	for _, file := range connectionsIn(folder) {
		if c, err := access.ReadConnection(file); err == nil {
			return access.PortOf(c.Addresses)
		}
	}
	return 0
}

func connectionsIn(folder string) []string {
	files, _ := filepath.Glob(filepath.Join(folder, "*"+connectionEnding)) // the pattern is right
	return files
}

// OpenConnections takes over what an earlier server has left in a folder: its
// launches find this one at the new addresses, and their tokens are good.
func OpenConnections(folder, pin string, addresses []string, log *slog.Logger) (*Connections, error) {
	if err := os.MkdirAll(folder, 0o700); err != nil {
		return nil, err
	}
	c := &Connections{Tokens: access.NewTokens(), folder: folder, pin: pin, addresses: addresses, log: log}
	for _, file := range connectionsIn(folder) {
		at, err := access.Move(file, addresses, pin)
		if err != nil {
			log.Warn("a pilot of an earlier run cannot return", "error", err)
			continue
		}
		c.Tokens.Allow(at.Grant())
	}
	return c, nil
}

func (c *Connections) path(launch string) string {
	return filepath.Join(c.folder, launch+connectionEnding)
}

// To returns the connection file of a launch, whose token is good from now on. A
// launch that is submitted again has the one that it had. settings are those of its
// pilot (pilot.Config).
func (c *Connections) To(launch, site string, settings any) (file string, err error) {
	file = c.path(launch)
	if at, err := access.ReadConnection(file); err == nil {
		c.Tokens.Allow(at.Grant())
		return file, nil
	}
	encoded, err := json.Marshal(settings)
	if err != nil {
		return "", fmt.Errorf("settings of pilot %s: %w", launch, err)
	}
	at := access.Connection{
		Addresses: c.addresses, Pin: c.pin, Launch: launch, Site: site, Token: access.NewToken(), Pilot: encoded,
	}
	if err := at.Write(file); err != nil {
		return "", fmt.Errorf("connection file of pilot %s: %w", launch, err)
	}
	c.Tokens.Allow(at.Grant())
	return file, nil
}

// Forget ends a launch: its token is not good any more, and its file goes.
func (c *Connections) Forget(launch string) {
	c.Tokens.Revoke(launch)
	if err := os.Remove(c.path(launch)); err != nil && !errors.Is(err, fs.ErrNotExist) {
		c.log.Warn("the connection file of a launch that has ended stays", "error", err)
	}
}

// Keep forgets all launches but some.
func (c *Connections) Keep(launches []string) {
	for _, file := range connectionsIn(c.folder) {
		launch := strings.TrimSuffix(filepath.Base(file), connectionEnding)
		if !slices.Contains(launches, launch) {
			c.Forget(launch)
		}
	}
}
