package server

import (
	"crypto/tls"
	"fmt"
	"net"
	"net/http"
	"os"
	"path/filepath"

	"fairway/internal/access"
	"fairway/internal/server/active"
	"fairway/internal/server/api"
	"fairway/internal/server/folder"
	"fairway/internal/server/listen"
	"fairway/internal/server/people"
)

// Web is how a server shows itself to browsers.
type Web struct {
	// Listener is closed by the server, also where Open fails. Nil: only a proxy gets the pages.
	Listener net.Listener
	// Handler makes the handler of the server's pages. It refuses who may not see them. The door is nil
	// where the server has its owner only.
	Handler func(*api.Service, *people.Door) http.Handler
	// Secure has the listener speak TLS, with the certificate of a file and its key, or one that the
	// state signs.
	Secure           bool
	Certificate, Key string
	Names            []string // hosts and addresses by which browsers reach the listener
	// Link lets the owner in, a secret. It is in a file of the state while the server runs.
	Link string
}

func (s *Server) openWeb() (*listen.Endpoint, error) {
	w := s.config.Web
	if w == nil || w.Listener == nil {
		return nil, nil
	}
	if err := access.WritePrivate(s.linkFile(), []byte(w.Link+"\n")); err != nil {
		return nil, err
	}
	listener := w.Listener
	if w.Secure {
		settings, err := s.webTLS()
		if err != nil {
			return nil, err
		}
		listener = access.Guard(listener, settings, access.MaxStrangers)
	}
	return listen.NewEndpoint(listener, s.role.WhileCurrent(w.Handler(s.service(), s.door)), s.log), nil
}

func (s *Server) webTLS() (*tls.Config, error) {
	w := s.config.Web
	if w.Certificate == "" {
		return s.authority.ServerTLS(w.Names...)
	}
	pair, err := tls.LoadX509KeyPair(w.Certificate, w.Key)
	if err != nil {
		return nil, fmt.Errorf("the certificate of the pages: %w", err)
	}
	return &tls.Config{MinVersion: tls.VersionTLS12, NextProtos: []string{"http/1.1"},
			Certificates: []tls.Certificate{pair}},
		nil
}

func (s *Server) linkFile() string { return filepath.Join(s.folders.State, folder.LinkName) }

func (s *Server) closeWeb() {
	if s.config.Web != nil && s.config.Web.Listener != nil {
		_ = s.config.Web.Listener.Close()
	}
	if s.web != nil && !active.IsReplaced(s.leaving()) {
		_ = os.Remove(s.linkFile())
	}
}
