package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"
	"time"

	"fairway/examples/llk23/sweep"
	"fairway/lib/orwl"
	"fairway/lib/subprocess"
)

// member is one process of a run.
type member struct {
	config
	program *sweep.Program
	server  *orwl.Server
	dialer  orwl.Dialer
	folder  string
	address string
	peers   map[int]*orwl.Peer
	matrix  *orwl.Location // the result, to be read when it is complete
	own     orwl.Handle    // on the result, for writing
}

// assemble makes a process's part, and serves it where there are others.
func assemble(c config) (*member, error) {
	m := &member{config: c, peers: make(map[int]*orwl.Peer)}
	m.program = &sweep.Program{
		Cut: c.cut(), Iterations: c.Iterations, Paper: c.Scheme == schemePaper,
		Bound: c.Processes == 1,
		First: c.Process * c.Rows / c.Processes, Last: (c.Process + 1) * c.Rows / c.Processes,
	}
	var options []orwl.Option
	if c.Transport == "shared" {
		options = []orwl.Option{orwl.Shared(), orwl.OnLoss(orwl.Skip)}
	}
	if err := m.program.Build(options...); err != nil {
		return nil, err
	}
	if c.Processes == 1 {
		return m, nil
	}
	var err error
	if m.matrix, err = orwl.New("result", 8*c.N*c.N, options...); err != nil {
		return nil, err
	}
	if err := m.own.WriteRequest(m.matrix); err != nil {
		return nil, err
	}
	m.server = new(orwl.Server)
	m.server.Add(m.matrix)
	m.server.Add(m.program.Frontiers()...)
	return m, m.listen()
}

func (m *member) network() string {
	if m.Transport == "tcp" {
		return "tcp"
	}
	return "unix"
}

func (m *member) listen() (err error) {
	address := "127.0.0.1:0"
	switch {
	case m.onHosts():
		return m.listenOnHost()
	case m.network() == "unix":
		if m.folder, err = os.MkdirTemp("", "llk23"); err != nil {
			return err
		}
		address = filepath.Join(m.folder, "socket")
	}
	l, err := net.Listen(m.network(), address)
	if err != nil {
		return err
	}
	m.address = l.Addr().String()
	go m.server.Serve(l)
	return nil
}

// listenOnHost serves to the other hosts, over a line that may have a delay.
func (m *member) listenOnHost() error {
	tls, err := orwl.LoadTLS(m.keys())
	if err != nil {
		return err
	}
	l, err := net.Listen("tcp", net.JoinHostPort(m.host(m.Addresses), "0"))
	if err != nil {
		return err
	}
	m.address, m.dialer.TLS = l.Addr().String(), tls
	go m.server.ServeTLS(delayed{l, m.Delay}, tls)
	return nil
}

func (m *member) keys() (certificate, key, authorities string) {
	certificate = filepath.Join(m.Keys, certificateFile)
	return certificate, filepath.Join(m.Keys, keyFile), certificate
}

// join connects to the other processes and inserts all requests.
func (m *member) join(ctx context.Context, addresses []string) error {
	var neighbours sweep.Peers
	for k, address := range addresses {
		if k == m.Process {
			continue
		}
		p, err := m.dialer.Dial(ctx, m.network(), address)
		if err != nil {
			return err
		}
		m.peers[k] = p
		if k == m.Process-1 || k == m.Process+1 {
			neighbours = append(neighbours, p)
		}
	}
	m.program.Others = neighbours
	return m.program.Insert(ctx)
}

func (m *member) run(ctx context.Context) (time.Duration, error) {
	start := time.Now()
	err := m.program.Run(ctx)
	return time.Since(start), err
}

// publish lets the others read the result.
func (m *member) publish(ctx context.Context) error {
	words, err := orwl.WriteAs[float64](&m.own)
	if err != nil {
		return err
	}
	return errors.Join(m.program.Result(ctx, words), m.own.Release())
}

// collect adds the rows of another process to the matrix.
func (m *member) collect(ctx context.Context, process int, matrix []float64) error {
	result, err := m.peers[process].Mirror(ctx, "result")
	if err != nil {
		return err
	}
	var h orwl.Handle
	if err := errors.Join(h.ReadRequest(result), h.Acquire(ctx)); err != nil {
		return err
	}
	words, err := orwl.ReadAs[float64](&h)
	if err != nil {
		return err
	}
	for i, v := range words {
		if v != 0 { // rows that are not its own stay zero
			matrix[i] = v
		}
	}
	return h.Release()
}

func (m *member) close() {
	for _, p := range m.peers {
		p.Close()
	}
	if m.server != nil {
		m.server.Close()
	}
	if m.folder != "" {
		os.RemoveAll(m.folder)
	}
}

// leader is process 0, with the others.
type leader struct{ followers []*subprocess.Child }

func startFollowers(c config) (*leader, error) {
	l := &leader{}
	for k := 1; k < c.Processes; k++ {
		c.Process = k
		cmd, err := childCommand(c)
		if err != nil {
			return nil, err
		}
		f, err := subprocess.Start(cmd)
		if err != nil {
			return nil, err
		}
		l.followers = append(l.followers, f)
	}
	return l, nil
}

func (l *leader) stop() {
	for _, f := range l.followers {
		f.Stop()
	}
}

// tell sends a line to all others.
func (l *leader) tell(line string) {
	for _, f := range l.followers {
		f.Tell(line)
	}
}

// hear takes a word from each of the others.
func (l *leader) hear(take func(process int, word string)) error {
	for i, f := range l.followers {
		word, err := f.Hear()
		if err != nil {
			return fmt.Errorf("process %d: %w", i+1, err)
		}
		take(i+1, word)
	}
	return nil
}

// run does one run with all processes: build, exchange addresses, insert, all
// at once compute, collect.
func (l *leader) run(c config) (answer, error) {
	ctx := context.Background()
	l.tell("build")
	m, err := assemble(c)
	if err != nil {
		return answer{}, err
	}
	defer m.close()
	addresses := make([]string, c.Processes)
	addresses[0] = m.address
	if err := l.hear(func(k int, word string) { addresses[k] = word }); err != nil {
		return answer{}, err
	}
	l.tell(strings.Join(addresses, " "))
	if err := m.join(ctx, addresses); err != nil {
		return answer{}, err
	}
	if err := l.hear(func(int, string) {}); err != nil {
		return answer{}, err
	}
	l.tell("go")
	wall, err := m.run(ctx)
	if err != nil {
		return answer{}, err
	}
	computing := m.program.Computing()
	err = l.hear(func(_ int, word string) {
		var w, busy time.Duration
		fmt.Sscanf(word, "%d/%d", &w, &busy)
		wall, computing = max(wall, w), computing+busy
	})
	if err != nil {
		return answer{}, err
	}
	matrix := make([]float64, c.N*c.N)
	sweep.Boundary(c.N, matrix)
	if err := m.program.Result(ctx, matrix); err != nil {
		return answer{}, err
	}
	for k := range m.peers {
		if err := m.collect(ctx, k, matrix); err != nil {
			return answer{}, err
		}
	}
	l.tell("end")
	return answer{
		ns:           perElement(c, wall),
		hash:         hash(matrix),
		waitingShare: max(0, 1-float64(computing)/float64(wall)/float64(c.Cores)),
	}, nil
}

// follow is a process other than 0.
func follow(c config, in *bufio.Reader) error {
	for {
		if _, err := in.ReadString('\n'); err != nil {
			return nil
		}
		if err := followOnce(c, in); err != nil {
			return err
		}
	}
}

func followOnce(c config, in *bufio.Reader) error {
	ctx := context.Background()
	m, err := assemble(c)
	if err != nil {
		return err
	}
	defer m.close()
	fmt.Println(m.address)
	line, err := in.ReadString('\n')
	if err != nil {
		return err
	}
	if err := m.join(ctx, strings.Fields(line)); err != nil {
		return err
	}
	fmt.Println("ready")
	if _, err := in.ReadString('\n'); err != nil {
		return err
	}
	wall, err := m.run(ctx)
	if err != nil {
		return err
	}
	if err := m.publish(ctx); err != nil {
		return err
	}
	fmt.Printf("%d/%d\n", wall, m.program.Computing())
	_, err = in.ReadString('\n')
	return err
}
