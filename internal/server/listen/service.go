package listen

import (
	"context"
	"errors"
	"fmt"
	"time"

	"fairway/internal/access"
	"fairway/internal/wire"
)

// ConnectTime is how long a client waits for a server that is just starting or ending.
const ConnectTime = 3 * time.Second

// Connection is a client of the Workflow service.
type Connection struct {
	wire.WorkflowClient
	// Rights is the client of the Rights service; nil where records answer.
	Rights wire.RightsClient
	// Live says that a server answers; otherwise the records of the last run of a folder do, and
	// what would change them is refused.
	Live bool
	// Far says that the server may run on another machine.
	Far bool
	// Standby says that servers stand by: when the active one goes, another one answers soon.
	Standby bool
	Closing func() // what Close does
}

// Close ends the connection and the streams that came from it.
func (c *Connection) Close() { c.Closing() }

// DialService reaches a lasting server by the file in which it says how (folder.ServiceName), or a
// copy. It works on every system.
func DialService(ctx context.Context, file string) (*Connection, error) {
	connection, err := access.ReadConnection(file)
	if err != nil {
		return nil, err
	}
	return DialActive(ctx, connection)
}

// ErrNoActive says that none of the servers which stand by for each other is active at the moment, as far as
// they are reached.
var ErrNoActive = errors.New("no active server is reached")

// ErrUnreached says that a server does not answer where its connection file says, or is another one.
var ErrUnreached = errors.New("the server is not reached")

// DialActive reaches a server by its connection file. Where servers stand by and none is active, the
// error is ErrNoActive: it may be tried again.
func DialActive(ctx context.Context, connection access.Connection) (*Connection, error) {
	c, err := DialLine(ctx, connection)
	switch {
	case err != nil && connection.Standby:
		return nil, fmt.Errorf("%w: %w", ErrNoActive, err)
	case err != nil:
		return nil, fmt.Errorf("%w: %w", ErrUnreached, err)
	}
	return c, nil
}

// DialPublic is DialService by a file that need not have a token: for calls that need none.
func DialPublic(ctx context.Context, file string) (*Connection, error) {
	connection, err := access.ReadPublic(file)
	if err != nil {
		return nil, err
	}
	c, err := DialLine(ctx, connection)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrUnreached, err)
	}
	return c, nil
}

// DialLine reaches a server over the network.
func DialLine(ctx context.Context, connection access.Connection) (*Connection, error) {
	line := access.NewLine(connection)
	dialling, cancel := context.WithTimeout(ctx, ConnectTime)
	defer cancel()
	probe, err := line.Dial(dialling)
	if err != nil {
		return nil, err
	}
	_ = probe.Close()
	client := line.Client(1)
	return &Connection{
		WorkflowClient: PeoplesClient(client, access.BaseURL), Rights: RightsClient(client, access.BaseURL),
		Live: true, Far: true, Standby: connection.Standby, Closing: client.CloseIdleConnections,
	}, nil
}
