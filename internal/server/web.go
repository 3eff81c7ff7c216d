package server

import (
	"net"
	"net/http"

	"fairway/internal/server/api"
	"fairway/internal/server/listen"
)

// Web is how a server shows itself to browsers.
type Web struct {
	// Listener is closed by the server, also where Open fails.
	Listener net.Listener
	// Handler makes the handler of the server's pages. It refuses who may not see them.
	Handler func(*api.Service) http.Handler
}

// openWeb makes the endpoint of pages, where they are wanted.
func (s *Server) openWeb() *listen.Endpoint {
	if s.config.Web == nil {
		return nil
	}
	return listen.NewEndpoint(s.config.Web.Listener, s.config.Web.Handler(s.service()), s.log)
}

// closeWeb gives the port of pages back.
func (s *Server) closeWeb() {
	if s.config.Web != nil {
		_ = s.config.Web.Listener.Close()
	}
}
