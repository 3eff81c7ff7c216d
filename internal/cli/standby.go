//go:build linux

package cli

import (
	"context"
	"fmt"
	"net"
	"os"

	"github.com/spf13/cobra"

	"fairway/internal/cli/console"
	"fairway/internal/server"
	"fairway/internal/server/active"
)

func (o *runOptions) checkStandby(command *cobra.Command) error {
	if !o.standby {
		if command.Flags().Changed("lease") {
			return console.Fail(console.ExitUsage, "add --standby, or leave it out",
				"--lease is for servers that stand by for each other")
		}
		return nil
	}
	if _, port, err := net.SplitHostPort(o.config.Listen); err != nil || port == "" || port == "0" {
		return console.Fail(console.ExitUsage, "name it, as in --listen :7070",
			"--standby wants an address with a port: by it pilots and clients find the next server")
	}
	if o.detach {
		return console.Fail(console.ExitUsage, "let a service manager start it (examples/systemd)",
			"--standby and --detach do not go together")
	}
	return nil
}

// serveByTurns serves workflows whenever this server is the active one, and stands by otherwise.
func (c *commands) serveByTurns(ctx context.Context, o *runOptions, config server.Config) error {
	b, err := active.Join(ctx, config.ToStandBy(), o.lease)
	if err != nil {
		return o.opened(err)
	}
	defer b.Leave()
	for {
		if err := c.awaitTurn(ctx, o, b); err != nil {
			return err
		}
		config.Standby = b
		err := c.serveOpened(ctx, o, config)
		if !active.IsReplaced(err) {
			return err
		}
		c.Announce(fmt.Sprintf("fairway: this server is not the active one any more: %v", err))
	}
}

// awaitTurn stands by until this server is the active one, or a signal ends it.
func (c *commands) awaitTurn(ctx context.Context, o *runOptions, b *active.Standby) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	received := make(chan os.Signal, 1)
	stop := console.Signalled(func(signal os.Signal) {
		received <- signal
		cancel()
	}, func(os.Signal) {})
	defer stop()
	c.Announce("fairway: standing by for " + console.FolderText(o.config.Folder))
	if err := tellReady(); err != nil {
		c.Announce("fairway: " + err.Error())
	}
	err := b.Await(ctx)
	select {
	case signal := <-received:
		return console.Quietly(signalCode(signal))
	default:
	}
	return err
}
