//go:build linux

package cli

import (
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"path/filepath"

	"github.com/spf13/cobra"

	"fairway/internal/access"
	"fairway/internal/cli/console"
	"fairway/internal/cli/screen"
	"fairway/internal/server"
	"fairway/internal/server/api"
	"fairway/internal/server/folder"
	"fairway/internal/server/people"
	"fairway/internal/web"
)

// defaultWeb is where pages are if --web names no address.
const defaultWeb = "127.0.0.1:0"

func webFlag(command *cobra.Command, o *runOptions) {
	flags := command.Flags()
	flags.StringVar(&o.web, "web", "", "show pages to browsers on this machine, and print the link to them once; "+
		"--web=`HOST:PORT` names the address (default 127.0.0.1 and a free port); with fairway serve, others than "+
		"loopback speak TLS")
	flags.Lookup("web").NoOptDefVal = defaultWeb
}

// openWeb opens the port of pages, if they are wanted, and prints the link to them.
func (c *commands) openWeb(o *runOptions, config *server.Config) error {
	if o.web == "" {
		c.webForProxy(o, config)
		return nil
	}
	host, _, err := net.SplitHostPort(o.web)
	if err != nil {
		return console.Fail(console.ExitUsage, "write --web=HOST:PORT, such as --web=127.0.0.1:8080",
			"--web=%s is no address", o.web)
	}
	ip := net.ParseIP(host)
	secure := host != "localhost" && (ip == nil || !ip.IsLoopback())
	if secure && !o.config.Lasting {
		return console.Fail(console.ExitUsage,
			"let it listen on 127.0.0.1, and reach it through ssh -L or a proxy that speaks TLS",
			"--web=%s: pages of one run are for browsers on this machine, since nothing on the way to them is encrypted", o.web)
	}
	listener, err := net.Listen("tcp", o.web)
	if err != nil {
		return console.Fail(console.ExitUsage, "name another port, or none", "--web: %w", err)
	}
	address := listener.Addr().String()
	names := access.Names(host)
	if secure && len(names) > 0 {
		_, port, _ := net.SplitHostPort(address)
		address = net.JoinHostPort(names[0], port)
	}
	entry := web.NewAccess(address, secure)
	config.Web = &server.Web{
		Listener: listener, Handler: o.pages(entry), Secure: secure, Certificate: o.webCertificate, Key: o.webKey,
		Names: names,
	}
	config.Web.Link = entry.Link(address)
	// What is printed elsewhere may become a log, which keeps no secrets.
	if _, _, terminal := screen.TerminalSize(c.Err); !terminal {
		file := screen.DisplayPath(filepath.Join(o.config.Folder, console.StateFolder, folder.LinkName))
		c.Announce("fairway: the link to the pages is in " + file + " (it lets in whoever has it)")
		return nil
	}
	where := "of this machine "
	if secure {
		where = ""
	}
	c.Announce(fmt.Sprintf("fairway: open %s in a browser %s(the link lets in whoever has it)", config.Web.Link, where))
	return nil
}

// pages makes the pages of a server.
func (o *runOptions) pages(entry *web.Access) func(*api.Service, *people.Door) http.Handler {
	name, err := filepath.Abs(o.config.Folder)
	if err != nil {
		name = o.config.Folder
	}
	return func(service *api.Service, door *people.Door) http.Handler {
		config := web.Config{Service: service, Access: entry, Name: name, Log: slog.Default()}
		if o.config.Lasting {
			config.Door = door
		}
		return web.New(config)
	}
}

// webForProxy has a proxy of the file of rights get the pages, where no port has them.
func (c *commands) webForProxy(o *runOptions, config *server.Config) {
	if o.config.Lasting && o.config.Rights != "" {
		config.Web = &server.Web{Handler: o.pages(web.NewAccess("", true))}
	}
}
