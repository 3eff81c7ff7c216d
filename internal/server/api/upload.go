package api

import (
	"context"
	"errors"
	"fmt"
	"regexp"

	"connectrpc.com/connect"

	"fairway/internal/wire"
)

// Part is a part of a file that a program brings for jobs that it submits.
type Part struct {
	Name    string // one element of a path, that does not begin with a dot
	Offset  int64  // of Content in the file
	Content []byte
	Last    bool
}

// ErrNotNext says that a part leaves a gap after those before it.
var ErrNotNext = errors.New("parts are missing before this one")

var uploadName = regexp.MustCompile(`^[A-Za-z0-9_-][A-Za-z0-9._-]{0,99}$`)

// Upload keeps a part of a file. What it answers for the last one is durable.
func (s *Service) Upload(ctx context.Context, r *wire.UploadRequest) (*wire.UploadResponse, error) {
	a, err := s.of(ctx, r)
	if err != nil {
		return nil, err
	}
	if _, err := s.lasting(); err != nil {
		return nil, err
	}
	if a.control == nil {
		return nil, s.errNotRunning(a)
	}
	size := int64(len(r.GetContent()))
	switch {
	case !uploadName.MatchString(r.GetName()):
		return nil, connect.NewError(connect.CodeInvalidArgument, fmt.Errorf("%q is no name for an upload: write letters, "+
			"digits, '.', '-' and '_', at most 100, and no '.' at the beginning", r.GetName()))
	case r.GetOffset() < 0:
		return nil, connect.NewError(connect.CodeInvalidArgument, fmt.Errorf("offset %d is negative", r.GetOffset()))
	case size > wire.MaxPart:
		return nil, connect.NewError(connect.CodeResourceExhausted, fmt.Errorf("a part has at most %d bytes, and not %d",
			wire.MaxPart, size))
	case r.GetOffset() > wire.MaxUploadedFile-size:
		return nil, connect.NewError(connect.CodeResourceExhausted, fmt.Errorf("a file that is uploaded has at most %d "+
			"bytes: put it where the server sees it, and name the path or URL", wire.MaxUploadedFile))
	}
	kept, file, err := a.control.KeepPart(&Part{r.GetName(), r.GetOffset(), r.GetContent(), r.GetLast()})
	if errors.Is(err, ErrNotNext) {
		return nil, connect.NewError(connect.CodeOutOfRange, fmt.Errorf("%s has %d bytes so far: go on there: %w",
			r.GetName(), kept, err))
	}
	return &wire.UploadResponse{Size: kept, File: file}, rpcError(err)
}
