package launcher

import (
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"os"
	"strconv"
)

// Gang is what a task of a job is told of all tasks, as JSON. Programs of users read it: its names
// never change.
type Gang struct {
	Tasks   int      `json:"tasks"`
	Task    int      `json:"task"`
	Attempt string   `json:"attempt"` // of the gang; no other has the same
	Members []Member `json:"members"` // by task
	// Paths of files in PEM by which tasks know each other over TLS.
	Certificate string `json:"cert"`
	Key         string `json:"key"`
	Authority   string `json:"ca"`
	Folder      string `json:"folder"` // for versions of locations; empty at first
}

// Member is where a task is reached.
type Member struct {
	Task  int      `json:"task"`
	Host  string   `json:"host"`
	Ports []uint16 `json:"ports"` // that were free
}

// GangVariable names the file with a Gang, in the environment of a command.
const GangVariable = "FAIRWAY_GANG"

// Read reads the file that GangVariable names.
func Read() (*Gang, error) {
	path := os.Getenv(GangVariable)
	if path == "" {
		return nil, fmt.Errorf("%s is not set: this is for commands of jobs of several tasks", GangVariable)
	}
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	g := new(Gang)
	if err := json.Unmarshal(text, g); err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	if g.Task < 0 || g.Task >= len(g.Members) || g.Tasks != len(g.Members) {
		return nil, fmt.Errorf("%s names %d tasks of %d, and this is task %d", path, len(g.Members), g.Tasks, g.Task)
	}
	return g, nil
}

func (g *Gang) address(task int) (string, error) {
	m := &g.Members[task]
	if len(m.Ports) == 0 {
		return "", fmt.Errorf("task %d has no port", task)
	}
	return net.JoinHostPort(m.Host, strconv.Itoa(int(m.Ports[0]))), nil
}

// tls are the settings by which tasks of the gang talk with each other, and with nobody else.
func (g *Gang) tls() (*tls.Config, error) {
	certificate, err := tls.LoadX509KeyPair(g.Certificate, g.Key)
	if err != nil {
		return nil, err
	}
	authority, err := os.ReadFile(g.Authority)
	if err != nil {
		return nil, err
	}
	pool := x509.NewCertPool()
	if !pool.AppendCertsFromPEM(authority) {
		return nil, errors.New("the authority of the gang has no certificate")
	}
	return &tls.Config{
		MinVersion: tls.VersionTLS13, Certificates: []tls.Certificate{certificate}, RootCAs: pool, ClientCAs: pool,
		ClientAuth: tls.RequireAndVerifyClientCert,
	}, nil
}
