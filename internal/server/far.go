package server

import (
	"fmt"
	"net"
	"net/http"

	"connectrpc.com/connect"

	"fairway/internal/access"
	"fairway/internal/server/api"
	"fairway/internal/server/launch"
	"fairway/internal/server/listen"
	"fairway/internal/wire"
)

// far is how pilots reach the server over a network. It is empty where no site needs
// that.
type far struct {
	listener    net.Listener
	connections *launch.Connections
	endpoint    *listen.Endpoint
}

// openFar opens the port and the batch systems whose pilots call there. Pilots of an
// earlier server find this one at once if its port is still free.
func (s *Server) openFar() error {
	if len(s.config.Sites) == 0 {
		return nil
	}
	var addresses []string
	var err error
	s.far.listener, addresses, err = access.Listen(s.config.Listen, launch.KnownPort(s.folders.Pilots), s.authority)
	if err != nil {
		return err
	}
	connections, err := launch.OpenConnections(s.folders.Pilots, s.authority.Pin(), addresses, s.log)
	if err != nil {
		return err
	}
	s.far.connections = connections
	s.pilots.UseConnections(connections)
	for i := range s.config.Sites {
		site := &s.config.Sites[i]
		system, err := site.System(s.folders, func(name string, settings any) (string, error) {
			return connections.To(name, site.Name, settings)
		})
		if err != nil {
			return fmt.Errorf("site %s: %w", site.Name, err)
		}
		s.pilots.AddSite(site.Site, system, site.Poll)
	}
	return nil
}

// farHandler serves pilots only, and those only whose launch has not ended. A route
// finds in the context who calls (access.CallerOf).
func (s *Server) farHandler() http.Handler {
	path, handler := s.taskQueue()
	return access.Handler(s.far.connections.Tokens, map[string]http.Handler{path: access.Timed(handler)})
}

// taskQueue is the service of pilots, wherever they call.
func (s *Server) taskQueue() (path string, handler http.Handler) {
	return wire.NewTaskQueueHandler(&api.TaskQueue{
		Inbox: s.inbox, Claims: access.Claims{Authority: s.authority, Stores: s.config.stores},
	}, listen.Uncompressed, connect.WithReadMaxBytes(access.MaxMessage))
}
