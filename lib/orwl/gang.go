package orwl

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"os"
	"strconv"
	"time"
)

// GangVariable is the environment variable that names the file which a pilot has written for this
// task of a gang: who the tasks are, where they listen, and their keys.
const GangVariable = "FAIRWAY_GANG"

// JoinPatience is how long a task of a gang waits for the others to start. They are started
// together, but their inputs may arrive at different times.
const JoinPatience = 10 * time.Minute

// ErrNoGang says that this process was not started as a task of a gang.
var ErrNoGang = errors.New("this process is no task of a gang: " + GangVariable + " is not set. Run it by a step " +
	"with `tasks:`, or give orwl.Group the addresses")

// gang is what the file of a task says.
type gang struct {
	Tasks int `json:"tasks"`
	Task  int `json:"task"`
	// Attempt is different for each attempt of the gang.
	Attempt string       `json:"attempt"`
	Members []gangMember `json:"members"`
	// Files in PEM: the certificate of this task, its key, and the certificates that those of all
	// tasks are signed with, and no others.
	Cert string `json:"cert"`
	Key  string `json:"key"`
	CA   string `json:"ca"`
	// Folder is where checkpoints are kept, unless the step has a folder for them.
	Folder string `json:"folder"`
}

// CheckpointVariable is the environment variable with the folder of a step's `checkpoint: state/`.
const CheckpointVariable = "FAIRWAY_CHECKPOINT"

// gangMember is where a task listens: for locations at its first port, for checkpoints at the
// second.
type gangMember struct {
	Task  int    `json:"task"`
	Host  string `json:"host"`
	Ports []int  `json:"ports"`
}

const maxAttemptName = 200 // bytes, so that a location can have it in its name

// parseGang reads the file of a task, and says what is wrong with it.
func parseGang(text []byte) (*gang, error) {
	g := new(gang)
	if err := json.Unmarshal(text, g); err != nil {
		return nil, err
	}
	switch {
	case g.Task < 0 || g.Task >= g.Tasks:
		return nil, fmt.Errorf("there is no task %d among %d", g.Task, g.Tasks)
	case len(g.Members) != g.Tasks:
		return nil, fmt.Errorf("%d of %d tasks are named", len(g.Members), g.Tasks)
	case g.Attempt == "" || len(g.Attempt) > maxAttemptName:
		return nil, fmt.Errorf("the attempt has a name of %d bytes and not of 1 to %d", len(g.Attempt), maxAttemptName)
	}
	for k, m := range g.Members {
		if m.Task != k || m.Host == "" || len(m.Ports) == 0 {
			return nil, fmt.Errorf("member %d: give its task, a host and a port, in the order of the tasks", k)
		}
		for _, port := range m.Ports {
			if port <= 0 || port > 65535 {
				return nil, fmt.Errorf("member %d: there is no port %d", k, port)
			}
		}
	}
	return g, nil
}

// addresses are where the tasks listen at one of their ports; nil where one has no such port.
func (g *gang) addresses(port int) (all []string) {
	for _, m := range g.Members {
		if port >= len(m.Ports) {
			return nil
		}
		all = append(all, net.JoinHostPort(m.Host, strconv.Itoa(m.Ports[port])))
	}
	return all
}

// tls is for both ends of connections; nil where the gang has no keys, and is on one machine.
func (g *gang) tls() (*tls.Config, error) {
	if g.Cert == "" {
		return nil, nil
	}
	c, err := LoadTLS(g.Cert, g.Key, g.CA)
	if err != nil {
		return nil, err
	}
	// The gang's authority signs for its tasks and nobody else, so who has such a certificate is
	// one of them, by whatever address it was reached.
	c.InsecureSkipVerify = true
	c.VerifyConnection = func(s tls.ConnectionState) error {
		if len(s.PeerCertificates) == 0 {
			return errors.New("it has no certificate")
		}
		between := x509.NewCertPool()
		for _, c := range s.PeerCertificates[1:] {
			between.AddCert(c)
		}
		_, err := s.PeerCertificates[0].Verify(x509.VerifyOptions{
			Roots: c.RootCAs, Intermediates: between, KeyUsages: []x509.ExtKeyUsage{x509.ExtKeyUsageAny},
		})
		return err
	}
	return c, nil
}

// Join joins the gang that this process is a task of, which a step with `tasks:` has started: where
// the other tasks are comes from the TaskQueue, by way of the pilot, with keys of this attempt
// alone. Then it makes its locations, serves them and inserts its requests:
//
//	m, err := orwl.Join(ctx)
//	defer m.Close()
//	own, err := orwl.New(fmt.Sprint("row ", m.Process()), size, orwl.StartWith(2))
//	err = m.Serve(ctx, own)
//	above, err := m.Resource(ctx, fmt.Sprint("row ", m.Process()-1))
//	...
//	err = m.Finish(ctx)
//
// ErrNoGang says that this process is none; a program may go on alone then.
func Join(ctx context.Context) (*Member, error) {
	path := os.Getenv(GangVariable)
	if path == "" {
		return nil, ErrNoGang
	}
	return joinGang(ctx, path)
}

// joinGang joins as the task that a file describes.
func joinGang(ctx context.Context, path string) (*Member, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("joining the gang: %w", err)
	}
	g, err := parseGang(text)
	if err != nil {
		return nil, fmt.Errorf("joining the gang: %s, which %s names: %w", path, GangVariable, err)
	}
	c, err := g.tls()
	if err != nil {
		return nil, fmt.Errorf("joining the gang: %w", err)
	}
	m, err := Group{Addresses: g.addresses(0), Process: g.Task, TLS: c, Patience: JoinPatience}.open()
	if err != nil {
		return nil, fmt.Errorf("joining the gang: %w", err)
	}
	if folder := os.Getenv(CheckpointVariable); folder != "" {
		g.Folder = folder
	}
	m.gang = g
	if m.fence, err = g.addFence(&m.server, g.Tasks); err != nil {
		return nil, errors.Join(err, m.Close())
	}
	return m, nil
}

// fence is the name of a location that only tasks of the same attempt have: who is reached and has
// none belongs to another one, which is over.
func (g *gang) fence() string { return "attempt " + g.Attempt }

// addFence serves the fence. It is granted when so many requests have come.
func (g *gang) addFence(s *Server, requests int) (*Location, error) {
	l, err := New(g.fence(), 0, StartWith(requests))
	if err == nil {
		s.Add(l)
	}
	return l, err
}

// mirrorOfFence opens the fence of another task, and refuses one of another attempt.
func (g *gang) mirrorOfFence(ctx context.Context, p *Peer) (*Mirror, error) {
	f, err := p.Mirror(ctx, g.fence())
	if errors.Is(err, ErrUnknown) {
		err = errors.New("it belongs to another attempt of the gang")
	}
	return f, err
}

// meet waits until each task has reached each other one: before that none may finish.
func (m *Member) meet(ctx context.Context, own *Location) error {
	var all Handles
	for k := range m.peers {
		var r Resource = own
		if k != m.Process() {
			f, err := m.gang.mirrorOfFence(ctx, m.peers[k])
			if err != nil {
				return fmt.Errorf("task %d: %w", k, err)
			}
			r = f
		}
		h := new(Handle)
		if err := h.ReadRequest(r); err != nil {
			return errors.Join(err, all.Cancel())
		}
		all = append(all, h)
	}
	if err := all.Acquire(ctx); err != nil {
		return fmt.Errorf("waiting for all tasks to start: %w", err)
	}
	return all.Release()
}
