package server

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"time"

	"connectrpc.com/connect"

	"fairway/internal/access"
	"fairway/internal/audit"
	"fairway/internal/disk"
	"fairway/internal/rights"
	"fairway/internal/server/folder"
	"fairway/internal/server/listen"
	"fairway/internal/server/people"
)

func (s *Server) openDoor(ctx context.Context) (err error) {
	settings := &rights.Settings{}
	if s.config.Rights != "" {
		if settings, err = readRights(s.config.Rights); err != nil {
			return err
		}
	}
	if s.config.Lasting {
		if s.audit, err = audit.Open(filepath.Join(s.folders.State, folder.AuditName)); err != nil {
			return err
		}
	}
	s.door, err = people.Open(ctx, people.Config{
		Key: s.authority.Key("tokens of people"), Store: s.records, Settings: settings, Audit: s.audit,
		GroupsOf: s.GroupsOf, HasGroup: s.hasGroup, Connection: s.publicConnection, PilotSettings: s.pilotSettings,
		RenewOwner: s.renewOwner, Now: time.Now, Kept: s.keptTo, Log: s.log,
	})
	return err
}

// keptTo is the time by which tokens that have expired are forgotten.
func (s *Server) keptTo() time.Time {
	if s.config.Lasting {
		return s.keeping.now()
	}
	return time.Now()
}

func readRights(file string) (*rights.Settings, error) {
	info, err := os.Stat(file)
	if err != nil {
		return nil, fmt.Errorf("reading the file of rights: %w", err)
	}
	if info.Size() > rights.MaxFile {
		return nil, fmt.Errorf("%s is larger than %d bytes", file, rights.MaxFile)
	}
	text, err := os.ReadFile(file)
	if err != nil {
		return nil, fmt.Errorf("reading the file of rights: %w", err)
	}
	return rights.Parse(file, text)
}

func (s *Server) publicConnection() (c access.Connection, ok bool) {
	if s.far.people == nil {
		return c, false
	}
	c = *s.far.people
	c.Token = ""
	if known := s.far.known.Load(); known != nil {
		c.Addresses = known.all
	}
	return c, true
}

// writePublic writes the file by which people reach the server who have no token yet. It is no secret.
func (s *Server) writePublic(c access.Connection) error {
	c.Token = ""
	text, err := json.MarshalIndent(c, "", "  ")
	if err != nil {
		return err
	}
	return disk.Replace(filepath.Join(s.folders.State, folder.PublicName), append(text, '\n'), 0o644)
}

// renewOwner gives the owner another token: copies of the file .fairway/service are good no more.
func (s *Server) renewOwner() error {
	c, ok := s.publicConnection()
	if !ok {
		return connect.NewError(connect.CodeFailedPrecondition, errors.New("this server does not listen on a network, "+
			"and its owner has no token"))
	}
	c.Token = access.NewToken()
	return s.setOwner(c)
}

// pilotSettings are those of a pilot that a person starts for a site.
func (s *Server) pilotSettings(name string) (json.RawMessage, bool) {
	for i := range s.config.Sites {
		site := &s.config.Sites[i]
		if site.Name == name && site.Pilot != nil {
			text, err := json.Marshal(site.Pilot(s.folders))
			return text, err == nil
		}
	}
	return nil, false
}

func (s *Server) peoplesCalls() http.Handler {
	mux := http.NewServeMux()
	service := &people.Service{}
	if s.config.Lasting {
		service.Door = s.door
	}
	mux.Handle(listen.People(s.service(), s.calls(), s.door.Interceptor()))
	mux.Handle(listen.Rights(service, s.calls(), s.door.Interceptor()))
	return mux
}

// openProxy opens the socket of a proxy, which gets the calls of people and, where there are any, pages.
func (s *Server) openProxy() (*listen.Endpoint, error) {
	settings := s.door.Settings().Proxy
	if settings == nil || settings.Socket == "" {
		return nil, nil
	}
	listener, err := listen.Socket(settings.Socket, settings.Peers)
	if err != nil {
		return nil, fmt.Errorf("the socket of the proxy: %w", err)
	}
	calls, pages := s.door.Guard(s.peoplesCalls()), http.NotFoundHandler()
	if s.config.Web != nil {
		pages = s.config.Web.Handler(s.service(), s.door)
	}
	both := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if strings.HasPrefix(r.URL.Path, "/fairway.v1.") {
			calls.ServeHTTP(w, r)
			return
		}
		pages.ServeHTTP(w, r)
	})
	return listen.NewEndpoint(listener, s.role.WhileCurrent(people.OfProxy(both)), s.log), nil
}
