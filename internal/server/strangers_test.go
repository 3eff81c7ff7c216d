package server

import (
	"bytes"
	"context"
	"io"
	"net"
	"net/http"
	"os"
	"strings"
	"testing"

	"connectrpc.com/connect"
	"golang.org/x/sys/unix"
	"google.golang.org/protobuf/proto"

	"fairway/internal/access"
	"fairway/internal/batch"
	"fairway/internal/bootstrap"
	"fairway/internal/flow/workflow"
	"fairway/internal/server/folder"
	"fairway/internal/server/launch"
	"fairway/internal/storage/served"
	"fairway/internal/taskqueue"
	"fairway/internal/wire"
)

// idleSystem is a batch system that starts nothing.
type idleSystem struct{}

func (idleSystem) Submit(context.Context, string) error                    { return nil }
func (idleSystem) Status(context.Context) (map[string]batch.Status, error) { return nil, nil }
func (idleSystem) Withdraw(context.Context, ...string) error               { return nil }

// farServer is a server at its TLS port, without a run.
func farServer(t *testing.T) *Server {
	t.Helper()
	w, err := workflow.Parse("workflow.yaml",
		[]byte("workflow: w\nsteps:\n  a:\n    writes: out\n    command: echo > $out\n"))
	if err != nil {
		t.Fatal(err)
	}
	s, err := Open(t.Context(), Config{
		RunConfig: RunConfig{Workflow: w, Folder: t.TempDir()},
		Listen:    "127.0.0.1:0", Sites: []Site{{
			Site: taskqueue.Site{Name: "cluster", MaxPilots: 2},
			System: func(folder.Layout, func(string, any) (launch.Way, error)) (batch.System, error) {
				return idleSystem{}, nil
			},
		}},
	})
	if err != nil {
		t.Fatal(err)
	}
	go s.far.endpoint.Serve()
	t.Cleanup(func() {
		s.far.endpoint.Close(0)
		s.release()
	})
	return s
}

func connectionOf(t *testing.T, s *Server, name string) access.Connection {
	t.Helper()
	way, err := s.far.connections.To(name, "cluster", struct{}{})
	if err != nil {
		t.Fatal(err)
	}
	return way.Connection
}

// Whatever somebody says at the port who should not, or who should say something else:
// it is refused with a sentence, and the server goes on.
func TestWhoMayNotTalkToTheServer(t *testing.T) {
	s := farServer(t)
	own, other, ended := connectionOf(t, s, "cluster.1"), connectionOf(t, s, "cluster.2"), connectionOf(t, s, "cluster.3")
	s.far.connections.Forget("cluster.3")
	with := func(change func(*access.Connection)) access.Connection {
		c := own
		change(&c)
		return c
	}
	const sync = "/fairway.v1.TaskQueue/Sync"
	binary := http.Header{"Content-Type": {"application/proto"}}
	json := http.Header{"Content-Type": {"application/json"}}
	message := func(m *wire.SyncRequest) string {
		text, err := proto.Marshal(m)
		if err != nil {
			t.Fatal(err)
		}
		return string(text)
	}
	hello := func(pilot, launch, site string) string {
		return message(&wire.SyncRequest{
			Protocol: wire.Protocol, Pilot: pilot, Seq: 1, Full: true, Hello: &wire.PilotInfo{Launch: launch, Site: site},
		})
	}
	program := s.far.connections.Programs()
	entries, err := os.ReadDir(program)
	if err != nil || len(entries) != 1 {
		t.Fatal(entries, err)
	}
	hash := strings.TrimPrefix(entries[0].Name(), "fairway-")
	for name, c := range map[string]struct {
		by           access.Connection
		method, path string
		header       http.Header
		body         string
		status       int
		says         string
	}{
		"a wrong token":            {with(func(c *access.Connection) { c.Token = access.NewToken() }), "POST", sync, binary, hello("cluster.1-a", "cluster.1", "cluster"), 401, "not that of the launch"},
		"no token":                 {with(func(c *access.Connection) { c.Token = "" }), "POST", sync, binary, "", 401, "has no token"},
		"another launch's token":   {with(func(c *access.Connection) { c.Token = other.Token }), "POST", sync, binary, hello("cluster.1-a", "cluster.1", "cluster"), 401, "not that of the launch"},
		"the token of an end":      {ended, "POST", sync, binary, hello("cluster.3-a", "cluster.3", "cluster"), 401, "has ended"},
		"a command of people":      {own, "POST", "/fairway.v1.Workflow/ListJobs", binary, "", 403, "commands of people go through the socket"},
		"another path":             {own, "GET", "/debug/pprof/", nil, "", 403, "is not good for"},
		"another launch's pilot":   {own, "POST", sync, binary, hello("cluster.2-a", "cluster.2", "cluster"), 403, "is none"},
		"another site":             {own, "POST", sync, binary, hello("cluster.1-a", "cluster.1", "elsewhere"), 403, "use the connection file of its own launch"},
		"an attempt of nobody":     {own, "POST", sync, binary, message(&wire.SyncRequest{Protocol: wire.Protocol, Pilot: "cluster.1-a", Seq: 1, Full: true, Ended: []*wire.Report{{Result: &wire.Result{Job: 1, Attempt: 1}}}}), 403, "was not given to this pilot"},
		"no message":               {own, "POST", sync, binary, "\xff\xff\xff\xff", 400, "unmarshal"},
		"no JSON":                  {own, "POST", sync, json, "{}", 415, "of the type application/proto"},
		"a message of no end":      {own, "POST", sync, binary, strings.Repeat("\n", access.MaxMessage+1), 429, "larger than"},
		"a file of nobody":         {own, "GET", served.Prefix + "read?pfn=folder:workflow.yaml", nil, "", 403, "was not given the right to read"},
		"a file to be written":     {own, "PUT", served.Prefix + "write?pfn=state:x", http.Header{"Fairway-Size": {"0"}, "Fairway-Mode": {"644"}, "Fairway-Adler32": {"00000001"}, "Fairway-Blake3": {strings.Repeat("0", 64)}}, "", 403, "was not given the right to write"},
		"a program that is none":   {own, "GET", bootstrap.Prefix + "../../authority", nil, "", 403, ""},
		"a program of another day": {own, "GET", bootstrap.Prefix + strings.Repeat("0", 64) + "?machine=" + machine(), nil, "", 404, "no such program any more"},
		"a program for strangers":  {with(func(c *access.Connection) { c.Token = access.NewToken() }), "GET", bootstrap.Prefix + hash, nil, "", 401, "not that of the launch"},
		"a program to be written":  {own, "PUT", bootstrap.Prefix + hash, nil, "x", 400, "is wanted"},
	} {
		client := access.NewLine(c.by).Client(1)
		r, err := http.NewRequestWithContext(t.Context(), c.method, access.BaseURL+c.path, strings.NewReader(c.body))
		if err != nil {
			t.Fatal(name, err)
		}
		for key, values := range c.header {
			r.Header[key] = values
		}
		answer, err := client.Do(r)
		if err != nil {
			t.Error(name, err)
			continue
		}
		text, _ := io.ReadAll(answer.Body)
		answer.Body.Close()
		if answer.StatusCode != c.status || !bytes.Contains(text, []byte(c.says)) ||
			c.by.Token != "" && bytes.Contains(text, []byte(c.by.Token)) {
			t.Errorf("%s: %s %s", name, answer.Status, text)
		}
		client.CloseIdleConnections()
	}
	plain, err := net.Dial("tcp", own.Addresses[0])
	if err != nil {
		t.Fatal(err)
	}
	defer plain.Close()
	if _, err := io.WriteString(plain, "GET / HTTP/1.0\r\n\r\n"); err != nil {
		t.Fatal(err)
	}
	if text, _ := io.ReadAll(plain); bytes.Contains(text, []byte("200")) {
		t.Errorf("without TLS: %s", text)
	}
	// The right token gets as far as the TaskQueue, which tells other versions to leave.
	client := access.NewLine(own).Client(1)
	defer client.CloseIdleConnections()
	answer, err := wire.NewTaskQueueClient(client, access.BaseURL).Sync(t.Context(),
		&wire.SyncRequest{Pilot: "cluster.1-a", Protocol: wire.Protocol + 1})
	if err != nil || !answer.GetLeaveNow() || !strings.Contains(answer.GetWhy(), "version") {
		t.Error(answer, err, connect.CodeOf(err))
	}
}

// machine is the kind of this machine.
func machine() string {
	var name unix.Utsname
	_ = unix.Uname(&name) // never fails
	return unix.ByteSliceToString(name.Machine[:])
}
