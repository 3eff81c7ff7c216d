package look

import (
	"context"
	"errors"
	"fmt"
	"hash"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"connectrpc.com/connect"

	"fairway/internal/cli/console"
	"fairway/internal/wire"
	"fairway/lib/sched"
	"hash/adler32"
)

// fetchTries is how often in a row a file is asked for of which nothing more comes.
const fetchTries = 5

// fetchPause is the time after the first of them. It doubles with each further one.
const fetchPause = 250 * time.Millisecond

// getFar fetches a file through a server that is reached over the network. It appears under its name
// when it is complete and has the checksum that the server has recorded.
func (c *Commands) getFar(
	ctx context.Context, lfn string, number *uint32, destination string,
) (*Fetched, error) {
	ask := func(do console.Asking) error { return c.Ask(ctx, do) }
	if destination == standardOutput {
		_, err := fetch(ctx, ask, lfn, number, c.Out)
		return nil, err
	}
	f := &Fetched{LFN: lfn, Destination: destinationOf(lfn, destination)}
	if _, err := os.Lstat(f.Destination); err == nil { // known before anything is copied
		return nil, taken(f.Destination)
	}
	out, err := os.CreateTemp(filepath.Dir(f.Destination), ".fairway-get-*")
	if err != nil {
		return nil, fmt.Errorf("making %s: %w", f.Destination, err)
	}
	defer func() {
		_ = out.Close()
		_ = os.Remove(out.Name())
	}()
	version, err := fetch(ctx, ask, lfn, number, out)
	if err != nil {
		return nil, err
	}
	f.Version, f.Adler32, f.Size = version.GetVersion(), version.GetAdler32(), version.GetSize()
	err = errors.Join(out.Chmod(0o644), out.Sync(), out.Close())
	if err == nil {
		err = os.Link(out.Name(), f.Destination) // unlike a rename it replaces nothing
	}
	switch {
	case errors.Is(err, fs.ErrExist):
		return nil, taken(f.Destination)
	case err != nil:
		return nil, fmt.Errorf("making %s: %w", f.Destination, err)
	}
	return f, nil
}

func fetch(
	ctx context.Context, ask func(console.Asking) error, lfn string, number *uint32, out io.Writer,
) (*wire.FileVersion, error) {
	t := &transfer{out: out, sum: adler32.New()}
	r := &wire.FetchRequest{Lfn: lfn, Version: number}
	for tries := 0; ; tries++ {
		before := t.size
		r.Offset, r.Pfn = t.size, t.version.GetPfn()
		err := ask(func(ctx context.Context, client wire.WorkflowClient) error { return t.take(ctx, client, r) })
		if err == nil {
			break
		}
		if t.size > before {
			tries = 0
		}
		if t.failed != nil || !t.broken || tries == fetchTries || ctx.Err() != nil {
			return nil, err
		}
		if err := sched.Default().Sleep(ctx, fetchPause<<tries); err != nil {
			return nil, err
		}
	}
	v := t.version
	if v.GetAdler32() != "" && v.GetAdler32() != fmt.Sprintf("%08x", t.sum.Sum32()) ||
		v.GetWriter() != nil && v.GetSize() != t.size {
		return nil, console.Fail(console.ExitFailed, remakeHint(v), "version %d of %s holds other bytes than its job stored",
			v.GetVersion(), lfn)
	}
	v.Size = t.size
	return v, nil
}

// transfer is a file on its way from a server.
type transfer struct {
	out     io.Writer
	sum     hash.Hash32
	size    int64             // what has come so far
	version *wire.FileVersion // nil before anything has come
	broken  bool              // the last stream broke off
	failed  error             // of out
}

func (t *transfer) take(ctx context.Context, client wire.WorkflowClient, r *wire.FetchRequest) error {
	t.broken = false
	stream, err := client.Fetch(ctx, r)
	if err != nil {
		t.broken = isBroken(err)
		return console.Explained(err)
	}
	defer func() { _ = stream.Close() }()
	for stream.Receive() {
		if v := stream.Msg().GetVersion(); v != nil && t.version == nil {
			t.version = v
		}
		data := stream.Msg().GetData()
		_, _ = t.sum.Write(data) // never fails
		if _, t.failed = t.out.Write(data); t.failed != nil {
			return t.failed
		}
		t.size += int64(len(data))
	}
	t.broken = isBroken(stream.Err())
	return console.Explained(stream.Err())
}

// isBroken reports whether a stream that ended so may be gone on with.
func isBroken(err error) bool {
	switch connect.CodeOf(err) {
	case connect.CodeUnavailable, connect.CodeDeadlineExceeded, connect.CodeUnknown, connect.CodeInternal:
		return err != nil
	}
	return false
}
