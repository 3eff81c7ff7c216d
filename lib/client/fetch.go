package client

import (
	"context"
	"crypto/rand"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"time"
)

// maxBroken is how often in a row a stream that breaks off without anything new is begun again.
const maxBroken = 5

// Wait waits for the end of the run that the client is about, and returns its last report. A server that goes away
// and comes back, or is taken over from, is asked again.
func (c *Client) Wait(ctx context.Context) (*ProgressReport, error) {
	for broken := 0; ; broken++ {
		var failure error
		for report, err := range c.Progress(ctx, &ProgressRequest{Follow: true}) {
			if err != nil {
				failure = err
				break
			}
			if broken = 0; report.Ended {
				return report, nil
			}
		}
		if failure == nil {
			failure = &Error{Code: Unavailable, Message: "the server ended before the run did"}
		}
		if ctx.Err() != nil || CodeOf(failure) != Unavailable || broken == maxBroken {
			return nil, failure
		}
		select {
		case <-time.After(time.Second):
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
}

// Copy writes a stored file of the run to a writer, and returns how many bytes it had; version 0 is the newest. Where
// the stream breaks off, it goes on from there.
func (c *Client) Copy(ctx context.Context, to io.Writer, lfn string, version uint32) (int64, error) {
	request := &FetchRequest{LFN: lfn}
	if version != 0 {
		request.Version = &version
	}
	for broken := 0; ; broken++ {
		had := request.Offset
		var failure error
		for chunk, err := range c.Fetch(ctx, request) {
			if err != nil {
				failure = err
				break
			}
			if chunk.Version != nil {
				number := chunk.Version.Version
				request.PFN, request.Version = chunk.Version.PFN, &number
			}
			n, err := to.Write(chunk.Data)
			request.Offset += int64(n)
			if err != nil {
				return request.Offset, err
			}
		}
		if failure == nil {
			return request.Offset, nil
		}
		if request.Offset > had {
			broken = 0
		}
		if ctx.Err() != nil || CodeOf(failure) != Unavailable || broken == maxBroken {
			return request.Offset, fmt.Errorf("fetching %s: %w", lfn, failure)
		}
	}
}

// Download writes a stored file of the run to a path of this machine, which it has when it is complete and on the
// disk; version 0 is the newest.
func (c *Client) Download(ctx context.Context, lfn string, version uint32, path string) error {
	name := filepath.Join(filepath.Dir(path), "."+filepath.Base(path)+".part-"+rand.Text())
	part, err := os.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o666)
	if err != nil {
		return err
	}
	defer func() { _ = os.Remove(name) }()
	_, err = c.Copy(ctx, part, lfn, version)
	if err == nil {
		err = part.Sync()
	}
	if closing := part.Close(); err == nil {
		err = closing
	}
	if err != nil {
		return err
	}
	return os.Rename(name, path)
}
