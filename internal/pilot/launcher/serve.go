package launcher

import (
	"bufio"
	"context"
	"crypto/tls"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"sync"
	"time"
)

// request is what is to be started: one line of JSON, after which comes its standard input.
type request struct {
	Command string `json:"command"` // for sh
}

const (
	maxRequest = 1 << 20 // bytes
	// requestTime is how long who connects may take to say what is to be started.
	requestTime = 10 * time.Second
	// pipeTime is how long pipes are read that a process which has ended has left to others.
	pipeTime = time.Second
	// MaxCommands bounds the processes that one task has started for others at a time.
	MaxCommands = 1000
)

// What comes back, in frames: a kind, a length in four bytes, and so many bytes.
const (
	frameOut  byte = 1
	frameErr  byte = 2
	frameExit byte = 3 // the exit code, in one byte
)

// Serve starts what the first task of the gang asks for, until ctx ends. It always returns an error.
func Serve(ctx context.Context) error {
	g, err := Read()
	if err != nil {
		return err
	}
	settings, err := g.tls()
	if err != nil {
		return err
	}
	address, err := g.address(g.Task)
	if err != nil {
		return err
	}
	listener, err := net.Listen("tcp", address)
	if err != nil {
		return err
	}
	defer context.AfterFunc(ctx, func() { _ = listener.Close() })()
	places := make(chan struct{}, MaxCommands)
	for {
		conn, err := listener.Accept()
		if err != nil {
			return errors.Join(ctx.Err(), err)
		}
		select {
		case places <- struct{}{}:
		default:
			_ = conn.Close()
			continue
		}
		go func() {
			defer func() { <-places }()
			if err := serve(ctx, tls.Server(conn, settings)); err != nil {
				fmt.Fprintln(os.Stderr, "what another task asked for:", err)
			}
		}()
	}
}

// firstTask is the name in the certificate of the first task.
const firstTask = "task 0"

func serve(ctx context.Context, conn *tls.Conn) error {
	defer func() { _ = conn.Close() }()
	_ = conn.SetDeadline(time.Now().Add(requestTime))
	if err := conn.HandshakeContext(ctx); err != nil {
		return err
	}
	if name := conn.ConnectionState().PeerCertificates[0].Subject.CommonName; name != firstTask {
		return fmt.Errorf("%.100q asks, and only the first task may", name)
	}
	in := bufio.NewReader(io.LimitReader(conn, maxRequest))
	line, err := in.ReadBytes('\n')
	if err != nil {
		return err
	}
	var r request
	if err := json.Unmarshal(line, &r); err != nil {
		return err
	}
	_ = conn.SetDeadline(time.Time{})
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	out := &frames{to: conn}
	cmd := exec.CommandContext(ctx, "/bin/sh", "-c", r.Command)
	cmd.Stdout, cmd.Stderr, cmd.WaitDelay = frameWriter{out, frameOut}, frameWriter{out, frameErr}, pipeTime
	stdin, err := cmd.StdinPipe()
	if err != nil {
		return err
	}
	if err := cmd.Start(); err != nil {
		return err
	}
	go func() { // when who has asked is gone, what it has asked for is not wanted any more
		rest := io.MultiReader(io.LimitReader(in, int64(in.Buffered())), conn)
		_, err := io.Copy(stdin, rest)
		_ = stdin.Close()
		if err != nil {
			cancel()
		}
	}()
	err = cmd.Wait()
	code := cmd.ProcessState.ExitCode()
	if err != nil && code <= 0 && !errors.Is(err, exec.ErrWaitDelay) {
		code = 255
	}
	return out.write(frameExit, []byte{byte(code)})
}

// frames are written by several at a time.
type frames struct {
	mu sync.Mutex // guards to
	to io.Writer
}

func (f *frames) write(kind byte, data []byte) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	var head [5]byte
	head[0] = kind
	binary.BigEndian.PutUint32(head[1:], uint32(len(data)))
	if _, err := f.to.Write(head[:]); err != nil {
		return err
	}
	_, err := f.to.Write(data)
	return err
}

type frameWriter struct {
	*frames
	kind byte
}

func (w frameWriter) Write(data []byte) (int, error) {
	if err := w.write(w.kind, data); err != nil {
		return 0, err
	}
	return len(data), nil
}
