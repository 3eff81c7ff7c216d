package orwl

import (
	"bufio"
	"bytes"
	"reflect"
	"testing"

	"fairway/orwl/internal/memory"
)

func TestFrameRoundTrip(t *testing.T) {
	want := frame{
		kind: frameReserve, ok: true, mode: Write, code: 2, id: 1 << 40, next: 7, mirror: 3, generation: 9, version: 11,
		rank: -5, size: 9000, text: "a location", extents: []memory.Extent{{Offset: 0, Length: 10}, {Offset: 4096, Length: 4096}},
		requests: []wireRequest{{1, 2, Write, -1, "a task"}, {3, 4, Read, 1 << 30, ""}},
	}
	for _, size := range []int{16, 4096} { // a header that fits, and one that does not
		r := frameReader{limit: MaxHeader, in: bufio.NewReaderSize(bytes.NewReader(appendFrame(nil, &want)), size)}
		var got frame
		must(t, r.next(&got))
		if !reflect.DeepEqual(got, want) {
			t.Fatalf("got %+v, want %+v", got, want)
		}
	}
}

func FuzzFrame(f *testing.F) {
	f.Add(appendFrame(nil, &frame{kind: frameGranted, id: 3, size: 8, extents: []memory.Extent{{Offset: 0, Length: 8}}})[4:])
	f.Add(appendFrame(nil, &frame{kind: frameReserve, requests: []wireRequest{{1, 2, Write, 3, "t"}}})[4:])
	f.Fuzz(func(t *testing.T, b []byte) {
		got, err := decodeFrame(b, nil)
		if err != nil {
			return
		}
		for _, e := range got.extents {
			if e.Offset < 0 || e.Length < 0 || int64(e.Offset+e.Length) > got.size {
				t.Fatalf("extent %+v beyond size %d", e, got.size)
			}
		}
		again, err := decodeFrame(appendFrame(nil, &got)[4:], nil)
		if err != nil || !reflect.DeepEqual(again, got) {
			t.Fatalf("%+v became %+v, %v", got, again, err)
		}
	})
}
