//go:build linux

package cli

import (
	"log/slog"
	"net"
	"net/http"
	"path/filepath"

	"github.com/spf13/cobra"

	"fairway/internal/server"
	"fairway/internal/server/api"
	"fairway/internal/web"
)

// defaultWeb is where pages are if --web names no address.
const defaultWeb = "127.0.0.1:0"

func webFlag(command *cobra.Command, o *runOptions) {
	flags := command.Flags()
	flags.StringVar(&o.web, "web", "", "show pages to browsers on this machine, and print the link to them once; "+
		"--web=`HOST:PORT` names the address (default 127.0.0.1 and a free port)")
	flags.Lookup("web").NoOptDefVal = defaultWeb
}

// openWeb opens the port of pages, if they are wanted, and prints the link to them.
func (c *console) openWeb(o *runOptions, config *server.Config) error {
	if o.web == "" {
		return nil
	}
	host, _, err := net.SplitHostPort(o.web)
	if err != nil {
		return fail(exitUsage, "write --web=HOST:PORT, such as --web=127.0.0.1:8080", "--web=%s is no address", o.web)
	}
	if ip := net.ParseIP(host); host != "localhost" && (ip == nil || !ip.IsLoopback()) {
		return fail(exitUsage, "let it listen on 127.0.0.1, and reach it through ssh -L or a proxy that speaks TLS",
			"--web=%s: pages are for browsers on this machine, since nothing on the way to them is encrypted", o.web)
	}
	listener, err := net.Listen("tcp", o.web)
	if err != nil {
		return fail(exitUsage, "name another port, or none", "--web: %w", err)
	}
	address := listener.Addr().String()
	access := web.NewAccess(address)
	name, err := filepath.Abs(o.folder)
	if err != nil {
		name = o.folder
	}
	config.Web = &server.Web{Listener: listener, Handler: func(service *api.Service) http.Handler {
		return web.New(web.Config{Service: service, Access: access, Name: name, Log: slog.Default()})
	}}
	c.announce("fairway: open " + access.Link(address) + " in a browser of this machine (the link lets in whoever has it)")
	return nil
}
