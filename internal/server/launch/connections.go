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
	"sync"

	"fairway/internal/access"
	"fairway/internal/bootstrap"
	"fairway/internal/disk"
)

const connectionEnding = ".connect"

// Connections are the files by which pilots reach this server over a network, one
// for each launch, with its token. A file is there from before the launch is
// submitted until the launch has ended. Any goroutine may call the methods.
type Connections struct {
	// Tokens are those of the files.
	Tokens *access.Tokens

	folder    string
	authority *access.Authority
	program   bootstrap.Program // of this process
	log       *slog.Logger

	mu        sync.Mutex                   // guards what follows
	addresses []string                     // of the server, and of those that stand by
	good      map[string]bootstrap.Program // copies that were found good, by hash
}

// Way is how the pilot of a launch is started, and reaches its server.
type Way struct {
	// File is the connection file. It is there until the launch has ended.
	File       string
	Connection access.Connection
	Authority  []byte // its certificate
	// Program is the copy that the launch is submitted with, and Path where it is.
	Program bootstrap.Program
	Path    string
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
	return disk.WithEnding(folder, connectionEnding)
}

// OpenConnections takes over what an earlier server has left in a folder: its
// launches find this one at the new addresses, and their tokens are good. The folder
// gets a copy of the program.
func OpenConnections(
	folder string, authority *access.Authority, addresses []string, log *slog.Logger,
) (*Connections, error) {
	if err := os.MkdirAll(folder, 0o700); err != nil {
		return nil, err
	}
	c := &Connections{Tokens: access.NewTokens(), folder: folder, authority: authority, addresses: addresses, log: log}
	var err error
	if c.program, err = bootstrap.Keep(c.Programs()); err != nil {
		return nil, fmt.Errorf("copying this program for the nodes: %w", err)
	}
	c.good = map[string]bootstrap.Program{c.program.Hash: c.program}
	for _, file := range connectionsIn(folder) {
		at, err := read(file)
		if err == nil {
			at, err = access.Move(file, addresses, authority.Pin())
		}
		if err != nil {
			log.Warn("a pilot of an earlier run cannot return", "error", err)
			continue
		}
		c.Tokens.Allow(at.Grant())
	}
	return c, nil
}

// Move has launches find their servers at other addresses.
func (c *Connections) Move(addresses []string) {
	c.mu.Lock()
	c.addresses = addresses
	c.mu.Unlock()
	for _, file := range connectionsIn(c.folder) {
		if _, err := access.Move(file, addresses, c.authority.Pin()); err != nil && !errors.Is(err, fs.ErrNotExist) {
			c.log.Warn("a pilot does not hear of other addresses", "error", err)
		}
	}
}

func (c *Connections) known() []string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.addresses
}

func (c *Connections) path(launch string) string {
	return filepath.Join(c.folder, launch+connectionEnding)
}

// read reads the connection file of a launch. One that speaks of another launch was put
// there by somebody else.
func read(file string) (access.Connection, error) {
	at, err := access.ReadConnection(file)
	if launch := launchOf(file); err == nil && at.Launch != launch {
		err = fmt.Errorf("%s is of the launch %.100q, and not of %s", file, at.Launch, launch)
	}
	return at, err
}

func launchOf(file string) string { return strings.TrimSuffix(filepath.Base(file), connectionEnding) }

// Programs is the folder with the copies of the program that launches are started from.
func (c *Connections) Programs() string { return filepath.Join(c.folder, bootstrap.Folder) }

// To makes the connection file of a launch, whose token is good from now on. A launch
// that is submitted again has the one that it had. settings are those of its pilot
// (pilot.Config).
func (c *Connections) To(launch, site string, settings any) (Way, error) {
	file := c.path(launch)
	at, err := read(file)
	if err != nil {
		encoded, err := json.Marshal(settings)
		if err != nil {
			return Way{}, fmt.Errorf("settings of pilot %s: %w", launch, err)
		}
		at = access.Connection{
			Addresses: c.known(), Pin: c.authority.Pin(), Launch: launch, Site: site, Token: access.NewToken(), Pilot: encoded,
		}
	}
	program, err := c.find(at.Program)
	if err != nil { // the launch is new, or what it would start is lost
		program, at.Program = c.program, c.program.Hash
		if err := at.Write(file); err != nil {
			return Way{}, fmt.Errorf("connection file of pilot %s: %w", launch, err)
		}
	}
	c.Tokens.Allow(at.Grant())
	return Way{file, at, c.authority.Certificate(), program, bootstrap.Path(c.Programs(), program.Hash)}, nil
}

// find looks at the copy of a program, once.
func (c *Connections) find(hash string) (bootstrap.Program, error) {
	if hash == "" {
		return bootstrap.Program{}, fs.ErrNotExist
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if p, ok := c.good[hash]; ok {
		return p, nil
	}
	p, err := bootstrap.Find(c.Programs(), hash)
	if err == nil {
		c.good[hash] = p
	}
	return p, err
}

// Forget ends a launch: its token is not good any more, and its file goes.
func (c *Connections) Forget(launch string) {
	c.Tokens.Revoke(launch)
	if err := os.Remove(c.path(launch)); err != nil && !errors.Is(err, fs.ErrNotExist) {
		c.log.Warn("the connection file of a launch that has ended stays", "error", err)
	}
}

// Keep forgets all launches but some, and the copies of the program that none of them
// uses.
func (c *Connections) Keep(launches []string) {
	for _, file := range connectionsIn(c.folder) {
		launch := launchOf(file)
		if !slices.Contains(launches, launch) {
			c.Forget(launch)
		}
	}
	c.sweep(c.program.Hash)
}

// Close removes the copies of the program that no launch uses which outlives the server.
func (c *Connections) Close() { c.sweep() }

func (c *Connections) sweep(used ...string) {
	for _, file := range connectionsIn(c.folder) {
		at, err := access.ReadConnection(file)
		if err != nil || at.Program == "" {
			return
		}
		used = append(used, at.Program)
	}
	if err := bootstrap.Sweep(c.Programs(), used...); err != nil {
		c.log.Warn("copies of the program that no pilot uses stay", "error", err)
	}
}
