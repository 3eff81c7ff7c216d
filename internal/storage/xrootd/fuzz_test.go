package xrootd

import (
	"bufio"
	"bytes"
	"encoding/binary"
	"errors"
	"net"
	"strings"
	"testing"

	"fairway/internal/storage"
)

// Whatever xrdfs prints, a size is one, and a name is one of the folder.
func FuzzStat(f *testing.F) {
	f.Add("Path:   /store/x\nId:     123\nSize:   5\nMTime:  2026-11-22 10:00:00\nFlags:  16 (IsReadable)")
	f.Add("Size: 0\nFlags: 19 (XBitSet|IsDir|IsReadable)")
	f.Fuzz(func(t *testing.T, text string) {
		if info, _, err := parseStat(text); err == nil && info.Size < 0 {
			t.Fatalf("%q: %+v", text, info)
		}
	})
}

// See FuzzStat.
func FuzzList(f *testing.F) {
	f.Add("-r-- 2026-11-22 10:00:00           5 /store/a b\ndr-x 2026-11-22 10:00:00        4096 /store/run1", "/store")
	f.Add("-r-- 2026-11-22 10:00:00           5 /store/..\n-r-- 5 /store/.", "/store/")
	f.Fuzz(func(t *testing.T, text, folder string) {
		for _, e := range parseList(text, folder) {
			if e.Name == "" || e.Name == "." || e.Name == ".." || strings.ContainsAny(e.Name, "/\n\x00") {
				t.Fatalf("%q is listed in %q", e.Name, folder)
			}
		}
	})
}

// See FuzzStat.
func FuzzChecksum(f *testing.F) {
	f.Add("adler32 0a1b2c3d\n")
	f.Fuzz(func(t *testing.T, text string) {
		if sum := parseChecksum(text); sum.Hash() != nil && len(sum.Value) == 0 {
			t.Fatalf("%q: %+v", text, sum)
		}
	})
}

// Whatever a server sends, a client ends with an answer or an error, and keeps no more
// than it may.
func FuzzAnswer(f *testing.F) {
	frame := func(status uint16, body string) string {
		head := binary.BigEndian.AppendUint16([]byte{0, 1}, status)
		return string(binary.BigEndian.AppendUint32(head, uint32(len(body)))) + body
	}
	f.Add([]byte(frame(answerOK, "123 5 16 0")))
	f.Add([]byte(frame(answerMore, "12") + frame(answerOK, "3 5 16 0")))
	f.Add([]byte(frame(answerError, "\x00\x00\x0b\xc3no such file\x00")))
	f.Add([]byte(frame(answerRedirect, "\x00\x00\x04\x46other.example.org?token=1?2")))
	f.Add([]byte(frame(answerRedirect, "\x00\x00\x04\x46[")))
	f.Add([]byte(frame(answerRedirect, "\x00\x00\x04\x46a[b")))
	f.Add([]byte(frame(answerRedirect, "\xff\xff\xff\xfffile:///etc/passwd")))
	f.Add([]byte(frame(answerWait, "\x00\x00\x00\x1e")))
	f.Add([]byte(frame(answerPromise, "\x00\x00\x00\x1e") + frame(answerNotice,
		"\x00\x00\x13\x90\x00\x00\x00\x00"+frame(answerOK, "x"))))
	f.Add([]byte(frame(answerOK, ".\n0 0 0 0\na\n1 5 16 0\nb\n2 0 2 0")))
	f.Fuzz(func(t *testing.T, sent []byte) {
		c := &connection{in: bufio.NewReader(bytes.NewReader(sent))}
		body, err := c.answer(1 << 16)
		if len(body) > 1<<16 {
			t.Fatalf("%d bytes are kept", len(body))
		}
		var elsewhere *redirected
		if errors.As(err, &elsewhere) {
			if host, port, err := net.SplitHostPort(elsewhere.address); err != nil || host == "" || port == "" {
				t.Fatalf("redirected to %q", elsewhere.address)
			}
		}
		if info, _, err := parseInfo(text(body)); err == nil && info.Size < 0 {
			t.Fatalf("%q: %+v", body, info)
		}
		entries, _ := parseEntries(string(body))
		for _, e := range entries {
			if !storage.IsElement(e.Name) {
				t.Fatalf("%q is listed", e.Name)
			}
		}
	})
}
