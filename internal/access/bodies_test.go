package access

import (
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"

	"fairway/internal/wire"
)

// What a message takes in memory is known before it is decoded: also of one with nothing in
// its elements, or with other fields than are known.
func TestElementsAreCountedBeforeTheyAreMade(t *testing.T) {
	descriptor := (*wire.SyncRequest)(nil).ProtoReflect().Descriptor()
	encoded := func(m *wire.SyncRequest) []byte {
		b, err := proto.Marshal(m)
		if err != nil {
			t.Fatal(err)
		}
		return b
	}
	for what, c := range map[string]struct {
		message []byte
		want    int
	}{
		"nothing":       {nil, 0},
		"empty ones":    {encoded(&wire.SyncRequest{Queued: []*wire.AttemptRef{{}, {}, {}}}), 3},
		"inner ones":    {encoded(&wire.SyncRequest{CacheAdded: []*wire.CachedFile{{File: &wire.FileRef{Lfn: "a"}}}}), 3},
		"texts":         {encoded(&wire.SyncRequest{Pilot: "p", Hello: &wire.PilotInfo{Tools: []string{"", "b"}}}), 4},
		"a map":         {encoded(&wire.SyncRequest{Hello: &wire.PilotInfo{Has: &wire.Resources{Countable: map[string]int64{"gpu": 1}}}}), 4},
		"unknown ones":  {protowire.AppendBytes(protowire.AppendTag(nil, 999, protowire.BytesType), []byte("x")), 1},
		"no message":    {[]byte{0xff}, -1},
		"one cut short": {encoded(&wire.SyncRequest{Pilot: "pilot"})[:3], -1},
		"too many":      {encoded(&wire.SyncRequest{Queued: make([]*wire.AttemptRef, 11)}), -1},
	} {
		n, err := elementsOf(c.message, descriptor, 10)
		if c.want < 0 != (err != nil) || err == nil && n != c.want {
			t.Errorf("%s: %d, %v", what, n, err)
		}
	}
}

// A launch has one large message on its way; another waits for it, and small ones pass. Who
// gives up leaves room.
func TestALaunchSendsOneLargeMessageAtATime(t *testing.T) {
	bodies := NewBodies()
	inside, leave := make(chan bool), make(chan bool)
	handler := bodies.Limit(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		if _, err := io.Copy(io.Discard, r.Body); err != nil {
			t.Error(err)
		}
		inside <- IsLarge(r.Context())
		<-leave
	}))
	send := func(ctx context.Context, launch string, size int) chan struct{} {
		text, err := proto.Marshal(&wire.SyncRequest{Pilot: strings.Repeat("p", size)})
		if err != nil {
			t.Fatal(err)
		}
		r := httptest.NewRequestWithContext(context.WithValue(ctx, callerKey{}, Caller{Launch: launch}), http.MethodPost, "/",
			strings.NewReader(string(text)))
		r.Header.Set("Content-Type", messageType)
		done := make(chan struct{})
		go func() { defer close(done); handler.ServeHTTP(httptest.NewRecorder(), r) }()
		return done
	}
	first := send(t.Context(), "a", LargeMessage)
	if !<-inside {
		t.Error("it is not large")
	}
	small, other := send(t.Context(), "a", 10), send(t.Context(), "b", LargeMessage)
	if one, another := <-inside, <-inside; one == another {
		t.Error("a small and a large one are wanted")
	}
	given, giveUp := context.WithCancel(t.Context())
	second := send(given, "a", LargeMessage)
	giveUp()
	<-second
	third := send(t.Context(), "a", LargeMessage)
	for range 3 {
		leave <- true
	}
	<-inside
	leave <- true
	for _, done := range []chan struct{}{first, small, other, third} {
		<-done
	}
	if len(bodies.busy) != 0 || !bodies.coming.TryAcquire(MaxBodies) || !bodies.decoded.TryAcquire(MaxDecoded) {
		t.Error("room is missing", bodies.busy)
	}
}
