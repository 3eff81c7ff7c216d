package api

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"slices"

	"connectrpc.com/connect"

	"fairway/internal/wire"
)

// fetchPiece is the most that one message of a file has, in bytes.
const fetchPiece = 256 << 10

// Fetch streams a stored version of a file of a run.
func (s *Service) Fetch(
	ctx context.Context, r *wire.FetchRequest, stream *connect.ServerStream[wire.FetchChunk],
) error {
	return s.FetchFile(ctx, r, stream.Send)
}

// FetchFile is Fetch with what sends a piece, which is good only for the call.
func (s *Service) FetchFile(ctx context.Context, r *wire.FetchRequest, send func(*wire.FetchChunk) error) error {
	a, err := s.of(ctx, r)
	if err != nil {
		return err
	}
	if a.files == nil {
		return s.errNotRunning(a)
	}
	v, err := s.storedVersion(ctx, r)
	if err != nil {
		return err
	}
	if r.GetOffset() > 0 && r.GetPfn() != v.GetPfn() {
		return connect.NewError(connect.CodeAborted, fmt.Errorf("another version of %s is stored now: begin again",
			r.GetLfn()))
	}
	body, err := a.files.Open(ctx, v.GetPfn())
	if errors.Is(err, fs.ErrNotExist) {
		return connect.NewError(connect.CodeNotFound, fmt.Errorf("version %d of %s was stored, and is lost: %w",
			v.GetVersion(), r.GetLfn(), err))
	}
	if err != nil {
		return rpcError(err)
	}
	defer func() { _ = body.Close() }()
	if _, err := io.CopyN(io.Discard, body, r.GetOffset()); err != nil {
		return connect.NewError(connect.CodeAborted, fmt.Errorf("%s has no byte %d: begin again", r.GetLfn(), r.GetOffset()))
	}
	chunk := &wire.FetchChunk{Version: v}
	for buffer := make([]byte, fetchPiece); ; chunk = new(wire.FetchChunk) {
		n, err := io.ReadFull(body, buffer)
		chunk.Data = buffer[:n]
		if n > 0 || chunk.GetVersion() != nil {
			if err := send(chunk); err != nil {
				return err
			}
		}
		switch {
		case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF):
			return nil
		case err != nil:
			return connect.NewError(connect.CodeUnavailable, fmt.Errorf("reading %s: %w", r.GetLfn(), err))
		}
	}
}

// storedVersion is a version that is stored: the newest one unless a number is given.
func (s *Service) storedVersion(ctx context.Context, r *wire.FetchRequest) (*wire.FileVersion, error) {
	missing := func(format string, values ...any) error {
		return connect.NewError(connect.CodeNotFound, fmt.Errorf(format, values...))
	}
	listed, err := s.ListFiles(ctx, &wire.ListFilesRequest{Run: r.GetRun(), Pattern: r.GetLfn(), Limit: 1})
	if err != nil {
		return nil, err
	}
	if len(listed.GetFiles()) == 0 || listed.GetFiles()[0].GetLfn() != r.GetLfn() {
		return nil, missing("there is no file %q; `fairway files` lists them", r.GetLfn())
	}
	versions := listed.GetFiles()[0].GetVersions()
	at := slices.IndexFunc(versions, func(v *wire.FileVersion) bool {
		return r.Version == nil && v.GetNewest() || r.Version != nil && v.GetVersion() == r.GetVersion()
	})
	switch {
	case at < 0 && r.Version != nil:
		return nil, missing("there is no version %d of %s", r.GetVersion(), r.GetLfn())
	case at < 0:
		at = len(versions) - 1
	}
	if v := versions[at]; v.GetPfn() != "" && v.GetLost() == "" {
		return v, nil
	}
	return nil, missing("version %d of %s is not stored; `fairway files` says why", versions[at].GetVersion(), r.GetLfn())
}
