package server

import (
	"context"
	"fmt"
	"maps"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"sync/atomic"

	"connectrpc.com/connect"

	"fairway/internal/access"
	"fairway/internal/bootstrap"
	"fairway/internal/heap"
	"fairway/internal/server/active"
	"fairway/internal/server/api"
	"fairway/internal/server/folder"
	"fairway/internal/server/launch"
	"fairway/internal/server/listen"
	"fairway/internal/storage"
	"fairway/internal/storage/served"
	"fairway/internal/wire"
)

// farHeapGrowth, in percent, is how much the heap of a server with sites may grow before
// it is collected, unless the environment variable GOGC says otherwise. Most of it are
// the connections of idle pilots, of which little is garbage: collections stay rare, and
// the Go runtime's default of 100 would cost each pilot 20 KiB more. leastHeapGrowth, in bytes, is
// more where there are few pilots: at 5000 jobs a second, a fifth of the time of a server with a
// small heap went into collections.
const (
	farHeapGrowth   = 40
	leastHeapGrowth = 32 << 20
)

// far is how pilots reach the server over a network. It is empty where no site needs
// that.
type far struct {
	listener    net.Listener
	own         []string                       // the addresses of this server
	known       atomic.Pointer[knownAddresses] // of all, where servers stand by; nil: none do
	connections *launch.Connections
	people      *access.Connection // of the owner; nil where people use the socket only
	files       http.Handler
	endpoint    *listen.Endpoint
}

// openFar opens the port and the batch systems whose pilots call there. Pilots of an
// earlier server find this one at once if its port is still free.
func (s *Server) openFar() error {
	if s.config.Lasting {
		if err := s.disownService(); err != nil {
			return err
		}
	}
	if len(s.config.Sites) == 0 && (!s.config.Lasting || s.config.Listen == "") {
		return nil
	}
	var addresses []string
	var err error
	if os.Getenv("GOGC") == "" {
		heap.KeepGrowth(farHeapGrowth, leastHeapGrowth)
	}
	if s.config.Standby != nil {
		s.config.Standby.Hush()
	}
	s.far.listener, addresses, err = access.Listen(s.config.Listen, launch.KnownPort(s.folders.Pilots), s.authority)
	if err != nil {
		return err
	}
	if s.far.own = addresses; s.config.Standby != nil {
		s.config.Standby.Others().SetAddresses(addresses)
		addresses = s.withOthers(addresses)
	}
	if err := s.openPeople(addresses); err != nil {
		return err
	}
	connections, err := launch.OpenConnections(s.folders.Pilots, s.authority, addresses, s.log)
	if err != nil {
		return err
	}
	connections.Tokens.Beside(s.door.Pilot)
	s.far.connections = connections
	if s.far.files, err = s.openFiles(); err != nil {
		return err
	}
	s.pilots.UseConnections(connections)
	for i := range s.config.Sites {
		site := &s.config.Sites[i]
		system, err := site.System(s.folders, func(name string, settings any) (launch.Way, error) {
			return connections.To(name, site.Name, settings)
		})
		if err != nil {
			return fmt.Errorf("site %s: %w", site.Name, err)
		}
		s.pilots.AddSite(site.Site, system, site.Poll)
	}
	return nil
}

// openFiles makes the server a storage element for its pilots, and marks the folders
// that they may share with it.
func (s *Server) openFiles() (http.Handler, error) {
	roots := s.folders.Roots()
	var marks []served.Mark
	shared := []struct{ prefix, beneath string }{
		{storage.StateScheme + ":", "."},
		{storage.FolderScheme + ":", folder.StateFolder},
		{"file:" + s.folders.Logs + "/", "."},
		{s.storage.Stores()[0], "."},
	}
	for i := range s.config.Sites {
		shared = append(shared, struct{ prefix, beneath string }{s.storage.StoresOf(s.config.Sites[i].Name)[0], "."})
	}
	for _, at := range shared {
		if !storage.IsLocal(at.prefix) ||
			slices.ContainsFunc(marks, func(m served.Mark) bool { return m.Prefix == at.prefix }) {
			continue
		}
		mark, err := served.NewMark(roots, at.prefix, at.beneath)
		if err != nil {
			return nil, fmt.Errorf("marking what pilots may share: %w", err)
		}
		marks = append(marks, mark)
	}
	element := maps.Clone(s.element)
	element[served.LogScheme] = served.Logs(s.folders.Logs)
	unfinished := filepath.Join(s.folders.Storage, unfinishedName)
	return served.NewHandler(served.Config{
		Element: inputFolders{element, roots, unfinished}, Unfinished: unfinished, Marks: marks,
		Authority: s.authority.FileKey(), Log: s.log,
		Launch: func(ctx context.Context) (string, bool) {
			caller, ok := access.CallerOf(ctx)
			return caller.Launch, ok
		},
	}), nil
}

// unfinishedName is that of the folder, in the storage element, for files that pilots
// have not sent to their end. Those in it are swept as all that nobody needs.
const unfinishedName = ".unfinished"

// farHandler serves pilots, and those only whose launch has not ended, and the person
// whose batch job the server is. A route finds in the context who calls (access.CallerOf).
func (s *Server) farHandler() http.Handler {
	path, handler := s.taskQueue()
	pilots := access.Handler(s.far.connections.Tokens, map[string]http.Handler{
		path: handler, served.Prefix: s.far.files,
		access.PilotLogPath: s.far.connections.LogHandler(),
		bootstrap.Prefix: bootstrap.Handler(s.far.connections.Programs(), func(text string) {
			_ = s.inbox.Note(context.Background(), text)
		}),
	})
	if s.far.people == nil {
		return pilots
	}
	return active.Ready(s.answers, s.role.WhileCurrent(access.ByCaller(s.door.Guard(s.peoplesCalls()), pilots)))
}

// taskQueue is the service of pilots, wherever they call.
func (s *Server) taskQueue() (path string, handler http.Handler) {
	queue := &api.TaskQueue{
		Inbox: s.inbox, Claims: access.Claims{
			Authority: s.authority, Stores: s.storage.StoresOf,
		},
		Variables: s.config.Variables, Log: s.log,
	}
	if s.termNumber != 0 {
		queue.Members = members{s}
	}
	path, handler = wire.NewTaskQueueHandler(queue, listen.Uncompressed, connect.WithReadMaxBytes(access.MaxMessage),
		connect.WithInterceptors(s.calls()))
	return path, access.Timed(s.bodies.Limit(handler))
}
