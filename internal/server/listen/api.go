//go:build linux

package listen

import (
	"bytes"
	"fmt"
	"net/http"
	"strconv"

	"connectrpc.com/connect"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"

	"fairway/internal/wire"
)

// exactJSON is the encoding of requests as JSON, of which nothing is passed over: a field that this
// server does not know may be one that a newer client relies on.
type exactJSON struct{}

// Name is part of connect.Codec.
func (exactJSON) Name() string { return "json" }

// Marshal is part of connect.Codec.
func (exactJSON) Marshal(message any) ([]byte, error) {
	m, ok := message.(proto.Message)
	if !ok {
		return nil, fmt.Errorf("%T is no message", message)
	}
	return protojson.Marshal(m)
}

// Unmarshal is part of connect.Codec.
func (exactJSON) Unmarshal(text []byte, message any) error {
	m, ok := message.(proto.Message)
	if !ok {
		return fmt.Errorf("%T is no message", message)
	}
	if err := protojson.Unmarshal(text, m); err != nil {
		name := m.ProtoReflect().Descriptor().Name()
		if bytes.Contains([]byte(err.Error()), []byte("unknown field")) {
			return fmt.Errorf("%s: %w; docs/api.md has its fields, and a newer server may know more", name, err)
		}
		return fmt.Errorf("%s: %w", name, err)
	}
	return nil
}

// saysAPI has each answer tell the version of the API.
func saysAPI(next http.Handler) http.Handler {
	version := strconv.Itoa(wire.API)
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set(wire.APIHeader, version)
		next.ServeHTTP(w, r)
	})
}

var exactly = connect.WithCodec(exactJSON{})
