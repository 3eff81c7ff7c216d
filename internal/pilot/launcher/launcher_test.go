package launcher

import (
	"context"
	"crypto/tls"
	"errors"
	"net"
	"testing"

	"fairway/lib/orwl"
	"fairway/lib/orwl/orwltest"
)

// The pilot of another task may be slow, or silent for its lease: that is no failure of the job. It
// holds the port until its command begins, so there is somebody who accepts and says nothing, then
// nobody, and then the other task. One that has other keys is told of at once: these certificates are
// not for hosts.
func TestASlowTaskIsWaitedFor(t *testing.T) {
	if connectTime < orwl.JoinPatience {
		t.Errorf("another task may take %v to be there, and %v for orwl.Join", connectTime, orwl.JoinPatience)
	}
	paths, err := orwltest.Gang{Tasks: 2}.Write(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	t.Setenv(GangVariable, paths[0])
	first, err := Read()
	if err != nil {
		t.Fatal(err)
	}
	t.Setenv(GangVariable, paths[1])
	address, err := first.address(1)
	if err != nil {
		t.Fatal(err)
	}
	pilot, err := net.Listen("tcp", address)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	reached := make(chan error, 1)
	go func() {
		_, err := first.dial(ctx, 1)
		reached <- err
	}()
	waiting, err := pilot.Accept()
	if err != nil {
		t.Fatal(err)
	}
	_, _ = pilot.Close(), waiting.Close()
	served := make(chan error, 1)
	go func() { served <- Serve(ctx) }()
	var untrusted *tls.CertificateVerificationError
	if err := <-reached; !errors.As(err, &untrusted) {
		t.Errorf("it ends with %v", err)
	}
	cancel()
	<-served
}
