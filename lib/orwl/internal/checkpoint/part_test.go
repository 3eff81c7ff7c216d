package checkpoint

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"reflect"
	"strings"
	"testing"
)

// refusing is a location that cannot be restored.
type refusing struct{ saved }

var errRefused = errors.New("no memory")

func (r *refusing) Restore(int, func([]byte)) error { return errRefused }

// sumOf is that of a text.
func sumOf(text string) (s Sum) {
	s.Add([]byte(text))
	return s
}

// A part is read only as one of the same locations, whose sizes are those of what was written.
func TestPartsOfOtherLocations(t *testing.T) {
	for name, c := range map[string]struct{ text, refused string }{
		"of these":   {`{"locations":[{"name":"a","size":1},{"name":"b","size":2}]}` + "\nxyz", ""},
		"empty ones": {`{"locations":[{"name":"a","size":0},{"name":"b","size":0}]}` + "\n", ""},
		"of fewer":   {`{"locations":[{"name":"a","size":3}]}` + "\nxyz", "it has 1 locations, and the program 2"},
		"of others": {
			`{"locations":[{"name":"a","size":1},{"name":"c","size":2}]}` + "\nxyz", `location "c", and the program "b"`,
		},
		"a negative size":    {`{"locations":[{"name":"a","size":-1},{"name":"b","size":4}]}` + "\nxyz", ErrDamaged.Error()},
		"a size beyond":      {`{"locations":[{"name":"a","size":1},{"name":"b","size":999}]}` + "\nxyz", ErrDamaged.Error()},
		"sizes beyond":       {`{"locations":[{"name":"a","size":60},{"name":"b","size":60}]}` + "\nxyz", ErrDamaged.Error()},
		"too little":         {`{"locations":[{"name":"a","size":1},{"name":"b","size":3}]}` + "\nxyz", ErrDamaged.Error()},
		"too much":           {`{"locations":[{"name":"a","size":1},{"name":"b","size":1}]}` + "\nxyz", ErrDamaged.Error()},
		"no locations":       {"{}\n", "it has 0 locations, and the program 2"},
		"a head that is not": {"locations\nxyz", ErrDamaged.Error()},
		"no end of the head": {`{"locations":[]}`, ErrDamaged.Error()},
		"nothing":            {"", ErrDamaged.Error()},
	} {
		all := []*saved{{name: "a"}, {name: "b"}}
		err := ReadPart(t.Context(), strings.NewReader(c.text), sumOf(c.text), all)
		if c.refused == "" {
			must(t, err)
		} else if err == nil || !strings.Contains(err.Error(), c.refused) {
			t.Errorf("%s: %v; want %s", name, err, c.refused)
		}
		if strings.HasPrefix(name, "a size") || strings.HasPrefix(name, "sizes") || strings.HasPrefix(name, "a negative") {
			if all[0].data != nil {
				t.Errorf("%s: a location was restored", name)
			}
		}
	}
}

// Who writes or reads a part hears why it ends before.
func TestPartsThatEndBefore(t *testing.T) {
	one := []*saved{{name: "a", data: []byte("x")}}
	var b bytes.Buffer
	sum, err := WritePart(t.Context(), &b, one)
	must(t, err)
	if want := `{"locations":[{"name":"a","size":1}]}` + "\nx"; b.String() != want || sum != sumOf(want) {
		t.Errorf("a part is %q, %+v", &b, sum)
	}
	ended, end := context.WithCancel(t.Context())
	end()
	if _, err := WritePart(ended, io.Discard, one); !errors.Is(err, context.Canceled) {
		t.Errorf("written after the end: %v", err)
	}
	if err := ReadPart(ended, bytes.NewReader(b.Bytes()), sum, one); !errors.Is(err, context.Canceled) {
		t.Errorf("read after the end: %v", err)
	}
	r, w := io.Pipe()
	must(t, r.Close())
	if _, err := WritePart(t.Context(), w, one); !errors.Is(err, io.ErrClosedPipe) {
		t.Errorf("written to nobody: %v", err)
	}
	err = ReadPart(t.Context(), bytes.NewReader(b.Bytes()), sum, []*refusing{{saved{name: "a"}}})
	if !errors.Is(err, errRefused) {
		t.Errorf("restored where there is no memory: %v", err)
	}
	other := sum
	other.CRC32C++
	if err := ReadPart(t.Context(), bytes.NewReader(b.Bytes()), other, one); !errors.Is(err, ErrDamaged) {
		t.Errorf("a part with another sum: %v", err)
	}
}

// The first line of a part may be longer than what is read at once.
func TestALongFirstLine(t *testing.T) {
	name := strings.Repeat("n", 1000)
	text := fmt.Sprintf(`{"locations":[{"name":%q,"size":1}]}`, name) + "\nx"
	head, err := readPartHead(bufio.NewReaderSize(strings.NewReader(text), 16))
	if err != nil || len(head.Locations) != 1 || head.Locations[0].Name != name {
		t.Errorf("%v, %d locations", err, len(head.Locations))
	}
	n := 0
	if got, err := writerFunc(func(b []byte) { n += len(b) }).Write([]byte("abc")); got != 3 || n != 3 || err != nil {
		t.Errorf("%d of %d bytes are written, %v", got, n, err)
	}
}

// A message is read as it was put.
func TestMessagesAreReadAsTheyWerePut(t *testing.T) {
	m := Message{Number: 1, Kind: GavePart, Iteration: 3, Offset: 4, Size: 5, Sum: 1 << 40, Data: []byte("text")}
	b := make([]byte, m.Length())
	m.Put(b)
	got, err := ParseMessage(b)
	if err != nil || !reflect.DeepEqual(got, m) {
		t.Errorf("%+v, %v; want %+v", got, err, m)
	}
	if b[0] != 1 || b[8] != byte(GavePart) || b[5*8+5] != 1 || string(b[6*8:]) != "text" {
		t.Errorf("it stands there as %v", b)
	}
}

func TestLengthsOfMessages(t *testing.T) {
	for length, ok := range map[int]bool{
		0: false, messageHead - 1: false, messageHead: true, messageHead + PieceSize: true,
		messageHead + PieceSize + 1: false,
	} {
		if m, err := ParseMessage(make([]byte, length)); (err == nil) != ok || ok && m.Length() != length {
			t.Errorf("a message of %d bytes: %v", length, err)
		}
	}
}
