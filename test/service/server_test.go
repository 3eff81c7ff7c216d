package service

import (
	"bufio"
	"bytes"
	"errors"
	"io"
	"os"
	"os/exec"
	"strings"
	"sync"
	"syscall"
	"testing"

	"fairway/internal/server/api"
	"fairway/internal/server/listen"
)

// server is one start of `fairway serve`.
type server struct {
	t      *testing.T
	cmd    *exec.Cmd
	output output
	ended  chan struct{}
	client *listen.Connection // nil if the server ended before it took workflows
}

// output is what a server prints.
type output struct {
	mu   sync.Mutex // guards text
	text bytes.Buffer
}

func (o *output) add(line string) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.text.WriteString(line)
}

func (o *output) String() string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.text.String()
}

// serve starts a server, and returns when it takes workflows or has ended.
func serve(t *testing.T, state string, flags []string, environment ...string) *server {
	t.Helper()
	s := &server{t: t, ended: make(chan struct{})}
	s.cmd = exec.Command(fairway, append([]string{"serve", "--state", state, "--pilots", "2"}, flags...)...)
	s.cmd.Env = append(os.Environ(), environment...)
	reading, writing, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	s.cmd.Stdout, s.cmd.Stderr = writing, writing
	if err := errors.Join(s.cmd.Start(), writing.Close()); err != nil {
		t.Fatal(err)
	}
	serving := make(chan struct{})
	go s.read(reading, serving)
	go func() {
		_ = s.cmd.Wait()
		close(s.ended)
	}()
	select {
	case <-serving:
	case <-s.ended:
		return s
	}
	if s.client, err = api.Connect(t.Context(), state); err != nil {
		s.kill() // it was dying
		s.client = nil
		return s
	}
	return s
}

// read takes what the server prints, and tells when it takes workflows. Pilots have the same pipe,
// so it may last longer than the server.
func (s *server) read(from io.ReadCloser, serving chan struct{}) {
	defer func() { _ = from.Close() }()
	lines := bufio.NewReader(from)
	for told := false; ; {
		line, err := lines.ReadString('\n')
		s.output.add(line)
		if !told && strings.Contains(line, "fairway: serving ") {
			told = true
			close(serving)
		}
		if err != nil {
			return
		}
	}
}

// kill ends the server at once, if it has not ended.
func (s *server) kill() {
	_ = s.cmd.Process.Kill()
	s.end()
}

// end waits for the end of the server.
func (s *server) end() {
	<-s.ended
	if s.client != nil {
		s.client.Close()
	}
}

// killed reports whether a server that has ended was killed.
func (s *server) killed() bool {
	status, ok := s.cmd.ProcessState.Sys().(syscall.WaitStatus)
	return ok && status.Signaled() && status.Signal() == syscall.SIGKILL
}
