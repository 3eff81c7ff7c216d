package launcher

import (
	"context"
	"crypto/tls"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"
	"time"
)

// connectTime is how long another task may take to be there. It begins at the same time, but its pilot
// may be slow, and may be silent for its lease; if it is lost, the TaskQueue ends this task too.
const connectTime = 10 * time.Minute

// connectPause is the least time between two tries.
const connectPause = 20 * time.Millisecond

// HostOf is how programs that start others call the node of a task: they take it for the name of a
// host, which differs from the names of all others, also where tasks share a node.
func HostOf(task int) string { return "task" + strconv.Itoa(task) }

// Run has a command for sh run on the node of a task, by its HostOf, and returns its exit code.
func Run(ctx context.Context, host, command string, in io.Reader, out, errs io.Writer) (code int, err error) {
	g, err := Read()
	if err != nil {
		return 0, err
	}
	number, ok := strings.CutPrefix(host, HostOf(0)[:len(HostOf(0))-1])
	task, err := strconv.Atoi(number)
	if !ok || err != nil || task < 0 || task >= g.Tasks || HostOf(task) != host {
		return 0, fmt.Errorf("%q is no task: write %s to %s", host, HostOf(0), HostOf(g.Tasks-1))
	}
	conn, err := g.dial(ctx, task)
	if err != nil {
		return 0, fmt.Errorf("%s is not reached: %w", host, err)
	}
	defer func() { _ = conn.Close() }()
	line, err := json.Marshal(request{command})
	if err != nil {
		return 0, err
	}
	if _, err := conn.Write(append(line, '\n')); err != nil {
		return 0, err
	}
	go func() {
		_, _ = io.Copy(conn, in) // the command may end before its input
		_ = conn.CloseWrite()
	}()
	return receive(conn, out, errs)
}

func (g *Gang) dial(ctx context.Context, task int) (*tls.Conn, error) {
	settings, err := g.tls()
	if err != nil {
		return nil, err
	}
	settings.ServerName = g.Members[task].Host
	address, err := g.address(task)
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, connectTime)
	defer cancel()
	dialer := tls.Dialer{Config: settings}
	for {
		conn, err := dialer.DialContext(ctx, "tcp", address)
		if err == nil {
			return conn.(*tls.Conn), nil
		}
		if untrusted := (*tls.CertificateVerificationError)(nil); errors.As(err, &untrusted) {
			return nil, err // it is another program that has the port
		}
		select {
		case <-ctx.Done():
			return nil, err
		case <-time.After(connectPause):
		}
	}
}

func receive(from io.Reader, out, errs io.Writer) (code int, err error) {
	for {
		var head [5]byte
		if _, err := io.ReadFull(from, head[:]); err != nil {
			return 0, fmt.Errorf("the other task has ended: %w", err)
		}
		size := int64(binary.BigEndian.Uint32(head[1:]))
		var to io.Writer
		switch head[0] {
		case frameOut:
			to = out
		case frameErr:
			to = errs
		case frameExit:
			var code [1]byte
			_, err := io.ReadFull(from, code[:])
			return int(code[0]), err
		default:
			return 0, errors.New("the other task says what nobody understands")
		}
		if _, err := io.CopyN(to, from, size); err != nil {
			return 0, err
		}
	}
}
