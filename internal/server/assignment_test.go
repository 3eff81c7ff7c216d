package server

import (
	"strings"
	"testing"

	"google.golang.org/protobuf/proto"

	"fairway/internal/access"
	"fairway/internal/taskqueue"
	"fairway/internal/wire"
)

// What dispatch takes for the size of an assignment is not less than that of the message, with
// room for what else an answer says.
func TestAssignmentsFitIntoMessages(t *testing.T) {
	const files = 1000
	bytesOf := func(n int) []byte { return []byte(strings.Repeat("t", n)) }
	pilot := "a-site-with-a-long-name-0123456789abcdef.123456-0123abcd"
	source := func() *wire.Source {
		return &wire.Source{Pilot: pilot, Address: "[2001:db8:0000:0000:0000:0000:0000:0001]:65535",
			Pin: strings.Repeat("0", 64), Epoch: 1 << 40, Ticket: bytesOf(32)}
	}
	for _, length := range []int{10, 50, 200} {
		lfn := strings.Repeat("n", length)
		a := &wire.Assignment{Payload: bytesOf(100_000)}
		for range files {
			from := source()
			from.Origin = source()
			a.Inputs = append(a.Inputs, &wire.InputFile{
				File: &wire.FileRef{Lfn: lfn, Version: 1 << 31, Tag: 1 << 63}, Size: 1 << 50, Adler32: 1 << 31, Blake3: bytesOf(32),
				Ticket: bytesOf(64), Source: from,
				Pfn: "https://storage.example.org/" + strings.Repeat("d", 200) + "/" + lfn + ".v4294967295.a18446744073709551615",
			})
			a.Outputs = append(a.Outputs, &wire.OutputFile{
				Lfn: lfn, Version: 1 << 31, Pattern: true, CacheOnly: true, Ticket: bytesOf(64),
			})
		}
		n := taskqueue.MaxAssignment / (2*length + 1000 + length + 200) // files at the limit
		if size := proto.Size(a) / files * n; size > taskqueue.MaxAssignment ||
			taskqueue.MaxAssignment > access.MaxAnswer-32<<20 {
			t.Errorf("names of %d bytes: %d files of each kind take %d bytes", length, n, size)
		}
	}
}
