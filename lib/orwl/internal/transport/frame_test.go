package transport

import (
	"bufio"
	"bytes"
	"reflect"
	"testing"

	"fairway/lib/fifo"
	"fairway/lib/orwl/internal/memory"
)

func TestFrameRoundTrip(t *testing.T) {
	want := Frame{
		Kind: Reserve, OK: true, Mode: fifo.Write, Code: 2, ID: 1 << 40, Next: 7, Mirror: 3, Generation: 9, Version: 11,
		Rank: -5, Size: 9000, Text: "a location", Extents: []memory.Extent{
			{Offset: 0, Length: 10}, {Offset: 4096, Length: 4096},
		},
		Requests: []Posting{{1, 2, fifo.Write, -1, "a task"}, {3, 4, fifo.Read, 1 << 30, ""}},
	}
	for _, size := range []int{16, 4096} { // a header that fits, and one that does not
		r := Reader{Limit: MaxHeader, In: bufio.NewReaderSize(bytes.NewReader(AppendFrame(nil, &want)), size)}
		var got Frame
		must(t, r.Next(&got))
		if !reflect.DeepEqual(got, want) {
			t.Fatalf("got %+v, want %+v", got, want)
		}
	}
}

func FuzzFrame(f *testing.F) {
	f.Add(AppendFrame(nil, &Frame{Kind: Granted, ID: 3, Size: 8, Extents: []memory.Extent{{Offset: 0, Length: 8}}})[4:])
	f.Add(AppendFrame(nil, &Frame{Kind: Reserve, Requests: []Posting{{1, 2, fifo.Write, 3, "t"}}})[4:])
	f.Fuzz(func(t *testing.T, b []byte) {
		got, err := decodeFrame(b, nil)
		if err != nil {
			return
		}
		for _, e := range got.Extents {
			if e.Offset < 0 || e.Length < 0 || int64(e.Offset+e.Length) > got.Size {
				t.Fatalf("extent %+v beyond size %d", e, got.Size)
			}
		}
		again, err := decodeFrame(AppendFrame(nil, &got)[4:], nil)
		if err != nil || !reflect.DeepEqual(again, got) {
			t.Fatalf("%+v became %+v, %v", got, again, err)
		}
	})
}
