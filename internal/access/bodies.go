//go:build linux

package access

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http"
	"sync"
	"time"

	"connectrpc.com/connect"
	"golang.org/x/sync/semaphore"
	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/reflect/protoreflect"

	"fairway/internal/wire"
)

// Limits of the messages of pilots that are on their way together. What a message takes in
// memory is known before it is decoded.
const (
	// LargeMessage is the size, in bytes, beyond which a message counts for the limits below,
	// and is answered at once: what it holds is not kept while an answer is held.
	LargeMessage = 4 << 10
	// MaxElements is how many texts and messages one message may hold. Each takes some memory,
	// even if it has no byte.
	MaxElements = 500_000
	// MaxBodies is how many bytes large messages that are on their way may take together, twice
	// the size of each. A launch has one at a time. The others wait.
	MaxBodies = 256 << 20
	// MaxDecoded is how many bytes large messages may take together when they are decoded.
	MaxDecoded = 256 << 20
	// RoomTime is how long a large message waits for others. It may be sent again then.
	RoomTime = 30 * time.Second

	elementSize = 200 // bytes in memory, about
)

// Bodies bounds the messages of pilots that are on their way together, over all endpoints.
type Bodies struct {
	coming, decoded *semaphore.Weighted // of bytes

	mu   sync.Mutex // guards busy
	busy map[string]*launchRoom
}

// launchRoom is for the one large message that a launch may have on its way.
type launchRoom struct {
	taken chan struct{} // has room for one
	users int           // who have it or wait for it
}

// NewBodies returns Bodies without any message.
func NewBodies() *Bodies {
	return &Bodies{
		coming: semaphore.NewWeighted(MaxBodies), decoded: semaphore.NewWeighted(MaxDecoded), busy: map[string]*launchRoom{},
	}
}

type largeKey struct{}

// IsLarge reports whether a call has a message of more than LargeMessage bytes: its answer is
// not to be held.
func IsLarge(ctx context.Context) bool { return ctx.Value(largeKey{}) != nil }

// Limit has a handler of Syncs get messages within the limits.
func (b *Bodies) Limit(next http.Handler) http.Handler {
	refusals := connect.NewErrorWriter()
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if kind := r.Header.Get("Content-Type"); kind != messageType {
			http.Error(w, fmt.Sprintf("a message of a pilot is of the type %s, not %.100q", messageType, kind),
				http.StatusUnsupportedMediaType)
			return
		}
		if 0 <= r.ContentLength && r.ContentLength <= LargeMessage {
			next.ServeHTTP(w, r)
			return
		}
		body, done, err := b.take(r)
		if err != nil {
			w.Header().Set("Connection", "close")
			_ = refusals.Write(w, r, err)
			return
		}
		defer done()
		r = r.WithContext(context.WithValue(r.Context(), largeKey{}, true))
		r.Body, r.ContentLength = io.NopCloser(bytes.NewReader(body)), int64(len(body))
		next.ServeHTTP(w, r)
	})
}

// messageType is that of the messages of pilots. Those of other types would take more to
// decode than can be told before.
const messageType = "application/proto"

// take reads a large message when there is room for it. done makes room for others.
func (b *Bodies) take(r *http.Request) (body []byte, done func(), err error) {
	var undo []func()
	release := func() {
		for _, one := range undo {
			one()
		}
	}
	defer func() {
		if err != nil {
			release()
		}
	}()
	size := r.ContentLength
	if size < 0 {
		size = MaxMessage
	}
	if size > MaxMessage {
		return nil, nil, connect.NewError(connect.CodeResourceExhausted,
			fmt.Errorf("the message is larger than %d bytes (MaxMessage): say it in several", MaxMessage))
	}
	ctx, cancel := context.WithTimeout(r.Context(), RoomTime)
	defer cancel()
	full := func(what string) error {
		return connect.NewError(connect.CodeUnavailable,
			fmt.Errorf("%s, and within %v there was no room for this one; it may be sent again", what, RoomTime))
	}
	if caller, ok := CallerOf(r.Context()); ok {
		leave, ok := b.enter(ctx, caller.Launch)
		if undo = append(undo, leave); !ok {
			return nil, nil, full("this launch has a large message on its way")
		}
	}
	if b.coming.Acquire(ctx, 2*size) != nil {
		return nil, nil, full("many large messages are on their way")
	}
	undo = append(undo, func() { b.coming.Release(2 * size) })
	var whole bytes.Buffer // what a caller only says that it sends takes no room
	if _, err := whole.ReadFrom(io.LimitReader(r.Body, size+1)); err != nil {
		return nil, nil, connect.NewError(connect.CodeUnavailable, fmt.Errorf("the message was cut: %w", err))
	}
	if int64(whole.Len()) > size {
		return nil, nil, connect.NewError(connect.CodeResourceExhausted,
			fmt.Errorf("the message is larger than %d bytes (MaxMessage): say it in several", MaxMessage))
	}
	elements, err := elementsOf(whole.Bytes(), (*wire.SyncRequest)(nil).ProtoReflect().Descriptor(), MaxElements)
	if err != nil {
		return nil, nil, err
	}
	weight := int64(3*whole.Len() + elements*elementSize)
	if b.decoded.Acquire(ctx, weight) != nil {
		return nil, nil, full("many large messages are worked on")
	}
	undo = append(undo, func() { b.decoded.Release(weight) })
	return whole.Bytes(), release, nil
}

// enter waits until no other large message of a launch is on its way. leave must be called,
// whether there was room or not.
func (b *Bodies) enter(ctx context.Context, launch string) (leave func(), ok bool) {
	b.mu.Lock()
	room := b.busy[launch]
	if room == nil {
		room = &launchRoom{taken: make(chan struct{}, 1)}
		b.busy[launch] = room
	}
	room.users++
	b.mu.Unlock()
	select {
	case room.taken <- struct{}{}:
		ok = true
	case <-ctx.Done():
	}
	return func() {
		if ok {
			<-room.taken
		}
		b.mu.Lock()
		defer b.mu.Unlock()
		if room.users--; room.users == 0 {
			delete(b.busy, launch)
		}
	}, ok
}

// elementsOf counts what decoding a message makes: texts and messages, at most so many.
func elementsOf(message []byte, of protoreflect.MessageDescriptor, most int) (n int, err error) {
	for len(message) > 0 {
		number, kind, tag := protowire.ConsumeTag(message)
		if tag < 0 {
			return 0, malformed("the message cannot be read: %v", protowire.ParseError(tag))
		}
		size := protowire.ConsumeFieldValue(number, kind, message[tag:])
		if size < 0 {
			return 0, malformed("the message cannot be read: %v", protowire.ParseError(size))
		}
		if kind == protowire.BytesType {
			n++
			if field := of.Fields().ByNumber(number); field != nil && field.Message() != nil {
				inner, _ := protowire.ConsumeBytes(message[tag:])
				inside, err := elementsOf(inner, field.Message(), most-n)
				if err != nil {
					return 0, err
				}
				n += inside
			}
		}
		if n > most {
			return 0, malformed("the message has more than %d elements (MaxElements)", MaxElements)
		}
		message = message[tag+size:]
	}
	return n, nil
}
