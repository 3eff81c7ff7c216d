package xrootd

import (
	"bufio"
	"encoding/binary"
	"errors"
	"io"
	"runtime"
	"strings"
	"testing"

	"fairway/internal/storage"
)

// What a server only says that it sends takes no room, and no more is kept than a list, or a
// few words, may have.
func TestAnswersAreBounded(t *testing.T) {
	said := func(status uint16, size uint32, body string) io.Reader {
		head := binary.BigEndian.AppendUint16([]byte{0, 1}, status)
		return io.MultiReader(strings.NewReader(string(binary.BigEndian.AppendUint32(head, size)) + body))
	}
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	for range 100 {
		c := &connection{in: bufio.NewReader(said(answerOK, maxList, "little"))}
		if _, err := c.answer(maxList); !errors.Is(err, io.ErrUnexpectedEOF) {
			t.Fatal(err)
		}
	}
	runtime.ReadMemStats(&after)
	if took := after.TotalAlloc - before.TotalAlloc; took > 100*(1<<20) {
		t.Errorf("%d MiB for answers that did not come", took>>20)
	}
	c := &connection{in: bufio.NewReader(said(answerOK, maxAnswer+1, ""))}
	if _, err := c.answer(maxAnswer); !errors.Is(err, errProtocol) {
		t.Error(err)
	}
	long := strings.Repeat("\x1b[2Jno ", 1<<16)
	c = &connection{in: bufio.NewReader(said(answerError, uint32(4+len(long)), "\x00\x00\x0b\xc3"+long))}
	_, err := c.answer(maxAnswer)
	var told *Error
	if !errors.As(err, &told) || len(told.Text) > 2*storage.MaxSaid || strings.Contains(told.Text, "\x1b") {
		t.Errorf("%.100q", told.Text)
	}
}
