package gangs

import (
	"crypto/tls"
	"crypto/x509"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"time"
)

// What a task of these tests is told besides what Fairway tells it.
const (
	memberVariable = "GANG_TEST_MEMBER" // a folder: this program is a task, and ends when it has its name there
	rounds         = 40
)

// gang is what the file of FAIRWAY_GANG says.
type gang struct {
	Tasks   int    `json:"tasks"`
	Task    int    `json:"task"`
	Attempt string `json:"attempt"`
	Members []struct {
		Task  int      `json:"task"`
		Host  string   `json:"host"`
		Ports []uint16 `json:"ports"`
	} `json:"members"`
	Cert   string `json:"cert"`
	Key    string `json:"key"`
	CA     string `json:"ca"`
	Folder string `json:"folder"`
}

// member is one task: it passes numbers around a ring, over TLS, and the first one writes what came
// of that.
func member(released string) error {
	text, err := os.ReadFile(os.Getenv("FAIRWAY_GANG"))
	if err != nil {
		return err
	}
	var g gang
	if err := json.Unmarshal(text, &g); err != nil {
		return err
	}
	if err := g.check(); err != nil {
		return err
	}
	previous, next, err := g.connect()
	if err != nil {
		return err
	}
	x := uint64(g.Task + 1)
	for range rounds {
		if err := binary.Write(next, binary.BigEndian, x); err != nil {
			return err
		}
		var y uint64
		if err := binary.Read(previous, binary.BigEndian, &y); err != nil {
			return err
		}
		x = mixed(x, y)
	}
	if g.Task != 0 { // until the first one has ended
		_, err := io.Copy(io.Discard, previous)
		if g.Task == 1 && err == nil || errors.Is(err, io.ErrUnexpectedEOF) {
			return next.Close()
		}
		return errors.Join(err, next.Close())
	}
	for name := filepath.Join(released, os.Getenv("FAIRWAY_NAME")); ; time.Sleep(time.Millisecond) {
		if _, err := os.Stat(name); err == nil {
			break
		}
	}
	if err := os.WriteFile(os.Getenv("out"), []byte(fmt.Sprintln(x)), 0o600); err != nil {
		return err
	}
	return next.Close()
}

func mixed(x, y uint64) uint64 { return x*6364136223846793005 + y ^ x>>7 }

// expected is what the first of so many tasks writes.
func expected(tasks int) string {
	x := make([]uint64, tasks)
	for i := range x {
		x[i] = uint64(i + 1)
	}
	for range rounds {
		y := make([]uint64, tasks)
		for i := range x {
			y[i] = mixed(x[i], x[(i+tasks-1)%tasks])
		}
		x = y
	}
	return fmt.Sprintln(x[0])
}

// check makes sure that all tells the same, and that nobody else reads the keys.
func (g *gang) check() error {
	if os.Getenv("FAIRWAY_TASKS") != strconv.Itoa(g.Tasks) || os.Getenv("FAIRWAY_TASK") != strconv.Itoa(g.Task) ||
		len(g.Members) != g.Tasks || g.Attempt == "" {
		return fmt.Errorf("%+v, and it is task %s of %s", g, os.Getenv("FAIRWAY_TASK"), os.Getenv("FAIRWAY_TASKS"))
	}
	for _, name := range []string{g.Cert, g.Key, g.CA, os.Getenv("FAIRWAY_GANG")} {
		info, err := os.Stat(name)
		if err != nil {
			return err
		}
		if info.Mode().Perm() != 0o600 {
			return fmt.Errorf("%s has the mode %v", name, info.Mode())
		}
	}
	if entries, err := os.ReadDir(g.Folder); err != nil || len(entries) > 0 {
		return fmt.Errorf("the folder for versions holds %v: %w", entries, err)
	}
	return nil
}

// connect connects the task with the one before it and the one after it.
func (g *gang) connect() (previous, next net.Conn, err error) {
	certificate, err := tls.LoadX509KeyPair(g.Cert, g.Key)
	if err != nil {
		return nil, nil, err
	}
	authority, err := os.ReadFile(g.CA)
	if err != nil {
		return nil, nil, err
	}
	pool := x509.NewCertPool()
	if !pool.AppendCertsFromPEM(authority) {
		return nil, nil, errors.New("no certificate of an authority")
	}
	settings := &tls.Config{
		MinVersion: tls.VersionTLS13, Certificates: []tls.Certificate{certificate}, RootCAs: pool, ClientCAs: pool,
		ClientAuth: tls.RequireAndVerifyClientCert,
	}
	me, to := g.Members[g.Task], g.Members[(g.Task+1)%g.Tasks]
	listener, err := tls.Listen("tcp", net.JoinHostPort(me.Host, strconv.Itoa(int(me.Ports[0]))), settings)
	if err != nil {
		return nil, nil, err
	}
	accepted := make(chan error, 1)
	go func() {
		var err error
		if previous, err = listener.Accept(); err == nil {
			err = previous.(*tls.Conn).Handshake()
		}
		accepted <- err
	}()
	client := settings.Clone()
	client.ServerName = to.Host
	for range 2000 {
		next, err = tls.Dial("tcp", net.JoinHostPort(to.Host, strconv.Itoa(int(to.Ports[0]))), client)
		if err == nil {
			return previous, next, <-accepted
		}
		time.Sleep(5 * time.Millisecond)
	}
	return nil, nil, err
}
