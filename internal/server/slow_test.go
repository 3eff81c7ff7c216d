package server

import (
	"bufio"
	"context"
	"io"
	"log/slog"
	"net"
	"strings"
	"testing"

	"fairway/internal/flow/workflow"
)

// told is a log that says what it was told.
type told struct {
	slog.Handler
	say chan string
}

func (told) Enabled(context.Context, slog.Level) bool { return true }

func (h told) WithAttrs([]slog.Attr) slog.Handler { return h }

func (h told) Handle(_ context.Context, r slog.Record) error { h.say <- r.Message; return nil }

// A server that sends answers of status 103 and never one that counts is told of while a run
// looks for its inputs there.
func TestASlowServerIsNamedWhileInputsAreLookedFor(t *testing.T) {
	l, err := net.Listen("tcp4", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			go func() {
				defer c.Close()
				if _, err := bufio.NewReader(c).ReadString('\n'); err == nil {
					_, _ = io.WriteString(c, "HTTP/1.1 103 Early Hints\r\n\r\nHTTP/1.1 103 Early Hints\r\nX: ")
					_, _ = c.Read(make([]byte, 1)) // no more comes until the other end gives up
					_, _ = io.Copy(io.Discard, c)
				}
			}()
		}
	}()
	w, err := workflow.Parse("workflow.yaml", []byte("workflow: w\ninputs:\n  x: {files: \"http://"+l.Addr().String()+
		"/x\"}\nsteps:\n  a:\n    reads: x\n    writes: out\n    command: cp $in $out\n"))
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	log := told{slog.DiscardHandler, make(chan string, 10)}
	ended := make(chan error, 1)
	go func() {
		_, err := Open(ctx, Config{
			RunConfig: RunConfig{Workflow: w, Folder: t.TempDir()},
			Log:       slog.New(log),
		})
		ended <- err
	}()
	if said := <-log.say; !strings.Contains(said, "http://"+l.Addr().String()+" is slow to answer") {
		t.Error(said)
	}
	cancel()
	if err := <-ended; err == nil {
		t.Error("it went well")
	}
}
