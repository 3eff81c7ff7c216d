package look

import (
	"bytes"
	"context"
	"fmt"
	"hash/adler32"
	"math/rand/v2"
	"net/http/httptest"
	"strings"
	"testing"

	"connectrpc.com/connect"

	"fairway/internal/cli/console"
	"fairway/internal/server/listen"
	"fairway/internal/wire"
	"fairway/lib/seed"
)

// sender sends a file and breaks off after some bytes of each call.
type sender struct {
	wire.WorkflowHandler
	t       *testing.T
	content []byte
	most    int
	version *wire.FileVersion
	calls   int
}

func (s *sender) Fetch(
	_ context.Context, r *wire.FetchRequest, stream *connect.ServerStream[wire.FetchChunk],
) error {
	if s.calls++; r.GetOffset() > 0 && r.GetPfn() != s.version.GetPfn() {
		s.t.Errorf("the call is gone on with as that of %q", r.GetPfn())
	}
	rest := s.content[r.GetOffset():]
	if err := stream.Send(&wire.FetchChunk{Version: s.version, Data: rest[:min(len(rest), s.most)]}); err != nil {
		return err
	}
	if len(rest) > s.most {
		return connect.NewError(connect.CodeUnavailable, fmt.Errorf("broken"))
	}
	return nil
}

// A file whose stream breaks off is gone on with, and is whole at the end; other bytes than were
// recorded are refused.
func TestFetchGoesOn(t *testing.T) {
	random := rand.New(rand.NewPCG(seed.Of(t), 0))
	content := make([]byte, 1000+random.IntN(100_000))
	for i := range content {
		content[i] = byte(random.Uint32())
	}
	s := &sender{t: t, content: content, most: len(content)/3 + 1, version: &wire.FileVersion{
		Version: 1, Size: int64(len(content)), Pfn: "state:f", Adler32: fmt.Sprintf("%08x", adler32.Checksum(content)),
		Writer: &wire.JobRef{Name: "j"},
	}}
	_, handler := listen.People(s)
	handler = listen.AsOwner(handler)
	server := httptest.NewServer(handler)
	defer server.Close()
	client := listen.PeoplesClient(server.Client(), server.URL)
	ask := func(do console.Asking) error { return do(t.Context(), client) }
	var got bytes.Buffer
	_, err := fetch(t.Context(), ask, "f", nil, &got)
	if err != nil || !bytes.Equal(got.Bytes(), content) || s.calls != 3 {
		t.Errorf("%v; %d bytes of %d in %d calls", err, got.Len(), len(content), s.calls)
	}
	s.content, s.most = append([]byte{content[0] + 1}, content[1:]...), len(content)
	_, err = fetch(t.Context(), ask, "f", nil, &got)
	if err == nil || !strings.Contains(err.Error(), "other bytes") {
		t.Error(err)
	}
}
